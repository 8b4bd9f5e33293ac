"""The project's goals: what is measured for each, and what it is to be.

A new goal is a line in GOALS; where nothing measures it yet, a line in MEASUREMENTS too.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from experiments.devices.emulated import Devices
from experiments.goals import bottlenecks, import_speed, in_memory, jobs_goals
from experiments.measure import comparison, samples, summary
from experiments.measure.comparison import Case
from experiments.measure.plan import Plan
from experiments.workloads.csmqgraph import NAME as CSMQGRAPH
from experiments.workloads.reads import Sweeps
from experiments.workloads.variants import (
    BASELINE,
    COMPUTE_ONLY,
    IN_TURN,
    KIT,
    MAPPED,
    MOUNTED,
    PRELOADED,
    SHARED,
    VARIANTS,
)

READ_THREADS = (1, 4, 8)
OVERLAPPED = "pagerank"
HALF_CACHED = "pagerank"
IMPORTED_FILES = 4  # of the size of those that are read
ENGINE_BYTES = 128 << 20  # that a program has beside its cache
# GraphChi's WCC takes 215 MB by itself, its PageRank 175. In the thorough plan's 240M nothing of
# what WCC reads stays in memory: it reads 1.7 GB, in 320M 0.7, in 360M all once, 0.17.
GRAPHCHI_WCC_BYTES = 80 << 20


@dataclass(frozen=True)
class Measurement:
    """Samples that goals are taken from. Without a kind of device: in memory."""

    kind: str | None  # hdd, ssd
    measure: Callable[..., list[dict]]


@dataclass(frozen=True)
class Goal:
    name: str
    says: str
    measurement: str
    value: Callable[[list[dict]], dict | None]  # ratio, least, most; None: not measured here
    limit: float
    why: Callable[[list[dict], dict], str]  # it is short: of samples and value
    at_most: bool = False

    def ok(self, value: dict) -> bool:
        if value.get("bound") not in (None, "≤" if self.at_most else "≥"):
            return False  # it may be reached, and is not shown
        return value["ratio"] <= self.limit if self.at_most else value["ratio"] >= self.limit


# --- measurements ---

def compared(cases: Callable[[Plan], list[Case]]):
    def measure(devices: Devices, plan: Plan, how: dict) -> list[dict]:
        return comparison.measure(devices, cases(plan), **how)
    return measure


def read(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """The memory has room for the threads' buffers and reads in flight, but not for all of the file."""
    cases = [plan.read(threads, count) for count in plan.device_counts
             for threads in READ_THREADS]
    return comparison.measure(devices, cases,
                              **{**how, "memory_bytes": how["memory_bytes"] and plan.file_bytes})


def grid_cases(plan: Plan) -> list[Case]:
    variants = {OVERLAPPED: (*VARIANTS, COMPUTE_ONLY)}
    return [plan.grid(name, min(4, plan.max_devices), variants=variants.get(name, VARIANTS))
            for name in plan.algorithms()]


