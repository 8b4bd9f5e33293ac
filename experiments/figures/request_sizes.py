"""How long are the reads that an engine asks for? strace tells."""

import re
import statistics
from pathlib import Path

from experiments.workloads.engines import Grid
from experiments.workspace import StepFailed

PREAD = re.compile(r"pread64\(.*, (\d+), \d+\) += \d+$")
RESUMED = re.compile(r"<\.\.\. pread64 resumed>.*, (\d+), \d+\) += \d+$")


def parse(trace: str) -> list[int]:
    """The lengths asked for. The length of a call that another thread interrupts stands where
    it is resumed."""
    found = []
    for line in trace.splitlines():
        if match := PREAD.search(line) or RESUMED.search(line):
            found.append(int(match[1]))
    return found


def request_sizes(workload: Grid, directory: Path) -> list[int]:
    """Those of one run of the engine on the columns of a grid."""
    grid = directory / "grid"
    grid.mkdir()
    workload.prepare(grid)
    trace = directory / "trace"
    workload.run(grid, ["strace", "-f", "-qq", "-e", "trace=pread64", "-P", grid / "column",
                        "-o", trace])
    found = parse(trace.read_text())
    if not found:
        raise StepFailed(f"{workload.name}: strace has seen no read of column")
    return found


def share_above(sizes: list[int], limit: int) -> float:
    return sum(size > limit for size in sizes) / len(sizes)


def described(sizes: list[int]) -> str:
    return (f"{share_above(sizes, 1 << 20):.0%} larger than 1 MiB, mean "
            f"{statistics.mean(sizes) / 2**20:.1f} MiB, of {len(sizes)}")
