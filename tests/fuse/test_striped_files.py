"""Striped files read through the mount appear as one file of the logical size.
test_striped_writes.py covers writing."""

import errno
import fcntl
import mmap
import os
import random
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from contextlib import ExitStack

import pytest

from harness import names_locked, run
from mounts import (  # noqa: F401, fixtures
    FEW_DESCRIPTORS,
    failing_disk,
    mounted,
    parts_of,
    random_bytes,
    stats,
    striped,
    traced,
    with_few_descriptors,
)

UNIT = 64 * 1024


@pytest.mark.parametrize("io", ["auto", "buffered", "direct"])
@pytest.mark.parametrize("depth", ["4K", "64K", "12M"])
def test_reads_at_odd_places_agree_with_the_plain_bytes(striped, mounted, io, depth):
    volume, content = striped(depth=depth, size=3_000_123)
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    with mounted(volume, "-o", f"io={io}") as at:
        fd = os.open(at / "data", os.O_RDONLY)
        for _ in range(300):
            offset = rng.randrange(len(content) + 5000)
            length = rng.choice([1, 100, 4096, UNIT, 3 * UNIT, 1 << 20, len(content)])
            length = rng.randrange(1, length + 1)
            assert os.pread(fd, length, offset) == content[offset:offset + length], \
                f"seed {seed}: {length} bytes at {offset}"
        os.close(fd)


