import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from commands import experiments  # noqa: E402

from harness import SANITIZED, machine_caches  # noqa: E402

from experiments.devices import cgroup  # noqa: E402
from experiments.workspace import StepFailed  # noqa: E402


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Hides the engines that the user has."""
    for name in ["GRIDGRAPH_BIN", "GRIDGRAPH_KIT_BIN", "GRAPHCHI_ROOT", "GRAPHCHI_KIT_BIN", "CSMQGRAPH_BIN"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def loops(root, fuse):
    if not Path("/dev/loop-control").exists():
        pytest.skip("not applicable: no loop devices here")


@pytest.fixture(params=["ssd", "hdd"])
def kind(request, loops):
    return request.param


@pytest.fixture
def dropped_caches():
    """Measurements begin with empty caches."""
    with machine_caches(dropped=True):
        yield


@pytest.fixture
def ready(loops, dropped_caches):
    if SANITIZED:
        pytest.skip("not applicable: a sanitizer's own memory would count")
    try:
        cgroup.named("any")
    except StepFailed as failed:
        pytest.skip(f"not applicable: {failed}")
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("not applicable: no btrfs-progs here")


@pytest.fixture
def at():
    """The place of the devices. Whatever a failed test leaves is taken down. (Not below
    tmp_path: another pytest of this user removes old ones, even while something is mounted
    there.)"""
    above = Path(tempfile.mkdtemp(prefix="graphlane-test-"))
    yield above / "devices"
    if (above / "devices/undo.jsonl").exists():
        experiments("devices", "down", "--at", above / "devices", check=False)
    for directory in [above / "devices", above]:
        with suppress(OSError):
            directory.rmdir()
