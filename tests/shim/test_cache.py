"""Data read past the page cache is cached in the process, and is never stale."""

import array
import hashlib
import json
import os
import random
import subprocess
import sys
import time

import pytest

from harness import run

pytestmark = pytest.mark.usefixtures("kept_caches")

SIZE = 40_000_123
BLOCK = 8 << 20
HINTED_MIN = 100_000  # bytes of a part that one hint brings at least
ATTEMPTS_MAX = 20
FRESH_SECONDS = 0.1  # longer than the interval in shim/locate/stub_watch.h
# Sweeps argv[1] in blocks, argv[2] times, as an engine does. Prints whether each sweep read the
# bytes of argv[3].
SWEEPS = f"""
import mmap, os, sys
path, sweeps, like = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "rb").read()
room = memoryview(mmap.mmap(-1, {BLOCK}))
fd = os.open(path, os.O_RDONLY)
for sweep in range(sweeps):
    for at in range(0, len(like), {BLOCK}):
        got = os.preadv(fd, [room], at)
        assert room[:got] == like[at:at + {BLOCK}], (sweep, at)
"""
# Sweeps twice, allocates all that memory at once, and sweeps again. Prints what it read.
GROWS = f"""
import hashlib, mmap, os, sys
room = memoryview(mmap.mmap(-1, {BLOCK}))
fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
def sweep():
    digest = hashlib.blake2b()
    for at in range(0, size, {BLOCK}):
        digest.update(room[:os.preadv(fd, [room], at)])
    print(digest.hexdigest(), flush=True)
sweep(); sweep()
memory = mmap.mmap(-1, int(sys.argv[2]))
for at in range(0, len(memory), mmap.PAGESIZE):
    memory[at] = 1
sweep(); sweep()
"""
# Runs argv[1:] on a kernel without MADV_POPULATE_WRITE.
OLDER_KERNEL = """
import ctypes, os, platform, struct, sys
madvise = {"x86_64": 28, "aarch64": 233}[platform.machine()]
load, equals, answer = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (equals, 0, 3, madvise), (load, 0, 0, 32), (equals, 0, 1, 23),
         (answer, 0, 0, 0x00050000 | 22), (answer, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""
KERNELS = {"this": [], "older": [sys.executable, "-c", OLDER_KERNEL]}
# Reads a block for each line of input, and prints its first and last byte.
READER = """
import mmap, os, sys
room = memoryview(mmap.mmap(-1, 1 << 20))
fd = os.open(sys.argv[1], os.O_RDONLY)
for line in sys.stdin:
    got = os.preadv(fd, [room], 0)
    print(got, room[0], room[got - 1], flush=True)
"""


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(3).randbytes(SIZE))
    made = volume(depth="1M")
    graphlane("import", plain, made.path)
    # A file with a stub that has just changed is not cached: the next change might not show.
    while time.time() < (made.path / "plain").stat().st_ctime + FRESH_SECONDS:
        time.sleep(0.01)
    return plain, made


@pytest.mark.parametrize("cache", ["0", "16M", "64M"])  # nothing, a part, the whole file
@pytest.mark.parametrize("io", ["direct", "buffered"])
def test_reading_allocates_nothing(graphlane, engines, pair, io, cache):
    _, made = pair
    said = graphlane("run", f"--io={io}", f"--cache={cache}", "--", engines / "allocations",
                     made.path / "plain").stdout
    assert said == "0 allocations\n"


def sweep(graphlane, plain, path, sweeps, *options, kernel="this", **environment):
    """Returns the cache's counters from the report."""
    report = plain.parent / "report"
    report.unlink(missing_ok=True)
    graphlane("run", f"--report={report}", "--io=direct", *options, "--", *KERNELS[kernel],
              sys.executable, "-c", SWEEPS, path, sweeps, plain, env=os.environ | environment)
    return json.loads(report.read_text())["cache"]


@pytest.mark.parametrize("mounted", [False, True])
def test_a_second_sweep_hits_a_file_that_fits(graphlane, mount, pair, mounted):
    plain, made = pair
    if mounted:
        with mount(made) as at:
            cache = sweep(graphlane, plain, at / "plain", 3, "--cache=128M")
    else:
        cache = sweep(graphlane, plain, made.path / "plain", 3, "--no-mount", "--cache=128M")
    assert cache["hit_bytes"] >= 2 * SIZE - BLOCK  # the first call only identifies the file
    assert cache["fetched_bytes"] <= SIZE


