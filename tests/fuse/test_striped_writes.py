"""Striped files created and changed through the mount behave as on any filesystem."""

import ctypes
import errno
import json
import mmap
import os
import random
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from harness import is_mounted, run, wait_until
from mounts import (  # noqa: F401, fixtures
    FEW_DESCRIPTORS,
    daemon_of,
    failing_disk,
    flags_of_daemon,
    mounted,
    traced,
    with_few_descriptors,
)

DEPTH = 64 << 10
SIZE_MAX = 3_000_000

KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE, INSERT_RANGE = 1, 2, 8, 16, 32

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def fallocate(fd: int, mode: int, offset: int, length: int) -> int:
    """Returns 0 or an errno."""
    return ctypes.get_errno() if libc.fallocate(fd, mode, offset, length) != 0 else 0


@pytest.fixture
def striping(volume, mounted):
    """A mounted volume that stripes each file with a name beginning with s."""
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made) as at:
        yield made, at


def is_striped(volume, name: str) -> bool:
    """The layout by `graphlane`, asked beneath the mount."""
    return (volume.path / name).stat().st_size == 4096


def parts(volume) -> list:
    return [path for device in volume.devices for path in device.glob("graphlane-*/parts/*/*")]


class Pair:
    """A striped file and a plain one on the host, which get the same changes."""

    def __init__(self, ours, reference):
        self.ours, self.reference = ours, reference
        self.fds = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
                    for path in (ours, reference)]

    def close(self):
        for fd in self.fds:
            os.close(fd)

    def agree(self, what):
        ours, reference = self.fds
        size = os.fstat(reference).st_size
        assert os.fstat(ours).st_size == size, what
        assert os.pread(ours, size + 10, 0) == os.pread(reference, size + 10, 0), what


def do_write(r, pair, offset, length):
    content = r.randbytes(length)
    assert [os.pwrite(fd, content, offset) for fd in pair.fds] == [length, length]


def do_append(r, pair, offset, length):
    for path in (pair.ours, pair.reference):
        with open(path, "ab") as file:
            file.write(bytes([offset % 256]) * (length % 5000))


def do_read(r, pair, offset, length):
    ours, reference = (os.pread(fd, length, offset) for fd in pair.fds)
    assert ours == reference


def do_truncate(r, pair, offset, length):
    for fd in pair.fds:
        os.ftruncate(fd, offset)


def do_truncate_by_name(r, pair, offset, length):
    for path in (pair.ours, pair.reference):
        os.truncate(path, offset)


def do_fallocate(mode):
    def do(r, pair, offset, length):
        ours, reference = (fallocate(fd, mode, offset, length) for fd in pair.fds)
        assert ours == reference
    return do


def do_map(r, pair, offset, length):
    size = os.fstat(pair.fds[1]).st_size
    if size == 0:
        return
    offset %= size
    content = r.randbytes(min(length, size - offset))
    for fd in pair.fds:
        with mmap.mmap(fd, size) as view:
            view[offset:offset + len(content)] = content


def do_direct(r, pair, offset, length):
    offset, length = offset // 4096 * 4096, min(length // 4096 * 4096 + 4096, 1 << 20)
    with mmap.mmap(-1, 1 << 20) as buffer:
        buffer[:length] = r.randbytes(length)
        for path in (pair.ours, pair.reference):
            fd = os.open(path, os.O_RDWR | os.O_DIRECT)
            with memoryview(buffer) as view, view[:length] as piece:
                assert os.pwritev(fd, [piece], offset) == length
            os.close(fd)


def do_reopen(r, pair, offset, length):
    pair.close()
    pair.fds = [os.open(path, os.O_RDWR) for path in (pair.ours, pair.reference)]


def do_sync(r, pair, offset, length):
    os.fsync(pair.fds[0])


