"""Why a goal is short: where the time of its worst case went, by what was counted beside it."""

import os
from statistics import median

from experiments import samples, summary
from experiments.comparison import STRIPED
from experiments.fio import LARGE as BLOCK

CORES = os.cpu_count()
# Shares from which on something is called the limit.
AT_LIMIT = 0.85
IDLE = 0.6  # of the busiest device's time
READS_NOTHING = 0.05  # of the ceiling


def busy(found: list[dict]) -> list[float]:
    """Of each device: the share of the time in which it had something to do."""
    of_samples = [[counters["busy_seconds"] / sample["seconds"]
                   for counters in sample["device_counters"]] for sample in found]
    return [median(of_device) for of_device in zip(*of_samples, strict=True)]


def limit(devices: list[float], share: float, cores: float) -> str:
    """What a way ran into. `devices`: as busy() has them; `share`: of the ceiling."""
    most, least = max(devices), min(devices)
    if share >= AT_LIMIT:
        return "the devices' bandwidth is the limit"
    if cores >= AT_LIMIT * CORES:
        return "the cores are the limit"
    if most < AT_LIMIT:
        return "devices and cores wait for each other: one read after another, or computation"
    if least < IDLE * most:
        return "one device is the limit, and the others wait for it"
    return "the devices are busy, but with the ways between reads"


def way(found: list[dict], case: dict, name: str) -> str:
    ours = summary.only(found, way=name, **case)
    share = summary.device_share(found, case, name)["ratio"]
    took = median(summary.seconds(found, case, name))
    reads = median(summary.of_devices(sample, "reads") for sample in ours)
    moved = median(summary.of_devices(sample, "bytes_read") for sample in ours)
    got = median(map(summary.delivered, ours))
    again = f" for {got / 1e6:.0f} that the program got" if got < moved else ""
    cpu = [sample["cpu_seconds"] for sample in ours if "cpu_seconds" in sample]
    cores = median(cpu) / took if cpu else 0
    devices = busy(ours)
    return (f"{name}: {took:.1f} s, {moved / 1e6:.0f} MB{again} in {reads:.0f} reads, "
            f"{share:.2f} of the ceiling, devices busy {min(devices):.2f} to {max(devices):.2f} of "
            f"the time, {cores:.1f} of {CORES} cores: {limit(devices, share, cores)}")


def of_case(name: str, other: str = STRIPED):
    """Both ways of the worst case, and what is to be had at all with the bytes that the other
    one reads."""
    def why(found: list[dict], value: dict) -> str:
        case = value["case"]
        most = samples.ratio(summary.ceiling(found, case), summary.bandwidth(found, case, other))
        threads = f", {case['threads']} threads" if case["threads"] else ""
        there = (f" At the ceiling the bytes of the latter would come {most['ratio']:.2f} times as "
                 "fast.") if most["ratio"] <= 1 / READS_NOTHING else ""
        return (f"{case['algorithm']}, {case['device_count']} devices{threads}: "
                f"{way(found, case, name)}. {way(found, case, other)}.{there}")
    return why


def of_jobs_bytes(name: str):
    """What each algorithm of the jobs' mix reads by itself, beside what they read together."""
    def why(found: list[dict], value: dict) -> str:
        alone = [f"{sample['algorithm'].removeprefix('1 jobs of ')} "
                 f"{summary.of_devices(sample, 'bytes_read') / 1e6:.0f} MB"
                 for sample in summary.only(found, way=name, round=0) if len(sample["jobs"]) == 1]
        (edges,) = {sample["edge_bytes"] for sample in summary.only(found, **value["case"])}
        return (f"{value['case']['algorithm']}, {way(found, value['case'], name)}. By itself: "
                f"{', '.join(alone)}, of {edges / 1e6:.0f} MB of edges.")
    return why


def of_turns(found: list[dict], value: dict) -> str:
    jobs = [job for sample in found for job in sample.get("jobs", ()) if "turns_ns" in job]
    slowest = max(jobs, key=lambda job: job["turns_ns"])
    return (f"{len(jobs)} jobs of {sum(job['seconds'] for job in jobs):.1f} s together waited "
            f"{sum(job['turns_ns'] for job in jobs) / 1e9:.1f} s, one of {slowest['seconds']:.1f} s "
            f"waited {slowest['turns_ns'] / 1e9:.1f} of them; they share {CORES} cores.")


def of_copies(found: list[dict], value: dict) -> str:
    return (f"{value['ratio']:.2f} times the edges were in memory: a partition was loaded again "
            "while a job still read the copy that others had left.")


def of_large_reads(name: str, plain: str):
    """Of the case at worst: bytes a second are seconds of a read."""
    def why(found: list[dict], value: dict) -> str:
        took = [1e6 * BLOCK / median(samples.series(
            found, "bytes_per_second", way=one, asked=value["asked"])) for one in [plain, name]]
        return (f"{value['asked']}: {plain} takes {took[0]:.0f} µs a read, {name} {took[1]:.0f}, "
                f"{took[1] - took[0]:.0f} more.")
    return why


def of_foreign_calls(found: list[dict], value: dict) -> str:
    return (f"{value['asked']}: {value['ratio']:.1f} ns more than without the library, which looks its "
            "descriptor up.")


def of_import(found: list[dict], value: dict) -> str:
    ours = [sample for sample in found if "device_counters" in sample]
    devices = busy(ours)
    return (f"{median(sample['seconds'] for sample in ours):.1f} s, in which the devices were busy "
            f"{min(devices):.2f} to {max(devices):.2f} of the time with "
            f"{median(summary.of_devices(sample, 'writes') for sample in ours):.0f} writes: what is "
            "left are the first bytes, and the journals at the end.")


def of_small_reads(plain: list[float], ours: list[float]) -> str:
    return (f"of {median(ours):.0f} ns the kernel's read takes {median(plain):.0f}, the library "
            f"{median(ours) - median(plain):.0f}.")