def test_an_older_kernel_caches_too(graphlane, pair):
    plain, made = pair
    cache = sweep(graphlane, plain, made.path / "plain", 3, "--no-mount", "--cache=128M",
                  kernel="older")
    assert cache["hit_bytes"] >= 2 * SIZE - BLOCK


def test_half_of_a_file_of_twice_the_cache_hits(graphlane, pair):
    plain, made = pair
    cache = sweep(graphlane, plain, made.path / "plain", 9, "--no-mount", "--cache=20M")
    # of its 16 MiB a sixteenth is for new blocks
    assert cache["hit_bytes"] >= 8 * 0.9 * (15 << 20)
    assert cache["resident_bytes"] <= 20 << 20


HINTS = """
import ctypes, os, sys
path, advice = sys.argv[1], sys.argv[2]
fd = os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size
if advice == "readahead":
    libc = ctypes.CDLL(None, use_errno=True)
    libc.readahead.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_size_t]
    assert libc.readahead(fd, 0, size) == 0
else:
    os.posix_fadvise(fd, 0, 0, getattr(os, "POSIX_FADV_" + advice))
length = int(sys.argv[3])
assert os.pread(fd, length, 0) == open(sys.argv[4], "rb").read()[:length]
"""


def hint(graphlane, plain, path, advice, bytes_read, *options):
    graphlane("run", *options, "--", sys.executable, "-c", HINTS, path, advice, bytes_read, plain)


def bytes_in_memory(devices):
    parts = [path for device in devices for path in device.rglob("*") if path.is_file()]
    said = run("fincore", "--bytes", "--noheadings", "--output", "RES", *parts).stdout
    return sum(map(int, said.split()))


def come_into_memory(devices, bytes_min):
    """For one hint the kernel reads no more than a device takes at once."""
    end = time.monotonic() + 30
    while bytes_in_memory(devices) < bytes_min and time.monotonic() < end:
        time.sleep(0.02)
    return bytes_in_memory(devices) >= bytes_min


def test_the_cache_gives_memory_back_to_its_program(graphlane, little_memory, volume, tmp_path):
    """The cache gets no read that could shrink it. The kernel reclaims its memory instead of
    killing the program."""
    content = random.Random(5).randbytes(160 << 20)
    (tmp_path / "plain").write_bytes(content)
    made = volume(depth="1M")
    graphlane("import", tmp_path / "plain", made.path)
    report = tmp_path / "report"
    said = run(*little_memory, graphlane.program, "run", "--no-mount", "--io=direct",
               f"--report={report}", "--", sys.executable, "-c", GROWS, made.path / "plain", 190 << 20)
    assert said.stdout.split() == 4 * [hashlib.blake2b(content).hexdigest()]
    cache = json.loads(report.read_text())["cache"]
    assert cache["hit_bytes"] >= 80 << 20  # the second sweep's: so much was there to reclaim
    assert cache["reclaimed_frames"] > 0
    assert cache["budget_bytes"] <= 60 << 20


def test_hints_reach_the_parts_in_the_page_cache(graphlane, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(3).randbytes(SIZE))
    devices = [tmp_path / name for name in ("a", "b")]
    for device in devices:
        device.mkdir()
    made = graphlane.create_on(tmp_path / "vol", devices, depth="1M")
    graphlane("import", plain, made.path)
    os.sync()
    options = ("--no-mount", "--io=buffered")

    def comes_when_hinted_at(advice) -> bool:
        # Repeats the hint while pages are in flight: the kernel keeps those.
        for _ in range(ATTEMPTS_MAX):
            hint(graphlane, plain, made.path / "plain", "DONTNEED", 0, *options)
            left = bytes_in_memory(devices)
            if left < SIZE // 8:
                break
        assert left < SIZE // 8
        hint(graphlane, plain, made.path / "plain", advice, 0, *options)
        return come_into_memory(devices, left + 2 * HINTED_MIN)

    for advice in ["WILLNEED", "readahead"]:
        # Reads once more: cold pages may be reclaimed meanwhile (DAMON).
        assert comes_when_hinted_at(advice) or comes_when_hinted_at(advice)


