"""The misses of jobs in the last-level cache (GraphM's figures 13 and 14).

cache_jobs.cc runs the jobs in turn, at once and chunk by chunk, in one thread, so that one cache sees
their effect on each other. The processor's counters count, if they are available. Else cachegrind
simulates a cache of 1 MiB, with a graph that is smaller to match.
"""

import shutil
import statistics
import tempfile
from pathlib import Path

from experiments.devices.journal import command
from experiments.measure.plan import JOB_PARTITIONS, Plan
from experiments.measure.tables import Table
from experiments.paths import BUILD
from experiments.workloads.engines import EDGE_BYTES, EDGES_PER_VERTEX, Grid
from experiments.workspace import StepFailed

NAME = "jobs-cache"
PROGRAM = BUILD / "engines/cache_jobs"
VARIANTS = {"in turn": "in-turn", "at once": "at-once", "at once, by chunks": "chunks"}
COUNTERS, CACHEGRIND = "hardware counters", "cachegrind"
EVENTS = ("LLC-loads:u", "LLC-load-misses:u")
LINE_BYTES = 64
SIMULATED_BYTES = 1 << 20
GRAPH_BY_CACHE = 32  # the edges are so many times as large: LiveJournal's and 16 MiB
VERTEX_BYTES = 8  # that a job has of each, about
CORES = 2  # that the chunks in the cache are of
SYSFS = Path("/sys/devices/system/cpu/cpu0/cache")


def count_by_perf(words) -> tuple[int, int] | None:
    """Loads and misses of the last-level cache; None if the processor's counters are not available."""
    with tempfile.NamedTemporaryFile("r") as out:
        try:
            command("perf", "stat", "-x,", "-o", out.name, "-e", ",".join(EVENTS), *words)
        except StepFailed:
            return None
        counts = [line.split(",")[0] for line in out if line.strip() and not line.startswith("#")]
    if not all(count.isdigit() for count in counts):
        return None
    loads, misses = map(int, counts)
    return loads, misses


def count_by_cachegrind(words) -> tuple[int, int]:
    with tempfile.NamedTemporaryFile("r") as out:
        command("valgrind", "--tool=cachegrind", "--cache-sim=yes",
                f"--LL={SIMULATED_BYTES},16,{LINE_BYTES}", f"--cachegrind-out-file={out.name}",
                *words)
        rows = dict(line.rstrip("\n").split(": ", 1) for line in out
                    if line.startswith(("events: ", "summary: ")))
    found = dict(zip(rows["events"].split(), map(int, rows["summary"].split()), strict=True))
    return (found["I1mr"] + found["D1mr"] + found["D1mw"],
            found["ILmr"] + found["DLmr"] + found["DLmw"])


def cache_bytes() -> int:
    """The size of the machine's last-level cache."""
    sizes = [path.read_text().strip() for path in SYSFS.glob("index*/size")]
    return max(int(size.removesuffix("K")) << 10 for size in sizes)


def chunk_bytes(cache: int, edges: int, vertices: int) -> int:
    """GraphM's formula 1."""
    return cache * edges // (edges + vertices * VERTEX_BYTES) // CORES


def can_count() -> bool:
    return counts_by_perf() or shutil.which("valgrind") is not None


def counts_by_perf() -> bool:
    return shutil.which("perf") is not None and count_by_perf(["true"]) is not None


def measure(plan: Plan, rounds: int) -> list[dict]:
    with_counters = counts_by_perf()
    cache = cache_bytes() if with_counters else SIMULATED_BYTES
    scale = (cache * GRAPH_BY_CACHE // EDGES_PER_VERTEX // EDGE_BYTES - 1).bit_length()
    grid = Grid("wcc", None, None, scale, 1, None, partitions=JOB_PARTITIONS, scramble=True)
    chunk = chunk_bytes(cache, EDGES_PER_VERTEX * EDGE_BYTES << scale, 1 << scale)
    count = count_by_perf if with_counters else count_by_cachegrind
    found = []
    with tempfile.TemporaryDirectory(prefix="graphlane-cache-") as directory:
        grid.prepare(Path(directory))
        # A simulation gives the same result every time.
        for number in range(rounds if with_counters else 1):
            for variant, word in VARIANTS.items():
                accesses, misses = count([PROGRAM, directory, word, plan.job_count, chunk])
                found.append({"round": number, "variant": variant, "graph": grid.files,
                              "job_count": plan.job_count, "cache_bytes": cache,
                              "counted_by": COUNTERS if with_counters else CACHEGRIND,
                              "accesses": accesses, "misses": misses})
    return found


def described(found: list[dict]) -> str:
    """The caption: what was counted, and how."""
    first = found[0]
    return (f"{first['job_count']} jobs in one thread, {first['graph']}; by {first['counted_by']}, "
            f"a cache of {first['cache_bytes'] >> 20} MiB")


def table(found: list[dict]) -> Table:
    shown = Table(["variant", "accesses, millions", "misses, millions", "miss rate", "MB swapped in"],
                  title=described(found))
    for variant in VARIANTS:
        ours = [sample for sample in found if sample["variant"] == variant]
        accesses, misses = (statistics.median(sample[what] for sample in ours)
                            for what in ["accesses", "misses"])
        shown.add(variant, f"{accesses / 1e6:.1f}", f"{misses / 1e6:.1f}", f"{misses / accesses:.1%}",
                  f"{misses * LINE_BYTES / 1e6:.0f}")
    return shown
