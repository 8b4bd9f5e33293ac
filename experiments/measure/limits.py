"""Measures the limits of the devices.

fio reads every device alone, then all at once, past the page cache. It reads sequentially in 24 MiB blocks
with one stream per device, and at random in 4 KiB blocks, 32 at a time. `compare` relates the storage
layers to these limits.
"""

import statistics

import click

from experiments.devices.emulated import Devices
from experiments.measure import samples
from experiments.measure.options import chosen_devices, run_options
from experiments.measure.tables import Table
from experiments.workloads import fio

SEQUENTIAL = "sequential 24 MiB"
RANDOM = "random 4 KiB"
ALL = "all at once"


def measure(devices: Devices, rounds: int, seconds: float) -> list[dict]:
    variants = {f"d-{i}": [device.node] for i, device in enumerate(devices)}
    variants[ALL] = [device.node for device in devices]
    found = []
    for number in range(rounds):
        for kind in [SEQUENTIAL, RANDOM]:
            for variant, nodes in variants.items():
                devices.drop_caches()
                got = fio.ceiling(nodes, seconds, small=kind == RANDOM)
                found.append({"round": number, "kind": kind, "devices": variant, **got})
    return found


def table(found: list[dict]) -> Table:
    shown = Table(["devices", "sequential MB/s", "random 4 KiB IOPS"])
    for variant in dict.fromkeys(sample["devices"] for sample in found):
        sequential = samples.series(found, "bytes_per_second", kind=SEQUENTIAL, devices=variant)
        random = [got["ios"] / got["seconds"] for got in found
                  if got["kind"] == RANDOM and got["devices"] == variant]
        shown.add(variant, spread([speed / 1e6 for speed in sequential]), spread(random))
    return shown


def spread(values: list[float]) -> str:
    range_ = f" ({min(values):.1f}–{max(values):.1f})" if len(values) > 1 else ""
    return f"{statistics.median(values):.1f}{range_}"


@click.command(help=__doc__)
@run_options
@click.option("--seconds", type=click.FloatRange(0.5), default=5, show_default=True,
              help="Seconds of each sample.")
def main(at, rounds, seconds, out, **options):
    with chosen_devices(at, options) as devices:
        found = measure(devices, rounds, seconds)
        if out:
            samples.write(out, samples.record("limits", devices, found))
    table(found).show()
