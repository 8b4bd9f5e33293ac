"""Each kind of damage, met by each way to read. With verify=read a program gets an error for damaged bytes, and all
others right. The table is in tests/trust/PROMISES.md."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from harness import PRELOADED, Volume, run


def stats(at: Path) -> dict:
    return json.loads(os.getxattr(at, "user.graphlane.stats"))


DEPTH, DEVICES, BLOCK = 64 << 10, 4, 4096
UNITS = 33
SIZE = UNITS * DEPTH - 1000
BAD_BLOCK = 100  # of the part on device 1

# Reads each file by pieces of `depth` bytes. Says which of them fail, and which are not as in the source.
READER = """
import json, mmap, os, sys
top, source, flags, rounds, depth = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
found = {}
memory = mmap.mmap(-1, depth)
files = {name: os.open(f"{top}/{name}", os.O_RDONLY | flags) for name in sorted(os.listdir(source))}
for turn in range(rounds):
    for name, fd in files.items():
        right = open(f"{source}/{name}", "rb").read()
        failed, wrong = [], []
        for unit in range(-(-len(right) // depth)):
            expected, at = right[unit * depth:(unit + 1) * depth], 0
            try:
                while at < len(expected):  # a read through the page cache is short before a bad page
                    step = os.preadv(fd, [memoryview(memory)[at:]], unit * depth + at)
                    assert step > 0
                    at += step
                if memory[:len(expected)] != expected:
                    wrong.append(unit)
            except OSError:
                failed.append(unit)
        found[name] = [failed, wrong]
print(json.dumps(found), flush=True)
if len(sys.argv) > 6:
    sys.stdin.read()
"""


# Each damages the part on device 1, or its checksums. Returns which blocks of the part cannot be believed.

def _write(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
        os.fsync(file.fileno())


def a_flipped_bit(part, sums, other):
    byte = part.read_bytes()[BAD_BLOCK * BLOCK + 77]
    _write(part, BAD_BLOCK * BLOCK + 77, bytes([byte ^ 4]))
    return [BAD_BLOCK]


def a_block_of_zeros(part, sums, other):
    _write(part, BAD_BLOCK * BLOCK, bytes(BLOCK))
    return [BAD_BLOCK]


def a_block_of_another_file(part, sums, other):
    _write(part, BAD_BLOCK * BLOCK, other.read_bytes()[BAD_BLOCK * BLOCK:(BAD_BLOCK + 1) * BLOCK])
    return [BAD_BLOCK]


def a_block_of_another_place(part, sums, other):
    _write(part, BAD_BLOCK * BLOCK, part.read_bytes()[:BLOCK])
    return [BAD_BLOCK]


def a_torn_sum(part, sums, other):
    """The sectors behind the first 64 checksums were never written."""
    size = sums.stat().st_size
    _write(sums, 16384 + 4 * 64, bytes(size - 16384 - 4 * 64))
    return range(64, -(-part.stat().st_size // BLOCK))


def a_torn_header(part, sums, other):
    for slot in (4096, 6144):
        _write(sums, slot + 48, bytes(40))
    return None


def a_short_sum(part, sums, other):
    os.truncate(sums, 16384 + 4 * 64)
    return range(64, -(-part.stat().st_size // BLOCK))


def a_sum_of_another_part(part, sums, other):
    shutil.copyfile(other.parents[2] / "sums" / other.parent.name / f"{other.name}.sum", sums)
    return None


def no_sum(part, sums, other):
    sums.unlink()
    return None


def a_fifo(part, sums, other):
    sums.unlink()
    os.mkfifo(sums, 0o600)
    return None


def a_link(part, sums, other):
    sums.rename(sums.with_suffix(".away"))
    sums.symlink_to(sums.with_suffix(".away"))
    return None


def a_huge_sum(part, sums, other):
    """Bytes behind the checksums are never read, and do not make them wrong."""
    os.truncate(sums, 1 << 42)
    return []


OF_DATA = [a_flipped_bit, a_block_of_zeros, a_block_of_another_file, a_block_of_another_place]
FAULTS = [*OF_DATA, a_torn_sum, a_torn_header, a_short_sum, a_sum_of_another_part, no_sum, a_fifo, a_link, a_huge_sum]


class Damaged:
    """A volume with a file for each fault, one with a stale block, and a good one."""

    def __init__(self, graphlane, tmp: Path):
        self.graphlane = graphlane
        devices = [tmp / f"d{i}" for i in range(DEVICES)]
        for device in devices:
            device.mkdir()
        graphlane("create", tmp / "vol", "--verify=read", "--stripe-depth", DEPTH,
                  *(word for device in devices for word in ("--device", device)))
        self.made = Volume(tmp / "vol", devices)
        self.path = self.made.path
        self.source = tmp / "source"
        self.source.mkdir()
        for number, name in enumerate([fault.__name__ for fault in FAULTS] + ["a_stale_block", "good"]):
            (self.source / name).write_bytes(random.Random(number).randbytes(SIZE))
        graphlane("import", f"{self.source}/.", self.path)
        self.parts = {path.name: path for path in self.made.devices[1].glob("*/parts/*/" + 32 * "?")}
        good = self.part_of("good")
        self.bad = {"good": []}
        old = self.rewrite("a_stale_block", tmp / "rewriting")
        for fault in FAULTS:
            part = self.part_of(fault.__name__)
            units = self.units_of(fault.__name__, part)
            bad = fault(part, part.parents[2] / "sums" / part.parent.name / f"{part.name}.sum", good)
            blocks = bad if bad is not None else range(len(units) * DEPTH // BLOCK)
            self.bad[fault.__name__] = sorted({units[block * BLOCK // DEPTH] for block in blocks})
        part = self.part_of("a_stale_block")
        _write(part, BAD_BLOCK * BLOCK, old)
        self.bad["a_stale_block"] = [self.units_of("a_stale_block", part)[BAD_BLOCK * BLOCK // DEPTH]]
        for part in [*self.parts.values(), *(path for device in self.made.devices for path in device.glob("*/parts/*/*"))]:
            with open(part, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def part_of(self, name: str) -> Path:
        number = (self.path / name).read_bytes()[32:48].hex()  # the stub's file id
        return self.parts[number]

    def units_of(self, name: str, part: Path) -> list[int]:
        """The units of the file that lie in the part, in its order."""
        first = int.from_bytes((self.path / name).read_bytes()[60:64], "little")
        return list(range((1 - first) % DEVICES, UNITS, DEVICES))

    def rewrite(self, name: str, at: Path) -> bytes:
        """Writes the block anew by a mount. The old one."""
        part = self.part_of(name)
        old = part.read_bytes()[BAD_BLOCK * BLOCK:(BAD_BLOCK + 1) * BLOCK]
        unit = self.units_of(name, part)[BAD_BLOCK * BLOCK // DEPTH]
        offset = unit * DEPTH + BAD_BLOCK * BLOCK % DEPTH
        with self.graphlane.mounted(self.made, at):
            _write(at / name, offset, b"new!" * (BLOCK // 4))
        _write(self.source / name, offset, b"new!" * (BLOCK // 4))
        return old

    def expected(self, step: int = DEPTH) -> dict:
        return {name: [sorted({unit * DEPTH // step for unit in units}), []] for name, units in self.bad.items()}


@pytest.fixture(scope="module")
def damaged(graphlane, tmp_path_factory):
    return Damaged(graphlane, tmp_path_factory.mktemp("faults"))


@contextmanager
def mounted(damaged, *options):
    at = damaged.path.parent / "mnt"
    at.mkdir(exist_ok=True)
    damaged.graphlane("mount", damaged.path, at, *options)
    try:
        yield at
    finally:
        damaged.graphlane("umount", at)


def reader(damaged, top: Path, direct: bool, rounds: int = 1, step: int = DEPTH) -> list:
    return [sys.executable, "-c", READER, top, damaged.source, os.O_DIRECT if direct else 0, rounds, step]


def preloaded(damaged, *words) -> dict:
    done = damaged.graphlane("run", *words, env={**os.environ, **PRELOADED})
    return json.loads(done.stdout)


def by_a_mount(damaged):
    with mounted(damaged, "-o", "verify=read") as at:
        return [json.loads(run(*reader(damaged, at, direct)).stdout) for direct in (False, True)]


def preloaded_over_a_mount(damaged):
    with mounted(damaged, "-o", "verify=read") as at:
        return [preloaded(damaged, "--", *reader(damaged, at, direct)) for direct in (False, True)]


def without_a_mount(damaged):
    return [preloaded(damaged, "--no-mount", "--verify=read", "--", *reader(damaged, damaged.path, direct))
            for direct in (False, True)]


def cached_in_the_process(damaged):
    """The second round comes from there."""
    return [preloaded(damaged, "--no-mount", "--verify=read", "--io=direct", "--cache=64M", "--",
                      *reader(damaged, damaged.path, direct=True, rounds=2))]


SHARED_STEP = 1 << 20  # reads of less than 512 KiB are not shared


@pytest.mark.parametrize("share", ["auto", "map"])
def test_shared_damage_is_an_error_too(fuse, damaged, share):
    """While another reader has the files open, both read them by the server's cache; with `map` it is shown, not copied."""
    with mounted(damaged, "-o", "verify=read,cache=64M") as at:
        words = ["run", "--io=direct", f"--share={share}", "--",
                 *reader(damaged, at, direct=True, rounds=2, step=SHARED_STEP)]
        command = [str(word) for word in [damaged.graphlane.program, *words, "stay"]]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, **PRELOADED}) as other:
            first = json.loads(other.stdout.readline())
            second = json.loads(damaged.graphlane(*words, env={**os.environ, **PRELOADED}).stdout)
            shared = stats(at)["shared"]
            other.stdin.close()
    assert shared["fetched_bytes"] > 0
    assert first == second == damaged.expected(SHARED_STEP)


