"""Several preloaded programs that read the same file past the page cache: once from the devices."""

import json
import os
import random
import signal
import subprocess
import sys
import zlib
from contextlib import contextmanager

import pytest

from harness import run

SIZE = 24_000_123
BLOCK = 4 << 20
# Opens argv[1]; for each line, a number, reads that block, and says a checksum of it. "fork": in a child.
READER = f"""
import mmap, os, sys, zlib
room = memoryview(mmap.mmap(-1, {BLOCK}))
fd = os.open(sys.argv[1], os.O_RDONLY)
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
    else:
        read(int(words[0]))
"""


class Reader:
    def __init__(self, graphlane, path, **environment):
        self.process = subprocess.Popen(
            [graphlane.program, "run", "--io=direct", "--", sys.executable, "-c", READER, path],
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


class Shared:
    """A mounted file, programs that read it, and what the mount says of them."""

    def __init__(self, graphlane, made, at, content):
        self.graphlane, self.made, self.at, self.content = graphlane, made, at, content
        self.path = at / "data"
        self.blocks = range(-(-SIZE // BLOCK))

    @contextmanager
    def readers(self, count, **environment):
        readers = [Reader(self.graphlane, self.path, **environment) for _ in range(count)]
        try:
            # The first read of each only makes it known: whoever is alone shares nothing.
            for reader in readers:
                assert reader.read(0) == self.expected(0)
            yield readers
        finally:
            for reader in readers:
                reader.end()

    def expected(self, block) -> list[int]:
        piece = self.content[block * BLOCK:(block + 1) * BLOCK]
        return [len(piece), zlib.crc32(piece)]

    def stats(self) -> dict:
        return json.loads(os.getxattr(self.at, "user.graphlane.stats"))["shared"]

    def daemon(self) -> int:
        return int(run("pgrep", "-f", f"mount .*{self.made.path} {self.at}( |$)").stdout)


@pytest.fixture
def shared(graphlane, volume, fuse, tmp_path):
    content = random.Random(5).randbytes(SIZE)
    made = volume(depth="1M", stripe=["data"])
    source = tmp_path / "data"
    source.write_bytes(content)
    graphlane("import", source, made.path)
    at = tmp_path / "mnt"
    at.mkdir()
    graphlane("mount", "-o", "cache=64M", made.path, at)
    try:
        yield Shared(graphlane, made, at, content)
    finally:
        graphlane("umount", at)


def test_the_first_read_of_a_file_is_shared_too(shared):
    with shared.readers(4):  # whose second reader fetches it: the first one was alone
        assert shared.stats()["found_bytes"] >= 2 * BLOCK


def test_what_one_has_read_the_other_finds(shared):
    with shared.readers(3) as readers:
        before = shared.stats()
        for block in shared.blocks:
            for reader in readers:
                assert reader.read(block) == shared.expected(block)
        after = shared.stats()
        assert "\nshared: " in shared.graphlane("stat", shared.at).stdout
        metrics = shared.graphlane("stat", "--prometheus", shared.at).stdout
        assert f'graphlane_shared_fetched_bytes_total{{mount="{shared.at}"}} ' in metrics
    assert after["fetched_bytes"] - before["fetched_bytes"] <= SIZE + (1 << 20)
    assert after["found_bytes"] - before["found_bytes"] >= 2 * SIZE - BLOCK
    assert after["resident_bytes"] <= 64 << 20


def test_one_alone_shares_nothing(shared):
    with shared.readers(1) as (reader,):
        for block in shared.blocks:
            assert reader.read(block) == shared.expected(block)
        assert shared.stats()["fetched_bytes"] == 0


def test_nothing_is_shared_if_so_wished(shared):
    with shared.readers(2, GRAPHLANE_SHARE="no") as readers:
        for block in shared.blocks:
            for reader in readers:
                assert reader.read(block) == shared.expected(block)
        assert shared.stats()["fetched_bytes"] == 0 and shared.stats()["scan_count"] == 0


def test_what_somebody_writes_all_see(shared):
    with shared.readers(2) as readers:
        for reader in readers:
            assert reader.read(1) == shared.expected(1)
        piece = random.Random(6).randbytes(BLOCK)
        fd = os.open(shared.path, os.O_WRONLY)
        os.pwrite(fd, piece[:1000], BLOCK)
        shared.content = shared.content[:BLOCK] + piece[:1000] + shared.content[BLOCK + 1000:]
        for reader in readers:
            assert reader.read(1) == shared.expected(1), "while it is open"
        os.pwrite(fd, piece, BLOCK)
        os.close(fd)
        shared.content = shared.content[:BLOCK] + piece + shared.content[2 * BLOCK:]
        for _ in range(2):
            for reader in readers:
                assert reader.read(1) == shared.expected(1), "after it was closed"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_whoever_dies_or_stops_holds_nobody_up(shared, how):
    with shared.readers(3) as readers:
        victim, *others = readers
        for reader in readers:
            assert reader.read(0) == shared.expected(0)
        victim.ask(1)
        victim.process.send_signal(how)
        for _ in range(2):
            for block in shared.blocks:
                for reader in others:
                    assert reader.read(block) == shared.expected(block)


def test_all_read_on_when_the_server_dies(shared):
    with shared.readers(2) as readers:
        for reader in readers:
            assert reader.read(1) == shared.expected(1)
        os.kill(shared.daemon(), signal.SIGKILL)
        for block in shared.blocks:
            for reader in readers:
                assert reader.read(block) == shared.expected(block)


def test_a_child_by_fork_reads_for_itself(shared):
    with shared.readers(2) as readers:
        for block in shared.blocks:
            for reader in readers:
                assert reader.read("fork", block) == shared.expected(block)
                assert reader.read(block) == shared.expected(block)


def test_what_it_does_not_understand(shared):
    said = shared.graphlane("run", "--", "wc", "-c", shared.path,
                            env=os.environ | {"GRAPHLANE_SHARE": "some"}).stderr
    assert said.count("\n") == 1 and "GRAPHLANE_SHARE" in said
