"""What is measured for the goals of jobs at once, and what its samples say: GridGraphs on one
grid, in turn and at once, transparently and by the kit.

Two disks of `check` are twice what two cores have of GraphM's sixteen and one disk. Out of core: in
turn the memory is a fifth less than the edges, as GraphM's 32 GB for 40, which is enough for
sixteen jobs of the kit, and not for four GridGraphs. At once it has room for sixteen of those, with
buffers of 48 MiB each, and for a tenth of the edges beside.
"""

from collections.abc import Callable
from dataclasses import replace

from experiments import comparison, samples, summary
from experiments.comparison import IN_TURN, KIT, MAPPED, PRELOADED, SHARED, STRIPED, Case
from experiments.devices import Devices
from experiments.plan import Plan

DEVICES = 2
MOST_SWEEPS = "pagerank"
# Edges of 252 MB, and few vertices: what sixteen jobs keep of them is soon more than the edges. Its
# blocks are read by 16 MiB, as GridGraph reads graphs that are larger than memory (CSMqGraph's
# figure 4: 11 MB on average).
SCALE, DENSITY, PARTITIONS = 17, 240, 4
GAP = 0.5  # seconds between two submissions, on average: all come within the first two sweeps
IN_TURN_MEMORY = 192 << 20
AT_ONCE_MEMORY = 890 << 20


def sized(plan: Plan, count: int, ways: tuple, gap: float = GAP, **how) -> Case:
    """On the goals' own graph; of the quick plan on its own."""
    case = replace(plan.jobs(count, (), gap=gap if count > 1 else 0, **how), device_count=DEVICES,
                   ways=ways)
    if plan.memory is None:
        return case
    grid = replace(case.workload.model, graph=None, scale=SCALE, density=DENSITY, scramble=True,
                   partitions=PARTITIONS)
    return replace(case, workload=replace(case.workload, model=grid))


def there(plan: Plan, ways: tuple) -> tuple:
    """In turn is only compared with the kit."""
    return ways if plan.engines.gridgraph_kit else tuple(
        way for way in ways if way not in (IN_TURN, KIT))


def measured(memory: int, several: tuple, alone: Callable[[str], tuple], submitted_at_once=()):
    """All jobs, and each algorithm of their mix by itself, in the ways that are told of them:
    none without the kit, if they are only the kit's."""
    def measure(devices: Devices, plan: Plan, how: dict) -> list[dict]:
        cases = [sized(plan, plan.job_count, there(plan, several)),
                 sized(plan, plan.job_count, there(plan, submitted_at_once), gap=0),
                 *(sized(plan, 1, there(plan, alone(name)), algorithms=(name,))
                   for name in plan.jobs(1, ()).workload.algorithms)]
        limit = how["memory_bytes"] and memory
        return comparison.measure(devices, [case for case in cases if case.ways],
                                  **{**how, "memory_bytes": limit})
    return measure


in_turn = measured(IN_TURN_MEMORY, (IN_TURN, KIT),
                   lambda name: (PRELOADED, SHARED, KIT) if name == MOST_SWEEPS else (KIT,),
                   submitted_at_once=(KIT,))
at_once = measured(AT_ONCE_MEMORY, (STRIPED, SHARED, MAPPED, KIT), lambda name: (SHARED, MAPPED))


def in_memory(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """All submitted at once, and nothing to be read."""
    ways = there(plan, (IN_TURN, STRIPED, SHARED, MAPPED, KIT))
    case = replace(sized(plan, plan.job_count, ways, gap=0), in_memory=True)
    return comparison.measure(devices, [case], **{**how, "memory_bytes": None})


# --- values ---

def by_job_count(found: list[dict], way: str) -> tuple[list[dict], list[dict]]:
    """Samples of one job, and of several."""
    ours = summary.only(found, way=way)
    return ([sample for sample in ours if len(sample["jobs"]) == 1],
            [sample for sample in ours if len(sample["jobs"]) > 1])


def over(way: str, of: str):
    """How many times as long the other way takes for all of them."""
    def value(found: list[dict]) -> dict | None:
        _, ours = by_job_count(found, way)
        both = [case for case in summary.cases(ours) if summary.only(found, way=of, **case)]
        if not both:
            return None
        (case,) = both
        ratio = summary.speed_up(found, case, way, of=of)
        return ratio and {**ratio, "case": case}
    return value


def alone_by(way: str):
    """Time of the job with the most sweeps by itself, by that without anybody to share with."""
    def value(found: list[dict]) -> dict | None:
        for case in summary.cases(summary.only(found, way=PRELOADED)):
            if ours := summary.only(found, way=way, **case):
                return summary.ratio(ours, summary.only(found, way=PRELOADED, **case),
                                     summary.of_seconds)
        return None
    return value


def bytes_by_most(way: str):
    """What devices read for all, by what they read for the one that by itself reads most. Who comes
    later needs all of his sweeps from then on, so those are asked that came together, if any did."""
    def value(found: list[dict]) -> dict | None:
        one, several = by_job_count(found, way)
        several = [sample for sample in several
                   if not any(job["submitted"] for job in sample["jobs"])] or several
        if not one or not several:
            return None
        read = [summary.of_devices(sample, "bytes_read") for sample in several]
        rounds = sorted({sample["round"] for sample in one})
        most = [max(summary.of_devices(sample, "bytes_read")
                    for sample in summary.only(one, round=number)) for number in rounds]
        ratio = samples.ratio(read, most)
        return {**ratio, "bound": "≥"} if summary.was_ended(several) else ratio
    return value


def told(found: list[dict]) -> list[dict]:
    """Samples of several jobs of the kit, if they tell of its calls."""
    _, several = by_job_count(found, KIT)
    tell = all("turns_ns" in job for sample in several for job in sample["jobs"])
    return several if tell and not summary.was_ended(several) else []


def waiting(found: list[dict]) -> dict | None:
    """For turns, by the time of all jobs, as in GraphM's §5.6; the range is that of the jobs."""
    jobs = [job for sample in told(found) for job in sample["jobs"]]
    if not jobs:
        return None
    shares = [job["turns_ns"] / 1e9 / job["seconds"] for job in jobs]
    whole = sum(job["turns_ns"] for job in jobs) / 1e9 / sum(job["seconds"] for job in jobs)
    return {"ratio": whole, "least": min(shares), "most": max(shares)}


def copies(found: list[dict]) -> dict | None:
    """Of the edges, at most, in what jobs share."""
    of_samples = [max(job["buffer_bytes_max"] for job in sample["jobs"]) / sample["edge_bytes"]
                  for sample in told(found)]
    if not of_samples:
        return None
    middle, least, most = summary.spread(of_samples)
    return {"ratio": middle, "least": least, "most": most}
