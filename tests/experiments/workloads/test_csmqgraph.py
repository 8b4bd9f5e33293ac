"""CSMqGraph as one more variant: the place of its files, and the command line of a program in its
place."""

from pathlib import Path

import pytest

from experiments.devices.journal import Journal
from experiments.workloads.csmqgraph import CsmqGraph, Layout, deal
from experiments.workloads.engines import Grid

COLUMN = b"aaabbbcccd"


@pytest.fixture
def grid(tmp_path):
    directory = tmp_path / "grid"
    directory.mkdir()
    for name, content in [("column", COLUMN), ("row", b"r"), ("meta", b"0 4 3 2")]:
        (directory / name).write_bytes(content)
    return directory


@pytest.fixture
def devices(tmp_path):
    found = [tmp_path / f"d{i}" for i in range(2)]
    for device in found:
        device.mkdir()
    return found


@pytest.mark.parametrize("depth, dealt", [
    (3, [b"aaaccc", b"bbbd"]), (5, [b"aaabb", b"bcccd"]), (10, [COLUMN, b""]), (99, [COLUMN, b""])])
def test_a_column_is_dealt_by_turns(grid, devices, depth, dealt):
    targets = [device / "part" for device in devices]
    deal(grid / "column", targets, depth)
    assert [target.read_bytes() for target in targets] == dealt


def test_its_directory_has_the_grid_with_a_part_on_each_device(tmp_path, grid, devices):
    journal = Journal(tmp_path, create=True)
    layout = Layout(journal, grid, tmp_path / "theirs", devices)
    for depth, dealt in [(3, [b"aaaccc", b"bbbd"]), (5, [b"aaabb", b"bcccd"])]:
        layout.stripe(depth)
        there = {path.name: path for path in layout.directory.iterdir()}
        assert sorted(there) == ["column_disk0_2", "column_disk1_2", "meta", "row"]
        assert [there[f"column_disk{i}_2"].read_bytes() for i in range(2)] == dealt
    assert there["row"].resolve() == grid / "row"
    assert [there[f"column_disk{i}_2"].resolve().parent for i in range(2)] == devices
    journal.undo()
    journal.close()
    assert not layout.directory.exists() and not any(any(device.iterdir()) for device in devices)
    assert (grid / "column").read_bytes() == COLUMN


@pytest.mark.parametrize("algorithm, own", [
    ("wcc", []), ("pagerank", ["5"]), ("bfs", ["7"]), ("spmv", [])])
def test_its_program_gets_threads_devices_and_depth(tmp_path, algorithm, own):
    program = tmp_path / algorithm
    program.write_text('#!/bin/sh\necho "$PREFIX" "$@" > said\n')
    program.chmod(0o755)
    grid = Grid(algorithm, tmp_path, None, 10, iterations=5, budget=3 << 30, root=7)
    rival = CsmqGraph(tmp_path, workers=3)
    assert rival.variant == "CSMqGraph, 3 a device"
    took = rival.run(grid, tmp_path, ["env", "PREFIX=inside"], device_count=2, depth=12 << 20)
    assert took["seconds"] > 0
    threads, device_count, depth_kib = "6", "2", "12288"
    assert Path(tmp_path, "said").read_text().split() == [
        "inside", str(tmp_path), *own, "3", threads, device_count, depth_kib]
