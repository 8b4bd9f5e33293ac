"""Striped files that a program reads one after another over the mount."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import comes, forget_pages, wait_until
from mounts import mounted, parts_of, random_bytes, resident  # noqa: F401, fixtures

pytestmark = pytest.mark.usefixtures("kept_caches")

MIB = 1 << 20
ATTEMPTS_MAX = 10
SIZE = 6 * MIB + 123
LARGE = 50 * MIB  # little_memory has 260 MiB: one file fits twice, three fit once, six do not fit


def all_resident(paths: list[Path]) -> int:
    return sum(map(resident, paths))


def test_prefetches_the_next_file_of_the_last_sweep(graphlane, disks, mounted, tmp_path):
    made = graphlane.create_on(tmp_path / "vol", disks, depth="1M")
    content = {name: random_bytes(SIZE, seed=ord(name)) for name in "abc"}
    parts = {}
    for name in "abc":
        (tmp_path / name).write_bytes(content[name])
        before = set(parts_of(made))
        graphlane("import", tmp_path / name, made.path)
        parts[name] = list(set(parts_of(made)) - before)

    def is_begun(at: Path) -> bool:
        with ExitStack() as undo:
            files = {name: undo.enter_context(open(at / name, "rb", buffering=0)) for name in "abc"}

            def read(names: str) -> None:
                for name in names:
                    os.posix_fadvise(files[name].fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    assert os.pread(files[name].fileno(), SIZE, 0) == content[name]

            read("abc")
            forget_pages(parts_of(made))
            read("a")
            return comes(lambda: all_resident(parts["b"] + parts["c"]) >= 2 * SIZE)

    for _ in range(ATTEMPTS_MAX):
        with mounted(made) as at:
            if is_begun(at):
                return
    pytest.fail("nothing is begun")


@pytest.mark.parametrize("count", [1, 3, 6])
def test_files_that_exceed_memory_are_cached_at_most_once(graphlane, volume, little_memory,
                                                             tmp_path, count):
    made = volume(depth="3M")
    content = random_bytes(LARGE)
    (tmp_path / "data").write_bytes(content)
    for number in range(count):
        graphlane("import", tmp_path / "data", made.path / str(number))
    forget_pages(parts_of(made))
    if all_resident(parts_of(made)) > 0:
        pytest.skip("not applicable: this filesystem has its files in memory")
    at = tmp_path / "mnt"
    at.mkdir()
    subprocess.run([*little_memory, graphlane.program, "mount", made.path, at], check=True,
                   timeout=60)
    with ExitStack() as undo:
        undo.callback(graphlane, "umount", at)
        files = [undo.enter_context(open(at / str(number), "rb", buffering=0))
                 for number in range(count)]
        for file in files:
            for begin in range(0, LARGE, MIB):
                assert os.pread(file.fileno(), MIB, begin) == content[begin:begin + MIB]
        if count == 1:
            assert all_resident(parts_of(made)) > LARGE // 2
        else:
            # The allowance covers readahead, by Graphlane and by the devices.
            assert all_resident(parts_of(made)) <= LARGE
        if count == 6:
            names = [at / str(number) for number in range(count)]
            wait_until(lambda: all_resident(names) <= 2 * LARGE + 32 * MIB)
