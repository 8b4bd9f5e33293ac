"""`graphlane algo` on dual blocks: models, --explain, damage, and early ends."""

import json
import os
import resource
import subprocess

import numpy as np
import pytest

from algo import stored_graphs as graphs
from algo.interrupted import check_interrupt_leaves_nothing
from harness import BUILD

GRAPH = graphs.weighted(graphs.StoredGraph("rmat", 1 << 13, graphs.rmat_pairs(13, 150_000, 11)), 3)
MODELS = ["hybrid", "push", "pull", "random"]
without_sanitizer = pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="not applicable: limits the address space")


@pytest.fixture(scope="module")
def stored(graphlane, tmp_path_factory):
    """The path of the graph; not to be changed."""
    return GRAPH.store(graphlane, tmp_path_factory.mktemp("graph"), "varint", "dual", "-p", "4")


@pytest.fixture
def damaged(graphlane, tmp_path):
    """A copy that a test may damage."""
    return GRAPH.store(graphlane, tmp_path, "varint", "dual", "-p", "4")


def refused(graphlane, path, *words, naming):
    """Fails with one line that names the culprit, and writes nothing."""
    out = path.parent / "out.npy"
    result = graphlane("algo", *words, "--out", out, path, check=False)
    lines = result.stderr.splitlines()
    assert result.returncode == 1 and result.stdout == "", result.stdout + result.stderr
    assert len(lines) == 1 and lines[0].startswith("graphlane: ") and str(naming) in lines[0], result.stderr
    assert not out.exists()
    return lines[0]


def explained(graphlane, path, *words):
    told = json.loads(graphlane("algo", *words, "--explain", "--json", path).stdout)
    return told, told["iterations"]


@pytest.mark.parametrize("algorithm", ["bfs", "wcc", "sssp", "pagerank"])
def test_a_forced_model_is_what_all_blocks_do(graphlane, stored, algorithm):
    words = [algorithm, "--source", GRAPH.source] if algorithm in ("bfs", "sssp") else [algorithm]
    summaries = []
    for model in MODELS:
        told, iterations = explained(graphlane, stored, *words, "--model", model)
        pushed, pulled = (sum(one[name] for one in iterations) for name in ("pushed", "pulled"))
        assert len(iterations) == told["stats"]["iterations"]
        assert (pushed > 0, pulled > 0) == {"push": (True, False), "pull": (False, True)}.get(model, (pushed > 0, pulled > 0))
        assert model != "random" or (pushed > 0 and pulled > 0)
        summaries.append({name: value for name, value in told["summary"].items() if isinstance(value, int) and name != "iterations"})
    assert summaries == summaries[:1] * len(MODELS)


def test_explain_tells_predicted_and_real_cost(graphlane, stored):
    _, iterations = explained(graphlane, stored, "bfs", "--source", GRAPH.source)
    assert iterations[0]["active"] == 1
    assert sum(one["predicted_bytes"] for one in iterations) > 0
    for one in iterations:
        assert one["seconds"] > 0 and one["predicted_seconds"] >= 0
    lines = graphlane("-q", "algo", "bfs", "--source", GRAPH.source, "--explain", stored).stdout.splitlines()
    assert lines[0].split() == ["iteration", *iterations[0]]
    assert [int(line.split()[1]) for line in lines[1:len(iterations) + 1]] == [one["active"] for one in iterations]


def test_the_prediction_is_what_is_read(graphlane, stored):
    """Without a cache that would matter: one iteration of PageRank reads each in-block once."""
    _, iterations = explained(graphlane, stored, "pagerank", "--iterations", "1")
    assert iterations[0]["predicted_bytes"] >= iterations[0]["device_bytes"] > 0.8 * iterations[0]["predicted_bytes"]


@pytest.mark.parametrize("name", ["blocks", "degrees", "in.blocks", "graph"])
@pytest.mark.parametrize("where", [0, 0.5, 1])
def test_a_flipped_bit(graphlane, damaged, name, where):
    path = damaged / name
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 1))] ^= 0x10
    path.write_bytes(content)
    refused(graphlane, damaged, "pagerank", naming=path)


def test_weights_are_checked_and_read_only_where_they_count(graphlane, damaged):
    path = damaged / "out.weights"
    content = bytearray(path.read_bytes())
    for byte in range(0, len(content), 4096):
        content[byte] ^= 1
    path.write_bytes(content)
    assert "checksum" in refused(graphlane, damaged, "sssp", "--source", str(GRAPH.source), "--model", "push", naming=path)
    graphlane("algo", "bfs", "--source", GRAPH.source, damaged)


@pytest.mark.parametrize("name", ["out.blocks", "blocks", "degrees", "graph"])
def test_a_file_cut_short_or_missing(graphlane, damaged, name):
    path = damaged / name
    os.truncate(path, path.stat().st_size - 1)
    refused(graphlane, damaged, "pagerank", naming=path)
    path.unlink()
    refused(graphlane, damaged, "pagerank", naming=name)


def test_weights_below_zero(graphlane, tmp_path):
    negative = graphs.StoredGraph("negative", 3, np.array([[0, 1], [1, 2]]), weights=np.array([1, -1], dtype=np.float32))
    path = negative.store(graphlane, tmp_path, "raw", "dual")
    refused(graphlane, path, "sssp", naming="the arc from 1 to 2 has the weight -1")


def test_another_engine_says_what_it_expects(graphlane, stored):
    refused(graphlane, stored, "bfs", "--engine", "semiext", naming="a graph of kind dual, expected lists")


def test_a_graph_in_a_volume(graphlane, stored, volume, tmp_path):
    striped = volume(depth="64K", stripe=["*.blocks"])
    graphlane("import", stored, f"{striped.path}/rmat")
    results = []
    for number, path in enumerate([stored, f"{striped.path}/rmat"]):
        graphlane("algo", "pagerank", "--iterations", "3", "--out", tmp_path / f"{number}.npy", path)
        results.append(np.load(tmp_path / f"{number}.npy"))
    assert (results[0] == results[1]).all()


def test_an_interrupt_ends_it_and_leaves_nothing(stored, tmp_path):
    check_interrupt_leaves_nothing(stored, tmp_path)


@without_sanitizer
def test_no_memory_for_the_values_is_one_line(graphlane, tmp_path):
    """Values of 8 bytes for 60 million vertices, in 400 MiB."""
    few = graphs.StoredGraph("few", 60_000_000, np.array([[0, 1], [59_999_999, 5]]))
    path = few.store(graphlane, tmp_path, "varint", "dual", "-p", "1")
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))  # noqa: E731
    result = subprocess.run([BUILD / "bin/graphlane", "algo", "bfs", "--threads", "1", "--cache", "4M", "--out",
                             tmp_path / "out.npy", path], capture_output=True, text=True, preexec_fn=limit, check=False)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    assert "no memory" in result.stderr and not (tmp_path / "out.npy").exists()
