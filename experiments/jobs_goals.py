"""The measurements for the goals of concurrent jobs, and the values of their samples: GridGraphs on one
grid, in turn and at once, unmodified and by adapters/share.

Two disks of `check` are, for two cores, twice GraphM's one disk for sixteen. Out of core in turn, the
memory is a fifth less than the edges, as GraphM's 32 GB for 40. That suffices for sixteen jobs by
adapters/share, but not for four GridGraphs. At once it has room for sixteen GridGraphs, with buffers of
48 MiB each, and for a tenth of the edges. All jobs come within the first two sweeps.
"""

from collections.abc import Callable
from dataclasses import replace

from experiments import comparison, fio, samples, summary
from experiments.comparison import IN_TURN, KIT, MAPPED, PRELOADED, SHARED, STRIPED, Case
from experiments.devices import Devices
from experiments.jobs import GAP
from experiments.plan import THREADS_IN_MEMORY, Plan
from experiments.workspace import StepFailed

DEVICES = 2
MOST_SWEEPS = "pagerank"
# Edges of 252 MB, and few vertices: what sixteen jobs keep of them is soon more than the edges. Its
# blocks are read by 16 MiB, as GridGraph reads graphs that are larger than memory (CSMqGraph's
# figure 4: 11 MB on average).
SCALE, DENSITY, PARTITIONS = 17, 240, 4
IN_TURN_MEMORY = 192 << 20
AT_ONCE_MEMORY = 890 << 20
BUFFERS = THREADS_IN_MEMORY * fio.LARGE  # of a job


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


def by_itself(plan: Plan, ways: Callable[[str], tuple]) -> list[Case]:
    """Each algorithm of the jobs' mix."""
    return [sized(plan, 1, there(plan, ways(name)), algorithms=(name,))
            for name in plan.jobs(1, ()).workload.algorithms]


def measured_in(memory: int, devices: Devices, cases: list[Case], how: dict) -> list[dict]:
    return comparison.measure(devices, [case for case in cases if case.ways],
                              **{**how, "memory_bytes": how["memory_bytes"] and memory})


def in_turn(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """And by the kit submitted at once, and by themselves."""
    def alone(name):
        return (PRELOADED, SHARED, KIT) if name == MOST_SWEEPS else (KIT,)
    cases = [sized(plan, plan.job_count, there(plan, (IN_TURN, KIT))),
             sized(plan, plan.job_count, there(plan, (KIT,)), gap=0),
             *by_itself(plan, alone)]
    return measured_in(IN_TURN_MEMORY, devices, cases, how)


def at_once(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    cases = [sized(plan, plan.job_count, there(plan, (STRIPED, SHARED, MAPPED, KIT)))]
    return measured_in(AT_ONCE_MEMORY, devices, cases, how)


def together(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """All submitted at once, and by themselves. Where jobs have copies in their buffers, one by
    itself has no more room for the edges than all of them leave."""
    left = AT_ONCE_MEMORY - (plan.job_count - 1) * BUFFERS
    if left < BUFFERS:
        raise StepFailed(f"{plan.job_count} jobs' buffers do not fit into {AT_ONCE_MEMORY >> 20}M: "
                         f"give --jobs {AT_ONCE_MEMORY // BUFFERS} or fewer")
    several = sized(plan, plan.job_count, (SHARED, MAPPED), gap=0)
    return [*measured_in(AT_ONCE_MEMORY, devices, [several], how),
            *measured_in(left, devices,
                         by_itself(plan, lambda _: (SHARED,)), how),
            *measured_in(AT_ONCE_MEMORY, devices, by_itself(plan, lambda _: (MAPPED,)), how)]


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
    """The time alone of the job with the most sweeps, by its time alone without adapters/share."""
    def value(found: list[dict]) -> dict | None:
        for case in summary.cases(summary.only(found, way=PRELOADED)):
            if ours := summary.only(found, way=way, **case):
                return {**summary.ratio(ours, summary.only(found, way=PRELOADED, **case),
                                        summary.of_seconds), "case": case}
        return None
    return value


def bytes_by_most(way: str):
    """The bytes that devices read for all jobs, by those for the job that alone reads most. Uses samples
    of jobs that began together, if there are any, because a later job needs all of its sweeps from then on."""
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
        ratio = {**samples.ratio(read, most), "case": summary.labels(several[0])}
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
    """The largest number of copies of the edges in the memory that jobs share."""
    of_samples = [max(job["buffer_bytes_max"] for job in sample["jobs"]) / sample["edge_bytes"]
                  for sample in told(found)]
    if not of_samples:
        return None
    middle, least, most = summary.spread(of_samples)
    return {"ratio": middle, "least": least, "most": most}
