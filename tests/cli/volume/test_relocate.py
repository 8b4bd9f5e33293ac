"""graphlane relocate: a device's directory is moved, or was."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import BUILD

CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture
def filled(graphlane, volume, tmp_path):
    made = volume(depth="64K")
    (tmp_path / "data").write_bytes(CONTENT)
    graphlane("import", tmp_path / "data", made.path)
    (tmp_path / "new").mkdir()
    return made


def is_whole(graphlane, made, tmp_path):
    assert "no problems" in graphlane("check", "--scrub", made.path).stdout
    (tmp_path / "out").unlink(missing_ok=True)
    graphlane("export", made.path / "data", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT


def devices(graphlane, made):
    return [line.split()[0] for line in graphlane("info", made.path).stdout.splitlines() if line.startswith("  /")]


def own(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith("graphlane-")]


@pytest.fixture
def elsewhere():
    """A directory on another filesystem."""
    path = Path("/dev/shm") / f"graphlane-test-{os.getpid()}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("i", [0, 1])
def test_on_one_filesystem_it_is_renamed(graphlane, filled, tmp_path, i):
    said = graphlane("relocate", filled.path, filled.devices[i], tmp_path / "new").stdout
    assert said == f"{filled.path}: {filled.devices[i]} is at {tmp_path}/new now (renamed)\n"
    assert own(filled.devices[i]) == [] and len(own(tmp_path / "new")) == 1
    is_whole(graphlane, filled, tmp_path)


def test_on_another_filesystem_it_is_copied(graphlane, filled, tmp_path, elsewhere):
    if os.stat(elsewhere).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("not applicable: /dev/shm is no other filesystem")
    (elsewhere / (own(filled.devices[1])[0] + ".copy")).mkdir()  # of a run that was killed
    assert "copied)" in graphlane("relocate", filled.path, filled.devices[1], elsewhere).stdout
    assert own(filled.devices[1]) == [] and len(own(elsewhere)) == 1
    is_whole(graphlane, filled, tmp_path)
    graphlane("relocate", filled.path, elsewhere, filled.devices[1])
    is_whole(graphlane, filled, tmp_path)


@pytest.mark.parametrize(("call", "count"), [
    ("mkdirat", 3), ("renameat2", 1),  # while it copies; before the copy gets its name
    ("syncfs", 1), ("rename", 1),     # before volume.json names the new directory
    ("rename", 2),                    # before the old directory is put aside
    ("unlinkat", 1), ("unlinkat", 4), ("unlink", 1),  # while that is removed
])
def test_a_killed_copy_is_ended_by_the_next_run(graphlane, filled, tmp_path, elsewhere, call, count):
    if os.stat(elsewhere).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("not applicable: /dev/shm is no other filesystem")
    words = ["relocate", filled.path, filled.devices[1], elsewhere]
    killed = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={count}",
                             BUILD / "bin/graphlane", *words], check=False, capture_output=True)
    assert killed.returncode in (-9, 137), killed
    left = graphlane("check", filled.path, check=False).stdout
    assert "no problems" in left or f"graphlane relocate {filled.path} {filled.devices[1]} {elsewhere} removes it" in left
    graphlane("export", filled.path / "data", tmp_path / "before")
    assert (tmp_path / "before").read_bytes() == CONTENT
    graphlane(*words)
    assert own(filled.devices[1]) == [] and len(own(elsewhere)) == 1
    assert sorted(path.name for path in (elsewhere / own(elsewhere)[0]).iterdir()) == ["device.json", "parts", "sums"]
    is_whole(graphlane, filled, tmp_path)
    graphlane("relocate", filled.path, elsewhere, filled.devices[1])
    is_whole(graphlane, filled, tmp_path)


def test_what_was_moved_already_is_noted(graphlane, filled, tmp_path):
    """A disk that is mounted elsewhere; or a relocate that was killed after its rename."""
    for i, name in enumerate(["new", "new2"]):
        (tmp_path / name).mkdir(exist_ok=True)
        (directory,) = own(filled.devices[i])
        (filled.devices[i] / directory).rename(tmp_path / name / directory)
    for i, name in enumerate(["new", "new2"]):
        assert "it was there already" in graphlane("relocate", filled.path, filled.devices[i], tmp_path / name).stdout
    is_whole(graphlane, filled, tmp_path)


def test_another_devices_directory_is_refused(graphlane, refused, filled, tmp_path):
    (first,) = own(filled.devices[0])
    (filled.devices[1] / first).rename(tmp_path / "aside")
    shutil.copytree(filled.devices[0] / first, tmp_path / "new" / first)
    before = (filled.path / ".graphlane/volume.json").read_bytes()
    refused("relocate", filled.path, filled.devices[1], tmp_path / "new", naming="is not device 1")
    assert (filled.path / ".graphlane/volume.json").read_bytes() == before


def test_an_older_copy_is_refused(graphlane, refused, filled, tmp_path):
    (first,) = own(filled.devices[1])
    shutil.copytree(filled.devices[1] / first, tmp_path / "new" / first)
    for _ in range(3):
        graphlane("rm", filled.path / "data")
        graphlane("import", tmp_path / "data", filled.path)
    (filled.devices[1] / first).rename(tmp_path / "aside")
    before = (filled.path / ".graphlane/volume.json").read_bytes()
    refused("relocate", filled.path, filled.devices[1], tmp_path / "new", naming="older copy")
    assert (filled.path / ".graphlane/volume.json").read_bytes() == before


def test_wrong_words_change_nothing(graphlane, refused, filled, tmp_path):
    before = (filled.path / ".graphlane/volume.json").read_bytes()
    old, other = filled.devices[:2]
    for words, naming in [((tmp_path, tmp_path / "new"), "not a device of"), ((old, other), "the same directory as device 1"),
                          ((old, old), "is where the device lies"), ((old, tmp_path / "none"), "cannot open"),
                          ((old, filled.path), "lies inside the volume"), ((old, other / own(other)[0]), "lies inside the device")]:
        refused("relocate", filled.path, *words, naming=naming)
    assert (filled.path / ".graphlane/volume.json").read_bytes() == before
    is_whole(graphlane, filled, tmp_path)


def test_what_is_used_is_not_moved(graphlane, refused, filled, tmp_path, fuse):
    with graphlane.mounted(filled, tmp_path / "mnt"):
        refused("relocate", filled.path, filled.devices[0], tmp_path / "new", naming="is mounted at")
