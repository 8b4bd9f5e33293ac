"""GraphM's figures (§5): several jobs at once on one graph."""

import os
import statistics
import textwrap
from dataclasses import replace

from experiments.figures import drawing, last_level_cache
from experiments.measure import summary
from experiments.measure.comparison import Case
from experiments.measure.plan import Plan
from experiments.measure.summary import median_min_max
from experiments.workloads.jobs import GAP, HOPS_MAX
from experiments.workloads.variants import BASELINE, IN_TURN, KIT_VARIANTS, MAPPED, SHARED

GAPS = (0, GAP, 1, 2)  # seconds between two submissions, on average
TRACE_GAP = 2
ROOTED = ("sssp", "bfs")
PAGERANK = ("pagerank",)
NAME_WIDTH = 16  # letters a line, below a bar


def cases(plan: Plan) -> list[Case]:
    return [plan.jobs(plan.job_count, (IN_TURN, BASELINE, SHARED, MAPPED))]


def cases_of_shards(plan: Plan) -> list[Case]:
    return [plan.shard_jobs(plan.job_count, (IN_TURN, BASELINE, SHARED, MAPPED))]


def cases_by_gap(plan: Plan) -> list[Case]:
    return [plan.jobs(plan.job_count, (BASELINE, SHARED, MAPPED), gap=gap) for gap in GAPS]


def cases_of_trace(plan: Plan) -> list[Case]:
    return [plan.jobs(plan.job_count, (IN_TURN, BASELINE, SHARED, MAPPED), gap=TRACE_GAP, trace=True)]


def cases_by_distance(plan: Plan) -> list[Case]:
    """None of SSSP where it has no program."""
    mix = plan.jobs(1, ()).workload.algorithms
    rooted = tuple(name for name in ROOTED if name in mix)
    return [plan.jobs(plan.job_count, (BASELINE, SHARED, MAPPED), algorithms=rooted, hops=hops)
            for hops in range(1, HOPS_MAX + 1)]


def cases_of_scheduling(plan: Plan) -> list[Case]:
    """Which is the kit's."""
    return [replace(case, variants=KIT_VARIANTS) for case in cases(plan) if plan.engines.gridgraph_kit]


def cases_by_count(plan: Plan) -> list[Case]:
    counts = [1 << i for i in range(plan.job_count.bit_length())]
    return [plan.jobs(count, (BASELINE, SHARED, MAPPED), algorithms=PAGERANK) for count in counts]


def cases_by_cores(plan: Plan) -> list[Case]:
    cores = sorted({1, max(1, os.cpu_count() // 2), os.cpu_count()})
    return [plan.jobs(plan.job_count, (BASELINE, SHARED, MAPPED), cores=count) for count in cores]


# --- what is drawn of samples ---

def by_variant(found: list[dict], what) -> dict[str, list[float]]:
    return {variant: [what(sample) for sample in summary.select(found, variant=variant)]
            for variant in summary.variants(found)}


def draw_of_variants(found: list[dict], axis: str, what):
    """A bar for each variant, of a value of its samples."""
    (case,) = summary.cases(found)
    figure, (axes,) = drawing.panels(1)
    drawing.bars(axes, [case["algorithm"]], {variant: [median_min_max(values)] for variant, values
                                             in by_variant(found, what).items()})
    axes.set_ylabel(axis)
    drawing.legend(axes)
    return figure


def draw_time(found):
    return draw_of_variants(found, "execution time (s)", lambda sample: sample["seconds"])


def draw_memory(found):
    return draw_of_variants(found, "most memory (MB)",
                        lambda sample: sample["memory_bytes_max"] / 1e6)


def draw_bytes(found):
    return draw_of_variants(found, "read from devices (MB)",
                        lambda sample: summary.device_total(sample, "bytes_read") / 1e6)


def draw_breakdown(found):
    """Side by side: neither waits for the other all the time."""
    parts = {"execution": lambda sample: sample["seconds"],
             "CPU, all cores": lambda sample: sample.get("cpu_seconds", 0),
             "busy, average device": lambda sample: statistics.mean(
                 counters["busy_seconds"] for counters in sample["device_counters"])}
    figure, (axes,) = drawing.panels(1)
    variants = summary.variants(found)
    drawing.bars(axes, [textwrap.fill(variant, NAME_WIDTH) for variant in variants],
                 {part: [median_min_max(values) for values in by_variant(found, what).values()]
                  for part, what in parts.items()})
    axes.set_ylabel("seconds")
    drawing.legend(axes)
    return figure


def draw_cache(found):
    """The rate of misses above, below what came into the cache for them."""
    figure, (above, below) = drawing.panels(2)
    for panel, axis, what in [
            (above, "LLC miss rate (%)", lambda sample: 100 * sample["misses"] / sample["accesses"]),
            (below, "swapped into the LLC (MB)",
             lambda sample: sample["misses"] * last_level_cache.LINE_BYTES / 1e6)]:
        drawing.bars(panel, [last_level_cache.described(found)],
                     {variant: [median_min_max(values)] for variant, values in by_variant(found, what).items()})
        panel.set_ylabel(axis)
    drawing.legend(above)
    return figure


def draw_sweep(found):
    """A group for each case, with a bar for each variant."""
    cases = summary.cases(found)
    figure, (axes,) = drawing.panels(1)
    drawing.bars(axes, [textwrap.fill(case["algorithm"], NAME_WIDTH) for case in cases],
                 {variant: [median_min_max(summary.seconds(found, case, variant)) for case in cases]
                  for variant in summary.variants(found)})
    axes.set_ylabel("execution time (s)")
    drawing.legend(axes)
    return figure