def half_cached(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """Where the memory has room for the engine and for half of the edges."""
    case = plan.grid(HALF_CACHED, min(4, plan.max_devices))
    memory = case.workload.column_bytes // 2 + ENGINE_BYTES
    return comparison.measure(devices, [replace(case, rivals=())],
                              **{**how, "memory_bytes": memory})


def swept(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    case = plan.sweeps(min(4, plan.max_devices))
    memory = case.workload.cache_bytes + ENGINE_BYTES
    return comparison.measure(devices, [case], **{**how, "memory_bytes": memory})


def sharded(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    wcc, pagerank = [plan.shards(name, min(4, plan.max_devices)) for name in ["wcc", "pagerank"]]
    if plan.memory is None or plan.engines.graphchi is None:
        return comparison.measure(devices, [wcc, pagerank], **how)
    more = {**how, "memory_bytes": plan.memory + GRAPHCHI_WCC_BYTES}
    return [*comparison.measure(devices, [wcc], **more),
            *comparison.measure(devices, [pagerank], **how)]


def imported(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    return import_speed.measure(devices, IMPORTED_FILES * plan.file_bytes, plan.depth, how["rounds"],
                           how["seconds"])


def remembered(devices: None, plan: Plan, how: dict) -> list[dict]:
    return in_memory.measure(plan.file_bytes // 2, how["rounds"])


MEASUREMENTS = {
    "reads, hdd": Measurement("hdd", read),
    "reads, ssd": Measurement("ssd", read),
    "grid, hdd": Measurement("hdd", compared(grid_cases)),
    "grid, ssd": Measurement("ssd", compared(grid_cases)),
    "shards, hdd": Measurement("hdd", sharded),
    "grid, half cached, hdd": Measurement("hdd", half_cached),
    "sweeps, hdd": Measurement("hdd", swept),
    "import, hdd": Measurement("hdd", imported),
    "import, ssd": Measurement("ssd", imported),
    "jobs in turn, hdd": Measurement("hdd", jobs_goals.in_turn),
    "jobs at once, hdd": Measurement("hdd", jobs_goals.at_once),
    "jobs together, hdd": Measurement("hdd", jobs_goals.together),
    "jobs in memory, hdd": Measurement("hdd", jobs_goals.in_memory),
    "memory": Measurement(None, remembered),
}


# --- values ---

def worst(found: list[dict | None]) -> dict | None:
    """A goal is for every case."""
    return min(filter(None, found), key=lambda ratio: ratio["ratio"], default=None)


def with_case(case: dict, ratio: dict | None) -> dict | None:
    return ratio and {**ratio, "case": case}


def ceiling_share(variant: str):
    return lambda found: worst([with_case(case, summary.share(found, case, variant))
                                for case in summary.cases(found)])


def of_algorithms(found: list[dict], algorithms: tuple) -> list[dict]:
    return [case for case in summary.cases(found)
            if not algorithms or case["algorithm"] in algorithms]


def speed_up(variant: str, *algorithms: str):
    """The worst speed-up over these algorithms, or over all."""
    return lambda found: worst([with_case(case, summary.speed_up(found, case, variant))
                                for case in of_algorithms(found, algorithms)])


def beside_csmqgraph(found: list[dict]) -> dict | None:
    """The speed-up over CSMqGraph with the number of workers that is best for the case."""
    def one(case):
        rivals = [variant for variant in summary.variants(summary.select(found, **case))
                  if variant.startswith(CSMQGRAPH)]
        return worst([ratio and {**with_case(case, ratio), "rival": rival} for rival in rivals
                      if (ratio := summary.speed_up(found, case, PRELOADED, of=rival))])
    return worst([one(case) for case in summary.cases(found)])


def device_ios(found: list[dict]) -> dict | None:
    (case,) = of_algorithms(found, ("wcc",))
    return with_case(case, samples.ratio(summary.device_ios(found, case, PRELOADED),
                                       summary.device_ios(found, case, BASELINE)))


def linearity(found: list[dict]) -> dict | None:
    """The bandwidth of most devices over the fewest' bandwidth times the ratio of their numbers."""
    cases = summary.cases(found)
    counts = sorted({case["device_count"] for case in cases})
    if len(counts) < 2:
        return None
    fewest, most = counts[0], counts[-1]

    def one(case):
        few = {**case, "device_count": fewest}
        speed = [value / most * fewest for value in summary.bandwidth(found, case, PRELOADED)]
        return with_case(case, samples.ratio(speed, summary.bandwidth(found, few, PRELOADED)))
    return worst([one(case) for case in cases
                  if case["device_count"] == most and case["threads"] == max(READ_THREADS)])


def overlap(found: list[dict]) -> dict | None:
    """Wall time over the longer of computation alone and the same I/O at the ceiling."""
    (case,) = of_algorithms(found, (OVERLAPPED,))
    alone = summary.seconds(found, case, COMPUTE_ONLY)
    waiting = [summary.device_total(sample, "bytes_read") / speed for sample, speed in
               zip(summary.select(found, variant=PRELOADED, **case), summary.ceiling(found, case))]
    return with_case(case, samples.ratio(summary.seconds(found, case, PRELOADED),
                                       [max(pair) for pair in zip(alone, waiting, strict=True)]))


def from_memory(found: list[dict]) -> dict | None:
    """The share of the bytes asked for after the first sweep that no device had to read."""
    (case,) = summary.cases(found)
    ours = summary.select(found, variant=PRELOADED, **case)
    asked = [sample["bytes"] for sample in ours]
    once = [sample["bytes"] / Sweeps.sweeps for sample in ours]
    read = [summary.device_total(sample, "bytes_read") for sample in ours]
    return with_case(case, samples.ratio(
        [all_of_it - moved for all_of_it, moved in zip(asked, read, strict=True)],
        [all_of_it - first for all_of_it, first in zip(asked, once, strict=True)]))


def in_memory_share(variant: str, *asked: tuple):
    def one(found, what):
        ratio = samples.ratio(*(samples.series(found, "bytes_per_second", variant=each, asked=what)
                                for each in [variant, in_memory.PLAIN]))
        return ratio and {**ratio, "asked": what}
    return lambda found: worst([one(found, in_memory.asked(*each)) for each in asked])


def nanoseconds(found: list[dict], what: str) -> list[list[float]]:
    return [samples.series(found, "nanoseconds", variant=variant, asked=what)
            for variant in [in_memory.PLAIN, in_memory.OVER_MOUNT]]


def small_reads(found: list[dict]) -> dict | None:
    return {**samples.ratio(*nanoseconds(found, in_memory.SMALL)), "asked": in_memory.SMALL}


def foreign_calls(found: list[dict]) -> dict | None:
    """The nanoseconds that the slowest call takes longer."""
    def one(what):
        more = sorted(b - a for a, b in zip(*nanoseconds(found, what), strict=True))
        return {"ratio": statistics.median(more), "min": more[0], "max": more[-1],
                "asked": what}
    whats = dict.fromkeys(sample["asked"] for sample in found
                          if in_memory.FOREIGN in sample["asked"])
    return max(map(one, whats), key=lambda value: value["ratio"])


def import_share(found: list[dict]) -> dict | None:
    return samples.ratio(samples.series(found, "bytes_per_second", variant=import_speed.IMPORT),
                         samples.series(found, "bytes_per_second", variant=import_speed.CEILING))


# --- why one is short ---

def why_calls(found: list[dict], value: dict) -> str:
    return bottlenecks.explain_calls(value["asked"], *nanoseconds(found, value["asked"]))


def why_beside_csmqgraph(found: list[dict], value: dict) -> str:
    return bottlenecks.explain_case(PRELOADED, value["rival"])(found, value)


# --- goals ---

LARGE = (in_memory.BLOCK, 1, False)
UNMODIFIED = [("transparent", "unmodified jobs that share", SHARED),
              ("mapped", "unmodified jobs with shared pages in their buffers", MAPPED)]
LARGE_BY_FOUR = [(in_memory.BLOCK, 4, False), (in_memory.BLOCK, 4, True)]

GOALS = [
    *(Goal(f"{kind}-{variant}-reads", f"24 MiB reads {variant}: worst share of the {kind}s' ceiling",
           f"reads, {kind}", ceiling_share(variant), limit, why=bottlenecks.explain_case(variant))
      for kind in ["hdd", "ssd"] for variant, limit in [(PRELOADED, 0.97), (MOUNTED, 0.95)]),
    Goal("hdd-linear", "scaling of bandwidth from two devices to all (1: linear)",
         "reads, hdd", linearity, 0.95, why=bottlenecks.explain_case(PRELOADED)),
    *(Goal(f"hdd-{name}-{variant}", f"{name} {variant}: speed-up over the OS striped volume", "grid, hdd",
           speed_up(variant, name), 2.2 if name == "pagerank" else 1.4, why=bottlenecks.explain_case(variant))
      for name in ["pagerank", "wcc", "bfs", "spmv"] for variant in [PRELOADED, MOUNTED]),
    *(Goal(f"ssd-engines-{variant}", f"slowest algorithm {variant}: speed-up over the OS striped volume",
           "grid, ssd", speed_up(variant), 1.0, why=bottlenecks.explain_case(variant)) for variant in [PRELOADED, MOUNTED]),
    Goal("hdd-csmqgraph", "preloaded: worst speed-up over CSMqGraph with its best number of workers",
         "grid, hdd", beside_csmqgraph, 1.0, why=why_beside_csmqgraph),
    *(Goal(f"hdd-half-cached-{variant}", f"{HALF_CACHED} {variant}, memory for half of the edges: speed-up over "
           "the OS striped volume", "grid, half cached, hdd", speed_up(variant), 3.0,
           why=bottlenecks.explain_case(variant)) for variant in [PRELOADED, MOUNTED]),
    Goal("hdd-from-memory", "sweeps over twice the cache: share of bytes served from memory",
         "sweeps, hdd", from_memory, 0.45, why=bottlenecks.explain_case(PRELOADED)),
    *(Goal(f"hdd-graphchi-{variant}", f"shards {variant}: worst speed-up over the OS striped volume",
           "shards, hdd", speed_up(variant), 1.2, why=bottlenecks.explain_case(variant)) for variant in [PRELOADED, MOUNTED]),
    Goal("hdd-device-ios", "wcc preloaded: device I/Os over those of the OS striped volume",
         "grid, hdd", device_ios, 0.73, at_most=True, why=bottlenecks.explain_case(PRELOADED)),
    Goal("hdd-overlap", f"{OVERLAPPED}: time over the longer of its computation and its I/O",
         "grid, hdd", overlap, 1.10, at_most=True, why=bottlenecks.explain_case(PRELOADED)),
    *(Goal(f"{kind}-import", "import: share of what the devices can write", f"import, {kind}",
           import_share, 0.9, why=bottlenecks.explain_import) for kind in ["hdd", "ssd"]),
    Goal("jobs-kit-in-turn", "jobs with the kit: speed-up over one after the other", "jobs in turn, hdd",
         jobs_goals.speed_up_over(KIT, IN_TURN), 13, why=bottlenecks.explain_case(KIT, IN_TURN)),
    Goal("jobs-kit-at-once", "jobs with the kit: speed-up over all at once", "jobs at once, hdd",
         jobs_goals.speed_up_over(KIT, BASELINE), 13, why=bottlenecks.explain_case(KIT)),
    *(Goal(f"jobs-{name}", f"{jobs}: speed-up over all at once", "jobs at once, hdd",
           jobs_goals.speed_up_over(variant, BASELINE), 6, why=bottlenecks.explain_case(variant))
      for name, jobs, variant in UNMODIFIED),
    *(Goal(f"jobs-memory-{name}", f"in memory: {says}", "jobs in memory, hdd",
           jobs_goals.speed_up_over(variant, other), limit, why=bottlenecks.explain_case(variant, other))
      for name, says, variant, other, limit in [
          ("kit-in-turn", "jobs with the kit: speed-up over one after the other", KIT, IN_TURN, 2.6),
          ("kit-at-once", "jobs with the kit: speed-up over all at once", KIT, BASELINE, 1.7),
          *((name, f"{jobs}: speed-up over all at once", variant, BASELINE, 0.95)
            for name, jobs, variant in UNMODIFIED)]),
    *(Goal(f"jobs-{name}-bytes", f"jobs {variant}: device bytes over those of the job that reads most",
           f"jobs {those}, hdd", jobs_goals.bytes_over_largest(variant), 1.2, at_most=True,
           why=bottlenecks.explain_jobs_bytes(variant))
      for name, variant, those in [("kit", KIT, "in turn"), ("transparent", SHARED, "together"),
                               ("mapped", MAPPED, "together")]),
    *(Goal(f"jobs-{name}-alone", f"one job alone, {variant}: time over its time {PRELOADED}",
           "jobs in turn, hdd", jobs_goals.time_alone(variant), 1.03, at_most=True,
           why=bottlenecks.explain_case(variant, PRELOADED))
      for name, variant in [("kit", KIT), ("transparent", SHARED)]),
    Goal("jobs-kit-turns", "jobs with the kit: share of time that they wait for turns", "jobs at once, hdd",
         jobs_goals.turn_wait_share, 0.15, at_most=True, why=bottlenecks.explain_turns),
    Goal("jobs-kit-memory", "jobs with the kit: most bytes of partitions in memory over bytes of edges",
         "jobs at once, hdd", jobs_goals.copies, 1.0, at_most=True, why=bottlenecks.explain_copies),
    Goal("memory-preloaded-4K", "preloaded 4 KiB preads: speed over native ones", "memory",
         small_reads, 0.95, why=why_calls),
    Goal("memory-preloaded-24M", "preloaded 24 MiB preads: speed over native ones", "memory",
         in_memory_share(in_memory.OVER_MOUNT, LARGE), 0.98,
         why=bottlenecks.explain_large_reads(in_memory.OVER_MOUNT, in_memory.PLAIN)),
    Goal("memory-mounted-24M", "mounted 24 MiB reads by four threads: speed over native ones",
         "memory", in_memory_share(in_memory.MOUNTED, *LARGE_BY_FOUR), 0.55,
         why=bottlenecks.explain_large_reads(in_memory.MOUNTED, in_memory.PLAIN)),
    Goal("memory-mounted-plain", "the same of a plain file, which the kernel passes through",
         "memory",
         in_memory_share(in_memory.UNSTRIPED, *LARGE_BY_FOUR), 0.97,
         why=bottlenecks.explain_large_reads(in_memory.UNSTRIPED, in_memory.PLAIN)),
    Goal("memory-foreign-calls", "nanoseconds that a call on a foreign descriptor takes longer", "memory",
         foreign_calls, 10, at_most=True, why=why_calls),
]
