"""Fixtures of the tests of the command line."""

import random

import pytest

from cli.striped_data import STRIPED_BYTES
from harness import snapshot


@pytest.fixture
def striped(graphlane, volume, tmp_path):
    """A volume with the striped file `data`, and the same file in tmp_path."""
    made = volume(depth="64K")
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(STRIPED_BYTES))
    graphlane("import", tmp_path / "data", made.path)
    return made


@pytest.fixture
def refused(graphlane, tmp_path):
    """refused("import", …, naming="x"): fails with one line that names the culprit, and changes
    nothing below tmp_path."""

    def check(*words, naming, status=1, **kwargs) -> str:
        before = snapshot(tmp_path)
        result = graphlane(*words, check=False, **kwargs)
        assert result.returncode == status, result.stdout + result.stderr
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("graphlane: ")
        assert str(naming) in lines[0], lines[0]
        assert snapshot(tmp_path) == before
        return lines[0]

    return check