@pytest.mark.parametrize("advice", ["WILLNEED", "readahead"])
def test_a_hint_on_an_o_direct_file_prefetches(graphlane, pair, advice):
    plain, made = pair
    report = plain.parent / "report"
    hint(graphlane, plain, made.path / "plain", advice, 1 << 20, "--no-mount", "--io=direct",
         "--cache=64M", f"--report={report}")
    assert json.loads(report.read_text())["cache"]["prefetched_frames"] > 0


def test_a_sweep_on_disks_prefetches(graphlane, tmp_path, disks):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(3).randbytes(SIZE))
    made = graphlane.create_on(tmp_path / "vol", disks, depth="1M")
    graphlane("import", plain, made.path)
    cache = sweep(graphlane, plain, made.path / "plain", 3, "--no-mount", "--cache=64M")
    assert cache["prefetched_frames"] >= SIZE // 2 >> 20
    assert cache["prefetched_used_frames"] == cache["prefetched_frames"] and cache["prefetched_unused_frames"] == 0
    assert cache["fetched_bytes"] + cache["bypassed_bytes"] <= SIZE
    none = sweep(graphlane, plain, made.path / "plain", 1, "--no-mount", "--cache=64M",
                 GRAPHLANE_BACKEND="threads")
    assert none["prefetched_frames"] == 0, "nothing can be begun by preadv"


def test_none_is_asked_for(graphlane, pair):
    plain, made = pair
    for options, environment in [(["--cache=0"], {}), ([], {"GRAPHLANE_CACHE": "0"})]:
        cache = sweep(graphlane, plain, made.path / "plain", 2, "--no-mount", *options,
                      **environment)
        assert cache["budget_bytes"] == 0


def test_unknown_values_are_refused(graphlane, pair):
    plain, made = pair
    refused = graphlane("run", "--cache=much", "--", "true", check=False)
    assert refused.returncode != 0 and "much: not auto, 0 or a size" in refused.stderr
    for name, value in [("GRAPHLANE_CACHE", "12X"), ("GRAPHLANE_CACHE_POLICY", "mru"),
                        ("GRAPHLANE_DISABLE", "lanes,luck")]:
        said = graphlane("run", "--no-mount", "--", "wc", "-c", made.path / "plain",
                         env=os.environ | {name: value}).stderr
        assert said.count("\n") == 1 and name in said


@pytest.mark.parametrize("part", ["lanes", "merging", "prefetch", "cache", "packing",
                                  "lanes,merging,prefetch,cache,packing"])
def test_each_optional_part_can_be_disabled(graphlane, tmp_path, disks, part):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(3).randbytes(SIZE))
    made = graphlane.create_on(tmp_path / "vol", disks, depth="1M")
    graphlane("import", plain, made.path)
    report = {"": None, part: None}
    for without in report:
        cache = sweep(graphlane, plain, made.path / "plain", 3, "--no-mount", "--cache=64M",
                      GRAPHLANE_DISABLE=without)
        devices = json.loads((plain.parent / "report").read_text())["devices"]
        report[without] = {"ios": sum(device["ios"] for device in devices),
                           "read": sum(device["bytes_read"] for device in devices), **cache}
    whole, less = report.values()
    assert whole["prefetched_frames"] > 0 and whole["read"] <= SIZE + (1 << 20)
    assert ("prefetch" in part) == (less["prefetched_frames"] == 0)
    assert ("cache" in part) == (less["read"] >= 2 * SIZE)
    if part == "merging":
        assert less["ios"] >= 1.5 * whole["ios"]


