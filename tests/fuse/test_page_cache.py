"""Which page cache keeps data read over the mount: the mount's, that of the parts, or both."""

import ctypes
import mmap
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import comes, forget_pages
from mounts import (  # noqa: F401, fixtures
    kept_in_memory,
    mounted,
    parts_of,
    resident,
    stats,
    striped,
)

pytestmark = pytest.mark.usefixtures("kept_caches")

MIB = 1 << 20
LINUX = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def bytes_read(at: Path) -> int:
    return sum(device["bytes_read"] for device in stats(at)["devices"])


def lane_ios(at: Path) -> int:
    return sum(sum(device["service"]) for device in stats(at)["devices"])


def forget(paths: list[Path]) -> None:
    """Drops their pages."""
    forget_pages(paths)
    if sum(map(resident, paths)) > 0:
        pytest.skip("not applicable: this filesystem has its files in memory")


@pytest.mark.skipif(LINUX < (6, 5), reason="not applicable: Linux 6.5 tells what is cached")
def test_a_file_that_fits_once_is_in_memory_once(striped, graphlane, little_memory, tmp_path):
    volume, content = striped(size=150 * MIB + 123, depth="3M")
    parts = parts_of(volume)
    forget(parts)
    at = tmp_path / "mnt"
    at.mkdir()
    subprocess.run([*little_memory, graphlane.program, "mount", volume.path, at], check=True,
                   timeout=60)
    try:
        assert (at / "data").read_bytes() == content
        before = bytes_read(at)
        assert sum(map(resident, parts)) < 10 * MIB
        assert (at / "data").read_bytes() == content
        # The devices may be read again for pages that the kernel reclaimed.
        assert bytes_read(at) - before < 75 * MIB
    finally:
        graphlane("umount", at)


def will_need(fd: int, begin: int, length: int) -> None:
    os.posix_fadvise(fd, begin, length, os.POSIX_FADV_WILLNEED)


def readahead(fd: int, begin: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.readahead(fd, ctypes.c_int64(begin), ctypes.c_size_t(length)) == 0


@pytest.mark.parametrize("io", ["buffered", "direct"])
@pytest.mark.parametrize("hint", [will_need, readahead])
def test_advice_willneed_prefetches(striped, mounted, io, hint):
    volume, content = striped(size=20 * MIB + 123, depth="1M")
    with mounted(volume, "-o", f"io={io}") as at, open(at / "data", "rb", buffering=0) as file:
        hint(file.fileno(), 4 * MIB, 8 * MIB)
        assert comes(lambda: bytes_read(at) >= 8 * MIB, seconds_max=20)
        before = bytes_read(at)
        assert os.pread(file.fileno(), 8 * MIB, 4 * MIB) == content[4 * MIB:12 * MIB]
        most = before + 4 * MIB if io == "buffered" else len(content)
        assert bytes_read(at) <= most, "but for what is read ahead behind it, nothing twice"


@pytest.mark.parametrize("depth", ["64K", "3M"])
def test_uncached_parts_are_read_through_the_lanes(
        striped, mounted, depth):
    volume, content = striped(size=20 * MIB + 123, depth=depth)
    parts = parts_of(volume)
    forget(parts)
    with mounted(volume, "-o", "io=buffered") as at:
        with open(at / "data", "rb", buffering=0) as file:
            for begin in [19 * MIB + 5, 3, 7 * MIB]:
                assert os.pread(file.fileno(), MIB, begin) == content[begin:begin + MIB]
        assert lane_ios(at) > 0 or LINUX < (6, 5)  # earlier kernels cannot tell
        assert (at / "data").read_bytes() == content
        all_ios = lane_ios(at)
    # Allows some pages: where DAMON on the host reclaims cold pages, a few are read anew.
    assert sum(map(resident, parts)) >= 10 * MIB, "the next mount finds them there"
    with kept_in_memory(parts), mounted(volume, "-o", "io=buffered") as at:  # these too
        assert (at / "data").read_bytes() == content
        assert lane_ios(at) <= all_ios / 4


HOLD = """
import os, sys
memory = os.memfd_create("held")
os.write(memory, bytes(SIZE))
print("holds it", flush=True)
sys.stdin.read()
""".replace("SIZE", str(110 * MIB))


def test_shared_memory_does_not_count_as_reclaimable(volume, graphlane, little_memory, tmp_path):
    """The cgroup counts it as cache, but it cannot be reclaimed."""
    at = tmp_path / "mnt"
    at.mkdir()
    holder = subprocess.Popen([*little_memory, sys.executable, "-c", HOLD],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"holds it\n"
        made = volume()
        subprocess.run([*little_memory, graphlane.program, "mount", made.path, at], check=True,
                       timeout=60)
        said = stats(at)
        graphlane("umount", at)
    finally:
        holder.communicate()
    assert said["cache"]["budget_bytes"] < 30 * MIB, "of 260, of which 128 are left alone"
    assert said["shared"]["budget_bytes"] > 15 * MIB, "without which each would read for himself"


def test_a_file_created_with_o_direct_is_read_directly(volume, mounted):
    made = volume(stripe=["s*"])
    with mounted(made) as at, mmap.mmap(-1, 8 * MIB) as memory:
        fd = os.open(at / "s", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        try:
            assert os.writev(fd, [memory]) == len(memory)
            parts = parts_of(made)
            forget(parts)
            assert os.preadv(fd, [memory], 0) == len(memory)
            assert sum(map(resident, parts)) == 0
        finally:
            os.close(fd)
