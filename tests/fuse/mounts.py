"""Fixtures and helpers for the tests of the mount. Tests import the fixtures that they use."""

import ctypes
import json
import mmap
import os
import random
import re
import resource
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness import is_mounted, run, settle

FEW_DESCRIPTORS = 200
PR_CAPBSET_DROP, CAP_SYS_RESOURCE = 24, 24


def with_few_descriptors() -> None:
    """For preexec_fn: not even root takes more then."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, FEW_DESCRIPTORS))
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)


def stats(at: Path) -> dict:
    return json.loads(os.getxattr(at, "user.graphlane.stats"))


def parts_of(volume) -> list[Path]:
    return [path for device in volume.devices for path in device.glob("*/parts/*/" + 32 * "?")]


def daemon_of(volume, at: Path) -> str:
    (daemon,) = run("pgrep", "-f", f"mount {volume.path} {at}( |$)").stdout.split()
    return daemon


def flags_of_daemon(volume, at: Path, name: str) -> list[int]:
    """The flags with which the mount's daemon has the volume's file open."""
    of = Path("/proc", daemon_of(volume, at))
    numbers = [fd.name for fd in (of / "fd").iterdir() if os.readlink(fd) == str(volume.path / name)]
    infos = [(of / "fdinfo" / number).read_text() for number in numbers]
    return [int(re.search(r"flags:\s*(\d+)", info)[1], 8) for info in infos]


@contextmanager
def traced(volume, at: Path, *calls: str):
    """A list that at the end holds the daemon's calls of these system calls: ("fsync", "/path")."""
    daemon = daemon_of(volume, at)
    found = []
    with subprocess.Popen(["strace", "-f", "-y", "-p", daemon, "-e", f"trace={','.join(calls)}"],
                          stderr=subprocess.PIPE, text=True) as strace:
        assert "attached" in strace.stderr.readline()
        try:
            yield found
        finally:
            strace.send_signal(signal.SIGINT)  # detaches
            said = strace.communicate(timeout=60)[1]
    found += re.findall(r"(\w+)\(\d+<([^>]*)>", said)


def random_bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def mounted(graphlane, fuse, tmp_path):
    """`with mounted(volume, "-o", "io=direct") as path:`. at= chooses another mountpoint."""

    @contextmanager
    def mount(volume, *options, at: Path | None = None):
        at = at or tmp_path / "mnt"
        at.mkdir(exist_ok=True)
        settle()
        graphlane("mount", volume.path, at, *options)
        try:
            yield at
        finally:
            stopped = graphlane("umount", at, check=False)
            if is_mounted(at):
                run("fusermount3", "-u", "-z", at, check=False)
                pytest.fail(f"graphlane umount {at}: {stopped.stderr}", pytrace=False)

    return mount


@pytest.fixture
def striped(volume, graphlane, tmp_path):
    """A volume with the striped file `data`, and its bytes.

    The size is no multiple of a page, of a unit, or of a row of units.
    """

    def make(size=10_000_123, depth="64K", **options):
        content = random_bytes(size)
        source = tmp_path / "data"
        source.write_bytes(content)
        made = volume(depth=depth, **options)
        graphlane("import", source, made.path)
        return made, content

    return make


@pytest.fixture
def failing_disk(root, small_filesystem, tmp_path):
    """A directory on a device that claims more space than it has. Writeback beyond so many bytes fails."""
    image, at = small_filesystem(tmp_path / "small", "4M") / "image", tmp_path / "failing"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", image)
    device = run("losetup", "--find", "--show", image, check=False).stdout.strip()
    if not device:
        pytest.skip("not applicable: no loop devices here")
    at.mkdir()
    run("mount", device, at)
    yield at
    run("umount", "-l", at)
    run("losetup", "--detach", device)


CACHESTAT = 451  # of all machines


def resident(path: Path) -> int:
    """Bytes of the file in the page cache. Uses cachestat() where the kernel has it: mapping a
    file without cached pages drops the pages of other files."""
    fd = os.open(path, os.O_RDONLY)
    whole, counts = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    failed = ctypes.CDLL(None).syscall(CACHESTAT, fd, whole, counts, 0)
    os.close(fd)
    if failed:  # Linux before 6.5
        return int(run("fincore", "--bytes", "--noheadings", "--output", "RES", path).stdout)
    return counts[0] * mmap.PAGESIZE


@contextmanager
def kept_in_memory(paths: list[Path]):
    """Maps and locks all pages of the files, so that DAMON on the host cannot reclaim them.

    Without CAP_IPC_LOCK and with more bytes than RLIMIT_MEMLOCK the pages are only read.
    """
    with ExitStack() as maps:
        for path in paths:
            with path.open("r+b") as file:
                pages = maps.enter_context(mmap.mmap(file.fileno(), 0))
            first = ctypes.c_char.from_buffer(pages)
            ctypes.CDLL(None).mlock(ctypes.c_void_p(ctypes.addressof(first)),
                                    ctypes.c_size_t(len(pages)))
            del first  # it would keep the map alive
            path.read_bytes()
        yield