OPERATIONS = [do_write, do_write, do_append, do_read, do_truncate, do_truncate_by_name,
              do_fallocate(0), do_fallocate(KEEP_SIZE), do_fallocate(KEEP_SIZE | PUNCH_HOLE),
              do_map, do_direct, do_reopen, do_sync]


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_agree_with_a_file_on_the_host(striping, tmp_path, graphlane, seed):
    volume, at = striping
    pair = Pair(at / "s", tmp_path / "reference")
    r = random.Random(seed)
    for step in range(120):
        operation = r.choice(OPERATIONS)
        offset, length = r.randrange(SIZE_MAX), r.randrange(1, r.choice([10, 5_000, 1_500_000]))
        operation(r, pair, offset, length)
        pair.agree((seed, step, operation, offset, length))
    pair.close()
    assert is_striped(volume, "s")
    graphlane("umount", at)
    assert "no problems" in graphlane("check", volume.path).stdout
    graphlane("export", volume.path / "s", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "reference").read_bytes()
    graphlane("mount", volume.path, at)  # the fixture unmounts it
    assert (at / "s").read_bytes() == (tmp_path / "reference").read_bytes()


def test_the_policy_says_which_new_files_are_striped(striping):
    volume, at = striping
    for name in ("s1", "plain"):
        (at / name).write_bytes(b"x" * 300_000)
    assert is_striped(volume, "s1")
    assert (volume.path / "plain").read_bytes() == b"x" * 300_000
    assert len(parts(volume)) == len(volume.devices)


def test_short_files_lie_whole_on_one_device_each_in_turn(striping):
    volume, at = striping
    for i in range(8):
        (at / f"s{i}").write_bytes(bytes(DEPTH))
    used = [[path for path in parts(volume) if device in path.parents and path.stat().st_size > 0]
            for device in volume.devices]
    assert [len(paths) for paths in used] == [2, 2, 2, 2]


def test_an_existing_file_keeps_its_kind(striping):
    volume, at = striping
    (at / "other").write_bytes(b"plain")
    os.rename(at / "other", at / "s")
    (at / "s").write_bytes(b"still plain")
    assert (volume.path / "s").read_bytes() == b"still plain"