@pytest.mark.parametrize("way", [by_a_mount, preloaded_over_a_mount, without_a_mount, cached_in_the_process],
                         ids=lambda way: way.__name__)
def test_damage_is_an_error_and_the_rest_is_right(fuse, damaged, way):
    for found in way(damaged):
        assert found == damaged.expected()


def test_with_verify_scrub_all_is_served(fuse, damaged):
    """Only the blocks that are damaged themselves differ."""
    data_faults = {*(fault.__name__ for fault in OF_DATA), "a_stale_block"}
    with mounted(damaged, "-o", "verify=scrub") as at:
        found = json.loads(run(*reader(damaged, at, False)).stdout)
    assert found == {name: [[], units if name in data_faults else []] for name, units in damaged.bad.items()}


def test_an_export_refuses_each_of_them(damaged, tmp_path):
    for name, units in damaged.bad.items():
        done = damaged.graphlane("export", damaged.path / name, tmp_path / name, check=False)
        assert (done.returncode == 0) == (not units), name
        assert (tmp_path / name).exists() == (not units), name


def test_a_scrub_names_each_of_them(damaged):
    said = damaged.graphlane("check", "--scrub", damaged.path, check=False)
    assert said.returncode == 4
    problems = [line for line in said.stdout.splitlines() if line.startswith("problem: ")]
    for name, units in damaged.bad.items():
        about = [line for line in problems if f"/{name}: " in line]
        assert bool(about) == bool(units or name == "a_huge_sum"), (name, said.stdout)
        assert all("/d1" in line for line in about), about


