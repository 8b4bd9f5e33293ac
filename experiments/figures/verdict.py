"""The beginning of a report: one sentence, a bar chart of each comparison's speed-up over the OS striped volume, and
what the words mean."""

import statistics
from dataclasses import dataclass

from experiments.figures import drawing
from experiments.measure import summary
from experiments.workloads.variants import (
    BASELINE,
    CEILING,
    COMPUTE_ONLY,
    IN_TURN,
    KIT,
    MAPPED,
    MOUNTED,
    PRELOADED,
    SHARED,
    is_ours,
)

# Ratios closer to 1 than this are no difference.
CLOSE = 0.03
# More cases than this are drawn as one bar of each algorithm.
CASES_MAX = 16
QUICK = "A quick run: small graphs, one round. It shows that everything works, and is no measurement."

WORDS = {
    "variant": "how a program gets at the graph's files. The same program and files, in turns.",
    BASELINE: "btrfs raid0 over the same devices: what the system offers without Graphlane.",
    MOUNTED: "through Graphlane's filesystem: no program has to know.",
    PRELOADED: "with Graphlane's library in the program (LD_PRELOAD).",
    SHARED: "several programs that share what they read.",
    MAPPED: "the same, shown in their buffers instead of copied.",
    KIT: "programs that were compiled against Graphlane's share kit.",
    IN_TURN: "several programs, one after the other.",
    COMPUTE_ONLY: "the same program with its graph in memory: no variant can be faster.",
    CEILING: "what the devices deliver at most, as fio measures it in the same round.",
    "share of ceiling": "bytes a second that the program gets, over the ceiling.",
    "speed-up": f"time on the {BASELINE} over the time of this variant: above 1 is faster.",
    "depth": "stripe depth: so many bytes lie on one device before the next one's begin.",
    "dilated": "devices are slowed down so many times, and so stand to this machine's few cores as real ones to a "
               "server's.",
    "?": "the rounds differ by more than a quarter: measure again, with less beside it.",
}


@dataclass(frozen=True)
class Comparison:
    case: dict
    variant: str
    on: str
    ratio: dict  # samples.ratio()

    @property
    def middle(self) -> float:
        return self.ratio["ratio"]


def comparisons(runs) -> list[Comparison]:
    """Each of our variants beside the OS striped volume, in each case once."""
    found = {}
    for run in runs:
        for case in summary.cases(run.samples):
            for variant in summary.variants(summary.select(run.samples, **case)):
                ratio = is_ours(variant) and summary.speed_up(run.samples, case, variant)
                if ratio:
                    found.setdefault((*case.values(), variant, run.on), Comparison(case, variant, run.on, ratio))
    return list(found.values())


def by_variant(found: list[Comparison]) -> dict[str, list[Comparison]]:
    return {variant: [one for one in found if one.variant == variant] for variant in dict.fromkeys(one.variant for one in found)}


def said(middle: float) -> str:
    if abs(middle - 1) <= CLOSE:
        return "as fast as"
    return f"{middle:.2f} times as fast as" if middle > 1 else f"slower ({middle:.2f} times as fast) than"


def of_variant(ours: list[Comparison]) -> tuple[str, str]:
    middles = [one.middle for one in ours]
    of_how_many = f" (median of {len(middles)} cases: {min(middles):.2f} to {max(middles):.2f})" * (len(middles) > 1)
    return said(statistics.median(middles)), of_how_many


def sentence(found: list[Comparison]) -> str:
    if not found:
        return f"Nothing here compares Graphlane with the {BASELINE}."
    best, *others = sorted(by_variant(found).items(), key=lambda item: -statistics.median(one.middle for one in item[1]))
    words, range_of = of_variant(best[1])
    text = f"{best[0].capitalize()}, Graphlane is {words} the {BASELINE}{range_of}"
    for variant, ours in others:
        words, range_of = of_variant(ours)
        text += f"; {variant}, {words.removesuffix(' as').removesuffix(' than')}{range_of}"
    return text + "."


def described(one: Comparison) -> str:
    on = f" {one.on}" if one.on else ""
    return f"{one.case['algorithm']}, {one.case['graph']}, {one.case['device_count']} ×{on}"


def draw(found: list[Comparison]):
    """A group for each case and a bar for each variant, as long as the variant is fast."""
    name = described if len({described(one) for one in found}) <= CASES_MAX else lambda one: one.case["algorithm"]
    groups = list(dict.fromkeys(map(name, found)))
    series = {}
    for variant, ours in by_variant(found).items():
        series[variant] = [middle_of([one for one in ours if name(one) == group]) for group in groups]
    return drawing.long_bars(groups, series, f"times as fast as the {BASELINE} (dotted: as fast)")


def middle_of(ours: list[Comparison]) -> tuple | None:
    if not ours:
        return None
    return (statistics.median(one.middle for one in ours), min(one.ratio["min"] for one in ours),
            max(one.ratio["max"] for one in ours))


def is_quick(recorded: dict) -> bool:
    return "--quick" in recorded["argv"]
