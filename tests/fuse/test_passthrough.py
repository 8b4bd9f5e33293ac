"""Plain files that the kernel reads and writes without the daemon. That they are files
like any other, test_plain_files.py, test_maps.py and test_users.py show."""

import os
import platform
import re
import signal
import threading
from contextlib import contextmanager

import pytest

from harness import BUILD, run
from mounts import mounted, root  # noqa: F401, fixtures

PASSTHROUGH_LIBRARY = 4  # libfuse3.so.4 is 3.17 and newer
PASSTHROUGH_LINUX = (6, 9)


@pytest.fixture
def passthrough(root, fuse):
    """Skips where libfuse or the kernel is older."""
    library = re.search(r"libfuse3\.so\.(\d+)", run("ldd", BUILD / "bin/graphlane").stdout)
    linux = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    if int(library[1]) < PASSTHROUGH_LIBRARY or linux < PASSTHROUGH_LINUX:
        pytest.skip("not applicable: no passthrough before libfuse 3.17 and Linux 6.9")


@contextmanager
def stopped(volume, at):
    """The daemon answers nothing meanwhile; fails if a call had to wait for it."""
    pid = daemon(volume, at)
    gave_up = threading.Timer(30, os.kill, [pid, signal.SIGCONT])
    os.kill(pid, signal.SIGSTOP)
    gave_up.start()
    try:
        yield
        assert gave_up.is_alive(), "waited for the daemon"
    finally:
        gave_up.cancel()
        os.kill(pid, signal.SIGCONT)


def daemon(volume, at) -> int:
    return int(run("pgrep", "-f", f"mount {volume.path} {at}$").stdout)


@pytest.mark.parametrize("create", [True, False], ids=["created", "opened"])
def test_the_daemon_has_no_part_in_reads_and_writes(passthrough, volume, mounted, create):
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
