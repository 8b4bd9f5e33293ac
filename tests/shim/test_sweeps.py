"""Files that a program reads one after another on disks. Each of them fits in memory."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import comes, forget_pages, run

pytestmark = pytest.mark.usefixtures("kept_caches")

MIB = 1 << 20
ATTEMPTS_MAX = 5
SIZE = 6 * MIB + 123
LARGER = 16 * MIB
HELD = 180 * MIB  # of little_memory
# Holds argv[1] bytes. Then it reads each file that a line names, and prints its first and last
# bytes.
READER = """
import mmap, os, sys
held = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(held), mmap.PAGESIZE):
    held[at] = 1
for line in sys.stdin:
    fd = os.open(line.strip(), os.O_RDONLY)
    got = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    print(len(got), got[:8].hex(), got[-8:].hex(), flush=True)
"""


def resident(paths: list[Path]) -> int:
    return sum(int(run("fincore", "--bytes", "--noheadings", "--output", "RES", path).stdout)
               for path in paths)


class Files:
    """Files on a volume of disks, with the bytes and the parts of each."""

    def __init__(self, graphlane, disks, tmp_path, size):
        self.made = graphlane.create_on(tmp_path / "vol", disks, depth="1M")
        self.content, self.parts = {}, {}
        before = set()
        for name in "abc":
            self.content[name] = random.Random(name).randbytes(size)
            (tmp_path / name).write_bytes(self.content[name])
            graphlane("import", tmp_path / name, self.made.path)
            parts = {path for disk in disks for path in disk.glob("*/parts/*/" + 32 * "?")}
            self.parts[name] = list(parts - before)
            before = parts
        self.all_parts = list(before)
        forget_pages(self.all_parts)


class Reader:
    def __init__(self, graphlane, files, *prefix, held=4096, **environment):
        self.files = files
        self.process = subprocess.Popen(
            [*prefix, graphlane.program, "run", "--no-mount", "--", sys.executable, "-c", READER,
             str(held)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | environment)

    def read(self, names: str) -> None:
        for name in names:
            self.process.stdin.write(f"{self.files.made.path / name}\n")
            self.process.stdin.flush()
            content = self.files.content[name]
            assert self.process.stdout.readline().split() == [
                str(len(content)), content[:8].hex(), content[-8:].hex()]

    def open_parts(self) -> list[str]:
        links = [os.readlink(link) for link in Path(f"/proc/{self.process.pid}/fd").iterdir()]
        return [link for link in links if "/parts/" in link]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def test_prefetches_the_next_file_of_the_last_sweep(graphlane, disks, tmp_path):
    files = Files(graphlane, disks, tmp_path, SIZE)
    with Reader(graphlane, files) as reader:
        reader.read("abc")
        # Retries: other tests may drop the machine's caches.
        for _ in range(ATTEMPTS_MAX):
            forget_pages(files.all_parts)
            reader.read("a")
            if comes(lambda: resident(files.parts["b"] + files.parts["c"]) >= 2 * SIZE):
                return
            reader.read("bc")
        pytest.fail("nothing is begun")


def test_the_report_counts_prefetched_and_used_bytes(graphlane, disks, tmp_path):
    files = Files(graphlane, disks, tmp_path, SIZE)
    report = tmp_path / "report"
    with Reader(graphlane, files, GRAPHLANE_REPORT=str(report)) as reader:
        reader.read("abcabcabc")
    sweeps = json.loads(report.read_text())["sweeps"]
    assert SIZE <= sweeps["used_bytes"] <= sweeps["prefetched_bytes"]
    assert sweeps["unused_bytes"] == 0


def test_no_prefetch_when_disabled_or_in_the_first_sweep(graphlane, disks, tmp_path):
    files = Files(graphlane, disks, tmp_path, SIZE)
    with Reader(graphlane, files) as reader:
        reader.read("ab")
        assert resident(files.parts["c"]) == 0
    with Reader(graphlane, files, GRAPHLANE_DISABLE="prefetch") as reader:
        reader.read("abc")
        forget_pages(files.all_parts)
        reader.read("a")
        time.sleep(0.2)  # time enough for a prefetch
        assert resident(files.parts["b"]) == 0


@pytest.mark.parametrize("held", [4096, HELD])
def test_files_that_exceed_memory_together_are_not_all_kept(graphlane, disks, tmp_path,
                                                         little_memory, held):
    """They would evict other data of the program, and none would arrive in time."""
    files = Files(graphlane, disks, tmp_path, LARGER)
    with Reader(graphlane, files, *little_memory, held=held) as reader:
        reader.read("abcabcabc")
        kept = resident(files.all_parts)
        assert kept <= LARGER * 2 if held == HELD else kept >= LARGER * 3 - MIB


def test_a_removed_file_releases_its_parts(graphlane, disks, tmp_path):
    files = Files(graphlane, disks, tmp_path, SIZE)
    with Reader(graphlane, files) as reader:
        reader.read("abc")
        graphlane("rm", files.made.path / "a")
        reader.read("bc" * 6)
        assert not [link for link in reader.open_parts() if link.endswith("(deleted)")]
        assert reader.open_parts(), "of the others they are open"


def test_most_descriptors_are_left_to_the_program(graphlane, disks, tmp_path):
    files = Files(graphlane, disks, tmp_path, SIZE)
    with Reader(graphlane, files, "prlimit", "--nofile=47") as reader:
        reader.read("abc")
        assert len(reader.open_parts()) == 4, "two files on two disks: an eighth of 47"
