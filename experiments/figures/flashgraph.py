"""FlashGraph's figures 8 to 14 and table 2, of `graphlane algo` on lists (its engine semiext).

Zheng, Mhembere, Burns, Vogelstein, Priebe, Szalay: FlashGraph: Processing Billion-Node Graphs on an
Array of Commodity SSDs (FAST '15). 15 SSDs, 32 cores; graphs twitter, subdomain and page.
"""

import statistics

from experiments.figures import drawing
from experiments.figures.stored import (
    bars_by_variant,
    draw_by_variant,
    figures_of_paper,
    ratio,
    variation_of,
    variations,
)
from experiments.measure import summary
from experiments.measure.comparison import Case
from experiments.measure.stored_plan import algo_case, peer_variants
from experiments.measure.summary import bar_value, median_min_max
from experiments.workloads.stored.graph import Stored
from experiments.workloads.stored.workload import compute_seconds
from experiments.workloads.variants import BASELINE, IN_MEMORY, VOLUME

PAPER = "FlashGraph"
# As its evaluation has them.
ALGORITHMS = ("bfs", "betweenness", "wcc", "pagerank-delta", "triangles", "scan")
SELECTIVE = ("bfs", "wcc")  # of figures 12 to 14
LISTS = Stored("lists", "varint")
RAW = Stored("lists", "raw")
CACHE_PARTS = (64, 32, 16, 8, 4, 2, 1)  # of the list files
PAGE_SIZES = ("4K", "16K", "64K", "256K", "1M")
MERGES = {"random order": ("--order", "random", "--merge", "none"),
          "ID order, not merged": ("--merge", "none"),
          "merged in the page reader": ("--merge", "pages"),
          "merged in the engine": ()}
CACHE_PART = 14  # the paper's 1 GiB is a fourteenth of the twitter graph's lists