@pytest.mark.parametrize("io", ["auto", "buffered", "direct"])
def test_direct_reads_agree_and_end_exactly_at_the_end(striped, mounted, io):
    volume, content = striped()
    buffer = mmap.mmap(-1, 24 << 20)
    with mounted(volume, "-o", f"io={io}") as at:
        fd = os.open(at / "data", os.O_RDONLY | os.O_DIRECT)
        assert os.preadv(fd, [buffer], 0) == len(content)
        assert buffer[:len(content)] == content
        for offset in (4096, UNIT - 4096, 3 * UNIT, len(content) // 4096 * 4096):
            assert os.preadv(fd, [buffer], offset) == len(content) - offset
            assert buffer[:len(content) - offset] == content[offset:]
        assert os.preadv(fd, [buffer], (len(content) // 4096 + 1) * 4096) == 0
        os.close(fd)


@pytest.mark.parametrize("flags", [0, os.O_DIRECT], ids=["buffered", "O_DIRECT"])
def test_two_jobs_of_four_threads_at_the_same_time(striped, mounted, flags):
    volume, content = striped(size=40_000_000, depth="1M")
    with mounted(volume) as at:
        def sweep(_):
            fd = os.open(at / "data", os.O_RDONLY | flags)
            buffer = mmap.mmap(-1, 4 << 20)
            for offset in range(0, len(content), 4 << 20):
                got = os.preadv(fd, [buffer], offset)
                if buffer[:got] != content[offset:offset + (4 << 20)]:
                    return f"at {offset}"
            os.close(fd)
            return "same"
        with ThreadPoolExecutor(8) as jobs:
            assert set(jobs.map(sweep, range(8))) == {"same"}


def test_ordinary_tools_read_it(striped, mounted, tmp_path):
    volume, content = striped()
    plain = tmp_path / "plain"
    plain.write_bytes(content)
    with mounted(volume) as at:
        data = at / "data"
        run("cmp", plain, data)
        assert run("sha256sum", data).stdout.split()[0] == run("sha256sum", plain).stdout.split()[0]
        assert run("sh", "-c", f"tail -c 12345 {data} | md5sum").stdout == \
            run("sh", "-c", f"tail -c 12345 {plain} | md5sum").stdout
        run("cp", data, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == content
        shutil.copyfile(data, tmp_path / "sent")  # sendfile
        run("cmp", plain, tmp_path / "sent")
        run("dd", f"if={data}", f"of={tmp_path}/dd", "bs=24M", "iflag=direct")
        run("cmp", plain, tmp_path / "dd")
        run("cp", data, at / "beside")  # copy_file_range within the mount
        assert (at / "beside").read_bytes() == content


def test_attributes_are_the_files_own(striped, mounted):
    volume, content = striped()
    with mounted(volume) as at:
        shown, stub = os.stat(at / "data"), os.stat(volume.path / "data")
        assert stub.st_size == 4096
        assert shown.st_size == len(content)
        assert shown.st_blocks == sum(part.stat().st_blocks for device in volume.devices
                                      for part in device.glob("*/parts/*/*"))
        assert shown.st_blksize == 4096
        for field in ("st_ino", "st_mode", "st_uid", "st_gid", "st_nlink", "st_mtime_ns"):
            assert getattr(shown, field) == getattr(stub, field), field
        assert os.listdir(at) == ["data"]


def test_seeking(striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume) as at:
        fd = os.open(at / "data", os.O_RDONLY)
        assert os.lseek(fd, 0, os.SEEK_END) == len(content)
        assert os.lseek(fd, 5, os.SEEK_DATA) == 5
        assert os.lseek(fd, 5, os.SEEK_HOLE) == len(content)
        with pytest.raises(OSError) as raised:
            os.lseek(fd, len(content), os.SEEK_DATA)
        assert raised.value.errno == errno.ENXIO
        os.close(fd)


def test_mode_and_times_go_to_the_stub_and_mode_to_the_parts(striped, mounted):
    volume, _ = striped(size=100_000)
    with mounted(volume) as at:
        os.chmod(at / "data", 0o640)
        os.utime(at / "data", ns=(7, 8))
        assert os.stat(at / "data").st_mode & 0o7777 == 0o640
    assert os.stat(volume.path / "data").st_mtime_ns == 8
    modes = {os.stat(path).st_mode & 0o7777
             for device in volume.devices for path in device.glob("*/parts/*/*")}
    assert modes == {0o640}


def test_the_last_unlink_removes_the_parts_and_open_descriptors_keep_reading(striped, mounted):
    volume, content = striped()
    with mounted(volume) as at:
        os.link(at / "data", at / "second")
        fd = os.open(at / "data", os.O_RDONLY)
        direct = os.open(at / "data", os.O_RDONLY | os.O_DIRECT)
        os.unlink(at / "data")
        assert len(parts_of(volume)) == 4
        assert (at / "second").read_bytes() == content
        os.unlink(at / "second")
        assert len(parts_of(volume)) == 0
        assert os.pread(fd, len(content), 0) == content
        buffer = mmap.mmap(-1, 16 << 20)
        assert os.preadv(direct, [buffer], 0) == len(content)
        assert os.fstat(fd).st_nlink == 0
        os.close(fd)
        os.close(direct)


def test_a_rename_over_it_removes_its_parts(striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume) as at:
        os.rename(at / "data", at / "moved")
        assert (at / "moved").read_bytes() == content and len(parts_of(volume)) == 4
        (at / "plain").write_bytes(b"plain")
        os.rename(at / "plain", at / "moved")
        assert (at / "moved").read_bytes() == b"plain" and len(parts_of(volume)) == 0


@pytest.mark.parametrize("new", ["plain", "striped", "striped and idle"])
def test_a_rename_over_it_is_durable_before_its_parts_go(root, striped, mounted, new):
    """The replacing file is durable even earlier. Otherwise a power failure could restore the
    stub without its parts, or leave neither file."""
    volume, _ = striped(size=100_000, stripe=["s*", "data"])
    with ExitStack() as at_end:
        at = at_end.enter_context(mounted(volume))
        name = "plain" if new == "plain" else "s"
        (at / name).write_bytes(b"new" * 50_000)
        if new == "striped and idle":
            at_end.close()
            at_end.enter_context(mounted(volume))
        (at / "s0").write_bytes(b"x")  # the first change by this mount, which records the mount
        (at / "s0").unlink()
        with traced(volume, at, "renameat", "renameat2", "fsync", "fdatasync", "unlinkat") as calls:
            os.rename(at / name, at / "data")
        assert (at / "data").read_bytes() == b"new" * 50_000
    renamed = next(n for n, (call, _) in enumerate(calls) if call.startswith("renameat"))
    synced = {path for call, path in calls[:renamed]}
    stub = volume.path / name
    assert str(stub) in synced and "unlinkat" not in dict(calls[:renamed])
    if new != "plain":
        for device in volume.devices:
            (parts,) = device.glob("*/parts")
            (part,) = parts.glob("*/*")
            assert {str(part), str(part.parent), str(parts)} <= synced
    assert calls[renamed + 1] == ("fsync", str(volume.path))
    assert {call for call, _ in calls[renamed + 2:]} == {"unlinkat"}
    assert len([*volume.devices[0].glob("*/parts/*")]) == (new != "plain"), "empty directories"


def test_a_rename_over_it_is_refused_if_that_cannot_be_synced(
        graphlane, failing_disk, mounted, tmp_path):
    devices = [tmp_path / "device", failing_disk]
    devices[0].mkdir()
    made = graphlane.create_on(tmp_path / "vol", devices, depth="64K", stripe=["s*"])
    with mounted(made) as at:
        (at / "s-old").write_bytes(b"old")
        (at / "s-new").write_bytes(random_bytes(16 << 20))
        with pytest.raises(OSError) as raised:
            os.rename(at / "s-new", at / "s-old")
        assert raised.value.errno in (errno.EIO, errno.ENOSPC)
        assert (at / "s-old").read_bytes() == b"old" and (at / "s-new").exists()


@pytest.mark.parametrize("change", [
    lambda at: os.rename(at / "top/sub", at / "top/moved"),
    lambda at: os.unlink(at / "top/sub/data")], ids=["rename", "unlink"])
def test_a_check_blocks_renames(striped, mounted, change):
    """A repair that misses a stub because it moved would take its parts for orphans."""
    volume, _ = striped(size=100_000)
    with mounted(volume) as at, ThreadPoolExecutor(1) as other:
        (at / "top/sub").mkdir(parents=True)
        os.rename(at / "data", at / "top/sub/data")
        with names_locked(volume):
            changed = other.submit(change, at)
            with pytest.raises(TimeoutError):
                changed.result(0.3)
            (at / "plain").touch()  # other directories are not held up
        changed.result(10)


def test_a_read_only_user_cannot_block_writers(striped, mounted):
    volume, _ = striped(size=100_000)
    with mounted(volume) as at, open(volume.path / ".graphlane/run/lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="Bad file descriptor"):
            fcntl.lockf(lock, fcntl.LOCK_EX)
        fcntl.lockf(lock, fcntl.LOCK_SH)
        with ThreadPoolExecutor(1) as other:
            other.submit(os.rename, at / "data", at / "moved").result(10)
            other.submit(os.unlink, at / "moved").result(10)


def test_flags_of_chattr_that_the_parts_cannot_have(root, striped, mounted):
    volume, _ = striped(size=100_000)
    with mounted(volume) as at:
        if run("lsattr", volume.path / "data", check=False).returncode != 0:
            pytest.skip("not applicable: a host without chattr's flags")
        run("chattr", "+d", at / "data")
        assert "d" in run("lsattr", at / "data").stdout.split()[0]
        for flag in "ai":
            refused = run("chattr", f"+{flag}", at / "data", check=False)
            assert "not supported" in refused.stderr
        with open(at / "data", "r+b") as file:
            file.write(b"x")


def test_an_attribute_gives_the_servers_name(striped, mounted):
    volume, _ = striped(size=100_000)
    name = "user.graphlane.server"
    with mounted(volume) as at:
        assert os.getxattr(at / "data", name).startswith(b"graphlane-")
        assert name not in os.listxattr(at / "data")
        (at / "plain").touch()
        with pytest.raises(OSError) as raised:
            os.getxattr(at / "plain", name)
        assert raised.value.errno == errno.ENODATA
        for call in (lambda: os.setxattr(at / "data", name, b"x"),
                     lambda: os.removexattr(at / "data", name)):
            with pytest.raises(OSError) as raised:
                call()
            assert raised.value.errno == errno.EPERM


@pytest.mark.parametrize("io", ["buffered", "direct"])
def test_statistics_count_every_byte_on_its_device(striped, mounted, io):
    volume, content = striped(size=16 * UNIT, depth="64K")
    with mounted(volume, "-o", f"io={io},cache=0") as at:  # a cache would read whole frames
        before = stats(at)
        assert [device["path"] for device in before["devices"]] == \
            [str(device) for device in volume.devices]
        assert sum(device["bytes_read"] for device in before["devices"]) == 0
        assert (at / "data").read_bytes() == content
        after = stats(at)["devices"]
        assert [device["bytes_read"] for device in after] == [4 * UNIT] * 4
        assert all(device["ios"] > 0 for device in after)


def test_reads_files_that_the_daemon_holds_by_handle_only(root, fuse, striped, graphlane,
                                                                 tmp_path):
    """The kernel looks up more files than the daemon has descriptors first."""
    volume, content = striped(size=1_000_003)
    names = [str(number) for number in range(2 * FEW_DESCRIPTORS)]
    for name in names:
        (volume.path / name).touch()
    with graphlane.mounted(volume, tmp_path / "mnt", preexec_fn=with_few_descriptors) as at:
        for name in names:
            (at / name).stat()
        assert (at / "data").read_bytes() == content


def test_a_damaged_stub_gives_eio_and_harms_nothing_else(striped, mounted):
    volume, content = striped(size=100_000)
    stub = (volume.path / "data").read_bytes()
    flipped = bytearray(stub)
    flipped[1000] ^= 1
    (volume.path / "flipped").write_bytes(flipped)
    (volume.path / "cut").write_bytes(stub[:2000])
    with mounted(volume) as at:
        for name, size in (("flipped", 4096), ("cut", 2000)):
            assert os.stat(at / name).st_size == size
            for flags in (os.O_RDONLY, os.O_RDWR):
                with pytest.raises(OSError) as raised:
                    os.open(at / name, flags)
                assert raised.value.errno == errno.EIO
            with pytest.raises(OSError):
                os.truncate(at / name, 0)
            os.unlink(at / name)
        assert (at / "data").read_bytes() == content


def test_a_stub_of_another_volume_gives_eio(striped, volume, mounted):
    one, _ = striped(size=100_000)
    other = volume()
    shutil.copyfile(one.path / "data", other.path / "foreign")
    with mounted(other) as at:
        assert os.stat(at / "foreign").st_size == 4096
        with pytest.raises(OSError) as raised:
            os.open(at / "foreign", os.O_RDONLY)
        assert raised.value.errno == errno.EIO
        os.chmod(at / "foreign", 0o600)
        os.unlink(at / "foreign")
    assert len(parts_of(one)) == 4


def test_a_short_part_gives_eio_and_says_which(striped, graphlane, fuse, tmp_path):
    volume, _ = striped(size=1_000_000)
    part = next(volume.devices[2].glob("*/parts/*/*"))
    os.truncate(part, 100)
    (tmp_path / "mnt").mkdir()
    with graphlane.mounted(volume, tmp_path / "mnt") as at:
        with pytest.raises(OSError) as raised:
            os.open(at / "data", os.O_RDONLY)
        assert raised.value.errno == errno.EIO


@pytest.mark.parametrize("io", ["buffered", "direct"])
def test_a_part_cut_while_open_gives_eio_not_zeros(striped, mounted, io):
    volume, content = striped(size=1_000_000)
    with mounted(volume, "-o", f"io={io}") as at:
        fd = os.open(at / "data", os.O_RDONLY)
        os.truncate(next(volume.devices[2].glob("*/parts/*/*")), 100)
        with pytest.raises(OSError) as raised:
            for offset in range(0, len(content), UNIT):
                got = os.pread(fd, UNIT, offset)
                assert got == content[offset:offset + UNIT]
        assert raised.value.errno == errno.EIO
        os.close(fd)


def test_a_replaced_file_is_seen_by_the_next_open(striped, mounted, graphlane, tmp_path):
    volume, content = striped(size=100_000)
    with mounted(volume, "-o", "entry_timeout=0,attr_timeout=0") as at:
        assert (at / "data").read_bytes() == content
        other = random_bytes(150_000, seed=2)
        (tmp_path / "data").write_bytes(other)
        graphlane("import", "--overwrite", tmp_path / "data", volume.path)
        assert (at / "data").read_bytes() == other


def test_the_control_directory_is_there_by_name_and_read_only(striped, mounted):
    volume, _ = striped(size=100_000)
    with mounted(volume) as at:
        control = at / ".graphlane"
        assert ".graphlane" not in os.listdir(at)
        assert (control / "volume.json").read_bytes() == \
            (volume.path / ".graphlane/volume.json").read_bytes()
        changes = [lambda: (control / "x").touch(), lambda: os.unlink(control / "volume.json"),
                   lambda: os.rename(control, at / "x"), lambda: os.mkdir(control),
                   lambda: os.chmod(control / "volume.json", 0o777), lambda: os.rmdir(control),
                   lambda: os.link(control / "volume.json", at / "x"),
                   lambda: os.open(control / "volume.json", os.O_WRONLY),
                   lambda: os.truncate(control / "volume.json", 0)]
        for change in changes:
            with pytest.raises(OSError) as raised:
                change()
            assert raised.value.errno in (errno.EROFS, errno.EEXIST)
        run("rm", "-rf", *at.iterdir())
        assert (control / "volume.json").exists()


SETS_TIMES = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"x" * 300_000)
os.utime(fd, ns=(10**18, 10**18))
os.fsync(fd)
assert os.fstat(fd).st_mtime_ns == 10**18, os.fstat(fd)
os.close(fd)
assert os.stat(sys.argv[1]).st_mtime_ns == 10**18
"""


@pytest.mark.parametrize("way", ["mounted", "preloaded", "without a mount"])
def test_the_first_fsync_of_a_file_keeps_the_time_that_was_set(graphlane, volume, mount, way):
    made = volume(stripe=["data"])
    if way == "without a mount":
        graphlane("run", "--no-mount", "--", sys.executable, "-c", SETS_TIMES, made.path / "data")
    else:
        with mount(made) as at:
            words = [sys.executable, "-c", SETS_TIMES, at / "data"]
            graphlane("run", "--", *words) if way == "preloaded" else run(*words)
    assert (made.path / "data").stat().st_mtime_ns == 10**18
    graphlane("check", "--repair", made.path, check=False)
    assert (made.path / "data").stat().st_mtime_ns == 10**18


def test_cp_keeps_the_mtime_without_a_mount(graphlane, volume, tmp_path):
    made = volume(stripe=["data"])
    (tmp_path / "data").write_bytes(bytes(300_000))
    os.utime(tmp_path / "data", ns=(10**18, 10**18))
    graphlane("run", "--no-mount", "--", "cp", "-p", tmp_path / "data", made.path)
    assert (made.path / "data").stat().st_mtime_ns == 10**18


WRITES_ON = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"x" * 300_000)
os.utime(fd, ns=(10**18, 10**18))
time.sleep(0.1)
before = time.time()
os.write(fd, b"y")
time.sleep(0.1)
os.close(fd)
assert before - 0.05 <= os.stat(sys.argv[1]).st_mtime <= before + 0.05, (before, os.stat(sys.argv[1]))
"""


def test_a_write_after_utimes_shows_without_a_mount(graphlane, volume):
    made = volume(stripe=["data"])
    graphlane("run", "--no-mount", "--", sys.executable, "-c", WRITES_ON, made.path / "data")


def test_only_a_reader_moves_the_access_time(volume, mounted):
    """The mount reads the stub to know the file. That is no access by a program."""
    made = volume(stripe=["s*"])
    with mounted(made) as at:
        (at / "s").write_bytes(b"x")
        os.utime(at / "s", (1, 1))
        assert os.stat(at / "s").st_atime == 1
    with mounted(made) as at:
        assert os.stat(at / "s").st_atime == 1
        with open(at / "s", "ab") as file:
            file.write(b"y")
        os.utime(at / "s", (1, 1))
    with mounted(made, "-o", "noatime") as at:
        assert (at / "s").read_bytes() == b"xy"
        assert os.stat(at / "s").st_atime == 1
    with mounted(made) as at:
        assert (at / "s").read_bytes() == b"xy"
        assert os.stat(at / "s").st_atime > 1
