"""HUS-Graph's figures 1, 9 to 19 and table 3, of `graphlane algo` on dual blocks (its engine hybrid).

Xu, Wang, Jiang, Cheng, Feng, Zhang: A Hybrid Update Strategy for I/O-Efficient Out-of-Core Graph
Processing (TPDS 2020). 16 cores, 16 GB, a disk of 7200 rpm; graphs of 69 million to 5.5 billion edges.
"""

from dataclasses import replace

from experiments.figures import drawing
from experiments.figures.stored import draw_by_variant, figures_of_paper, ratio, variation_of, variations
from experiments.measure import summary
from experiments.measure.comparison import Case
from experiments.measure.stored_plan import algo_case, peer_variants
from experiments.measure.summary import median_min_max
from experiments.workloads.stored.graph import Stored
from experiments.workloads.stored.workload import compute_seconds
from experiments.workloads.variants import BASELINE, IN_MEMORY, VOLUME

PAPER = "HUS-Graph"
DUAL = Stored("dual", "varint")  # as users get it
RAW = Stored("dual", "raw", ("-p", "4"))
REFERENCE = Stored("dual", "reference", ("-p", "4"))
FORMS = (RAW, Stored("dual", "varint", ("-p", "4")), REFERENCE)
UNDIRECTED = tuple(Stored("dual", form.codec, (*form.words, "--undirected")) for form in FORMS)
MODELS = ("hybrid", "push", "pull")
TRAVERSALS = ("bfs", "wcc", "sssp")
ALGORITHMS = (*TRAVERSALS, "pagerank")
MEMORY_PART = 10  # of 8 bytes an edge
THREADS = (1, 2, 4)
UPDATES = ("immediate", "accumulated")
PEERS = ("GridGraph", "GraphChi", "Lumos")