def test_a_map_of_a_bad_page_is_a_sigbus(fuse, damaged):
    script = ("import mmap, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); "
              "print(m[0], flush=True); m[int(sys.argv[2])]")
    unit = damaged.bad["a_flipped_bit"][0]
    bad = unit * DEPTH + BAD_BLOCK * BLOCK % DEPTH
    with mounted(damaged, "-o", "verify=read") as at:
        done = run(sys.executable, "-c", script, at / "a_flipped_bit", bad, check=False)
    assert done.returncode == -signal.SIGBUS and done.stdout != ""


@pytest.mark.parametrize(("kind", "algorithm"), [("lists", "pagerank"), ("dual", "pagerank"), ("pages", "pagerank-delta")])
def test_a_graph_engine_does_not_compute_on_damage(graphlane, tmp_path, kind, algorithm):
    """A copy of the graph for each fault, which meets its parts on device 1."""
    edges = np.random.default_rng(1).integers(0, 20_000, (500_000, 2), dtype=np.uint32)
    edges.tofile(tmp_path / "edges.bin")
    graphlane("convert", tmp_path / "edges.bin", tmp_path / "graph", "--to", kind, "--codec", "raw")
    devices = [tmp_path / f"d{i}" for i in range(2)]
    for device in devices:
        device.mkdir()
    volume = tmp_path / "vol"
    graphlane("create", volume, "--verify=read", "--stripe-depth", DEPTH, "--min-size", DEPTH,
              *(word for device in devices for word in ("--device", device)))
    (tmp_path / "other").write_bytes(random.Random(2).randbytes(4 << 20))
    graphlane("import", tmp_path / "other", volume)

    def parts_of(paths) -> list[Path]:
        """The parts on device 1 that have the bad block."""
        stubs = [path.read_bytes() for path in paths if path.is_file()]
        names = {stub[32:48].hex() for stub in stubs if len(stub) == 4096}
        parts = [part for part in devices[1].glob("*/parts/*/*") if part.name in names]
        return [part for part in parts if part.stat().st_size > (BAD_BLOCK + 1) * BLOCK]

    other, = parts_of([volume / "other"])
    out = tmp_path / "values.npy"
    graphlane("algo", "--out", out, algorithm, tmp_path / "graph")
    right = np.load(out)
    for fault in FAULTS:
        out.unlink(missing_ok=True)
        graph = volume / fault.__name__
        graphlane("import", tmp_path / "graph", graph)
        parts = parts_of(graph.rglob("*") if graph.is_dir() else [graph])
        assert parts
        for part in parts:
            fault(part, part.parents[2] / "sums" / part.parent.name / f"{part.name}.sum", other)
        done = graphlane("algo", "--out", out, algorithm, graph, check=False)
        if fault is a_huge_sum:
            assert done.returncode == 0, done
            np.testing.assert_allclose(np.load(out), right, rtol=1e-9)
            continue
        assert done.returncode != 0 and not out.exists(), (fault, done)
        assert f"/{fault.__name__}" in done.stderr.splitlines()[-1], (fault, done)
        assert fault not in OF_DATA or "do not match their checksum" in done.stderr, (fault, done)


