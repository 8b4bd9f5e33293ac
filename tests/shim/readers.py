"""Preloaded programs that read blocks of one file, past the page cache if nothing else is said, as they
are told."""

import os
import random
import signal
import subprocess
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path

SIZE = 24_000_123
BLOCK = 4 << 20


def taken(shared: dict) -> int:
    """Bytes that the kernel took of what was shared, and that were read again: other tests drop the
    machine's caches meanwhile."""
    return shared["reclaimed_bytes"]


def found(shared: dict) -> int:
    """Bytes that were to be found in memory, whatever was taken of them meanwhile."""
    return shared["hit_bytes"] + taken(shared)


# Opens argv[1]; for each line, a number, reads that block, and says a checksum of it. "fork": in a
# child. "threads": all blocks before it, each by a thread of its own at once. "open": anew. "say":
# what the expression is. Its room is private where $ROOM says so.
READER = f"""
import ctypes, mmap, os, re, sys, zlib
from concurrent.futures import ThreadPoolExecutor
kind = mmap.MAP_PRIVATE if os.environ.get("ROOM") == "private" else mmap.MAP_SHARED
memory = mmap.mmap(-1, {BLOCK}, kind | mmap.MAP_ANONYMOUS)
room = memoryview(memory)
fd = os.open(sys.argv[1], os.O_RDONLY)
def own_kib():
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    own = within = 0
    for line in open("/proc/self/smaps"):
        area = re.match("([0-9a-f]+)-([0-9a-f]+) ", line)
        if area:
            within = begin <= int(area[1], 16) < begin + {BLOCK}
        elif within and line.startswith("Anonymous:"):
            own += int(line.split()[1])
    return own
def read(block):
    got = os.preadv(fd, [room], block * {BLOCK})
    print(got, zlib.crc32(room[:got]), flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "fork":
        child = os.fork()
        if child == 0:
            read(int(words[1]))
            os._exit(0)
        os.waitpid(child, 0)
    elif words[0] == "threads":
        count = int(words[1])
        with ThreadPoolExecutor(count) as pool:
            got = list(pool.map(lambda block: os.pread(fd, {BLOCK}, block * {BLOCK}), range(count)))
        print(sum(map(len, got)), zlib.crc32(b"".join(got)), flush=True)
    elif words[0] == "say":
        print(eval(" ".join(words[1:])), flush=True)
    elif words[0] == "open":
        os.close(fd)
        fd = os.open(sys.argv[1], os.O_RDONLY)
    else:
        read(int(words[0]))
"""


class Reader:
    def __init__(self, graphlane, path, *options, prefix=(), io="direct", **environment):
        self.process = subprocess.Popen(
            [*prefix, graphlane.program, "run", f"--io={io}", *options, "--", sys.executable, "-c",
             READER, path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | environment)

    def ask(self, *words) -> None:
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> list[int]:
        return [int(word) for word in self.process.stdout.readline().split()]

    def read(self, *words) -> list[int]:
        self.ask(*words)
        return self.answer()

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


class SharedFile:
    """A striped file, its content, and programs that read it."""

    options: tuple[str, ...] = ()  # of `graphlane run`

    def __init__(self, graphlane, made, path: Path):
        self.graphlane, self.made, self.path = graphlane, made, path
        self.content = random.Random(5).randbytes(SIZE)
        self.blocks = range(-(-SIZE // BLOCK))

    @contextmanager
    def readers(self, count, **environment):
        readers = [Reader(self.graphlane, self.path, *self.options, **environment)
                   for _ in range(count)]
        try:
            # The first read of each only makes it known: whoever is alone shares nothing.
            for reader in readers:
                assert reader.read(0) == self.expected(0)
            yield readers
        finally:
            for reader in readers:
                reader.end()

    def read_all(self, readers) -> None:
        for block in self.blocks:
            for reader in readers:
                assert reader.read(block) == self.expected(block)

    def expected(self, block) -> list[int]:
        piece = self.content[block * BLOCK:(block + 1) * BLOCK]
        return [len(piece), zlib.crc32(piece)]

    def replace(self, offset, piece) -> None:
        """What somebody has written."""
        self.content = self.content[:offset] + piece + self.content[offset + len(piece):]
