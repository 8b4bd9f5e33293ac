"""A sweep over a file larger than memory drops its pages from the kernel's page cache."""

import os
import subprocess

import pytest

from harness import wait_until
from mounts import resident, striped  # noqa: F401, fixtures

pytestmark = pytest.mark.usefixtures("kept_caches")

MIB = 1 << 20
SIZE = 240 * MIB
KEPT = 64 * MIB  # a quarter of the available memory (fuse/ops/sweeps.cc)
STEP = 4 * MIB  # bytes dropped at a time
AHEAD = 32 * MIB  # the kernel's readahead


@pytest.fixture
def swept(striped, graphlane, little_memory, tmp_path):
    """A mounted file, and its bytes."""
    volume, content = striped(size=SIZE, depth="3M")
    at = tmp_path / "mnt"
    at.mkdir()
    subprocess.run([*little_memory, graphlane.program, "mount", volume.path, at, "-o", "io=direct"],
                   check=True, timeout=60)
    try:
        with open(at / "data", "rb", buffering=0) as file:  # small pieces: the next uses pages
            file.read(4096)
        with open(at / "data", "rb", buffering=0) as file:
            file.read(1)
            if resident(at / "data") == 0:
                pytest.skip("not applicable: with this libfuse no reads leave pages")
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield at / "data", content
    finally:
        graphlane("umount", at)


def test_a_sweep_drops_pages_far_behind_it(swept):
    path, content = swept
    with open(path, "rb", buffering=0) as file:
        for at in range(0, SIZE, MIB):
            assert file.read(MIB) == content[at:at + MIB]
        wait_until(lambda: resident(path) <= KEPT + STEP + AHEAD)
    wait_until(lambda: resident(path) <= AHEAD)
    assert path.read_bytes() == content


def test_a_second_reader_keeps_all_pages(swept):
    path, content = swept
    with open(path, "rb", buffering=0), open(path, "rb", buffering=0) as file:
        assert file.read() == content
        assert resident(path) > SIZE - 4 * STEP  # the kernel may have reclaimed some pages


def test_random_reads_keep_their_pages(swept):
    path, content = swept
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        places = range(0, SIZE, 5 * MIB)
        for at in places:
            assert os.pread(file.fileno(), 65536, at) == content[at:at + 65536]
        assert resident(path) > (len(places) - 4) * 65536  # as above
