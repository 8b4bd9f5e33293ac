"""The published results of CSMqGraph and GridGraph, and of GraphM for concurrent jobs.

Chen, Shi, Feng, Liu, Wang, Yang, Yu: CSMqGraph: Coarse-Grained and Multi-external-storage
Multi-queue I/O Management for Graph Computing (2019). Up to six disks of 210 MB/s, 16 cores, 8 GB
of memory; the graphs Twitter, Friendster and Subdomain. The numbers are from its text.

Zhao, Zhang, Liao, He, Jin, Cheng, Lin, Jin: GraphM: An Efficient Storage System for High Throughput
of Concurrent Graph Processing (SC '19). One disk, 16 cores, 32 GB of memory; 16 jobs (WCC,
PageRank, SSSP, BFS) on GridGraph.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from experiments.measure import samples, summary
from experiments.measure.tables import Table
from experiments.workloads.variants import BASELINE, CEILING, COMPUTE_ONLY, IN_TURN, VARIANTS, is_ours

TITLE = "Beside what CSMqGraph published"
JOBS_TITLE = "Beside what GraphM published"


@dataclass(frozen=True)
class Run:
    """Samples that were compared in one run, and with what: a kind of device, or a measurement of
    `check`."""

    samples: list[dict]
    on: str


@dataclass(frozen=True)
class PaperResult:
    """A published result for one algorithm; `here` computes the same for a variant of a case."""

    what: str
    algorithm: str
    gridgraph: str
    csmqgraph: str
    where: str
    here: Callable[[list[dict], dict, str], str]


def speed_up(found: list[dict], case: dict, variant: str) -> str:
    """At the ceiling the same bytes would come so much sooner."""
    if variant == CEILING:
        return samples.format_ratio(samples.ratio(summary.ceiling(found, case),
                                           summary.bandwidth(found, case, BASELINE)))
    return "1" if variant == BASELINE else samples.format_ratio(summary.speed_up(found, case, variant))


def utilization(found: list[dict], case: dict, variant: str) -> str:
    return "1" if variant == CEILING else samples.format_ratio(summary.share(found, case, variant))


def device_ios(found: list[dict], case: dict, variant: str) -> str:
    if variant == CEILING:
        return ""
    ours = summary.device_ios(found, case, variant)
    if variant == BASELINE:
        return f"{statistics.median(ours):.0f}"
    ratio = samples.ratio(ours, summary.device_ios(found, case, BASELINE))
    return f"{statistics.median(ours):.0f} = {samples.format_ratio(ratio)}"


PAPER_RESULTS = [
    *(PaperResult(f"speed-up of {name}", name, "1", f"up to {best}", "Fig. 12, §4.1", speed_up)
      for name, best in [("wcc", "1.40"), ("bfs", "1.28"), ("pagerank", "1.24"),
                         ("spmv", "1.25")]),
    PaperResult("bandwidth utilization of wcc", "wcc", "0.66–0.73", "190.9 of 210 MB/s = 0.91",
              "Fig. 2, §2; Fig. 15, §4.3", utilization),
    PaperResult("I/Os of a device, wcc on two", "wcc", "577 K", "419 K = 0.73", "Fig. 13, §4.2",
              device_ios),
]


def table(runs: list[Run]) -> Table:
    """A row for each thing published and each case of it here."""
    variants = [*VARIANTS, *dict.fromkeys(variant for run in runs for variant in summary.variants(run.samples)
                                  if variant not in (*VARIANTS, COMPUTE_ONLY) and not is_ours(variant)),
            CEILING]
    unmeasured = []
    shown = Table(["", "here", "on", "published: GridGraph", "published: CSMqGraph", "where",
                   *(f"here: {variant}" for variant in variants)], texts=3, title=TITLE,
                  caption=f"{summary.CAPTION}. Their {BASELINE} has stripes of 512 KiB, ours is "
                          "btrfs raid0 with 64 KiB.")
    for published in PAPER_RESULTS:
        cases = [(run, case) for run in runs for case in summary.cases(run.samples)
                 if case["algorithm"] == published.algorithm and
                 summary.seconds(run.samples, case, BASELINE)]
        row = [published.gridgraph, published.csmqgraph, published.where]
        for run, case in cases:
            of_case = summary.select(run.samples, **case)
            here = [published.here(run.samples, case, variant)
                    if variant == CEILING or summary.select(of_case, variant=variant) else ""
                    for variant in variants]
            cells = [published.what, described(case), run.on, *row, *here]
            if cells not in shown.rows:  # two figures may show the same samples
                shown.add(*cells)
        if not cases:
            unmeasured.append(published.what)
    if unmeasured:
        shown.caption += f" Not measured: {', '.join(unmeasured)}."
    return shown


def described(case: dict) -> str:
    threads = f", {case['threads']} threads" if case["threads"] else ""
    return (f"{case['engine']}{threads}, {case['graph']}, {case['device_count']} devices, "
            f"depth {case['stripe_depth']}")


# --- jobs ---

@dataclass(frozen=True)
class PaperJobsResult:
    """How many times as much one variant needs as GraphM."""

    engines: tuple[str, ...]
    what: str
    of: str  # the variant
    in_memory: str
    out_of_core: str
    where: str
    needs: Callable[[dict], float]  # of a sample


def bytes_read(sample: dict) -> int:
    return summary.device_total(sample, "bytes_read")


ON_GRIDS = ("GridGraph", "grid_engine")
ON_SHARDS = ("GraphChi", "shard_engine")
PAPER_JOBS_RESULTS = [
    PaperJobsResult(ON_GRIDS, "time of one after the other", IN_TURN, "2.6", "11.6", "§5.3, Fig. 9",
                    summary.sample_seconds),
    PaperJobsResult(ON_GRIDS, "time of all at once", BASELINE, "1.73", "13", "§5.3, Fig. 9",
                    summary.sample_seconds),
    PaperJobsResult(ON_GRIDS, "bytes read by one after the other", IN_TURN, "about 1", "9.2",
                    "§5.3, Fig. 12", bytes_read),
    PaperJobsResult(ON_GRIDS, "bytes read by all at once", BASELINE, "about 1", "10.1",
                    "§5.3, Fig. 12", bytes_read),
    PaperJobsResult(ON_SHARDS, "time of one after the other", IN_TURN, "6.8", "12.0",
                    "§5.5, Table 4", summary.sample_seconds),
    PaperJobsResult(ON_SHARDS, "time of all at once", BASELINE, "2.3", "3.1", "§5.5, Table 4",
                    summary.sample_seconds),
]


def jobs_table(runs: list[Run]) -> Table | None:
    """As the other tables, for comparisons of several jobs; None if there is none."""
    cases = [(run, case) for run in runs for case in summary.cases(run.samples)
             if " jobs" in case["algorithm"]]
    if not cases:
        return None
    variants = [variant for variant in dict.fromkeys(variant for run, case in cases for variant in
                                         summary.variants(summary.select(run.samples, **case)))
            if is_ours(variant)]
    shown = Table(["by that of ours", "here", "on", "GraphM: in memory", "GraphM: out of core", "where",
                   *(f"here: {variant}" for variant in variants)], texts=3, title=JOBS_TITLE,
                  caption=summary.CAPTION)
    for published in PAPER_JOBS_RESULTS:
        for run, case in cases:
            theirs = summary.select(run.samples, variant=published.of, **case)
            if case["engine"] not in published.engines or not theirs:
                continue

            def cell(variant):
                ours = summary.select(run.samples, variant=variant, **case)
                if not ours or not all(map(published.needs, ours)):
                    return ""
                return samples.format_ratio(summary.ratio(theirs, ours, published.needs))
            shown.add(published.what, f"{case['algorithm']}, {described(case)}", run.on,
                      published.in_memory, published.out_of_core, published.where,
                      *map(cell, variants))
    return shown
