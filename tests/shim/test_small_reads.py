"""Small reads over a mount: the kernel serves cached bytes, and the parts serve the rest."""

import json
import random
import subprocess
import sys

import pytest

SIZE = 24 << 20
PAGE = 4096
READS = 400
RUN_FIRST = 16  # reads that always go to the parts: iomgr/read/small_reads.h
# Reads distant pages of argv[1], and compares them with those of argv[2].
READER = f"""
import os, sys
fd, plain = (os.open(path, os.O_RDONLY) for path in sys.argv[1:3])
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for i in range({READS}):
    at = i * 7919 * {PAGE} % {SIZE}
    assert os.pread(fd, {PAGE}, at) == os.pread(plain, {PAGE}, at), i
"""


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(5).randbytes(SIZE))
    made = volume(depth="1M")
    graphlane("import", plain, made.path)
    return plain, made


def read_preloaded(graphlane, plain, path) -> dict:
    """The file's entry in the report of the run."""
    report = plain.parent / "report"
    report.unlink(missing_ok=True)
    graphlane("run", f"--report={report}", "--", sys.executable, "-c", READER, path, plain)
    (file,) = json.loads(report.read_text())["files"]
    return file


def left_to_the_kernel(file: dict) -> int:
    return sum(left["calls"] for left in file["left_to_fuse"] if left["why"].startswith("small"))


def test_small_reads_of_cached_pages_go_to_the_kernel(graphlane, mount, pair):
    plain, made = pair
    with mount(made) as at:
        subprocess.run(["cat", at / "plain"], stdout=subprocess.DEVNULL, check=True)
        file = read_preloaded(graphlane, plain, at / "plain")
    # The kernel may have reclaimed some when memory is short.
    assert left_to_the_kernel(file) >= READS / 2
    assert file["reads"] + left_to_the_kernel(file) == READS
    assert file["reads"] >= RUN_FIRST


def test_small_reads_of_uncached_pages_go_to_the_parts(graphlane, mount, pair):
    plain, made = pair
    with mount(made) as at:
        file = read_preloaded(graphlane, plain, at / "plain")
    assert file["reads"] >= READS * 3 / 4, "it is asked less and less"
    assert 0 < left_to_the_kernel(file) == READS - file["reads"]


def test_without_a_mount_small_reads_go_to_the_parts(graphlane, pair):
    plain, made = pair
    report = plain.parent / "report"
    graphlane("run", "--no-mount", f"--report={report}", "--", sys.executable, "-c", READER,
              made.path / "plain", plain)
    (file,) = json.loads(report.read_text())["files"]
    assert (file["reads"], file["left_to_fuse"]) == (READS, [])