def test_creating_exclusively(striping):
    _, at = striping
    (at / "s").write_bytes(b"first")
    with pytest.raises(FileExistsError):
        os.open(at / "s", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    assert (at / "s").read_bytes() == b"first"


def test_a_new_file_is_the_callers_and_so_are_its_parts(striping):
    volume, at = striping
    before = os.umask(0o027)
    try:
        (at / "s").write_bytes(b"x")
    finally:
        os.umask(before)
    assert (at / "s").stat().st_mode & 0o7777 == 0o640
    assert (at / "s").stat().st_uid == os.geteuid()
    assert {path.stat().st_mode & 0o7777 for path in parts(volume)} == {0o640}


def test_a_reader_sees_concurrent_writes(striping):
    _, at = striping
    (at / "s").write_bytes(b"a" * 100_000)
    with open(at / "s", "rb", buffering=0) as reader, open(at / "s", "r+b", buffering=0) as writer:
        assert reader.read() == b"a" * 100_000
        writer.seek(0, os.SEEK_END)
        writer.write(b"b" * 100_000)
        assert reader.read() == b"b" * 100_000
        writer.truncate(10)
        assert os.fstat(reader.fileno()).st_size == 10
        assert os.pread(reader.fileno(), 100, 0) == b"a" * 10


def test_a_concurrent_opener_sees_the_writes(volume, mounted):
    made = volume(depth="64K", stripe=["s*"])
    names = [f"s{n}" for n in range(40)]
    with mounted(made) as at:
        for name in names:
            (at / name).write_bytes(b"x" * 200_000)
    at_once = threading.Barrier(8)

    def opened(path) -> int:
        at_once.wait()
        return os.open(path, os.O_RDONLY)

    with mounted(made) as at, ThreadPoolExecutor(8) as threads:
        for name in names:
            fds = list(threads.map(opened, [at / name] * 8))
            with open(at / name, "ab") as file:
                file.write(b"more")
            assert [os.pread(fd, 10, 200_000) for fd in fds] == [b"more"] * 8, name
            for fd in fds:
                os.close(fd)


def test_maps_and_calls_see_each_other(striping):
    _, at = striping
    (at / "s").write_bytes(bytes(300_000))
    with open(at / "s", "r+b", buffering=0) as file, mmap.mmap(file.fileno(), 300_000) as view:
        view[100_000:100_005] = b"mapped"[:5]
        assert os.pread(file.fileno(), 5, 100_000) == b"mappe"
        os.pwrite(file.fileno(), b"written", 200_000)
        assert view[200_000:200_007] == b"written"
    assert (at / "s").read_bytes()[100_000:100_005] == b"mappe"


def test_writing_an_unlinked_file(striping):
    volume, at = striping
    with open(at / "s", "w+b", buffering=0) as file:
        file.write(b"x" * 200_000)
        os.unlink(at / "s")
        assert parts(volume) == []
        os.fchmod(file.fileno(), 0o600)
        file.write(b"y" * 200_000)
        file.truncate(350_000)
        os.fsync(file.fileno())
        file.seek(0)
        assert file.read() == b"x" * 200_000 + b"y" * 150_000
    assert parts(volume) == [] and os.listdir(at) == []


def test_many_threads_write_one_file(striping):
    _, at = striping
    piece, count = 50_000, 64
    fd = os.open(at / "s", os.O_RDWR | os.O_CREAT)
    with ThreadPoolExecutor(8) as threads:
        order = random.Random(5).sample(range(count), count)
        list(threads.map(lambda i: os.pwrite(fd, bytes([i + 1]) * piece, i * piece), order))
    os.close(fd)
    assert (at / "s").read_bytes() == b"".join(bytes([i + 1]) * piece for i in range(count))


def test_appenders_do_not_overwrite_each_other(striping):
    _, at = striping
    script = "import os,sys\nfd=os.open(sys.argv[1],os.O_WRONLY|os.O_APPEND|os.O_CREAT)\n" \
             "for _ in range(200): os.write(fd,sys.argv[2].encode()*500)"
    writers = [subprocess.Popen(["python3", "-c", script, at / "s", letter]) for letter in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    content = (at / "s").read_bytes()
    assert len(content) == 4 * 200 * 500
    assert all(len(set(content[i:i + 500])) == 1 for i in range(0, len(content), 500))


def test_times_follow_the_writes(striping):
    _, at = striping
    (at / "s").write_bytes(b"x" * 100_000)
    for change in [lambda: os.truncate(at / "s", 100_000), lambda: os.truncate(at / "s", 50_000),
                   lambda: open(at / "s", "r+b").write(b"y")]:
        os.utime(at / "s", (1_000, 1_000))
        change()
        assert (at / "s").stat().st_mtime > 1_000_000_000


def test_moving_data_within_a_file_is_not_supported(striping):
    _, at = striping
    (at / "s").write_bytes(b"x" * 100_000)
    with open(at / "s", "r+b") as file:
        for mode in (COLLAPSE_RANGE, INSERT_RANGE):
            assert fallocate(file.fileno(), mode, 0, 4096) == errno.EOPNOTSUPP
    assert (at / "s").read_bytes() == b"x" * 100_000


def test_holes_take_no_room(striping):
    _, at = striping
    with open(at / "s", "wb") as file:
        file.write(b"begin")
        file.truncate(100 << 20)
        file.seek(50 << 20)
        file.write(b"middle")
        file.flush()
        assert os.stat(at / "s").st_blocks * 512 < 1 << 20
        assert os.lseek(file.fileno(), 1 << 20, os.SEEK_DATA) <= 50 << 20
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) < 1 << 20


def test_a_full_device_ends_the_write_there(small_device_volume, mounted):
    """As on a full disk: the bytes that fit are written, the rest is ENOSPC, and other data
    stays."""
    volume = small_device_volume("2M", depth="64K", stripe=["s*"])
    with mounted(volume) as at:
        (at / "s-before").write_bytes(b"b" * 500_000)
        content = random.Random(1).randbytes(16 << 20)
        fd = os.open(at / "s", os.O_WRONLY | os.O_CREAT)
        written = 0
        with pytest.raises(OSError) as raised:
            while written < len(content):
                written += os.write(fd, content[written:written + 300_000])
        assert raised.value.errno == errno.ENOSPC
        os.close(fd)
        assert (at / "s").read_bytes() == content[:written]
        assert (at / "s-before").read_bytes() == b"b" * 500_000
        os.unlink(at / "s")
        (at / "s-after").write_bytes(b"a" * 500_000)
        assert (at / "s-after").read_bytes() == b"a" * 500_000


@pytest.mark.parametrize("name", ["s", "plain"])
def test_a_dirty_page_of_a_map_is_no_hole(volume, mounted, name):
    """That holds before the kernel has written the page back, as it does not for lseek()."""
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made, "-o", "noatime") as at, open(at / name, "w+b") as file:
        size, there = 10 << 20, 5 << 20
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as memory, open(at / name, "rb") as reader:
            memory[there] = 1
            assert os.lseek(reader.fileno(), 0, os.SEEK_DATA) <= there
            assert os.lseek(reader.fileno(), there, os.SEEK_DATA) == there
            assert os.lseek(reader.fileno(), there, os.SEEK_HOLE) > there
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                with pytest.raises(OSError) as raised:
                    os.lseek(reader.fileno(), size, whence)
                assert raised.value.errno == errno.ENXIO


