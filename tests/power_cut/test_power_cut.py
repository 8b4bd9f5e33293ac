"""The power fails at any instant: synced data is there, and no file shows bytes that were never
written. CI cuts at a hundred points; CRASH_POINTS=1000 is the long run. CRASH_SEED=N repeats the
points of a failure."""

import os
import random
import shutil
from pathlib import Path

import pytest

from harness import BUILD, run

POINTS = int(os.environ.get("CRASH_POINTS", "20" if BUILD.name == "asan" else "100"))
HERE = Path(__file__).parent


def test_a_power_cut_loses_nothing_that_was_synced(root, fuse, tmp_path):
    if run("losetup", "--find", check=False).returncode != 0:
        pytest.skip("not applicable: no loop devices here")
    if run("unshare", "--mount", "true", check=False).returncode != 0:
        pytest.skip("not applicable: mount namespaces cannot be made")
    seed = int(os.environ.get("CRASH_SEED", random.randrange(1 << 16)))
    try:
        done = run("unshare", "--mount", "--propagation", "private", "python3", HERE / "power_cut.py",
                   BUILD, tmp_path / "cut", POINTS, seed, timeout=120 + 5 * POINTS)
        print(done.stdout)
    finally:
        shutil.rmtree(tmp_path / "cut", ignore_errors=True)
