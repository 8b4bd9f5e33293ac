"""The measurements for the goals of concurrent jobs, and the values of their samples: GridGraphs on one
grid, in turn and at once, unmodified and by adapters/share.

Two disks of `check` are, for two cores, twice GraphM's one disk for sixteen. Out of core in turn, the
memory is a fifth less than the edges, as GraphM's 32 GB for 40. That suffices for sixteen jobs by
adapters/share, but not for four GridGraphs. At once it has room for sixteen GridGraphs, with buffers of
48 MiB each, and for a tenth of the edges. All jobs come within the first two sweeps.
"""

from collections.abc import Callable
from dataclasses import replace

from experiments.devices.emulated import Devices
from experiments.measure import comparison, samples, summary
from experiments.measure.comparison import Case
from experiments.measure.plan import THREADS_IN_MEMORY, Plan
from experiments.workloads import fio
from experiments.workloads.jobs import GAP
from experiments.workloads.variants import BASELINE, IN_TURN, KIT, MAPPED, PRELOADED, SHARED
from experiments.workspace import StepFailed

DEVICES = 2
LONGEST_ALGORITHM = "pagerank"
# Edges of 252 MB, and few vertices: what sixteen jobs keep of them is soon more than the edges. Its
# blocks are read by 16 MiB, as GridGraph reads graphs that are larger than memory (CSMqGraph's
# figure 4: 11 MB on average).
SCALE, DENSITY, PARTITIONS = 17, 240, 4
IN_TURN_MEMORY = 192 << 20
AT_ONCE_MEMORY = 890 << 20
BUFFERS = THREADS_IN_MEMORY * fio.LARGE  # of a job


def sized(plan: Plan, count: int, variants: tuple, gap: float = GAP, **how) -> Case:
    """On the goals' own graph; of the quick plan on its own."""
    case = replace(plan.jobs(count, (), gap=gap if count > 1 else 0, **how), device_count=DEVICES,
                   variants=variants)
    if plan.memory is None:
        return case
    grid = replace(case.workload.model, graph=None, scale=SCALE, density=DENSITY, scramble=True,
                   partitions=PARTITIONS)
    return replace(case, workload=replace(case.workload, model=grid))


def available(plan: Plan, variants: tuple) -> tuple:
    """In turn is only compared with the kit."""
    return variants if plan.engines.gridgraph_kit else tuple(
        variant for variant in variants if variant not in (IN_TURN, KIT))


def each_alone(plan: Plan, variants: Callable[[str], tuple]) -> list[Case]:
    """Each algorithm of the jobs' mix."""
    return [sized(plan, 1, available(plan, variants(name)), algorithms=(name,))
            for name in plan.jobs(1, ()).workload.algorithms]


def measured_in(memory: int, devices: Devices, cases: list[Case], how: dict) -> list[dict]:
    return comparison.measure(devices, [case for case in cases if case.variants],
                              **{**how, "memory_bytes": how["memory_bytes"] and memory})


def in_turn(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """And by the kit submitted at once, and by themselves."""
    def alone(name):
        return (PRELOADED, SHARED, KIT) if name == LONGEST_ALGORITHM else (KIT,)
    cases = [sized(plan, plan.job_count, available(plan, (IN_TURN, KIT))),
             sized(plan, plan.job_count, available(plan, (KIT,)), gap=0),
             *each_alone(plan, alone)]
    return measured_in(IN_TURN_MEMORY, devices, cases, how)


def at_once(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    cases = [sized(plan, plan.job_count, available(plan, (BASELINE, SHARED, MAPPED, KIT)))]
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
                         each_alone(plan, lambda _: (SHARED,)), how),
            *measured_in(AT_ONCE_MEMORY, devices, each_alone(plan, lambda _: (MAPPED,)), how)]


def in_memory(devices: Devices, plan: Plan, how: dict) -> list[dict]:
    """All submitted at once, and nothing to be read."""
    variants = available(plan, (IN_TURN, BASELINE, SHARED, MAPPED, KIT))
    case = replace(sized(plan, plan.job_count, variants, gap=0), in_memory=True)
    return comparison.measure(devices, [case], **{**how, "memory_bytes": None})


# --- values ---

def by_job_count(found: list[dict], variant: str) -> tuple[list[dict], list[dict]]:
    """Samples of one job, and of several."""
    ours = summary.select(found, variant=variant)
    return ([sample for sample in ours if len(sample["jobs"]) == 1],
            [sample for sample in ours if len(sample["jobs"]) > 1])


def speed_up_over(variant: str, of: str):
    """How many times as long the other variant takes for all of them."""
    def value(found: list[dict]) -> dict | None:
        _, ours = by_job_count(found, variant)
        both = [case for case in summary.cases(ours) if summary.select(found, variant=of, **case)]
        if not both:
            return None
        (case,) = both
        ratio = summary.speed_up(found, case, variant, of=of)
        return ratio and {**ratio, "case": case}
    return value


def time_alone(variant: str):
    """The time alone of the job with the most sweeps, by its time alone without adapters/share."""
    def value(found: list[dict]) -> dict | None:
        for case in summary.cases(summary.select(found, variant=PRELOADED)):
            if ours := summary.select(found, variant=variant, **case):
                return {**summary.ratio(ours, summary.select(found, variant=PRELOADED, **case),
                                        summary.sample_seconds), "case": case}
        return None
    return value


def bytes_over_largest(variant: str):
    """The bytes that devices read for all jobs, by those for the job that alone reads most. Uses samples
    of jobs that began together, if there are any, because a later job needs all of its sweeps from then on."""
    def value(found: list[dict]) -> dict | None:
        one, several = by_job_count(found, variant)
        several = [sample for sample in several
                   if not any(job["submitted"] for job in sample["jobs"])] or several
        if not one or not several:
            return None
        read = [summary.device_total(sample, "bytes_read") for sample in several]
        rounds = sorted({sample["round"] for sample in one})
        most = [max(summary.device_total(sample, "bytes_read")
                    for sample in summary.select(one, round=number)) for number in rounds]
        ratio = {**samples.ratio(read, most), "case": summary.labels(several[0])}
        return {**ratio, "bound": "≥"} if summary.was_cut_short(several) else ratio
    return value


def with_kit_times(found: list[dict]) -> list[dict]:
    """Samples of several jobs of the kit, if they tell of its calls."""
    _, several = by_job_count(found, KIT)
    tell = all("turns_ns" in job for sample in several for job in sample["jobs"])
    return several if tell and not summary.was_cut_short(several) else []


def turn_wait_share(found: list[dict]) -> dict | None:
    """For turns, by the time of all jobs, as in GraphM's §5.6; the range is that of the jobs."""
    jobs = [job for sample in with_kit_times(found) for job in sample["jobs"]]
    if not jobs:
        return None
    shares = [job["turns_ns"] / 1e9 / job["seconds"] for job in jobs]
    whole = sum(job["turns_ns"] for job in jobs) / 1e9 / sum(job["seconds"] for job in jobs)
    return {"ratio": whole, "min": min(shares), "max": max(shares)}


def copies(found: list[dict]) -> dict | None:
    """The largest number of copies of the edges in the memory that jobs share."""
    of_samples = [max(job["buffer_bytes_max"] for job in sample["jobs"]) / sample["edge_bytes"]
                  for sample in with_kit_times(found)]
    if not of_samples:
        return None
    middle, least, most = summary.median_min_max(of_samples)
    return {"ratio": middle, "min": least, "max": most}
