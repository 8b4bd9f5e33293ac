"""How many I/Os of a program each device has in flight."""

import json
import os
import random
import sys

import pytest

SIZE = 8_000_123
# Four threads read the file in blocks with O_DIRECT, and compare.
THREADS = """
import mmap, os, sys
from concurrent.futures import ThreadPoolExecutor
path, like = sys.argv[1], open(sys.argv[2], "rb").read()
fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
def is_right(at):
    room = mmap.mmap(-1, 1 << 19)
    return room[:os.preadv(fd, [room], at)] == like[at:at + (1 << 19)]
with ThreadPoolExecutor(4) as threads:
    assert all(threads.map(is_right, range(0, len(like), 1 << 19)))
"""


@pytest.fixture
def depths(graphlane, disks, tmp_path):
    """depths("--no-mount", …): the depth of each device, by a program's report."""
    plain, report = tmp_path / "plain", tmp_path / "report"
    plain.write_bytes(random.Random(7).randbytes(SIZE))
    made = graphlane.create_on(tmp_path / "vol", disks, depth="256K")
    graphlane("import", plain, made.path)

    def read(*options, **environment) -> list[int]:
        report.unlink(missing_ok=True)
        said = graphlane("run", f"--report={report}", *options, "--", sys.executable, "-c", THREADS,
                         made.path / "plain", plain, env=os.environ | environment)
        assert said.stderr.count("GRAPHLANE_DEPTH") == ("many" in environment.values())
        return [device["depth"] for device in json.loads(report.read_text())["devices"]]

    return read


def calibrate(disk, depth) -> None:
    [path] = disk.glob("graphlane-*/device.json")
    found = {"depth": depth, "streams": 1, "bytes_per_second": 1, "small_ios_per_second": 1}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"calibration": found}))


@pytest.mark.parametrize("options", [[], ["--no-mount"]])
def test_a_calibration_goes_before_the_kind_and_the_user_before_both(depths, disks, fuse, options):
    assert depths(*options) == [1, 1]
    calibrate(disks[1], 2)
    assert depths(*options) == [1, 2]
    assert depths(*options, GRAPHLANE_DEPTH="4") == [4, 4]
    assert depths(*options, GRAPHLANE_DEPTH="many") == [1, 2]
    calibrate(disks[1], 65)
    assert depths(*options) == [1, 1], "what is wrong is none"
