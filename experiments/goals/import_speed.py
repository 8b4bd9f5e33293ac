"""How fast does `graphlane import` fill a volume, beside what its devices can write?

The source is in memory, so the devices are the slower side. An import returns when all bytes are on the
devices. At its start and end a disk's head moves between journals. That is a fifth of the time of a graph
that is written in seconds, and little of one larger than memory, so the graph is large.

One import precedes, unmeasured, on devices without limit. Blocks that were never written have no memory
yet behind an emulated device, and allocating it costs a guest more CPU than the writing.
"""

import time
from pathlib import Path

from experiments.devices.emulated import Devices, since
from experiments.devices.journal import Journal, command
from experiments.measure.timeline import timeline
from experiments.paths import GRAPHLANE
from experiments.workloads import fio

IMPORT = "import"
CEILING = "ceiling of writes"


def measure(devices: Devices, size: int, depth: str, rounds: int, seconds: float) -> list[dict]:
    found = []
    nodes = [device.spare for device in devices]
    with devices.journal.section() as journal:
        source = journal.make_mount(devices.directory / "source", "mount", "-t", "tmpfs",
                                    "graphlane-source") / "file"
        command("dd", "if=/dev/urandom", f"of={source}", f"bs={fio.LARGE}",
                f"count={size // fio.LARGE}", "iflag=fullblock", "status=none")
        with devices.unlimited():
            imported(devices, journal, source, depth)
        for number in range(rounds):
            found.append({"round": number, "variant": IMPORT, **imported(devices, journal, source, depth)})
            found.append({"round": number, "variant": CEILING,
                          **fio.ceiling(nodes, seconds, write=True)})
    return found


def imported(devices: Devices, journal: Journal, source: Path, depth: str) -> dict:
    volume = devices.devices[0].directory / "volume"
    lanes = [device.directory / "lane" for device in devices]
    with journal.section():
        for path in [volume, *lanes]:
            journal.note("tree", path=str(path))
        for lane in lanes:
            lane.mkdir()
        command(GRAPHLANE, "create", volume, "--stripe-depth", depth,
                *(word for lane in lanes for word in ("--device", lane)))
        devices.sync()
        before = devices.counters()
        with timeline(devices) as rows:
            begin = time.monotonic()
            command(GRAPHLANE, "import", source, volume)
            took = time.monotonic() - begin
        counters = since(before, devices.counters())
    return {"seconds": took, "device_counters": counters, "timeline": rows,
            "bytes_per_second": source.stat().st_size / took}
