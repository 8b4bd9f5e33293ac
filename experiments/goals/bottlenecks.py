"""Why a goal is short: where the time of its worst case went, by the counters of its samples."""

import os
from statistics import median

from experiments.measure import samples, summary
from experiments.workloads.fio import LARGE as BLOCK
from experiments.workloads.variants import BASELINE

CORES = os.cpu_count()
# Shares from which on something is called the limit.
AT_LIMIT = 0.85
IDLE = 0.6  # of the busiest device's time
READS_NOTHING = 0.05  # of the ceiling


def busy(found: list[dict]) -> list[float]:
    """For each device: the share of the time in which it was busy."""
    of_samples = [[counters["busy_seconds"] / sample["seconds"]
                   for counters in sample["device_counters"]] for sample in found]
    return [median(of_device) for of_device in zip(*of_samples, strict=True)]


def limit(devices: list[float], share: float, cores: float) -> str:
    """The bottleneck of a variant. `devices`: from busy(); `share`: of the ceiling."""
    most, least = max(devices), min(devices)
    if share >= AT_LIMIT:
        return "the devices' bandwidth is the limit"
    if cores >= AT_LIMIT * CORES:
        return "the cores are the limit"
    if most < AT_LIMIT:
        return "devices and cores wait for each other: one read after another, or computation"
    if least < IDLE * most:
        return "one device is the limit, and the others wait for it"
    return "the devices are busy, but with seeks between reads"


def describe_variant(found: list[dict], case: dict, name: str) -> str:
    ours = summary.select(found, variant=name, **case)
    share = summary.device_share(found, case, name)["ratio"]
    took = median(summary.seconds(found, case, name))
    reads = median(summary.device_total(sample, "reads") for sample in ours)
    moved = median(summary.device_total(sample, "bytes_read") for sample in ours)
    got = median(map(summary.delivered, ours))
    again = f" for {got / 1e6:.0f} that the program got" if got < moved else ""
    cpu = [sample["cpu_seconds"] for sample in ours if "cpu_seconds" in sample]
    cores = median(cpu) / took if cpu else 0
    devices = busy(ours)
    return (f"{name}: {took:.1f} s, {moved / 1e6:.0f} MB{again} in {reads:.0f} reads, "
            f"{share:.2f} of the ceiling, devices busy {min(devices):.2f} to {max(devices):.2f} of "
            f"the time, {cores:.1f} of {CORES} cores: {limit(devices, share, cores)}")


def explain_case(name: str, other: str = BASELINE):
    """Both variants of the worst case, and how fast the bytes that the other one reads would come at the
    ceiling."""
    def why(found: list[dict], value: dict) -> str:
        case = value["case"]
        read = summary.bandwidth(found, case, other)
        most = samples.ratio(summary.ceiling(found, case), read) if all(read) else None
        threads = f", {case['threads']} threads" if case["threads"] else ""
        there = (f" At the ceiling the bytes of the latter would come {most['ratio']:.2f} times as "
                 "fast.") if most and most["ratio"] <= 1 / READS_NOTHING else ""
        return (f"{case['algorithm']}, {case['device_count']} devices{threads}: "
                f"{describe_variant(found, case, name)}. {describe_variant(found, case, other)}.{there}")
    return why


def explain_jobs_bytes(name: str):
    """The bytes that each algorithm of the mix reads alone, beside those that they read together."""
    def why(found: list[dict], value: dict) -> str:
        alone = [f"{sample['algorithm'].removeprefix('1 jobs of ')} "
                 f"{summary.device_total(sample, 'bytes_read') / 1e6:.0f} MB"
                 for sample in summary.select(found, variant=name, round=0) if len(sample["jobs"]) == 1]
        (edges,) = {sample["edge_bytes"] for sample in summary.select(found, **value["case"])}
        return (f"{value['case']['algorithm']}, {describe_variant(found, value['case'], name)}. By itself: "
                f"{', '.join(alone)}, of {edges / 1e6:.0f} MB of edges.")
    return why


def explain_turns(found: list[dict], value: dict) -> str:
    jobs = [job for sample in found for job in sample.get("jobs", ()) if "turns_ns" in job]
    slowest = max(jobs, key=lambda job: job["turns_ns"])
    return (f"{len(jobs)} jobs of {sum(job['seconds'] for job in jobs):.1f} s together waited "
            f"{sum(job['turns_ns'] for job in jobs) / 1e9:.1f} s, one of {slowest['seconds']:.1f} s "
            f"waited {slowest['turns_ns'] / 1e9:.1f} of them; they share {CORES} cores.")


def explain_copies(found: list[dict], value: dict) -> str:
    """For the sample with the most copies in memory."""
    told = [(max(job["buffer_bytes_max"] for job in sample["jobs"]), sample) for sample in found
            if all("buffer_bytes_max" in job for job in sample.get("jobs", [{}]))]
    most, sample = max(told, key=lambda pair: pair[0])
    return (f"{most / 1e6:.0f} MB of partitions were in memory at once, of "
            f"{sample['edge_bytes'] / 1e6:.0f} MB of edges; devices read "
            f"{summary.device_total(sample, 'bytes_read') / 1e6:.0f} MB for {len(sample['jobs'])} jobs.")


def explain_large_reads(name: str, plain: str):
    """For the worst case, in seconds of a read, which are the inverse of bytes a second."""
    def why(found: list[dict], value: dict) -> str:
        took = [1e6 * BLOCK / median(samples.series(
            found, "bytes_per_second", variant=one, asked=value["asked"])) for one in [plain, name]]
        return (f"{value['asked']}: {plain} takes {took[0]:.0f} µs a read, {name} {took[1]:.0f}, "
                f"{took[1] - took[0]:.0f} more.")
    return why


def explain_calls(asked: str, plain: list[float], ours: list[float]) -> str:
    return (f"{asked}: {median(ours):.0f} ns, without the library {median(plain):.0f}: "
            f"{median(ours) - median(plain):.0f} more.")


def explain_import(found: list[dict], value: dict) -> str:
    """For the median round: its bytes at the ceiling, and the times at which they were written."""
    ours = sorted((sample for sample in found if "timeline" in sample),
                  key=lambda sample: sample["seconds"])
    sample = ours[len(ours) // 2]
    ceiling = median(each["bytes_per_second"] for each in found if "timeline" not in each)
    times, *_, bytes_written = zip(*sample["timeline"], strict=True)
    written = bytes_written[-1]

    def until(share):
        return next(time for time, much in zip(times, bytes_written) if much >= share * written)
    devices = busy([sample])
    return (f"{sample['seconds']:.1f} s; what the devices wrote, {written / 1e6:.0f} MB in "
            f"{summary.device_total(sample, 'writes')} writes, takes {written / ceiling:.1f} at the "
            f"ceiling. 1% of it was written after {until(0.01):.1f} s, 99% after {until(0.99):.1f}; "
            f"devices were busy {min(devices):.2f} to {max(devices):.2f} of the time.")