@pytest.mark.parametrize(("without", "share"), [(None, 0.1), ("packing", 0.2)])
def test_cached_edges_are_packed(graphlane, tmp_path, disks, without, share):
    """72 MiB of pairs of numbers below 2^16 pack into a cache of 48 MiB. A sweep then reads no
    more than this bound from the devices; without packing it reads more."""
    plain = tmp_path / "plain"
    numbers = array.array("I", array.array("H", random.Random(4).randbytes(36 << 20)))
    plain.write_bytes(numbers.tobytes())
    made = graphlane.create_on(tmp_path / "vol", disks, depth="1M")
    graphlane("import", plain, made.path)
    environment = {"GRAPHLANE_DISABLE": without} if without else {}
    read = {}
    for sweeps in [6, 10]:
        sweep(graphlane, plain, made.path / "plain", sweeps, "--no-mount", "--cache=64M", **environment)
        devices = json.loads((plain.parent / "report").read_text())["devices"]
        read[sweeps] = sum(device["bytes_read"] for device in devices)
    of_a_sweep = (read[10] - read[6]) / 4 / (72 << 20)
    assert of_a_sweep <= share if not without else of_a_sweep >= share


class Reader:
    """A program that reads the file repeatedly."""

    def __init__(self, graphlane, path, *options):
        self.process = subprocess.Popen(
            [graphlane.program, "run", "--io=direct", "--cache=64M", *options, "--",
             sys.executable, "-c", READER, path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> list[int]:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [int(word) for word in self.process.stdout.readline().split()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


def test_writes_by_a_mount_invalidate_the_cache(graphlane, mount, pair):
    plain, made = pair
    with mount(made) as at, Reader(graphlane, at / "plain") as reader:
        for value in range(1, 60):
            with open(at / "plain", "r+b") as file:
                os.pwrite(file.fileno(), bytes([value]) * (1 << 20), 0)
                assert reader.read() == [1 << 20, value, value]
            for _ in range(3):
                assert reader.read() == [1 << 20, value, value]


def test_writes_without_a_mount_invalidate_the_cache(graphlane, pair, tmp_path):
    plain, made = pair
    writer = ("import os, sys\n"
              "fd = os.open(sys.argv[1], os.O_RDWR)\n"
              "for line in sys.stdin:\n"
              "    os.pwrite(fd, bytes([int(line)]) * (1 << 20), 0)\n"
              "    print(flush=True)\n")
    path = made.path / "plain"
    with Reader(graphlane, path, "--no-mount") as reader:
        for first in range(1, 60, 3):
            program = subprocess.Popen(
                [graphlane.program, "run", "--no-mount", "--", sys.executable, "-c", writer, path],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for value in range(first, first + 3):
                program.stdin.write(f"{value}\n")
                program.stdin.flush()
                program.stdout.readline()
                assert reader.read() == [1 << 20, value, value]
                assert reader.read() == [1 << 20, value, value]
            program.stdin.close()
            assert program.wait(10) == 0
            for _ in range(3):
                assert reader.read() == [1 << 20, first + 2, first + 2]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_bad_buffer_is_an_error_and_no_signal(graphlane, pair, kernel):
    plain, made = pair
    program = ("import ctypes, os, sys\n"
               "libc = ctypes.CDLL(None, use_errno=True)\n"
               "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
               "libc.mmap.restype = ctypes.c_void_p\n"
               "room = libc.mmap(None, 4 << 20, 3, 0x22, -1, 0)\n"
               "for _ in range(3):\n"
               "    assert libc.pread(fd, ctypes.c_void_p(room), 4 << 20, 0) == 4 << 20\n"
               "libc.mprotect(ctypes.c_void_p(room + (1 << 20)), 1 << 20, 1)\n"
               "assert libc.pread(fd, ctypes.c_void_p(room), 4 << 20, 0) < 4 << 20\n")
    graphlane("run", "--no-mount", "--io=direct", "--cache=64M", "--", *KERNELS[kernel],
              sys.executable, "-c", program, made.path / "plain")


def test_a_child_reads_without_the_cache(graphlane, pair):
    """A child has no copy of the cache, and what it fetched would never be used."""
    plain, made = pair
    program = SWEEPS + "\nif os.fork() == 0:\n" + "".join(
        f"    {line}\n" for line in SWEEPS.splitlines()[4:]) + "    os._exit(0)\n" + (
        "assert os.wait()[1] == 0\n")
    graphlane("run", "--no-mount", "--io=direct", "--cache=64M", "--", sys.executable, "-c", program,
              made.path / "plain", 2, plain)