# How a file got its last bytes, from its first content. The last byte of each is damaged afterwards.
def _appended(fd, size):
    os.pwrite(fd, random.Random(size).randbytes(size // 3 + 1), size)


def _truncated(fd, size):
    os.ftruncate(fd, size - size // 3)


def _punched(fd, size):
    subprocess.run(["fallocate", "-p", "-o", str(size // 2), "-l", str(size - size // 2), f"/proc/self/fd/{fd}"], check=True,
                   pass_fds=[fd])


def _extended(fd, size):
    os.ftruncate(fd, size + size // 3 + 1)


def _rewritten(fd, size):
    os.pwrite(fd, random.Random(size).randbytes(size // 3 + 1), size - size // 3 - 1)


CHANGES = [_appended, _truncated, _punched, _extended, _rewritten]
# One byte, blocks, parts of just more than one unit (which has no checksums of blocks), several units.
SIZES = [1, 4097, DEVICES * DEPTH, DEVICES * DEPTH + 1, 9 * DEPTH + 5000]
WHOLE_READER = """
import json, os, sys
found = {}
for name in filter(lambda name: name[0] != ".", os.listdir(sys.argv[1])):
    fd, got, bad = os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY), bytearray(), []
    for at in range(0, os.fstat(fd).st_size, 4096):
        try:
            got[at:] = os.pread(fd, 4096, at)
        except OSError as error:
            bad.append(at // 4096)
            got[at:] = bytes(4096)
    found[name] = [got.hex(), bad]
    os.close(fd)
json.dump(found, sys.stdout)
"""


def test_files_that_changed_are_compared_to_their_last_byte(graphlane, fuse, tmp_path):
    devices = [tmp_path / f"d{i}" for i in range(DEVICES)]
    for device in devices:
        device.mkdir()
    graphlane("create", tmp_path / "vol", "--verify=read", "--stripe-depth", DEPTH,
              *(word for device in devices for word in ("--device", device)))
    made, source, at = Volume(tmp_path / "vol", devices), tmp_path / "source", tmp_path / "mnt"
    source.mkdir()
    names = [(f"{size}{change.__name__}", size, change) for size in SIZES for change in CHANGES]
    for name, size, _ in names:
        (source / name).write_bytes(random.Random(name).randbytes(size))
    graphlane("import", "--stripe", "*", "--min-size", 1, f"{source}/.", made.path)
    right, bad = {}, {}
    with graphlane.mounted(made, at):
        for name, size, change in names:
            for top in (source, at):
                fd = os.open(top / name, os.O_RDWR)
                change(fd, size)
                os.close(fd)
            right[name] = (source / name).read_bytes()
    for name, *_ in names:
        stub = (made.path / name).read_bytes()
        last = len(right[name]) - 1
        bad[name] = []
        device = devices[(last // DEPTH + int.from_bytes(stub[60:64], "little")) % DEVICES]
        part = next(device.glob(f"*/parts/*/{stub[32:48].hex()}"))
        place = last // (DEPTH * DEVICES) * DEPTH + last % DEPTH
        _write(part, place, bytes([right[name][-1] ^ 1]))
        # A part of one unit has one checksum.
        first = last // DEPTH * DEPTH // 4096 if part.stat().st_size <= DEPTH else last // 4096
        bad[name] = list(range(first, last // 4096 + 1))
        with open(part, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    reads = [sys.executable, "-c", WHOLE_READER]
    with graphlane.mounted(made, at):
        ways = [run(*reads, at).stdout]
    ways.append(graphlane("run", "--no-mount", "--", *reads, made.path, env={**os.environ, **PRELOADED}).stdout)
    for found in map(json.loads, ways):
        for name, content in right.items():
            expected = bytearray(content)
            for block in bad[name]:
                expected[block * 4096:(block + 1) * 4096] = bytes(4096)
            got, failed = found[name]
            assert failed == bad[name], name
            assert bytes.fromhex(got)[:len(content)] == expected[:len(content)], name
