"""What the tests of the command line share."""

import os
from pathlib import Path

import pytest

from harness import run, snapshot


@pytest.fixture
def refused(graphlane, tmp_path):
    """refused("import", …, naming="x"): fails with one line that names the culprit,
    and leaves everything below tmp_path as it was."""

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


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def small_filesystem(root, tmp_path):
    """small_filesystem(path, "8M"): a filesystem of that size, gone afterwards."""
    mounted = []

    def make(path: Path, size: str, options: str = "") -> Path:
        path.mkdir(exist_ok=True)
        if run("mount", "-t", "tmpfs", "-o", f"size={size}{options}", "tmpfs", path,
               check=False).returncode != 0:
            pytest.skip("mount of a tmpfs is not allowed here")
        mounted.append(path)
        return path

    yield make
    for path in reversed(mounted):
        run("umount", "-l", path, check=False)
