"""The kernel reads and writes plain files without the daemon. test_plain_files.py, test_maps.py
and test_users.py show that they behave as any other file."""

import mmap
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from harness import is_mounted, run
from mounts import mounted  # noqa: F401, fixtures

from experiments.goals.in_memory import stop_process

PASSTHROUGH_LINUX = (6, 9)


@pytest.fixture
def passthrough(root, fuse):
    """Skips on kernels without passthrough."""
    linux = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    if linux < PASSTHROUGH_LINUX:
        pytest.skip("not applicable: no passthrough before Linux 6.9")


@contextmanager
def stopped(volume, at):
    """Stops the daemon; fails if a call had to wait for it."""
    pid = daemon(volume, at)
    gave_up = threading.Timer(30, os.kill, [pid, signal.SIGCONT])
    gave_up.start()
    try:
        stop_process(pid)
        yield
        assert gave_up.is_alive(), "waited for the daemon"
    finally:
        gave_up.cancel()
        os.kill(pid, signal.SIGCONT)


def daemon(volume, at) -> int:
    return int(run("pgrep", "-f", f"mount {volume.path} {at}$").stdout)


@pytest.mark.parametrize("create", [True, False], ids=["created", "opened"])
def test_reads_and_writes_bypass_the_daemon(passthrough, volume, mounted, create):
    made = volume()
    with mounted(made) as at:
        if not create:
            (at / "f").write_bytes(b"")
        fd = os.open(at / "f", os.O_RDWR | (os.O_CREAT if create else 0))
        os.pwrite(fd, b"first", 0)  # the kernel asks once whether the file has capabilities
        with stopped(made, at):
            assert os.pwrite(fd, b"by the kernel", 0) == 13
            assert os.pread(fd, 20, 0) == b"by the kernel"
        os.close(fd)
        assert (made.path / "f").read_bytes() == b"by the kernel"


@pytest.mark.parametrize("create", [True, False], ids=["created", "opened"])
def test_a_store_to_a_map_updates_the_times_at_once(passthrough, volume, mounted, create):
    with mounted(volume(), "-o", "attr_timeout=3600") as at:
        if not create:
            (at / "f").write_bytes(bytes(4096))
        fd = os.open(at / "f", os.O_RDWR | (os.O_CREAT if create else 0))
        os.ftruncate(fd, 4096)
        with mmap.mmap(fd, 4096) as written:
            before = os.stat(at / "f").st_mtime_ns
            time.sleep(0.05)  # a tick of the kernel's clock
            written[0] = 1
            written.flush()
            assert os.stat(at / "f").st_mtime_ns > before
        os.close(fd)


WRITE_MAP = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, SIZE)
map = mmap.mmap(fd, SIZE)
for turn in range(4):
    for place in range(0, SIZE, 4096):
        map[place] = turn
""".replace("SIZE", str(40 << 20))
MAP_WRITERS = 16  # together they map twice the memory


def test_a_mount_without_memory_is_not_made_to_wait_for_itself(passthrough, little_memory, volume,
                                                               graphlane, tmp_path):
    """In a limited cgroup of version 1, an allocation waits for pages under writeback. A daemon
    that wrote these pages itself could wait for itself."""
    made, at = volume(), tmp_path / "mnt"
    at.mkdir()
    run(*little_memory, graphlane.program, "mount", made.path, at)
    writers = [subprocess.Popen([*little_memory, sys.executable, "-c", WRITE_MAP, at / str(i)])
               for i in range(MAP_WRITERS)]
    try:
        assert [writer.wait(60) for writer in writers] == [0] * MAP_WRITERS
    finally:
        for writer in writers:
            writer.kill()
        if any(writer.poll() is None for writer in writers):
            run("umount", "-f", at, check=False)  # drops requests in flight
        graphlane("umount", at, check=False)
        assert not is_mounted(at)
