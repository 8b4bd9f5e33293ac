"""32 threads open, read and close 10,000 times during 100 forks: no wrong byte, and no
descriptor left."""

import os
import random
import re
import subprocess

import pytest

from harness import BUILD, ROOT, run

SIZE = 3_000_017
# The pool of queues stays, each with an eventfd. A leak would add one for each visit or each fork.
QUEUES_MAX = 32
PARTS_KEPT = 4  # on disks, parts of the file last read (shim/read/swept_files.h)
PROGRAM = BUILD / "engines/storm"


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(5).randbytes(SIZE))
    made = volume(depth="64K")
    graphlane("import", plain, made.path)
    return plain, made


def storm(plain, striped, visits, prefix=(), environment=None, program=PROGRAM, forks=100,
          child_threads=4):
    seed = random.randrange(1 << 31)
    result = subprocess.run(
        [*map(str, prefix), program, plain, striped, *map(str, [visits, forks, child_threads, seed])],
        capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})})
    said = f"seed {seed}: status {result.returncode}\n{result.stdout}{result.stderr}"
    assert result.returncode == 0, said
    match = re.fullmatch(r"0 failures, 0 failed children, (-?\d+) descriptors more\n", result.stdout)
    assert match and int(match[1]) <= QUEUES_MAX + PARTS_KEPT, said


def test_storm_notices_a_wrong_byte(tmp_path):
    for name, byte in [("a", b"a"), ("b", b"b")]:
        (tmp_path / name).write_bytes(b"a" * 100_000 + byte)
    with pytest.raises(AssertionError, match="wrong bytes"):
        storm(tmp_path / "a", tmp_path / "b", 1000)


@pytest.mark.parametrize("backend", ["io_uring", "libaio", "threads"])
def test_without_a_mount(pair, graphlane, backend):
    plain, made = pair
    storm(plain, made.path / "plain", 10_000, [graphlane.program, "run", "--no-mount", "--"],
          {"GRAPHLANE_BACKEND": backend})


def test_over_a_mount(pair, graphlane, mount):
    plain, made = pair
    with mount(made) as at:
        storm(plain, at / "plain", 10_000, [graphlane.program, "run", "--"])


@pytest.mark.parametrize("backend", ["io_uring", "libaio", "threads"])
def test_on_disks(graphlane, tmp_path, disks, backend):
    """Reads bypass the page cache, and each disk gets one I/O at a time."""
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(5).randbytes(SIZE))
    made = graphlane.create_on(tmp_path / "vol", disks, depth="64K")
    graphlane("import", plain, made.path)
    storm(plain, made.path / "plain", 2000, [graphlane.program, "run", "--no-mount", "--"],
          {"GRAPHLANE_BACKEND": backend, "GRAPHLANE_IO": "direct"}, forks=20)


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_a_sanitized_program(pair, graphlane, tmp_path, sanitizer):
    """The library is not sanitized itself, but a program may be. The sanitizer's read() then
    comes after the library's."""
    plain, made = pair
    program = tmp_path / "storm"
    run("g++", "-std=c++20", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread",
        ROOT / "tests/shim/storm.cc", "-o", program)
    # The sanitizer does not see how the library orders its accesses. A child inherits threads of
    # its parent that cannot be joined.
    (tmp_path / "suppressions").write_text("called_from_lib:libgraphlane.so\n")
    storm(plain, made.path / "plain", 10_000, [graphlane.program, "run", "--no-mount", "--"],
          {"ASAN_OPTIONS": "verify_asan_link_order=0",
           "TSAN_OPTIONS": "halt_on_error=1:report_thread_leaks=0:"
                          f"suppressions={tmp_path}/suppressions"},
          program=program, child_threads=0)