def cache_words(plan, part: int) -> tuple:
    """A cache of this part of the lists, about: a varint arc has 2 bytes, in two directions."""
    arcs = plan.source.bytes() // 8
    return ("--cache", str(max(4 << 20, 4 * arcs // part)))


def case(plan, algorithm: str, *, stored=LISTS, variants=(VOLUME,), words=(), variation="",
         cache_part: int = CACHE_PART) -> Case:
    return algo_case(plan, algorithm, stored, (LISTS, RAW), words=(*cache_words(plan, cache_part), *words),
                     variation=variation, variants=variants)


def draw_beside_memory(found):
    cases = summary.cases(found)
    figure, (axes,) = drawing.panels(1)
    drawing.bars(axes, [case["algorithm"] for case in cases], {"": [
        ratio(summary.select(found, variant=IN_MEMORY, **case), summary.select(found, variant=VOLUME, **case))
        for case in cases]})
    axes.axhline(1, color=drawing.INK, linewidth=0.8, linestyle=":")
    axes.set(ylabel="speed, relative to in memory", ylim=(0, None))
    return figure


def draw_utilization(found):
    """The use of processors, and of the devices' bandwidth."""
    cases = summary.cases(found)
    figure, (above, below) = drawing.panels(2)
    names = [case["algorithm"] for case in cases]

    def of(case, value):
        return median_min_max([value(sample) for sample in summary.select(found, variant=VOLUME, **case)])

    drawing.bars(above, names, {"": [of(case, lambda sample: 100 * sample.get("cpu_seconds", 0) /
                                        sample["seconds"] / case["threads"]) for case in cases]})
    drawing.bars(below, names, {"": [bar_value(summary.device_share(found, case, VOLUME))
                                     for case in cases]})
    above.set_ylabel("% of the computing threads' time")
    below.set_ylabel("of the devices' ceiling")
    return figure


def draw_seconds(found):
    return draw_by_variant(found, compute_seconds, "seconds")


def draw_seconds_and_memory(found):
    cases = summary.cases(found)
    figure, (above, below) = drawing.panels(2)
    names = [case["algorithm"] for case in cases]
    variants = summary.variants(found)
    bars_by_variant(above, found, lambda sample: sample["seconds"], "seconds")
    drawing.bars(below, names, {variant: [
        median_min_max([sample["memory_bytes_max"] for sample in summary.select(found, variant=variant, **case)],
               2**20) for case in cases] for variant in variants})
    below.set(ylabel="memory, page cache included (MiB)")
    drawing.legend(above)
    return figure


def draw_tried(found, axis: str):
    """Speed relative to the best: bars by what is tried, a series for each algorithm."""
    groups = variations(found)
    figure, (axes,) = drawing.panels(1)
    series = {}
    for algorithm, cases in groups.items():
        best = min(statistics.median(map(compute_seconds, summary.select(found, variant=VOLUME, **one)))
                   for one in cases)
        series[algorithm] = [median_min_max([best / compute_seconds(sample)
                                     for sample in summary.select(found, variant=VOLUME, **one)])
                             for one in cases]
    names = [variation_of(one) for one in next(iter(groups.values()))]
    drawing.bars(axes, names, series)
    axes.set(xlabel=axis, ylabel="speed, relative to the best", ylim=(0, None))
    drawing.legend(axes)
    return figure


def draw_table(found):
    """Table 2: seconds, seconds to open, memory."""
    cases = summary.cases(found)
    figure, (above, middle, below) = drawing.panels(3)
    names = [case["algorithm"] for case in cases]

    def bars(axes, label, value):
        drawing.bars(axes, names, {"": [
            median_min_max([value(sample) for sample in summary.select(found, variant=VOLUME, **case)])
            for case in cases]})
        axes.set_ylabel(label)

    bars(above, "seconds", compute_seconds)
    bars(middle, "seconds to open", lambda sample: sample.get("open_seconds", 0))
    bars(below, "memory (MiB)", lambda sample: sample["memory_bytes_max"] / 2**20)
    return figure


def merge_cases(plan) -> list[Case]:
    return [case(plan, algorithm, words=words, variation=name)
            for algorithm in SELECTIVE for name, words in MERGES.items()]


def page_cases(plan) -> list[Case]:
    return [case(plan, algorithm, words=("--page-size", size), variation=size)
            for algorithm in SELECTIVE for size in PAGE_SIZES]


def cache_cases(plan) -> list[Case]:
    return [case(plan, algorithm, cache_part=part, variation=f"1/{part}")
            for algorithm in ALGORITHMS[:4] for part in CACHE_PARTS]


def flashgraph_figures(figure) -> dict:
    """`figure`: the class of figures.py."""
    one = figures_of_paper(figure, PAPER)
    return {
        "flashgraph-8": one(
            8, "Speed on devices relative to in memory",
            "up to 0.8 of in memory, 0.4 at worst.",
            lambda plan: [case(plan, name, variants=(VOLUME, IN_MEMORY)) for name in ALGORITHMS],
            draw_beside_memory),
        "flashgraph-9": one(
            9, "What processors and devices work",
            "BFS, betweenness and WCC are bound by devices at first, the others by processors.",
            lambda plan: [case(plan, name) for name in ALGORITHMS], draw_utilization),
        "flashgraph-10": one(
            10, "Computing time beside engines in memory (here: the GAP suite)",
            "as fast as Galois, faster than PowerGraph.",
            lambda plan: [case(plan, name, stored=RAW,
                               variants=(VOLUME, IN_MEMORY, *peer_variants(plan, "GAP")))
                          for name in ("bfs", "pagerank", "wcc", "triangles", "betweenness")],
            draw_seconds),
        "flashgraph-11": one(
            11, "Time and memory beside engines out of core",
            "one or two orders of magnitude faster than GraphChi and X-Stream.",
            lambda plan: [case(plan, name, variants=(
                VOLUME, BASELINE, *peer_variants(plan, "GridGraph", "GraphChi", "Blaze")))
                for name in ("bfs", "wcc", "pagerank")], draw_seconds_and_memory),
        "flashgraph-table-2": one(
            "table 2", "All algorithms on the largest graph",
            "on 3.4 billion vertices BFS 298 s, betweenness 595, triangles 7818, WCC 461, PageRank "
            "2041, scan 375 s.",
            lambda plan: [case(plan, name) for name in ALGORITHMS], draw_table),
        "flashgraph-12": one(
            12, "What merging and the order of vertices are good for",
            "merging in FlashGraph is faster than in SAFS: 1.4 times for BFS, more than 2 times for "
            "WCC; random order is slowest.",
            merge_cases, lambda found: draw_tried(found, "order and merging")),
        "flashgraph-13": one(
            13, "Speed by size of a page", "4 KiB is best.",
            page_cases, lambda found: draw_tried(found, "page size")),
        "flashgraph-14": one(
            14, "Speed by size of the cache", "small caches serve well.",
            cache_cases, lambda found: draw_tried(found, "cache, of the size of the lists")),
    }


