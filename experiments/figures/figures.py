"""CSMqGraph's figures, GraphM's, and one of our own: which cases each of them measures, and how its
samples are drawn.

A drawing sees samples only, so that what was measured once can be drawn again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, product

from experiments.figures import drawing, graphm, last_level_cache
from experiments.figures.flashgraph import flashgraph_figures
from experiments.figures.hus_graph import hus_figures
from experiments.figures.maiter_store import maiter_figures
from experiments.measure import samples, summary
from experiments.measure.comparison import Case
from experiments.measure.plan import DEVICES_OF_SWEEPS, Plan
from experiments.measure.sizes import SIZE
from experiments.measure.summary import bar_value, median_min_max
from experiments.measure.timeline import COLUMNS
from experiments.workloads.variants import BASELINE, MOUNTED, PARTS, PRELOADED, VARIANTS, preloaded_without

DEPTHS = ("512K", "1M", "3M", "8M", "12M", "16M", "24M", "48M")
THREADS = (1, 2, 4, 6, 8)
DEPTH_FINE = "64K"  # as btrfs stripes
ABLATION_DEVICES_MAX = 4
IO_SIZES_MIB = (0, 0.25, 1, 4, 8, 12, 16, 20, 24)
STEP_SECONDS_MIN = 0.5  # of a curve over time: shorter ones show single I/Os


@dataclass(frozen=True)
class Figure:
    number: int | str | None  # in the paper, if there is one; as words, where it is no single figure
    title: str
    published: str  # what its text says of it; of ours, what is shown
    cases: Callable[[Plan], list[Case]]
    draw: Callable[[list[dict]], object]
    paper: str = "CSMqGraph"


# --- what is drawn of samples ---

def per_device(found, case, variant) -> tuple:
    """MB/s."""
    return median_min_max(summary.bandwidth(found, case, variant), 1e6 * case["device_count"])


def draw_bandwidth(found, by: str, axis: str):
    """Throughput of the average device as bars, and as share of its ceiling."""
    cases = summary.cases(found)
    figure, (above, below) = drawing.panels(2)
    names = [str(case[by]) for case in cases]
    variants = summary.variants(found)
    drawing.bars(above, names, {variant: [per_device(found, case, variant) for case in cases]
                                for variant in variants})
    drawing.bars(below, names, {variant: [bar_value(summary.share(found, case, variant))
                                      for case in cases] for variant in variants})
    above.set_ylabel("MB/s of each device")
    below.set(ylabel="MB/s over the devices' ceiling", xlabel=axis, ylim=(0, 1.05))
    drawing.legend(above)
    return figure


def draw_speed_up(found):
    """A panel for each graph and variant; for each algorithm a bar for each number of devices."""
    cases = summary.cases(found)
    graphs = dict.fromkeys(case["graph"].removesuffix(", weighted") for case in cases)
    variants = [variant for variant in summary.variants(found) if variant != BASELINE]
    algorithms = list(dict.fromkeys(case["algorithm"] for case in cases))
    counts = sorted({case["device_count"] for case in cases})
    figure, axes = drawing.panels(len(graphs) * len(variants))
    for panel, (graph, variant) in zip(axes, product(graphs, variants)):
        def one(algorithm, count):
            case = next((case for case in cases if case["device_count"] == count and
                         case["graph"].removesuffix(", weighted") == graph and
                         case["algorithm"] == algorithm), None)
            return case and bar_value(summary.speed_up(found, case, variant))
        drawing.bars(panel, algorithms, {f"{count} devices": [one(algorithm, count)
                                                              for algorithm in algorithms]
                                         for count in counts})
        panel.axhline(1, color=drawing.INK, linewidth=0.8, linestyle=":")
        panel.set(ylabel=f"{variant}, times as fast as the\n{BASELINE}", xlabel=graph)
        drawing.legend(panel)
    return figure


def steps(sample: dict, what: str) -> tuple[list[float], list[float]]:
    """The times between which, and how much a second there."""
    column = COLUMNS.index(what)
    rows: list[list[float]] = [[0] * len(COLUMNS)]
    for row in sample["timeline"]:
        if row[0] - rows[-1][0] >= STEP_SECONDS_MIN:
            rows.append(row)
    if len(rows) == 1:  # over sooner
        rows.append(sample["timeline"][-1])
    edges = [row[0] for row in rows]
    return edges, [(b[column] - a[column]) / (b[0] - a[0]) for a, b in pairwise(rows)]


def draw_over_time(found, what: str, axis: str, by: float, total: str):
    """The median round of each variant, because no average of rounds is a round that happened."""
    (case,) = summary.cases(found)
    figure, (axes,) = drawing.panels(1)
    for number, variant in enumerate(summary.variants(found)):
        ours = sorted(summary.select(found, variant=variant), key=lambda sample: sample["seconds"])
        sample = ours[len(ours) // 2]
        edges, much = steps(sample, what)
        all_of_it = summary.device_total(sample, what) / case["device_count"]
        axes.stairs([value / by / case["device_count"] for value in much], edges,
                    color=drawing.COLOURS[number % len(drawing.COLOURS)], linewidth=1.5,
                    label=f"{variant} ({total.format(all_of_it, all_of_it / sample['seconds'] / by)})")
    axes.set(xlabel="seconds", ylabel=axis, xlim=(0, None), ylim=(0, None))
    drawing.legend(axes)
    return figure


def draw_promotion(found):
    cases = summary.cases(found)
    figure, (above, below) = drawing.panels(2)
    names = [str(case["device_count"]) for case in cases]
    variants = summary.variants(found)
    drawing.bars(above, names, {variant: [per_device(found, case, variant) for case in cases]
                                for variant in variants})

    def promotion(case, variant):
        ratio = bar_value(samples.ratio(summary.bandwidth(found, case, variant),
                                       summary.bandwidth(found, case, BASELINE)))
        return ratio and tuple(100 * (value - 1) for value in ratio)

    for number, variant in enumerate(variants):
        if variant != BASELINE:
            drawing.line(below, number, variant, [case["device_count"] for case in cases],
                         [promotion(case, variant) for case in cases])
    above.set_ylabel("MB/s of each device")
    below.axhline(0, color=drawing.INK, linewidth=0.8, linestyle=":")
    below.set(ylabel=f"% more MB/s than the\n{BASELINE}", xlabel="devices",
              xticks=[case["device_count"] for case in cases])
    drawing.legend(above)
    return figure


def draw_scaling(found):
    """Time relative to that of the fewest devices; a panel for each algorithm."""
    cases = summary.cases(found)
    algorithms = list(dict.fromkeys(case["algorithm"] for case in cases))
    figure, axes = drawing.panels(len(algorithms))
    for panel, algorithm in zip(axes, algorithms):
        ours = sorted((case for case in cases if case["algorithm"] == algorithm),
                      key=lambda case: case["device_count"])
        counts = [case["device_count"] for case in ours]
        for number, variant in enumerate(summary.variants(found)):
            fewest = summary.seconds(found, ours[0], variant)
            drawing.line(panel, number, variant, counts,
                         [bar_value(samples.ratio(summary.seconds(found, case, variant), fewest))
                          for case in ours])
        panel.plot(counts, [counts[0] / count for count in counts], color=drawing.INK,
                   linestyle=":", label="linear")
        panel.set(ylabel=f"time of {algorithm} over\nthat on {counts[0]} devices", xlabel="devices", xticks=counts,
                  ylim=(0, None))
        drawing.legend(panel)
    return figure


def draw_times(found, by: str, axis: str, place, unaffected: str | None = None):
    """Execution time by a setting. The variant that the setting does not affect was measured once."""
    cases = sorted(summary.cases(found), key=lambda case: place(case[by]))
    figure, (axes,) = drawing.panels(1)
    ticks = range(len(cases))
    for number, variant in enumerate(summary.variants(found)):
        values = [median_min_max(summary.seconds(found, case, variant)) for case in cases]
        if variant == unaffected:
            values = [next(filter(None, values), None)] * len(cases)
        drawing.line(axes, number, variant, ticks, values)
    axes.set(xlabel=axis, ylabel="execution time (s)", ylim=(0, None))
    axes.set_xticks(ticks, [str(case[by]) for case in cases])
    drawing.legend(axes)
    return figure


def beside_best(case: Case) -> Case:
    """CSMqGraph with the first of its numbers of workers: more of them only take longer."""
    return replace(case, rivals=case.rivals[:1])


def depth_cases(plan: Plan) -> list[Case]:
    """The OS striped volume knows nothing of them."""
    own = plan.depth if plan.depth in DEPTHS else DEPTHS[0]
    cases = [plan.grid("pagerank", DEVICES_OF_SWEEPS, depth,
                       VARIANTS if depth == own else (MOUNTED, PRELOADED)) for depth in DEPTHS]
    return list(map(beside_best, cases))


def only_with(part: str | None) -> str:
    """The variant with this part alone."""
    return preloaded_without(*(each for each in PARTS if each != part))


def ablation_cases(plan: Plan) -> list[Case]:
    count = min(ABLATION_DEVICES_MAX, plan.max_devices)
    without = [preloaded_without(part) for part in PARTS]
    coarse = plan.grid("pagerank", count, variants=(BASELINE, PRELOADED, *without, only_with(None)))
    fine = plan.grid("pagerank", count, DEPTH_FINE,
                     variants=(PRELOADED, only_with(None), *map(only_with, PARTS)))
    return [replace(case, rivals=()) for case in [coarse, fine]]


def draw_ablation(found):
    """Speed-ups over the OS striped volume: with all parts but one, and with one alone."""
    fine, coarse = sorted(summary.cases(found), key=lambda case: case["stripe_depth"] != DEPTH_FINE)
    slow = summary.seconds(found, coarse, BASELINE)

    def speed_up(case, variant):
        return bar_value(samples.ratio(slow, summary.seconds(found, case, variant)))

    figure, (above, below) = drawing.panels(2)
    drawing.bars(above, ["nothing", "striping", *PARTS], {"": [
        speed_up(coarse, PRELOADED), speed_up(fine, PRELOADED),
        *(speed_up(coarse, preloaded_without(part)) for part in PARTS)]})
    drawing.bars(below, ["nothing", "striping", *PARTS], {"": [
        speed_up(fine, only_with(None)), speed_up(coarse, only_with(None)),
        *(speed_up(fine, only_with(part)) for part in PARTS)]})
    for panel, axis in [(above, f"{PRELOADED}, left out"), (below, f"{PRELOADED}, with it alone")]:
        panel.axhline(1, color=drawing.INK, linewidth=0.8, linestyle=":")
        panel.set(xlabel=axis, ylabel=f"times as fast as the\n{BASELINE}")
    return figure


def draw_request_sizes(found):
    figure, axes = drawing.panels(len(found))
    for panel, sample in zip(axes, found):
        sizes = sample["request_sizes"]
        limits = [limit * 2**20 for limit in IO_SIZES_MIB]
        shares = [100 * sum(low < size <= high for size in sizes) / len(sizes)
                  for low, high in pairwise(limits)]
        names = [f"{low:g}–{high:g}" for low, high in pairwise(IO_SIZES_MIB)]
        drawing.bars(panel, names, {"": [(share, share, share) for share in shares]})
        panel.set(xlabel=f"MiB that a read of {sample['graph']} asks for, "
                         f"{sample['partitions']} × {sample['partitions']} partitions",
                  ylabel="% of all reads")
    return figure


# --- which there are ---

REQUEST_SIZES = "request-sizes"
SCHEDULING = "jobs-scheduling"
GRAPHM = "GraphM"

FLASHGRAPH = flashgraph_figures(Figure)
HUS = hus_figures(Figure)
MAITER = maiter_figures(Figure)
JOBS = {
    "jobs-time": Figure(
        9, "Execution time of jobs by scheme",
        "in memory 2.6 times as fast as one after the other and 1.73 times as all at once, out of "
        "core 11.6 and 13 times.",
        graphm.cases, graphm.draw_time, GRAPHM),
    "jobs-breakdown": Figure(
        10, "What of that time processors and devices work",
        "for UK-union the access to data takes 11.5 times less than one after the other, 13 times "
        "less than all at once.",
        graphm.cases, graphm.draw_breakdown, GRAPHM),
    "jobs-memory": Figure(
        11, "Memory that jobs have by scheme",
        "GridGraph-M has less than all at once, as there is one copy of the graph.",
        graphm.cases, graphm.draw_memory, GRAPHM),
    "jobs-io": Figure(
        12, "Bytes that jobs read by scheme",
        "out of core (UK-union) 9.2 times less than one after the other, 10.1 times less than "
        "all at once.",
        graphm.cases, graphm.draw_bytes, GRAPHM),
    last_level_cache.NAME: Figure(
        "figures 13 and 14", "What jobs miss in the last-level cache",
        "UK-union: 45.3% in turn, 43.3% at once, 15.7% with GraphM; in turn 65% of what is swapped "
        "in at once, and with GraphM 55% of that.",
        lambda plan: [], graphm.draw_cache, GRAPHM),
    "jobs-trace": Figure(
        15, "Execution time of jobs that come as in a trace",
        "1.5 to 7.1 times the throughput of one after the other, 1.48 to 9.8 times that of all "
        "at once.",
        graphm.cases_of_trace, graphm.draw_time, GRAPHM),
    "jobs-arrivals": Figure(
        16, "Execution time of jobs by how often one is submitted",
        "the more often, the more is gained.",
        graphm.cases_by_gap, graphm.draw_sweep, GRAPHM),
    "jobs-distance": Figure(
        17, "Execution time of BFS and SSSP jobs by how near their roots are to each other",
        "the nearer, the more is gained.",
        graphm.cases_by_distance, graphm.draw_sweep, GRAPHM),
    SCHEDULING: Figure(
        18, "Execution time of jobs with and without formula 5",
        "Clueweb12 takes 72.5% of the time that it takes without.",
        graphm.cases_of_scheduling, graphm.draw_time, GRAPHM),
    "jobs-count": Figure(
        19, "Execution time of PageRank jobs by their number",
        "the more jobs, the more is gained.",
        graphm.cases_by_count, graphm.draw_sweep, GRAPHM),
    "jobs-graphchi": Figure(
        "table 4", "Execution time of GraphChi's jobs by scheme",
        "64 jobs one after the other take 6.8 times as long as with GraphM in memory (LiveJ), 12.0 "
        "times out of core (UK-union), all at once 2.3 and 3.1 times.",
        graphm.cases_of_shards, graphm.draw_time, GRAPHM),
    "jobs-cores": Figure(
        20, "Execution time of jobs by number of cores",
        "fastest on any number of cores, and most of all on many.",
        graphm.cases_by_cores, graphm.draw_sweep, GRAPHM),
}

FIGURES = {
    "bandwidth": Figure(
        1, "Average I/O throughput and bandwidth utilization by algorithm",
        "on Twitter GridGraph gets 138–156 MB/s of each disk, 66–75% of 210.",
        lambda plan: [plan.grid(name, plan.max_devices) for name in plan.algorithms()],
        lambda found: draw_bandwidth(found, "algorithm", "algorithm")),
    "bandwidth-by-devices": Figure(
        2, "Average I/O throughput and bandwidth utilization of WCC by number of devices",
        "GridGraph uses 73% of the disks' bandwidth at most, less with more disks, at "
        "least 66%.",
        lambda plan: [plan.grid("wcc", count) for count in plan.device_counts],
        lambda found: draw_bandwidth(found, "device_count", "devices")),
    REQUEST_SIZES: Figure(
        4, "I/O request size distribution",
        "Twitter: 92% larger than 1 MB, 11 MB on average; Subdomain: 99%, 7 MB.",
        lambda plan: [], draw_request_sizes),
    "speed-up": Figure(
        12, "Speed-up over the OS striped volume by algorithm, graph and number of devices",
        "CSMqGraph over GridGraph: wcc up to 1.40, bfs 1.28, pagerank 1.24, spmv 1.25.",
        lambda plan: [plan.grid(name, count, of=graph) for name in plan.algorithms()
                      for count in plan.device_counts for graph in range(len(plan.grids()))],
        draw_speed_up),
    "device-ios": Figure(
        13, "I/Os of the average device while WCC runs",
        "on two disks GridGraph makes 577 K I/Os a disk, CSMqGraph 419 K.",
        lambda plan: [plan.grid("wcc", DEVICES_OF_SWEEPS)],
        lambda found: draw_over_time(found, "reads", "I/Os a second of each device", 1,
                                     "{:.0f} in all")),
    "throughput": Figure(
        14, "Throughput of the average device while WCC runs",
        "193.5 MB/s a disk with CSMqGraph, 143.8 with GridGraph.",
        lambda plan: [plan.grid("wcc", plan.max_devices)],
        lambda found: draw_over_time(found, "bytes_read", "MB/s of each device", 1e6,
                                     "{1:.1f} on average")),
    "throughput-by-devices": Figure(
        15, "Average I/O throughput and promotion of WCC by number of devices",
        "about 190.9 MB/s a disk with CSMqGraph, 22.0% to 38.7% more than GridGraph, "
        "more with more disks.",
        lambda plan: [plan.grid("wcc", count) for count in plan.device_counts], draw_promotion),
    "scaling": Figure(
        16, "Execution time by number of devices, relative to the fewest",
        "almost linear.",
        lambda plan: [plan.grid(name, count) for name in ["wcc", "pagerank"]
                      for count in plan.device_counts], draw_scaling),
    "stripe-depth": Figure(
        17, "Execution time of PageRank by stripe depth",
        "12 MB is best, between the mean request (11 MB) and the longest.",
        depth_cases,
        lambda found: draw_times(found, "stripe_depth", "stripe depth",
                                 lambda depth: SIZE.convert(depth, None, None), BASELINE)),
    "io-threads": Figure(
        18, "Execution time of PageRank by number of I/O threads, their buffers beside the memory",
        "on two disks six threads are enough.",
        lambda plan: [plan.grid("pagerank", DEVICES_OF_SWEEPS, threads=count)
                      for count in THREADS],
        lambda found: draw_times(found, "threads", "I/O threads of the engine", int)),
    "ablation": Figure(
        None, "PageRank without one part of Graphlane, and with one part alone",
        f"striping: in units of the depth, and without in units of {DEPTH_FINE}; lanes: a disk "
        "serves one request at a time; merging: of units that adjoin on a device; prefetch: what "
        "is expected next is begun; cache: what was read is kept; packing: in fewer "
        "bits.",
        ablation_cases, draw_ablation),
    **JOBS,
    **FLASHGRAPH,
    **HUS,
    **MAITER,
}
# Those that are measured together.
GROUPS = {"all": [name for name in FIGURES if name not in {**JOBS, **FLASHGRAPH, **HUS, **MAITER}],
          "all-jobs": list(JOBS), "all-flashgraph": list(FLASHGRAPH), "all-hus": list(HUS), "all-maiter": list(MAITER)}


def group(name: str, with_kit: bool) -> list[str]:
    """The figures of the group that can be measured here: one needs the kit, one a cache counter."""
    there = {SCHEDULING: with_kit, last_level_cache.NAME: last_level_cache.can_count()}
    return [each for each in GROUPS[name] if there.get(each, True)]


def note(figure: Figure) -> str:
    """The note below the figure in a report."""
    if figure.number is None:
        return f"Shown: {figure.published}"
    where = f"figure {figure.number}" if isinstance(figure.number, int) else figure.number
    return f"Published ({figure.paper}, {where}): {figure.published}"


def draw(recorded: dict):
    return FIGURES[recorded["name"]].draw(recorded["samples"])
