"""How fast does `graphlane import` fill a volume, beside what its devices can write?

The source is in memory, so the devices are the slower side. The import counts until all is on
the devices.
"""

import time

from experiments import fio
from experiments.devices import Devices, since
from experiments.journal import command
from experiments.workloads import GRAPHLANE

IMPORT = "import"
CEILING = "ceiling of writes"


def measure(devices: Devices, size: int, depth: str, rounds: int, seconds: float) -> list[dict]:
    found = []
    source = devices.directory / "source"
    nodes = [device.spare for device in devices]
    for number in range(rounds):
        with devices.journal.section() as journal:
            journal.note("file", path=str(source))
            command("dd", "if=/dev/urandom", f"of={source}", f"bs={fio.LARGE}",
                    f"count={size // fio.LARGE}", "iflag=fullblock", "status=none")
            volume = devices.devices[0].directory / "volume"
            lanes = [device.directory / "lane" for device in devices]
            for path in [volume, *lanes]:
                journal.note("tree", path=str(path))
            for lane in lanes:
                lane.mkdir()
            command(GRAPHLANE, "create", volume, "--stripe-depth", depth,
                    *(word for lane in lanes for word in ("--device", lane)))
            devices.sync()
            before = devices.counters()
            begin = time.monotonic()
            command(GRAPHLANE, "import", source, volume)
            devices.sync()
            took = time.monotonic() - begin
            counters = since(before, devices.counters())
        found.append({"round": number, "way": IMPORT, "seconds": took,
                      "device_counters": counters, "bytes_per_second": source_bytes(size) / took})
        found.append({"round": number, "way": CEILING,
                      **fio.ceiling(nodes, seconds, write=True)})
    return found


def source_bytes(size: int) -> int:
    return size // fio.LARGE * fio.LARGE