@pytest.mark.parametrize("name", ["s", "plain"])
def test_synchronous_writes_are_synced(root, volume, mounted, name):
    """From Linux 6.18 on, a write-only descriptor bypasses the page cache, and the kernel does
    not ask for the fsync."""
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made, "-o", "noatime") as at:  # the daemon serves plain files too
        with open(at / name, "wb") as file:
            file.write(bytes(1 << 20))
            file.flush()
            os.fsync(file.fileno())  # the first fsync of a file also syncs the records of its parts
        for flags, write, syncs in [(0, os.pwrite, 0), (os.O_DSYNC, os.pwrite, 1),
                                    (os.O_SYNC, os.pwrite, 1),
                                    (0, lambda fd, data, at: os.pwritev(fd, [data], at, os.RWF_DSYNC),
                                     1)]:
            fd = os.open(at / name, os.O_WRONLY | flags)
            with traced(made, at, "fdatasync", "fsync") as calls:
                assert write(fd, b"x" * 4096, 4096) == 4096
            host_syncs = name == "plain" and any(how & flags == flags
                                                 for how in flags_of_daemon(made, at, name))
            os.close(fd)
            if flags and host_syncs:
                assert not calls, "once is enough"
                continue
            files = 1 + (len(made.devices) if name == "s" else 0)
            assert len(calls) >= syncs * files if syncs else not calls, (flags, calls)
            assert not flags or ("fsync" in dict(calls)) == (flags == os.O_SYNC)


def test_fsync_syncs_writes_of_other_handles(root, volume, mounted):
    """The other writer may have gone, and a write in place leaves the daemon nothing to close."""
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made) as at:
        (at / "s").write_bytes(bytes(1 << 20))
    with mounted(made) as at, open(at / "s", "rb") as file:
        with traced(made, at, "fdatasync", "fsync") as calls:
            os.fsync(file.fileno())  # the first one: the parts' owner and mode, too, and those of their checksums
        assert [call for call, _ in calls] == ["fsync"] * (2 * len(made.devices) + 1)
        for sync, stubs in [(os.fsync, "fsync"), (os.fdatasync, "fdatasync")]:
            with traced(made, at, "fdatasync", "fsync") as calls:
                sync(file.fileno())
            *parts, stub = calls
            assert [call for call, _ in parts] == ["fdatasync"] * len(made.devices)
            assert stub == (stubs, str(made.path / "s"))


def test_fsync_tells_each_handle_of_an_error(graphlane, failing_disk, mounted, tmp_path):
    """All handles share the parts' descriptors, and the kernel reports an error once for each of
    these."""
    devices = [tmp_path / "device", failing_disk]
    devices[0].mkdir()
    made = graphlane.create_on(tmp_path / "vol", devices, depth="64K", stripe=["s*"])
    with mounted(made) as at, ExitStack() as opened:
        handles = [opened.enter_context(open(at / "s", mode, buffering=0))
                   for mode in ("w+b", "rb", "ab")]
        # Until the parts' records say that the parts are there, each fsync reports the failing
        # disk.
        handles[0].write(b"x")
        os.fsync(handles[0])
        handles[0].write(random.randbytes(16 << 20))
        for handle in handles:
            with pytest.raises(OSError) as raised:
                os.fsync(handle)
            assert raised.value.errno in (errno.EIO, errno.ENOSPC)
            os.fsync(handle)  # the error was reported already
        os.fsync(opened.enter_context(open(at / "s", "rb")))


