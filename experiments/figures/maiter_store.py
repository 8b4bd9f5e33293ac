"""MaiterStore's figures 5 to 9, of `graphlane algo` on pages (its engine kv).

Chang, Zhang, Yu: MaiterStore: A Hot-Aware, High-Performance Key-Value Store for Graph Processing. Four
machines of 3 GB with a disk and an SSD; web-Google and web-BerkStan, 6 and 7.6 million edges.
"""

from experiments.figures import drawing
from experiments.figures.stored import figures_of_paper, ratio, variation_of, variations
from experiments.measure import summary
from experiments.measure.comparison import Case
from experiments.measure.stored_plan import algo_case
from experiments.measure.summary import median_min_max
from experiments.workloads.stored.graph import Stored
from experiments.workloads.stored.workload import compute_seconds
from experiments.workloads.variants import IN_MEMORY, VOLUME

PAPER = "MaiterStore"
PAGES = Stored("pages", "varint")
ALGORITHMS = ("pagerank-delta", "wcc")
CACHE_PART = 10  # % of the lists
BUFFER = ("--buffer", "2")  # pages, as its evaluation has them
SETTINGS = {"buffer and cache": (BUFFER, CACHE_PART), "buffer": (BUFFER, 0),
            "buffer, fetched ahead, and cache": (("--prefetch", "16"), CACHE_PART)}
PAGE_SIZES = ("4K", "8K", "16K", "32K", "64K")
WORKERS = (1, 2, 4)
POLICIES = ("hot", "hot-last", "lru", "fifo", "sieve", "s3fifo")
SHARES = (1, 5, 10, 20)  # % of the lists
PORTION = "0.1"


