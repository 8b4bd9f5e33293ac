"""The library preloaded into the kit's jobs reports how long they wait."""

import os

from harness import ROOT, run

from experiments.workloads import share_times
from experiments.workloads.engines import Grid
from experiments.workloads.share_sweep import COORDINATOR, LIBRARY


def test_a_job_reports_its_waits_and_partition_times(tmp_path):
    grid = tmp_path / "grid"
    grid.mkdir()
    Grid("wcc", None, None, 10, 1, None, partitions=2).prepare(grid)
    kit = tmp_path / "libgraphlane-share.so.0"
    kit.symlink_to(LIBRARY)
    program = tmp_path / "components"
    run("g++", "-std=c++17", "-I", ROOT / "adapters/share/client", ROOT / "adapters/tutorial/components.cc",
        kit, "-o", program)
    assert share_times.read(tmp_path) == {}
    with share_times.library() as library:
        run(program, grid, cwd=tmp_path, env=os.environ | {
            "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(tmp_path),
            "GRAPHLANE_SHARE_COORDINATOR": str(COORDINATOR)})
    told = share_times.read(tmp_path)
    assert told["sharing_ns"] > 0 and told["turns_ns"] > 0
    assert told["buffer_bytes_max"] == (grid / "column").stat().st_size
