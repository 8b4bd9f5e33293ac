"""What reads cost when all is in memory, for the goals: mount_reads.py and preload_costs.py
with few of their questions.

A sample has what was asked, the way, and a value that is more where it is faster: bytes a
second, or calls a second.
"""

import os
import tempfile
from pathlib import Path

from rich.console import Console

from experiments import mount_reads, preload_costs
from experiments.warm_reads import BLOCK, prepare
from experiments.workspace import StepFailed, workspace

PLAIN = "plain"
ON_STUBS = "preloaded on stubs"
OVER_MOUNT = "preloaded over a mount"
MOUNTED = "mounted"
SMALL = 4 << 10
KINDS = [("read", SMALL, 1, False), ("read", BLOCK, 1, False), ("read", BLOCK, 4, False),
         ("read", BLOCK, 4, True)]
FOREIGN = "foreign"  # preload_costs.c says so of calls that are none of our business
CALLS_ROUNDS = 5  # it asks for them every so many rounds


def asked(block: int, threads: int, direct: bool) -> str:
    return f"read {block >> 10} KiB, threads {threads}" + (", O_DIRECT" if direct else "")


def reads(directory: Path, undo, size: int, rounds: int) -> list[dict]:
    ways = prepare(directory, undo, size, "12M")
    if MOUNTED not in ways:
        raise StepFailed("nothing to measure without a mount")
    del ways[ON_STUBS]
    found = mount_reads.measure(ways, mount_reads.daemon_of(directory / "mnt"), size, KINDS,
                                rounds)
    return [{"round": sample["round"], "way": sample["way"], "asked": asked(*sample["kind"][1:]),
             "value": sample["speed"]} for sample in found]


def calls(directory: Path, rounds: int) -> list[dict]:
    """Nanoseconds of calls on descriptors that are not ours."""
    program = preload_costs.compile_program(directory)
    path = directory / PLAIN
    environment = {"PATH": os.environ["PATH"]}
    ways = {PLAIN: (path, environment),
            ON_STUBS: (path, {**environment, "LD_PRELOAD": str(preload_costs.LIBRARY)})}
    measured = preload_costs.measure(program, ways, CALLS_ROUNDS * rounds)
    return [{"round": number, "way": way, "asked": what, "nanoseconds": value}
            for way, whats in measured.items() for what, values in whats.items()
            if FOREIGN in what for number, value in enumerate(values)]


def measure(size: int, rounds: int) -> list[dict]:
    size = size // BLOCK * BLOCK
    console = Console(stderr=True)
    # On a tmpfs if there is one: so it is memory that is measured, not when a disk writes.
    before = tempfile.tempdir
    if Path("/dev/shm").is_dir():
        tempfile.tempdir = "/dev/shm"
    try:
        with workspace(console, 2 * size) as (directory, undo):
            return reads(directory, undo, size, rounds) + calls(directory, rounds)
    finally:
        tempfile.tempdir = before
