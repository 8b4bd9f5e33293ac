import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from commands import experiments  # noqa: E402

from experiments import cgroup  # noqa: E402


@pytest.fixture
def loops(root, fuse):
    if not Path("/dev/loop-control").exists():
        pytest.skip("not applicable: no loop devices here")


@pytest.fixture(params=["ssd", "hdd"])
def kind(request, loops):
    if request.param == "ssd" and cgroup.hierarchy("blkio") is None:
        pytest.skip("not applicable: no cgroup v1 blkio here")
    return request.param


@pytest.fixture
def at(tmp_path):
    """Where devices go; whatever a failed test leaves is taken down."""
    directory = tmp_path / "devices"
    yield directory
    if (directory / "undo.jsonl").exists():
        experiments("devices", "down", "--at", directory, check=False)
