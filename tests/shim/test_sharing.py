"""Several preloaded programs that read the same file past the page cache read the devices once."""

import json
import os
import random
import signal
import time
import zlib

import pytest

from harness import run, wait_until
from readers import BLOCK, SIZE, SharedFile, found, taken

from experiments.devices.cgroup import Group

OF_PROGRAMS = ["total_rss", "total_mapped_file", "anon", "file_mapped"]  # cgroup version 1, then 2

pytestmark = pytest.mark.usefixtures("kept_caches")


class Shared(SharedFile):
    """A file on a mount, and the mount's statistics."""

    def __init__(self, graphlane, made, at):
        super().__init__(graphlane, made, at / "data")
        self.at = at

    def counts(self) -> dict:
        return json.loads(os.getxattr(self.at, "user.graphlane.stats"))["shared"]

    def daemon(self) -> int:
        return int(run("pgrep", "-f", f"mount .*{self.made.path} {self.at}( |$)").stdout)


@pytest.fixture
def shared(graphlane, volume, fuse, tmp_path):
    made = volume(depth="1M", stripe=["data*"])
    at = tmp_path / "mnt"
    at.mkdir()
    file = Shared(graphlane, made, at)
    source = tmp_path / "data"
    source.write_bytes(file.content)
    graphlane("import", source, made.path)
    graphlane("mount", "-o", "cache=64M", made.path, at)
    try:
        yield file
    finally:
        graphlane("umount", at)


def test_the_first_read_of_a_file_is_shared_too(shared):
    with shared.readers(4):  # the second reader fetches it: the first one was alone
        shared.wait_for_found(2 * BLOCK)


def test_a_block_read_by_one_hits_for_the_others(shared):
    with shared.readers(3) as readers:
        before = shared.counts()
        shared.read_all(readers)
        shared.wait_for_found(found(before) + 2 * SIZE - BLOCK)
        after = shared.counts()
        assert "\nshared: " in shared.graphlane("stat", shared.at).stdout
        metrics = shared.graphlane("stat", "--prometheus", shared.at).stdout
        assert f'graphlane_shared_fetched_bytes_total{{mount="{shared.at}"}} ' in metrics
    assert after["fetched_bytes"] - before["fetched_bytes"] <= SIZE + (1 << 20) + taken(after)
    assert after["resident_bytes"] <= 64 << 20


def test_a_single_reader_shares_nothing(shared):
    with shared.readers(1) as readers:
        shared.read_all(readers)
        assert shared.counts()["fetched_bytes"] == 0


def leave_room(group: Group, bytes_left: int) -> None:
    """Limits the group to what its programs use, and so many bytes more."""
    used = dict(line.split() for line in (group.memory / "memory.stat").read_text().splitlines())
    group.limit(sum(int(used.get(name, 0)) for name in OF_PROGRAMS) + bytes_left)


def test_a_file_is_shared_once_memory_gets_short(shared, little_group,
                                                                              little_memory):
    little_group.limit(4 * SIZE)
    with shared.readers(2, prefix=little_memory, io="auto") as readers:
        for _ in range(2):
            shared.read_all(readers)
        assert shared.counts()["hit_bytes"] == 0 and shared.counts()["scan_count"] > 0
        leave_room(little_group, SIZE // 2)
        for _ in range(30):  # under load it takes them some sweeps to notice
            shared.read_all(readers)
            if shared.counts()["hit_bytes"] > 0:
                break
        assert shared.counts()["hit_bytes"] > 0


def test_files_that_exceed_memory_together_are_shared(little_group, little_memory, shared, tmp_path):
    little_group.limit(5 * SIZE)
    source = tmp_path / "data-2"
    source.write_bytes(shared.content)
    shared.graphlane("import", source, shared.made.path)
    second = SharedFile(shared.graphlane, shared.made, shared.at / "data-2")
    (little_group.memory / "cgroup.procs").write_text(str(shared.daemon()))

    room_for_one = SIZE * 17 // 10

    def is_shared(*readers) -> bool:
        for each in readers:
            shared.read_all(each)
        return shared.counts()["hit_bytes"] > 0

    with shared.readers(2, prefix=little_memory, io="auto") as first:
        leave_room(little_group, room_for_one)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert not is_shared(first), "one has room"
        little_group.limit(5 * SIZE)
        with second.readers(2, prefix=little_memory, io="auto") as others:
            leave_room(little_group, room_for_one)
            wait_until(lambda: is_shared(first, others))


def test_more_threads_than_processors_share(shared):
    one_processor = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    with shared.readers(2, prefix=one_processor) as readers:
        os.kill(shared.daemon(), signal.SIGSTOP)  # one reader waits for it, the others for that reader
        for reader in readers:
            reader.ask("threads", len(shared.blocks))
        time.sleep(0.3)
        os.kill(shared.daemon(), signal.SIGCONT)
        for reader in readers:
            assert reader.answer() == [SIZE, zlib.crc32(shared.content)]
        before = found(shared.counts())
        shared.read_all(readers)
        shared.wait_for_found(before + 2 * SIZE - BLOCK)


def test_share_no_shares_nothing(shared):
    with shared.readers(2, GRAPHLANE_SHARE="no") as readers:
        shared.read_all(readers)
        assert shared.counts()["fetched_bytes"] == 0 and shared.counts()["scan_count"] == 0


def test_all_readers_see_a_write(shared):
    with shared.readers(2) as readers:
        for reader in readers:
            assert reader.read(1) == shared.expected(1)
        piece = random.Random(6).randbytes(BLOCK)
        fd = os.open(shared.path, os.O_WRONLY)
        os.pwrite(fd, piece[:1000], BLOCK)
        shared.replace(BLOCK, piece[:1000])
        for reader in readers:
            assert reader.read(1) == shared.expected(1), "while it is open"
        os.pwrite(fd, piece, BLOCK)
        os.close(fd)
        shared.replace(BLOCK, piece)
        for _ in range(2):
            for reader in readers:
                assert reader.read(1) == shared.expected(1), "after it was closed"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stopped_reader_delays_no_other(shared, how):
    with shared.readers(3) as readers:
        victim, *others = readers
        for reader in readers:
            assert reader.read(0) == shared.expected(0)
        victim.ask(1)
        victim.process.send_signal(how)
        for _ in range(2):
            shared.read_all(others)


def test_readers_outlive_the_server(shared):
    with shared.readers(2) as readers:
        for reader in readers:
            assert reader.read(1) == shared.expected(1)
        os.kill(shared.daemon(), signal.SIGKILL)
        shared.read_all(readers)


def test_a_child_by_fork_reads_for_itself(shared):
    with shared.readers(2) as readers:
        for block in shared.blocks:
            for reader in readers:
                assert reader.read("fork", block) == shared.expected(block)
                assert reader.read(block) == shared.expected(block)


def test_unknown_values_are_refused(shared):
    said = shared.graphlane("run", "--", "wc", "-c", shared.path,
                            env=os.environ | {"GRAPHLANE_SHARE": "some"}).stderr
    assert said.count("\n") == 1 and "GRAPHLANE_SHARE" in said