def case(plan, algorithm: str, *, model="hybrid", variants=(VOLUME,), variation="", threads=None, stored=DUAL,
         words=()) -> Case:
    cache = max(4 << 20, plan.source.bytes() // MEMORY_PART)
    return algo_case(plan, algorithm, stored, (stored,), variation=variation, variants=variants, threads=threads,
                     words=("--cache", str(cache), "--model", model, "--explain", *words))


def model_cases(plan) -> list[Case]:
    return [case(plan, algorithm, model=model, variation=model)
            for algorithm in ALGORITHMS for model in MODELS]


def beside_peers(plan) -> list[Case]:
    return [case(plan, algorithm, variants=(VOLUME, BASELINE, *peer_variants(plan, *PEERS)))
            for algorithm in ALGORITHMS]


def form_cases(plan, forms, algorithm="bfs", variants=(VOLUME,)) -> list[Case]:
    return [case(plan, algorithm, stored=form, variation=form.codec, variants=variants) for form in forms]


def form_cases_and_peers(plan) -> list[Case]:
    first, *others = form_cases(plan, FORMS, "wcc")
    return [replace(first, variants=(VOLUME, *peer_variants(plan, *PEERS))), *others]


def update_cases(plan) -> list[Case]:
    return [case(plan, algorithm, variation=updates, words=("--updates", updates))
            for algorithm in TRAVERSALS for updates in UPDATES]


def device_cases(plan) -> list[Case]:
    return [case(plan, algorithm, variants=(VOLUME, *peer_variants(plan, *PEERS))) for algorithm in ("wcc", "sssp")]


def thread_cases(plan) -> list[Case]:
    return [case(plan, algorithm, threads=count) for algorithm in ("bfs", "pagerank") for count in THREADS]


def of_models(found, value, models=MODELS):
    """The value of a sample for each algorithm and model, or what else is tried."""
    return {model: [median_min_max([value(sample) for one in cases if variation_of(one) == model
                            for sample in summary.select(found, variant=VOLUME, **one)])
                    for cases in variations(found).values()] for model in models}


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


def draw_push_beside_hybrid(found):
    """How many times as fast as pushing alone the choice is."""
    figure, (axes,) = drawing.panels(1)
    groups = variations(found)
    by_model = {name: {variation_of(one): summary.select(found, variant=VOLUME, **one) for one in cases}
                for name, cases in groups.items()}
    drawing.bars(axes, list(groups), {"": [ratio(models["push"], models["hybrid"]) for models in by_model.values()]})
    axes.axhline(1, color=drawing.INK, linewidth=0.8, linestyle=":")
    axes.set(ylabel="speed, relative to push", ylim=(0, None))
    return figure


def forms(found) -> dict[str, list[dict]]:
    """The samples of each codec, and of each peer."""
    by_name = {}
    for one in summary.cases(found):
        for variant in summary.variants(found):
            if variant != IN_MEMORY and (those := summary.select(found, variant=variant, **one)):
                by_name[variation_of(one) if variant == VOLUME else variant] = those
    return by_name


def bars_of_forms(axes, found, value, label: str) -> None:
    by_name = forms(found)
    drawing.bars(axes, list(by_name), {"": [median_min_max([value(one) for one in those]) for those in by_name.values()]})
    axes.set(ylabel=label, ylim=(0, None))


def mib_stored(sample: dict) -> float:
    return sample.get("stored_bytes", 0) / 2**20


def draw_sizes(found):
    figure, (axes,) = drawing.panels(1)
    bars_of_forms(axes, found, mib_stored, "MiB stored")
    edges = next((sample["edges_bytes"] for sample in found if "edges_bytes" in sample), 0)
    axes.axhline(edges / 2**20, color=drawing.INK, linewidth=0.8, linestyle=":", label="pairs of 32 bits")
    drawing.legend(axes)
    return figure


def draw_sizes_and_seconds(found):
    figure, (above, below) = drawing.panels(2)
    bars_of_forms(above, found, mib_stored, "MiB stored")
    bars_of_forms(below, found, compute_seconds, "seconds of bfs")
    return figure


def draw_building(found):
    figure, (axes,) = drawing.panels(1)
    bars_of_forms(axes, found, lambda sample: sample.get("build_seconds", 0), "seconds to build")
    return figure


def draw_overheads(found):
    """Building by codec; and what PageRank takes from memory, where all that codecs differ in is decoding."""
    figure, (above, below) = drawing.panels(2)
    bars_of_forms(above, found, lambda sample: sample.get("build_seconds", 0), "seconds to build")
    cases = summary.cases(found)
    drawing.bars(below, [variation_of(one) for one in cases], {
        name: [median_min_max([compute_seconds(sample) for sample in summary.select(found, variant=variant, **one)])
               for one in cases] for variant, name in [(VOLUME, "from the devices"), (IN_MEMORY, "from memory")]})
    below.set(ylabel="seconds of pagerank", ylim=(0, None))
    drawing.legend(below)
    return figure


def draw_updates(found):
    figure, (above, below) = drawing.panels(2)
    names = list(variations(found))
    drawing.bars(above, names, of_models(found, compute_seconds, UPDATES))
    drawing.bars(below, names, of_models(found, lambda sample: sample.get("iterations", 0), UPDATES))
    above.set(ylabel="seconds", ylim=(0, None))
    below.set(ylabel="iterations", ylim=(0, None))
    drawing.legend(above)
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
        "hus-10": one(
            10, "The choice beside pushing alone (which reads adjacent lists together, as the paper's Adaptive-ROP does)",
            "2.6 times as fast for PageRank, 1.6 for BFS, 1.8 for WCC.",
            lambda plan: [case(plan, name, model=model, variation=model)
                          for name in ("bfs", "wcc", "pagerank") for model in ("hybrid", "push")],
            draw_push_beside_hybrid),
        "hus-12": one(
            12, "What is stored, by codec, beside peers",
            "71% less than without compression; GraphChi stores 1.5 and GridGraph 2.8 times as much.",
            form_cases_and_peers, draw_sizes),
        "hus-13": one(
            13, "An undirected graph: what is stored, and time, by codec",
            "storing an edge once halves the size; codecs also spare time.",
            lambda plan: form_cases(plan, UNDIRECTED), draw_sizes_and_seconds),
        "hus-14": one(
            14, "What codecs cost: building, and decoding",
            "building takes 4.1 to 11.6% longer, decoding 4.2 to 31.7% of PageRank.",
            lambda plan: form_cases(plan, FORMS, "pagerank", (VOLUME, IN_MEMORY)), draw_overheads),
        "hus-15": one(
            15, "Values that pass on at once beside accumulation: time and iterations",
            "up to 39% faster, by fewer iterations.", update_cases, draw_updates),
        "hus-17": one(
            17, "Time to build, by codec, beside peers",
            "longer than GraphChi, GridGraph and X-Stream: there are two copies of the edges.",
            form_cases_and_peers, draw_building),
        "hus-19": one(
            19, "Time on these devices, to be drawn for each kind of devices",
            "SSDs are 1.9 times as fast as a disk; 1.4 for GraphChi, 1.6 for GridGraph.",
            device_cases, draw_seconds),
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
