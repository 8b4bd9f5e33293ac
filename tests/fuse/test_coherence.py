"""Readers that bypass the mount and writers that go through it see each other's changes at once,
as on any filesystem. Each reader is a process with its descriptors open throughout. Every change
is also made to a reference file."""

import hashlib
import mmap
import os
import random
import re
import subprocess
import sys

import pytest

from harness import BUILD, run, wait_until
from mounts import mounted, stats, striped  # noqa: F401, fixtures

MIB = 1 << 20
SIZE_MAX = 2_000_000

READER = """
import hashlib, os, sys
fds = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
for line in sys.stdin:
    which, offset, length = map(int, line.split())
    content = os.pread(fds[which], length, offset)
    print(os.fstat(fds[which]).st_size, len(content), hashlib.md5(content).hexdigest(), flush=True)
"""


class Reader:
    def __init__(self, paths, preloaded: bool):
        environment = {"LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")} if preloaded else {}
        self.process = subprocess.Popen([sys.executable, "-c", READER, *map(str, paths)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def read(self, which: int, offset: int, length: int) -> tuple:
        self.process.stdin.write(f"{which} {offset} {length}\n")
        self.process.stdin.flush()
        size, got, digest = self.process.stdout.readline().split()
        return int(size), int(got), digest

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


class Writer:
    """A file and its reference, which get the same changes of every kind."""

    def __init__(self, ours, reference, r):
        self.paths, self.r = (ours, reference), r
        self.fds, self.views = [], []

    def step(self):
        self.r.choice([self.open, self.close, self.write, self.write, self.truncate, self.append,
                       self.map, self.unmap, self.store, self.rewrite])()

    def open(self):
        self.close()
        self.fds = [os.open(path, os.O_RDWR) for path in self.paths]

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def write(self):
        offset, content = self.r.randrange(SIZE_MAX), self.r.randbytes(self.r.randrange(300_000))
        for fd in self.fds:
            os.pwrite(fd, content, offset)

    def truncate(self):
        if not self.views:  # stores past the end would raise SIGBUS
            size = self.r.randrange(SIZE_MAX)
            for path in self.paths:
                os.truncate(path, size)

    def append(self):
        content = self.r.randbytes(50_000)
        for path in self.paths:
            with open(path, "ab") as file:
                file.write(content)

    def rewrite(self):
        if not self.views:
            content = self.r.randbytes(self.r.randrange(SIZE_MAX))
            for path in self.paths:
                path.write_bytes(content)

    def map(self):
        if self.fds and not self.views and os.fstat(self.fds[1]).st_size > 0:
            self.views = [mmap.mmap(fd, 0) for fd in self.fds]

    def unmap(self):
        for view in self.views:
            view.close()
        self.views = []

    def store(self):
        for _ in self.views:
            random.seed(self.r.random())
        if self.views:
            offset = self.r.randrange(len(self.views[1]))
            content = self.r.randbytes(min(100_000, len(self.views[1]) - offset))
            for view in self.views:
                view[offset:offset + len(content)] = content


@pytest.mark.parametrize("seed", range(3))
def test_readers_see_every_change_at_once(volume, mount, tmp_path, seed):
    made = volume(depth="64K", stripe=["s*"])
    r = random.Random(seed)
    with mount(made) as at:
        names = [f"s{i}" for i in range(3)]
        (tmp_path / "reference").mkdir()
        pairs = [(at / name, tmp_path / "reference" / name) for name in names]
        for pair in pairs:
            content = r.randbytes(r.randrange(SIZE_MAX))
            for path in pair:
                path.write_bytes(content)
        readers = [Reader([pair[0] for pair in pairs], preloaded)
                   for preloaded in (True, True, False)]
        writers = [Writer(*pair, r) for pair in pairs]
        for step in range(150):
            which = r.randrange(len(pairs))
            writers[which].step()
            reference = pairs[which][1].read_bytes()
            offset, length = r.randrange(SIZE_MAX), r.randrange(1, 500_000)
            expected = reference[offset:offset + length]
            for reader in readers:
                assert reader.read(which, offset, length) == \
                    (len(reference), len(expected), hashlib.md5(expected).hexdigest()), \
                    (seed, step, which, offset, length)
        for writer in writers:
            writer.unmap()
            writer.close()
        for reader in readers:
            reader.end()


def test_a_reader_returns_to_the_devices_after_the_last_writer(volume, mount):
    made = volume(depth="64K", stripe=["s*"])
    script = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.pread(fd, 100, 0)
with open(sys.argv[1], "r+b", buffering=0) as file:
    file.write(b"x")
    os.pread(fd, 100, 0)
for _ in range(10_000):  # the kernel tells of the close a moment later
    os.pread(fd, 100_000, 0)  # not one of the small reads, which may be the kernel's
"""
    with mount(made) as at:
        (at / "s").write_bytes(b"y" * 300_000)
        result = subprocess.run([sys.executable, "-c", script, at / "s"], text=True,
                                capture_output=True, check=True,
                                env={**os.environ, "GRAPHLANE_REPORT": "1",
                                     "LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")})
        report = result.stderr
        reads = int(re.search(rf"{at}/s: (\d+) reads", report).group(1))
        assert reads > 1_000, report
        assert re.search(r"left to FUSE, \d+ calls?: a writer had the file open", report)


WRITES = "import os, sys; os.pwrite(os.open(sys.argv[1], os.O_WRONLY), b'w' * int(sys.argv[2]), 0)"


def write_by_another_mount(graphlane, mounted, made, tmp_path):
    with mounted(made, at=tmp_path / "other") as at:
        run(sys.executable, "-c", WRITES, at / "data", MIB)


def write_by_no_mount(graphlane, mounted, made, tmp_path):
    graphlane("run", "--no-mount", "--", sys.executable, "-c", WRITES, made.path / "data", MIB)


@pytest.mark.parametrize("write", [write_by_another_mount, write_by_no_mount])
def test_a_mounts_cache_does_not_hide_writes_of_others(graphlane, striped, mounted, tmp_path,
                                                        write):
    made, content = striped(size=16 * MIB)
    with mounted(made, "-o", "io=direct,cache=64M") as at:
        fd = os.open(at / "data", os.O_RDONLY | os.O_DIRECT)

        def sweep() -> bytes:
            buffer = mmap.mmap(-1, len(content))
            assert os.preadv(fd, [buffer], 0) == len(content)
            return buffer[:]

        def is_in_the_cache() -> bool:
            before = stats(at)["cache"]["hit_bytes"]
            assert sweep() == content
            return stats(at)["cache"]["hit_bytes"] - before > len(content) // 2

        wait_until(is_in_the_cache)
        write(graphlane, mounted, made, tmp_path)
        content = b"w" * MIB + content[MIB:]
        assert sweep() == content
        assert (at / "data").read_bytes() == content
        wait_until(is_in_the_cache)
        os.close(fd)
