"""The power fails while a file is made: its stub is there, but some parts are missing or name no
stub. On every path it is an empty file. A file with a synced part is not."""

import errno
import os
import random
import struct

import pytest

from harness import run
from stubs import RECORD, crc32c, parts_of_file, sealed

CONTENT = random.Random(4).randbytes(5 * 65536)
NO_BOUND = (1 << 63) - 1


def set_record(part, stub: bytes, *, synced: int = 0, stub_inode: int | None = None) -> None:
    """As if it had been written before the first sync. `stub_inode` 0 means: bound to no stub
    yet."""
    record = os.getxattr(part, RECORD)[:32] + struct.pack("<QQII", synced, 0, 0, 0)
    if stub_inode == 0:
        record = record[:1] + b"\x01" + record[2:16] + bytes(16) + record[32:]
    os.setxattr(part, RECORD, record + struct.pack("<I", crc32c(record + stub[16:48])))


def make_new(made, name: str = "a") -> list:
    """Makes the file's stub say that no byte of it was ever synced. Returns its parts."""
    stub = made.path / name
    content = stub.read_bytes()
    content = content[:64] + struct.pack("<QI", NO_BOUND, 1) + content[76:100] + struct.pack("<I", 1) + content[104:]
    with open(stub, "r+b") as file:
        file.write(sealed(content))
    parts = parts_of_file(made, stub)
    for part in parts:
        set_record(part, content)
    return parts


def one_part_missing(made):
    make_new(made)[1].unlink()


def all_parts_missing(made):
    for part in make_new(made):
        part.unlink()


def one_part_without_a_record(made):
    os.removexattr(make_new(made)[2], RECORD)


def one_part_in_the_making(made):
    set_record(make_new(made)[0], (made.path / "a").read_bytes(), stub_inode=0)


@pytest.fixture(params=[one_part_missing, all_parts_missing, one_part_without_a_record, one_part_in_the_making],
                ids=lambda change: change.__name__)
def made(request, graphlane, volume, tmp_path):
    made = volume(device_count=3, depth="64K")
    (tmp_path / "a").write_bytes(CONTENT)
    graphlane("import", tmp_path / "a", made.path)
    request.param(made)
    return made


def part_count(made) -> int:
    return sum(path.is_file() for device in made.devices for path in device.glob("*/parts/??/" + 32 * "?"))


def preloaded(graphlane, made, script: str, check: bool = True):
    return graphlane("run", "--no-mount", "--", "python3", "-c", script, made.path / "a", check=check)


def test_a_mount_shows_an_empty_file(fuse, graphlane, made, mount):
    with mount(made) as mnt:
        assert (mnt / "a").stat().st_size == 0
        assert (mnt / "a").read_bytes() == b""
        (mnt / "a").write_bytes(CONTENT[::-1])
        assert (mnt / "a").read_bytes() == CONTENT[::-1]
    assert "no problems" in graphlane("check", made.path).stdout


def test_a_mount_changes_mode_and_name_and_removes_it(fuse, graphlane, made, mount):
    with mount(made) as mnt:
        os.chmod(mnt / "a", 0o640)
        os.rename(mnt / "a", mnt / "b")
        assert (mnt / "b").stat().st_mode & 0o777 == 0o640
        (mnt / "b").unlink()
    assert part_count(made) == 0
    graphlane("check", made.path)


def test_preloaded_programs_see_and_write_an_empty_file(graphlane, made):
    preloaded(graphlane, made, "import os, sys; assert os.stat(sys.argv[1]).st_size == 0; "
                               "assert open(sys.argv[1], 'rb').read() == b''")
    preloaded(graphlane, made, "import sys; f = open(sys.argv[1], 'r+b'); f.write(b'x' * 300000); f.close(); "
                               "assert open(sys.argv[1], 'rb').read() == b'x' * 300000")
    assert "no problems" in graphlane("check", made.path).stdout


def test_a_preloaded_removal_leaves_no_part(graphlane, made):
    preloaded(graphlane, made, "import os, sys; os.unlink(sys.argv[1])")
    assert part_count(made) == 0


def test_check_accepts_and_closes_it(graphlane, made):
    before = part_count(made)
    graphlane("check", made.path)
    assert part_count(made) == before
    assert "closed with 0" in graphlane("check", "--repair", made.path, check=False).stdout
    assert part_count(made) == 3
    assert "closed" not in graphlane("check", made.path).stdout


def test_export_import_and_rm(graphlane, made, tmp_path):
    graphlane("export", made.path / "a", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b""
    graphlane("import", "--overwrite", tmp_path / "a", made.path)
    graphlane("export", "--overwrite", made.path / "a", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert part_count(made) == 3
    graphlane("rm", made.path / "a")
    assert part_count(made) == 0


def test_rm_removes_the_remaining_parts(graphlane, made):
    graphlane("rm", made.path / "a")
    assert part_count(made) == 0
    graphlane("check", made.path)


def test_a_file_that_lost_a_synced_part_is_damaged(graphlane, volume, tmp_path):
    made = volume(device_count=3, depth="64K")
    (tmp_path / "a").write_bytes(CONTENT)
    graphlane("import", tmp_path / "a", made.path)
    parts = make_new(made)
    set_record(parts[0], (made.path / "a").read_bytes(), synced=len(CONTENT))
    parts[1].unlink()
    kept = parts[0].read_bytes()
    done = graphlane("check", "--repair", made.path, check=False)
    assert done.returncode == 4 and "missing" in done.stdout
    assert preloaded(graphlane, made, f"import sys\ntry: open(sys.argv[1], 'r+b').write(b'x')\n"
                                      f"except OSError as e: sys.exit(e.errno != {errno.EIO})\nelse: sys.exit(2)")
    assert parts[0].read_bytes() == kept and not parts[1].exists()


def test_a_part_of_another_file_keeps_it_refused(graphlane, volume, tmp_path):
    made = volume(device_count=3, depth="64K")
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(CONTENT)
        graphlane("import", tmp_path / name, made.path)
    parts = make_new(made)
    parts[0].unlink()
    run("cp", "-a", parts_of_file(made, made.path / "b")[2], parts[2])
    record = os.getxattr(parts[2], RECORD)[:56]
    os.setxattr(parts[2], RECORD, record + struct.pack("<I", crc32c(record + (made.path / "a").read_bytes()[16:48])))
    assert graphlane("check", "--repair", made.path, check=False).returncode == 4
    assert graphlane("export", made.path / "a", tmp_path / "out", check=False).returncode != 0
    assert not parts[0].exists() and parts[2].read_bytes()
