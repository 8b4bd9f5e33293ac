"""HUS-Graph's figures 1, 9, 11, 16, 18 and table 3, of `graphlane algo` on dual blocks (its engine hybrid).

Xu, Wang, Jiang, Cheng, Feng, Zhang: A Hybrid Update Strategy for I/O-Efficient Out-of-Core Graph
Processing (TPDS 2020). 16 cores, 16 GB, a disk of 7200 rpm; graphs of 69 million to 5.5 billion edges.
"""

from experiments.figures import drawing
from experiments.figures.stored import draw_by_variant, figures_of_paper, ratio, variation_of, variations
from experiments.measure import summary
from experiments.measure.comparison import Case
from experiments.measure.stored_plan import algo_case, peer_variants
from experiments.measure.summary import median_min_max
from experiments.workloads.stored.graph import Stored
from experiments.workloads.stored.workload import compute_seconds
from experiments.workloads.variants import BASELINE, VOLUME

PAPER = "HUS-Graph"
DUAL = Stored("dual", "varint", ("-p", "4"))
MODELS = ("hybrid", "push", "pull")
TRAVERSALS = ("bfs", "wcc", "sssp")
ALGORITHMS = (*TRAVERSALS, "pagerank")
MEMORY_PART = 10  # of 8 bytes an edge
THREADS = (1, 2, 4)
PEERS = ("GridGraph", "GraphChi")


def case(plan, algorithm: str, *, model="hybrid", variants=(VOLUME,), variation="", threads=None) -> Case:
    cache = max(4 << 20, plan.source.bytes() // MEMORY_PART)
    return algo_case(plan, algorithm, DUAL, (DUAL,), variation=variation, variants=variants, threads=threads,
                     words=("--cache", str(cache), "--model", model, "--explain"))


def model_cases(plan) -> list[Case]:
    return [case(plan, algorithm, model=model, variation=model)
            for algorithm in ALGORITHMS for model in MODELS]


def beside_peers(plan) -> list[Case]:
    return [case(plan, algorithm, variants=(VOLUME, BASELINE, *peer_variants(plan, *PEERS)))
            for algorithm in ALGORITHMS]


def thread_cases(plan) -> list[Case]:
    return [case(plan, algorithm, threads=count) for algorithm in ("bfs", "pagerank") for count in THREADS]


def of_models(found, value):
    """The value of a sample for each algorithm and model."""
    return {model: [median_min_max([value(sample) for one in cases if one["algorithm"].endswith(f", {model}")
                            for sample in summary.select(found, variant=VOLUME, **one)])
                    for cases in variations(found).values()] for model in MODELS}


def draw_models(found):
    """Seconds, and what was read."""
    figure, (above, below) = drawing.panels(2)
    names = list(variations(found))
    drawing.bars(above, names, of_models(found, compute_seconds))
    drawing.bars(below, names, of_models(found, lambda sample: sample.get("device_bytes", 0) / 2**20))
    above.set(ylabel="seconds", yscale="log")
    below.set(ylabel="MiB read", ylim=(0, None))
    drawing.legend(above)
    return figure


def iterations(found, one) -> list[dict]:
    """Those of the round of the median time: no average of rounds is one that happened."""
    rounds = sorted(summary.select(found, variant=VOLUME, **one), key=compute_seconds)
    return rounds[len(rounds) // 2].get("each_iteration", []) if rounds else []


def draw_iterations(found):
    """A panel for each algorithm: seconds of each iteration, by model."""
    groups = variations(found)
    figure, axes = drawing.panels(len(groups))
    for panel, (algorithm, cases) in zip(axes, groups.items()):
        for number, one in enumerate(cases):
            rows = iterations(found, one)
            panel.plot(range(1, len(rows) + 1), [row["seconds"] for row in rows], linewidth=1.5,
                       color=drawing.COLOURS[number], label=variation_of(one))
        panel.set(xlabel=f"iteration of {algorithm}", ylabel="seconds", yscale="log")
    drawing.legend(axes[0])
    return figure


def draw_active(found):
    """The share of vertices that are active, of the most of any iteration."""
    figure, (axes,) = drawing.panels(1)
    for number, one in enumerate(summary.cases(found)):
        active = [row["active"] for row in iterations(found, one)]
        most = max(active, default=1)
        axes.plot(range(1, len(active) + 1), [100 * value / most for value in active],
                  linewidth=1.5, color=drawing.COLOURS[number], label=one["algorithm"])
    axes.set(xlabel="iteration", ylabel="active vertices, % of the most", ylim=(0, None))
    drawing.legend(axes)
    return figure


def draw_seconds(found):
    return draw_by_variant(found, lambda sample: sample["seconds"], "seconds")


def draw_traffic(found):
    return draw_by_variant(found, lambda sample: summary.device_total(sample, "bytes_read") / 2**20,
                       "MiB read from the devices")


def draw_threads(found):
    """Speed relative to one thread."""
    figure, (axes,) = drawing.panels(1)
    cases = summary.cases(found)
    names = list(dict.fromkeys(one["algorithm"] for one in cases))
    series = {}
    for count in sorted({one["threads"] for one in cases}):
        series[f"{count} threads"] = [
            ratio(*(summary.select(found, variant=VOLUME, algorithm=name, threads=threads)
                    for threads in (1, count))) for name in names]
    drawing.bars(axes, names, series)
    axes.set(ylabel="speed, relative to one thread", ylim=(0, None))
    drawing.legend(axes)
    return figure


def hus_figures(figure) -> dict:
    """`figure`: the class of figures.py."""
    one = figures_of_paper(figure, PAPER)
    return {
        "hus-1": one(
            1, "Active vertices in each iteration (the paper: edges)",
            "all in PageRank, few in most iterations of BFS and WCC.",
            lambda plan: [case(plan, name) for name in ("bfs", "wcc", "pagerank")], draw_active),
        "hus-9": one(
            9, "Push, pull, and the choice between them: time and what is read",
            "the hybrid is always the fastest; push reads least, pull most.", model_cases, draw_models),
        "hus-11": one(
            11, "Each iteration's time by model",
            "the choice is right in all of 60 iterations but 2.",
            lambda plan: [case(plan, name, model=model, variation=model)
                          for name in ("bfs", "wcc") for model in MODELS], draw_iterations),
        "hus-table-3": one(
            "table 3", "Time beside GridGraph and GraphChi",
            "12.3 and 23.9 times as fast for traversals, 3.9 times as GridGraph for PageRank.",
            beside_peers, draw_seconds),
        "hus-16": one(
            16, "What is read, beside GridGraph and GraphChi",
            "a twentieth of GridGraph's for traversals, a fourth for PageRank.",
            beside_peers, draw_traffic),
        "hus-18": one(
            18, "Speed by number of threads", "threads matter where the graph fits into memory.",
            thread_cases, draw_threads),
    }
