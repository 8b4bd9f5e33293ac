"""Made-up results in the format of `python -m experiments`: a test can compute their ratios."""

from experiments.devices.emulated import Spec
from experiments.measure import samples
from experiments.workloads.variants import BASELINE, CEILING, MOUNTED, PRELOADED

MB = 1_000_000
DEVICE_BANDWIDTH = 100 * MB
BYTES = 2000 * MB  # read by a program from all devices
# Each variant's share of the ceiling.
SHARE = {BASELINE: 0.5, MOUNTED: 0.6, PRELOADED: 0.9}
READS = {BASELINE: 1000, MOUNTED: 800, PRELOADED: 600}  # of each device


class Described:
    """Replaces devices.Devices."""

    def __init__(self, count: int):
        self.count = count

    def describe(self) -> dict:
        device = {"loop": "loop0", "file": "/x", "filesystem": "/y"}
        return {"spec": vars(Spec(kind="hdd", count=self.count, dilation=8)),
                "devices": [device] * self.count}


def labels(**differing) -> dict:
    return {"engine": "grid_engine", "algorithm": "wcc", "graph": "rmat-21", "threads": None,
            "device_count": 2, "stripe_depth": "12M"} | differing


def case_samples(rounds: int = 3, share=SHARE, **differing) -> list[dict]:
    """Samples of one case. In every variant each round is a little slower than the one before."""
    case = labels(**differing)
    count = case["device_count"]
    found = []
    for number in range(rounds):
        slower = 1 + number / 100
        for variant, of_ceiling in share.items():
            seconds = BYTES / (DEVICE_BANDWIDTH * count * of_ceiling) * slower
            counters = {"reads": READS.get(variant, 500), "bytes_read": BYTES // count, "writes": 0,
                        "bytes_written": 0, "busy_seconds": seconds * of_ceiling}
            found.append({"round": number, "variant": variant, **case, "seconds": seconds,
                          "cpu_seconds": seconds / 2, "memory_bytes_max": 1 << 20,
                          "device_counters": [counters] * count,
                          "timeline": [[seconds * i / 4, counters["reads"] * count * i // 4,
                                        BYTES * i // 4] for i in range(1, 5)]})
        found.append({"round": number, "variant": CEILING, "device_count": count,
                      "graph": case["graph"],
                      "bytes_per_second": DEVICE_BANDWIDTH * count / slower})
    return found


def together(*of_cases: list[dict]) -> list[dict]:
    """The samples of one run: files on the same devices have one ceiling a round."""
    found = []
    for sample in [sample for of_case in of_cases for sample in of_case]:
        if sample["variant"] != CEILING or sample not in found:
            found.append(sample)
    return found


def ours(what: str, found: list[dict], count: int = 2, **more) -> dict:
    return samples.record(what, Described(count), found, memory_bytes=240 << 20, **more)