def fill(directory):
    with open(directory / "filler", "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_msync_tells_of_a_full_device(small_device_volume, mounted):
    """The error must be in the reply even if another part took its piece: for writeback the
    kernel checks the error, not the count."""
    unit = 64 << 10
    volume = small_device_volume("2M", depth="64K", stripe=["s*"])
    with mounted(volume) as at, open(at / "s", "w+b") as file:
        file.truncate(8 * unit)
        fill(volume.devices[2])
        first_device = (volume.path / "s").read_bytes()[0x3c]
        before_the_full_one = (1 - first_device) % 4 * unit
        with mmap.mmap(file.fileno(), 2 * unit, offset=before_the_full_one) as memory:
            memory[:] = b"x" * len(memory)
            with pytest.raises(OSError) as raised:
                memory.flush()
            assert raised.value.errno in (errno.ENOSPC, errno.EIO)


def test_msync_tells_of_a_full_filesystem(graphlane, small_filesystem, mounted, tmp_path):
    """Without passthrough the daemon writes plain files too, and must report the error."""
    base = small_filesystem(tmp_path / "small", "2M")
    volume = graphlane.create(base)
    with mounted(volume, "-o", "noatime") as at, open(at / "plain", "w+b") as file:
        size = 512 << 10
        file.truncate(size)
        fill(base)
        os.truncate(base / "filler", (base / "filler").stat().st_size - size // 2)
        with mmap.mmap(file.fileno(), size) as memory:
            memory[:] = b"x" * size
            with pytest.raises(OSError) as raised:
                memory.flush()
            assert raised.value.errno in (errno.ENOSPC, errno.EIO)


def test_a_killed_daemon_loses_nothing_that_was_synced(striping, graphlane, tmp_path):
    volume, at = striping
    content = random.Random(2).randbytes(1_000_000)
    fd = os.open(at / "s", os.O_RDWR | os.O_CREAT)
    os.write(fd, content)
    os.fsync(fd)
    os.write(fd, b"not synced")
    (daemon,) = run("pgrep", "-f", f"mount {volume.path} {at}$").stdout.split()
    os.kill(int(daemon), signal.SIGKILL)
    with pytest.raises(OSError):
        while True:
            os.write(fd, b"more")
    with suppress(OSError):
        os.close(fd)
    graphlane("umount", at)
    assert not is_mounted(at)
    graphlane("mount", volume.path, at)
    assert (at / "s").read_bytes()[:len(content)] == content
    with open(at / "s", "ab") as file:  # takes the file over from the dead daemon
        file.write(b"the end")
    assert (at / "s").read_bytes().endswith(b"the end")
    graphlane("umount", at)
    assert "no problems" in graphlane("check", volume.path).stdout
    graphlane("mount", volume.path, at)


def test_a_file_that_another_mount_writes_is_busy(striping, graphlane, tmp_path):
    volume, at = striping
    second = tmp_path / "second"
    second.mkdir()
    graphlane("mount", volume.path, second)
    try:
        with open(at / "s", "wb", buffering=0) as file:
            file.write(b"x" * 100_000)
            with pytest.raises(OSError) as raised:
                open(second / "s", "r+b")
            assert raised.value.errno == errno.EBUSY
            assert (second / "s").stat().st_size == 100_000
            begin = time.monotonic()
            assert (second / "s").read_bytes() == b"x" * 100_000
            assert time.monotonic() - begin < 2, "who reads does not wait for the writer to go"
        # The idle first mount keeps the file for five seconds.
        def is_free() -> bool:
            with suppress(OSError):
                open(second / "s", "r+b").close()
                return True
            return False

        wait_until(is_free)
    finally:
        graphlane("umount", second)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
def test_open_finds_a_replacement_by_another_mount(volume, mounted, tmp_path, flags):
    """The kernel looks the name up again at once, although its entry is still valid."""
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made, "-o", "entry_timeout=1000,attr_timeout=1000") as at:
        with mounted(made, at=tmp_path / "other") as other:
            (other / "s").write_bytes(b"old")
        assert (at / "s").stat().st_size == 3
        with mounted(made, at=tmp_path / "other") as other:
            os.unlink(other / "s")
            (other / "s").write_bytes(b"newer")
        fd = os.open(at / "s", flags)
        assert os.read(fd, 10) == b"newer"
        os.close(fd)


def test_commands_see_a_file_being_written(striping, graphlane, tmp_path):
    volume, at = striping
    with open(at / "s", "wb", buffering=0) as file:
        file.write(b"x" * 1_000_000)
        assert "977 KiB" in graphlane("ls", volume.path).stdout
        assert "in use" in graphlane("ls", volume.path).stdout
        info = json.loads(graphlane("info", "--json", volume.path / "s").stdout)
        assert (info["size"], info["state"]) == (1_000_000, "open")
        graphlane("export", volume.path / "s", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * 1_000_000


def test_a_check_beside_a_writer_finds_nothing_wrong(striping, graphlane):
    volume, at = striping
    with open(at / "s", "wb", buffering=0) as file:
        file.write(b"x" * 100_000)
        assert "no problems" in graphlane("check", volume.path).stdout
        file.write(b"y" * 100_000)
        graphlane("check", "--repair", volume.path)
        file.write(b"z" * 100_000)
    assert (at / "s").read_bytes() == b"x" * 100_000 + b"y" * 100_000 + b"z" * 100_000


def test_idle_files_give_up_their_descriptors_to_new_ones(root, graphlane, fuse, volume, tmp_path):
    """The daemon keeps a file open for five seconds after its last writer."""
    made = volume(depth="4K", stripe=["*.col"])
    count = FEW_DESCRIPTORS // 2  # seven descriptors each
    with graphlane.mounted(made, tmp_path / "mnt", preexec_fn=with_few_descriptors) as at:
        for number in range(count):
            (at / f"{number}.col").write_bytes(bytes([number]) * 20_000)
        used = len(os.listdir(f"/proc/{daemon_of(made, at)}/fd"))
        assert used < FEW_DESCRIPTORS
        for number in range(count):
            assert (at / f"{number}.col").read_bytes() == bytes([number]) * 20_000
    assert graphlane("check", made.path).returncode == 0


def test_a_daemon_out_of_descriptors_says_so(root, graphlane, fuse, volume, tmp_path):
    made = volume(depth="4K", stripe=["*.col"])
    with graphlane.mounted(made, tmp_path / "mnt", preexec_fn=with_few_descriptors) as at, ExitStack() as files:
        with pytest.raises(OSError) as raised:
            for number in range(FEW_DESCRIPTORS):
                files.enter_context(open(at / f"{number}.col", "wb")).write(b"x" * 20_000)
        assert raised.value.errno in (errno.EMFILE, errno.ENFILE)
        opened = number
        files.close()
        (at / "later.col").write_bytes(b"later" * 5000)
        assert opened > 5 and (at / "later.col").read_bytes() == b"later" * 5000


def test_block_sizes_are_small_but_for_programs_that_only_write(striping):
    """Readers of single rows read st_blksize for each; buffered writers write as much at once."""
    _, at = striping
    with open(at / "s", "wb") as writer:
        assert os.fstat(writer.fileno()).st_blksize == 128 << 10
        writer.write(b"row" * 1000)
    wait_until(lambda: os.stat(at / "s").st_blksize == 4096)
    with open(at / "s", "r+b") as both:
        assert os.fstat(both.fileno()).st_blksize == 4096
        with open(at / "s", "ab") as writer:
            assert os.fstat(writer.fileno()).st_blksize == 128 << 10
        wait_until(lambda: os.fstat(both.fileno()).st_blksize == 4096)
    with open(at / "plain", "wb") as writer:
        assert os.fstat(writer.fileno()).st_blksize == os.stat(at.parent).st_blksize
