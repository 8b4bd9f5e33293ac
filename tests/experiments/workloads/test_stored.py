"""Stored graphs beside their peers: the measurements, and the files that peers read."""

import json

import numpy as np
import pytest
from commands import experiments, wait_gone

from experiments.measure.comparison import Case, with_all_files
from experiments.workloads.stored.graph import Source, Stored
from experiments.workloads.stored.peers import BLAZE_PAGE, Blaze, Gap, Lumos, Request, seconds_after
from experiments.workloads.stored.workload import Algo, Made


def test_blaze_reads_back_the_written_graph(tmp_path):
    """Its Graph.h computes positions from an offset for each 16 vertices and from degrees."""
    chance = np.random.default_rng(5)
    pairs = chance.integers(0, 3000, (20_000, 2), dtype="<u4")
    pairs.tofile(tmp_path / "edges")
    lanes = [tmp_path / f"lane{i}" for i in range(3)]
    for lane in lanes:
        lane.mkdir()
    Blaze(tmp_path).prepare(tmp_path / "edges", tmp_path, lanes)
    for side, source in [("out", 0), ("in", 1)]:
        index = (tmp_path / f"blaze/{side}.index").read_bytes()
        _, size, count, arcs = np.frombuffer(index, "<u8", 4)
        assert (size, count, arcs) == (4, pairs.max() + 1, len(pairs))
        groups = (int(count) - 1) // 16 + 1
        firsts = np.frombuffer(index, "<u8", groups, 32)
        degrees = np.frombuffer(index, "<u4", int(count), -(-(32 + 8 * groups) // 64) * 64)
        pages = [np.fromfile(file, "u1").reshape(-1, BLAZE_PAGE)
                 for file in Blaze.files(tmp_path / "blaze", side)]
        lists = np.concatenate([pages[i % 3][i // 3] for i in range(sum(map(len, pages)))]).view("<u4")
        for vertex in [0, 1, 15, 16, 17, 1000, int(count) - 1]:
            first = int(firsts[vertex // 16] + degrees[vertex // 16 * 16:vertex].sum())
            found = lists[first:first + degrees[vertex]]
            assert sorted(found) == sorted(pairs[pairs[:, source] == vertex, 1 - source])


def test_peers_are_asked_for_the_same_work(tmp_path):
    request = Request("pagerank", iterations=7, threads=1)
    blaze = Blaze(tmp_path).words(request, tmp_path)
    assert blaze[blaze.index("-maxIterations") + 1] == 7 and blaze[blaze.index("-epsilon") + 1] == 0
    gap = Gap(tmp_path).words(request, tmp_path)
    assert "OMP_NUM_THREADS=1" in gap and gap[gap.index("-i") + 1] == 7
    assert Lumos(tmp_path).words(request, tmp_path)[2:] == [7, 1]
    small, large = (Lumos(tmp_path).words(Request("pagerank", memory=size), tmp_path)[-1] for size in (1 << 20, (1 << 30) + 1))
    assert (small, large) == (1, 2), "whole GB"


@pytest.mark.parametrize("said, seconds", [("Average Time:        0.12345\n", 0.12345), ("nothing", None)])
def test_seconds_that_a_program_prints(said, seconds):
    assert seconds_after("Average Time:", said) == seconds


def test_forms_that_are_in_the_volume():
    raw = Stored("lists", "raw")
    algo = Algo(Request("bfs"), Source(scale=10), raw, (raw,), peers=(Blaze(None),))
    assert algo.is_in_volume("lists-raw") and not algo.is_in_volume("blaze")


def test_cases_that_take_turns_have_the_files_of_all():
    def case(codec, scale=10, peers=()):
        stored = Stored("lists", codec)
        return Case(Algo(Request("bfs"), Source(scale=scale), stored, (stored,), peers=peers), 2)

    raw, varint, other = with_all_files([case("raw"), case("varint", peers=(Blaze(None),)), case("simd", scale=11)])
    assert [stored.codec for stored in raw.workload.all_stored] == ["raw", "varint"]
    assert raw.workload.all_stored == varint.workload.all_stored and raw.workload.peers == varint.workload.peers == (Blaze(None),)
    assert raw.workload.stored.codec == "raw" and other.workload.all_stored == (Stored("lists", "simd"),)


def test_what_was_made_is_told_by_name(tmp_path):
    made = Made()
    made.note("first", lambda: (tmp_path / "a").write_bytes(bytes(10)), tmp_path)
    made.note("second", lambda: [(tmp_path / "d").mkdir(), (tmp_path / "d/b").write_bytes(bytes(20))], tmp_path)
    made.note("edges", lambda: None, tmp_path)
    assert made.of("second")["stored_bytes"] == 20 and made.of("first")["stored_bytes"] == 10
    assert made.of("second")["build_seconds"] >= 0 and made.of("third") == {}


def test_sizes_of_dual_blocks_are_measured_and_drawn(ready, at, tmp_path):
    experiments("devices", "up", "--kind", "flash", "--count", "2", "--size", "256M", "--at", at)
    experiments("figure", "hus-13", "--quick", "--at", at, "--scale", "12", "--memory", "256M",
                "--ceiling-seconds", "0.5", "--out", tmp_path / "figure.svg")
    found = json.loads((tmp_path / "figure.json").read_text())["samples"]
    stored = {sample["algorithm"].split(", ")[1]: sample["stored_bytes"] for sample in found if sample["variant"] == "volume"}
    assert stored["raw"] > stored["varint"] > stored["reference"] > 0
    assert all(sample["build_seconds"] > 0 for sample in found if sample["variant"] == "volume")
    assert "reference" in (tmp_path / "figure.svg").read_text()
    experiments("devices", "down", "--at", at)
    wait_gone(at)


def test_a_figure_is_measured_and_drawn(ready, at, tmp_path):
    experiments("devices", "up", "--kind", "flash", "--count", "2", "--size", "256M", "--at", at)
    experiments("figure", "flashgraph-12", "--quick", "--at", at, "--scale", "10", "--memory", "256M",
                "--ceiling-seconds", "0.5", "--out", tmp_path / "figure.svg")
    found = json.loads((tmp_path / "figure.json").read_text())["samples"]
    tried = {sample["algorithm"] for sample in found if sample["variant"] == "volume"}
    assert {f"bfs, {name}" for name in ("random order", "merged in the engine")} <= tried
    assert all(sample["run_seconds"] > 0 for sample in found if sample["variant"] == "volume")
    assert "bfs" in (tmp_path / "figure.svg").read_text()
    experiments("devices", "down", "--at", at)
    wait_gone(at)
