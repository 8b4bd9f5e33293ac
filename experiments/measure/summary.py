"""The results of comparisons: ratios of medians, by case and variant."""

import statistics

from experiments.measure import samples
from experiments.measure.tables import Table
from experiments.workloads.variants import BASELINE, CEILING, COMPUTE_ONLY

LABELS = {"engine": "engine", "algorithm": "algorithm", "graph": "graph", "threads": "threads",
          "device_count": "devices", "stripe_depth": "depth"}
CAPTION = ("ratio of medians (min–max of the rounds); ?: the rounds differ widely; "
           "≥, ≤: a run that took too long was ended")


def labels(sample: dict) -> dict:
    return {label: sample[label] for label in LABELS}


def cases(found: list[dict]) -> list[dict]:
    """The labels of each, in order."""
    different = []
    for sample in found:
        if sample["variant"] != CEILING and labels(sample) not in different:
            different.append(labels(sample))
    return different


def compares(found: list[dict]) -> bool:
    """Are these samples of a comparison? (Not of limits, imports, memory, request sizes.)"""
    return bool(found) and all("variant" in sample and "device_count" in sample for sample in found)


def variants(found: list[dict]) -> list[str]:
    return [variant for variant in dict.fromkeys(sample["variant"] for sample in found) if variant != CEILING]


def select(found: list[dict], **where) -> list[dict]:
    return [sample for sample in found if samples.matches(sample, where)]


def median_min_max(values: list[float], by: float = 1) -> tuple | None:
    """Median, min and max; None if there are no values."""
    if not values:
        return None
    return tuple(value / by for value in (statistics.median(values), min(values), max(values)))


def bar_value(found: dict | None) -> tuple | None:
    """A ratio, as drawing.bars() takes it: median, min, max."""
    return (found["ratio"], found["min"], found["max"]) if found else None


def device_total(sample: dict, what: str) -> int:
    return sum(counters[what] for counters in sample["device_counters"])


def seconds(found: list[dict], case: dict, variant: str) -> list[float]:
    return samples.series(found, "seconds", variant=variant, **case)


def was_cut_short(found: list[dict]) -> bool:
    """Whether a run was ended early: it would have taken longer."""
    return any(sample.get("unfinished") for sample in found)


def ratio(above: list[dict], below: list[dict], of_sample) -> dict:
    """The ratio of two variants' values, with a bound's sign if a run was ended early."""
    found = samples.ratio(list(map(of_sample, above)), list(map(of_sample, below)))
    bound = {(True, False): "≥", (False, True): "≤", (True, True): "?"}.get(
        (was_cut_short(above), was_cut_short(below)))
    return {**found, "bound": bound} if bound else found


def sample_seconds(sample: dict) -> float:
    return sample["seconds"]


def speed_up(found: list[dict], case: dict, variant: str, of: str = BASELINE) -> dict | None:
    """The speed-up of a variant over another; None if one of them was not measured."""
    slow, fast = select(found, variant=of, **case), select(found, variant=variant, **case)
    return ratio(slow, fast, sample_seconds) if slow and fast else None


def delivered(sample: dict) -> int:
    """Bytes that reached the program, of those that count them: devices may read twice what it
    asked for once. Of an engine that does not, what the devices read."""
    return sample.get("bytes", device_total(sample, "bytes_read"))


def bandwidth(found: list[dict], case: dict, variant: str) -> list[float]:
    """Bytes delivered a second. (A program that ended before it asked its devices for anything has
    none.)"""
    return [delivered(sample) / sample["seconds"] for sample in select(found, variant=variant, **case)]


def ceiling(found: list[dict], case: dict) -> list[float]:
    """fio's bandwidth in each round, its ramp included. fio runs once each time that files are made, so
    twice for the same files in other memory."""
    said = {}
    for sample in select(found, variant=CEILING, graph=case["graph"], device_count=case["device_count"]):
        said.setdefault(sample["round"], []).append(sample["bytes_per_second"])
    return [statistics.median(of_round) for of_round in said.values()]


def share(found: list[dict], case: dict, variant: str) -> dict | None:
    return samples.ratio(bandwidth(found, case, variant), ceiling(found, case))


def device_share(found: list[dict], case: dict, variant: str) -> dict:
    """The share of the ceiling that the devices read, needed or not."""
    return samples.ratio([device_total(sample, "bytes_read") / sample["seconds"]
                          for sample in select(found, variant=variant, **case)], ceiling(found, case))


def device_ios(found: list[dict], case: dict, variant: str) -> list[float]:
    """Reads and writes that reached a device after merging, of the average device."""
    return [(device_total(sample, "reads") + device_total(sample, "writes")) / case["device_count"]
            for sample in select(found, variant=variant, **case)]


def table(found: list[dict]) -> Table:
    """A row for each variant of each case. The title has what all cases have in common."""
    all_cases = cases(found)
    differing = [label for label in LABELS if len({case[label] for case in all_cases}) > 1]
    common = [f"{LABELS[label]} {all_cases[0][label]}" for label in LABELS
              if label not in differing and all_cases[0][label] is not None]
    shown = Table(["variant", *(LABELS[label] for label in differing), "seconds", "speed-up", "MB/s",
                   "share of ceiling", "reads/device", "KiB/read", "MB/device", "MB written",
                   "CPU s"], title=", ".join(common), caption=CAPTION)
    for case in all_cases:
        of_case = [str(case[label]) for label in differing]
        for variant in variants(select(found, **case)):
            shown.add(variant, *of_case, *cells(found, case, variant))
        speed = statistics.median(ceiling(found, case)) / 1e6
        shown.add(CEILING, *of_case, "", "", f"{speed:.1f}", *[""] * 6)
    return shown


def cells(found: list[dict], case: dict, variant: str) -> list[str]:
    ours = select(found, variant=variant, **case)
    took = f"{'≥ ' * was_cut_short(ours)}{statistics.median(seconds(found, case, variant)):.2f}"
    if variant == COMPUTE_ONLY:
        return [took, *[""] * 8]
    faster = None if variant == BASELINE else speed_up(found, case, variant)

    def middle(what):
        return statistics.median(device_total(sample, what) for sample in ours)

    cpu = [sample["cpu_seconds"] for sample in ours if "cpu_seconds" in sample]
    return [took, samples.format_ratio(faster) if faster else "",
            f"{statistics.median(bandwidth(found, case, variant)) / 1e6:.1f}",
            samples.format_ratio(share(found, case, variant)),
            f"{middle('reads') / case['device_count']:.0f}",
            f"{middle('bytes_read') / max(1, middle('reads')) / 1024:.0f}",
            f"{middle('bytes_read') / case['device_count'] / 1e6:.1f}",
            f"{middle('bytes_written') / 1e6:.1f}",
            f"{statistics.median(cpu):.2f}" if cpu else ""]
