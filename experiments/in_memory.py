"""What reads cost when all is in memory, for the goals: mount_reads.py and preload_costs.py
with few of their questions.

A sample has the way, what was asked, and bytes a second or, of small calls, nanoseconds: fio
itself takes longer than those.
"""

import os
import tempfile
from pathlib import Path

from rich.console import Console

from experiments import mount_reads, preload_costs
from experiments.comparison import DEPTH
from experiments.warm_reads import BLOCK, prepare
from experiments.workspace import StepFailed, workspace

PLAIN = "plain"
ON_STUBS = "preloaded on stubs"
OVER_MOUNT = "preloaded over a mount"
MOUNTED = "mounted"
KINDS = [("read", BLOCK, 1, False), ("read", BLOCK, 4, False), ("read", BLOCK, 4, True)]
# As preload_costs.c calls them: small reads, and calls that are none of our business.
SMALL = "pread 4 KiB"
FOREIGN = "foreign"
CALLS = {"dup and close, foreign": 2}  # where it is not one
CALLS_ROUNDS = 5  # of calls in one: the processor's pace changes between them


def asked(block: int, threads: int, direct: bool) -> str:
    return f"read {block >> 10} KiB, threads {threads}" + (", O_DIRECT" if direct else "")


def reads(ways: dict, daemon: int, size: int, rounds: int) -> list[dict]:
    found = mount_reads.measure(ways, daemon, size, KINDS, rounds)
    return [{"round": sample["round"], "way": sample["way"], "asked": asked(*sample["kind"][1:]),
             "bytes_per_second": sample["speed"]} for sample in found]


def calls(directory: Path, ways: dict, rounds: int) -> list[dict]:
    program = preload_costs.compile_program(directory)
    environment = {"PATH": os.environ["PATH"]}
    preloaded = {**environment, "LD_PRELOAD": str(preload_costs.LIBRARY)}
    measured = preload_costs.measure(
        program, {PLAIN: (ways[PLAIN][0], environment),
                  OVER_MOUNT: (ways[OVER_MOUNT][0], preloaded)}, CALLS_ROUNDS * rounds, calls_every=1)
    return [{"round": number, "way": way, "asked": what,
             "nanoseconds": value / CALLS.get(what, 1)}
            for way, whats in measured.items() for what, values in whats.items()
            if what == SMALL or FOREIGN in what for number, value in enumerate(values)]


def measure(size: int, rounds: int) -> list[dict]:
    size = size // BLOCK * BLOCK
    console = Console(stderr=True)
    # On a tmpfs if there is one: so it is memory that is measured, not when a disk writes.
    before = tempfile.tempdir
    if Path("/dev/shm").is_dir():
        tempfile.tempdir = "/dev/shm"
    try:
        with workspace(console, 2 * size) as (directory, undo):
            ways = prepare(directory, undo, size, DEPTH)
            if MOUNTED not in ways:
                raise StepFailed("nothing to measure without a mount")
            del ways[ON_STUBS]
            daemon = mount_reads.daemon_of(ways[MOUNTED][0].parent)
            return reads(ways, daemon, size, rounds) + calls(directory, ways, rounds)
    finally:
        tempfile.tempdir = before
