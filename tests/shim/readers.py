"""Preloaded programs that read blocks of one file on request, with O_DIRECT unless told
otherwise."""

import os
import random
import signal
import subprocess
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path

from harness import wait_until

SIZE = 24_000_123
BLOCK = 4 << 20


def taken(shared: dict) -> int:
    """Shared bytes that the kernel reclaimed and that were read again. Other tests may drop the
    machine's caches."""
    return shared["reclaimed_bytes"]


def found(shared: dict) -> int:
    """Bytes served from memory, counting those that the kernel reclaimed meanwhile."""
    return shared["hit_bytes"] + taken(shared)


# Opens argv[1]. For each line with a number it reads that block and prints a checksum. Words before
# the number: "fork" reads in a child. "threads" reads all blocks before the number, each in a thread
# of its own. "open" reopens the file first. "say" prints an expression. With $ROOM=private its
# buffer is private.
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

    options: tuple[str, ...] = ()  # options of `graphlane run`

    def __init__(self, graphlane, made, path: Path):
        self.graphlane, self.made, self.path = graphlane, made, path
        self.content = random.Random(5).randbytes(SIZE)
        self.blocks = range(-(-SIZE // BLOCK))

    @contextmanager
    def readers(self, count, **environment):
        readers = [Reader(self.graphlane, self.path, *self.options, **environment)
                   for _ in range(count)]
        try:
            # The first read only registers the reader: a single reader shares nothing.
            for reader in readers:
                assert reader.read(0) == self.expected(0)
            yield readers
        finally:
            for reader in readers:
                reader.end()

    def counts(self) -> dict:
        """The server's counters of shared files."""
        raise NotImplementedError

    def wait_for_found(self, least: int) -> None:
        """Waits until `least` bytes were found: readers tell of them, and do not wait for an answer."""
        wait_until(lambda: found(self.counts()) >= least)

    def read_all(self, readers) -> None:
        for block in self.blocks:
            for reader in readers:
                assert reader.read(block) == self.expected(block)

    def expected(self, block) -> list[int]:
        piece = self.content[block * BLOCK:(block + 1) * BLOCK]
        return [len(piece), zlib.crc32(piece)]

    def replace(self, offset, piece) -> None:
        """Records a write in the expected content."""
        self.content = self.content[:offset] + piece + self.content[offset + len(piece):]
