"""Every part knows its place. A swapped, stale or foreign part is found at open, without reading
data: each path gives an error, and `graphlane check` leaves the part alone."""

import os
import random
import shutil

import pytest

from harness import PRELOADED, run
from stubs import RECORD, parts_of_file

CONTENT = random.Random(3).randbytes(3 * 5 * 65536)  # all parts have the same size


@pytest.fixture
def made(graphlane, volume, tmp_path):
    """A volume with the striped files a and b."""
    made = volume(device_count=3, depth="64K")
    for name, content in (("a", CONTENT), ("b", CONTENT[::-1])):
        (tmp_path / name).write_bytes(content)
        graphlane("import", tmp_path / name, made.path)
    return made


def two_parts_swapped(made):
    first, second, _ = parts_of_file(made, made.path / "a")
    os.rename(first, first.with_suffix(".x"))
    os.rename(second, first)
    os.rename(first.with_suffix(".x"), second)


def all_parts_moved_on(made):
    parts = parts_of_file(made, made.path / "a")
    for part in parts:
        os.rename(part, part.with_suffix(".x"))
    for part, place in zip(parts, parts[1:] + parts[:1]):
        os.rename(part.with_suffix(".x"), place)


def a_part_of_another_file(made):
    run("cp", "-a", parts_of_file(made, made.path / "b")[1], parts_of_file(made, made.path / "a")[1])


def a_part_without_its_record(made):
    os.removexattr(parts_of_file(made, made.path / "a")[2], RECORD)


def a_part_with_a_flipped_record(made):
    part = parts_of_file(made, made.path / "a")[2]
    record = bytearray(os.getxattr(part, RECORD))
    record[16] ^= 1  # a bit of the inode
    os.setxattr(part, RECORD, bytes(record))


def a_stub_with_another_first_device(made):
    """The checksum is right, because a user wrote the 4096 bytes."""
    from stubs import sealed
    content = bytearray((made.path / "a").read_bytes())
    content[60] = (content[60] + 1) % 3
    with open(made.path / "a", "r+b") as file:
        file.write(sealed(bytes(content)))


WAYS = [two_parts_swapped, all_parts_moved_on, a_part_of_another_file, a_part_without_its_record,
        a_part_with_a_flipped_record, a_stub_with_another_first_device]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_is_refused_on_every_way(graphlane, made, mount, tmp_path, way):
    way(made)
    env = {**os.environ, **PRELOADED}
    result = graphlane("run", "--no-mount", "--", "cat", made.path / "a", check=False, env=env)
    assert result.returncode != 0 and result.stdout == "" and "Input/output error" in result.stderr
    assert graphlane("export", made.path / "a", tmp_path / "out", check=False).returncode == 1
    checked = graphlane("check", "--repair", made.path, check=False)
    assert checked.returncode != 0 and str(made.path / "a") in checked.stdout, checked.stdout
    with mount(made) as at:
        assert run("cat", at / "a", check=False).stdout == ""
        assert run("cmp", at / "b", tmp_path / "b").returncode == 0
    assert len(parts_of_file(made, made.path / "a")) == 3


@pytest.mark.parametrize("change", ["grown", "cut", "made anew"])
def test_an_outdated_device_is_reported(graphlane, made, mount, tmp_path, change):
    """The second device returns as it was before the file was changed."""
    device = made.devices[1]
    run("cp", "-a", device, tmp_path / "older")
    with mount(made) as at:
        if change == "grown":
            with open(at / "a", "ab") as file:
                file.write(b"more")
        elif change == "cut":
            os.truncate(at / "a", 3 * 65536)
        else:
            (tmp_path / "b").write_bytes(CONTENT)
    if change == "made anew":
        graphlane("import", "--overwrite", tmp_path / "b", made.path)
    shutil.rmtree(device)
    run("cp", "-a", tmp_path / "older", device)
    name = "b" if change == "made anew" else "a"
    assert graphlane("export", made.path / name, tmp_path / "out", check=False).returncode == 1
    assert graphlane("check", made.path, check=False).returncode != 0
    with mount(made) as at:
        assert run("cat", at / name, check=False).returncode != 0


def test_a_device_that_missed_two_changes_is_not_opened(graphlane, made, tmp_path):
    device = made.devices[1]
    run("cp", "-a", device, tmp_path / "older")
    for _ in range(2):
        graphlane("import", "--overwrite", tmp_path / "b", made.path)
    shutil.rmtree(device)
    run("cp", "-a", tmp_path / "older", device)
    result = graphlane("check", made.path, check=False)
    assert result.returncode != 0 and "older copy of device 1" in result.stderr