def cache(plan, percent: int) -> tuple:
    """A share of the out-lists, about: a varint arc has 1.5 bytes."""
    return ("--cache", str(plan.source.bytes() // 8 * 3 // 2 * percent // 100))


def case(plan, algorithm: str, words=(), variation="", *, percent=CACHE_PART, variants=(VOLUME,), stored=PAGES,
         all_stored=(PAGES,), threads=None) -> Case:
    return algo_case(plan, algorithm, stored, all_stored, variation=variation, variants=variants, threads=threads, with_peers=False,
                     words=(*cache(plan, percent), "--explain", *words))


def setting_cases(plan) -> list[Case]:
    return [case(plan, algorithm, words, name, percent=percent, variants=(VOLUME, IN_MEMORY) if number == 0 else (VOLUME,))
            for algorithm in ALGORITHMS for number, (name, (words, percent)) in enumerate(SETTINGS.items())]


def worker_cases(plan) -> list[Case]:
    return [case(plan, "wcc", ("--workers", str(count)), f"{count} workers", threads=1) for count in WORKERS]


def page_cases(plan) -> list[Case]:
    stored = [Stored("pages", "varint", ("--page", size)) for size in PAGE_SIZES]
    return [case(plan, "pagerank-delta", BUFFER, one.words[1], variants=(VOLUME, IN_MEMORY), stored=one,
                 all_stored=tuple(stored)) for one in stored]


def cache_cases(plan) -> list[Case]:
    return [case(plan, "pagerank-delta",
                 (*BUFFER, "--portion", PORTION, "--cache-policy", policy),
                 f"{policy}, {share}%", percent=share, threads=1) for policy in POLICIES for share in SHARES]


def hit_cases(plan) -> list[Case]:
    return [case(plan, "pagerank-delta", (*BUFFER, "--portion", PORTION), "hits", threads=1)]


def draw_settings(found):
    """Seconds by setting; a series for each algorithm."""
    figure, (axes,) = drawing.panels(1)
    groups = variations(found)
    names = ["in memory", *SETTINGS]
    series = {}
    for algorithm, cases in groups.items():
        of_setting = {variation_of(one): one for one in cases}
        first = of_setting[next(iter(SETTINGS))]
        series[algorithm] = [
            median_min_max([compute_seconds(sample) for sample in summary.select(found, variant=IN_MEMORY, **first)]),
            *(median_min_max([compute_seconds(sample) for sample in summary.select(found, variant=VOLUME, **of_setting[name])])
              for name in SETTINGS)]
    drawing.bars(axes, names, series)
    axes.set(ylabel="seconds", ylim=(0, None))
    drawing.legend(axes)
    return figure


def draw_workers(found):
    figure, (axes,) = drawing.panels(1)
    cases = summary.cases(found)
    drawing.bars(axes, [variation_of(one) for one in cases],
                 {"": [median_min_max([compute_seconds(sample) for sample in summary.select(found, variant=VOLUME, **one)])
                       for one in cases]})
    axes.set(ylabel="seconds", ylim=(0, None))
    return figure


def draw_pages(found):
    """Time by size of a page, relative to in memory."""
    figure, (axes,) = drawing.panels(1)
    cases = summary.cases(found)
    values = [ratio(summary.select(found, variant=VOLUME, **one), summary.select(found, variant=IN_MEMORY, **one))
              for one in cases]
    drawing.bars(axes, [variation_of(one) for one in cases], {"": values})
    axes.axhline(1, color=drawing.INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="page", ylabel="time, relative to in memory", ylim=(0, None))
    return figure


def hit_percent(sample: dict) -> float:
    rounds = [one for one in sample.get("each_iteration", []) if "gets" in one]
    gets = sum(one["gets"] for one in rounds)
    return 100 * sum(one["cache_hits"] for one in rounds) / gets if gets else 0.0


def draw_hits(found):
    figure, (axes,) = drawing.panels(1)
    cases = {variation_of(one): one for one in summary.cases(found)}
    drawing.bars(axes, [f"{share}%" for share in SHARES], {
        policy: [median_min_max([hit_percent(sample) for sample in
                         summary.select(found, variant=VOLUME, **cases[f"{policy}, {share}%"])])
                 for share in SHARES] for policy in POLICIES})
    axes.set(xlabel="cache, of the size of the lists", ylabel="% of gets from the cache", ylim=(0, None))
    drawing.legend(axes)
    return figure


def draw_hits_over_time(found):
    """Hits in each tenth of the run."""
    figure, (axes,) = drawing.panels(1)
    samples = sorted(summary.select(found, variant=VOLUME), key=compute_seconds)
    rounds = [one for one in samples[len(samples) // 2].get("each_iteration", []) if "seconds" in one]
    steps = 10
    length = rounds[-1]["seconds"] / steps if rounds else 1
    for number, (name, label) in enumerate([("cache_hits", "cache"), ("buffer_hits", "buffer")]):
        hits = [0] * steps
        for one in rounds:
            hits[min(steps - 1, int(one["seconds"] / length))] += one[name]
        axes.stairs(hits, [length * step for step in range(steps + 1)],
                    color=drawing.COLOURS[number % len(drawing.COLOURS)], linewidth=1.5, label=label)
    axes.set(xlabel="seconds", ylabel="hits in each tenth", ylim=(0, None))
    drawing.legend(axes)
    return figure


def maiter_figures(figure) -> dict:
    """`figure`: the class of figures.py."""
    one = figures_of_paper(figure, PAPER)
    return {
        "maiter-5": one(5, "Time by what holds the lists",
                        "with buffer and cache near to in memory; the device alone takes 13 times as long.",
                        setting_cases, draw_settings),
        "maiter-6": one(6, "Time of connected components by number of workers",
                        "six times the workers are 3.4 times as fast.", worker_cases, draw_workers),
        "maiter-7": one(7, "Time by size of a page, relative to in memory", "8 KiB is best.", page_cases, draw_pages),
        "maiter-8": one(8, "Hits of caches by their size",
                        "the hot-aware cache has more than three times the hits of FIFO and LRU.",
                        cache_cases, draw_hits),
        "maiter-9": one(9, "Hits of buffer and cache over time", "the cache's hits grow as the run goes on.",
                        hit_cases, draw_hits_over_time),
    }
