"""The cost of reads from memory, for the goals: a few of the questions of mount_reads.py and
preload_costs.py.

A sample has the variant, the kind of read, and bytes a second. Small calls have nanoseconds instead, because
fio itself takes longer than they do.
"""

import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from experiments.costs import mount_reads, preload_costs
from experiments.costs.warm_reads import BLOCK, prepare
from experiments.measure.comparison import DEPTH
from experiments.workspace import StepFailed, workspace

PLAIN = "plain"
ON_STUBS = "preloaded on stubs"
OVER_MOUNT = "preloaded over a mount"
MOUNTED = "mounted"
UNSTRIPED = "mounted, not striped"  # which the kernel reads without the daemon, where it can
KINDS = [("read", BLOCK, 1, False), ("read", BLOCK, 4, False), ("read", BLOCK, 4, True)]
# As preload_costs.c calls them: small reads, and calls on descriptors that the library does not serve.
SMALL = "pread 4 KiB"
FOREIGN = "foreign"
CALLS = {"dup and close, foreign": 2}  # where it is not one
WAITS_SECONDS = 3
CALLS_ROUNDS = 5  # of calls in one: the processor's pace changes between them


def asked(block: int, threads: int, direct: bool) -> str:
    return f"read {block >> 10} KiB, threads {threads}" + (", O_DIRECT" if direct else "")


def reads(variants: dict, daemon: int, size: int, rounds: int) -> list[dict]:
    found = mount_reads.measure(variants, daemon, size, KINDS, rounds)
    return [{"round": sample["round"], "variant": sample["variant"], "asked": asked(*sample["kind"][1:]),
             "bytes_per_second": sample["speed"]} for sample in found]


def stop_process(process: int) -> None:
    """And waits until each of its threads has: until then one may still answer."""
    os.kill(process, signal.SIGSTOP)
    for stat in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            while stat.read_text().rpartition(")")[2].split()[0] not in "TtZX":
                time.sleep(0.001)


def passes_through(path: Path, daemon: int) -> bool:
    """Whether the kernel reads the file while the daemon is stopped. Precondition: its pages are not cached."""
    with path.open("rb") as file:
        gave_up = threading.Timer(WAITS_SECONDS, os.kill, [daemon, signal.SIGCONT])
        gave_up.start()
        try:
            stop_process(daemon)
            os.pread(file.fileno(), 1, 0)
            return not gave_up.finished.is_set()
        finally:
            gave_up.cancel()
            os.kill(daemon, signal.SIGCONT)


def calls(directory: Path, variants: dict, rounds: int) -> list[dict]:
    program = preload_costs.compile_program(directory)
    environment = {"PATH": os.environ["PATH"]}
    preloaded = {**environment, "LD_PRELOAD": str(preload_costs.LIBRARY)}
    measured = preload_costs.measure(
        program, {PLAIN: (variants[PLAIN][0], environment),
                  OVER_MOUNT: (variants[OVER_MOUNT][0], preloaded)}, CALLS_ROUNDS * rounds, calls_every=1)
    return [{"round": number, "variant": variant, "asked": what,
             "nanoseconds": value / CALLS.get(what, 1)}
            for variant, whats in measured.items() for what, values in whats.items()
            if what == SMALL or FOREIGN in what for number, value in enumerate(values)]


def measure(size: int, rounds: int) -> list[dict]:
    size = size // BLOCK * BLOCK
    console = Console(stderr=True)
    # On a tmpfs if there is one: so it is memory that is measured, not when a disk writes.
    before = tempfile.tempdir
    if Path("/dev/shm").is_dir():
        tempfile.tempdir = "/dev/shm"
    try:
        with workspace(console, 3 * size) as (directory, undo):
            variants = prepare(directory, undo, size, DEPTH)
            if MOUNTED not in variants:
                raise StepFailed("nothing to measure without a mount")
            del variants[ON_STUBS]
            mounted = variants[MOUNTED][0].parent
            daemon = mount_reads.daemon_of(mounted)
            shutil.copy(variants[PLAIN][0], directory / "vol/unstriped")
            if passes_through(mounted / "unstriped", daemon):
                variants[UNSTRIPED] = mounted / "unstriped", []
            else:
                console.print("left out what is not striped: the kernel reads it by the daemon "
                              "(it would not, on Linux 6.9 and as root)", style="dim")
            return reads(variants, daemon, size, rounds) + calls(directory, variants, rounds)
    finally:
        tempfile.tempdir = before
