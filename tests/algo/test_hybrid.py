"""`graphlane algo` on dual blocks: models, --explain, damage, and early ends."""

import json
import os
import resource
import signal
import subprocess

import numpy as np
import pytest

from algo import stored_graphs as graphs
from algo.interrupted import check_interrupt_leaves_nothing
from harness import BUILD, SANITIZED, limited_to

GRAPH = graphs.weighted(graphs.StoredGraph("rmat", 1 << 13, graphs.rmat_pairs(13, 150_000, 11)), 3)
MODELS = ["hybrid", "push", "pull", "random"]
without_sanitizer = pytest.mark.skipif(SANITIZED, reason="not applicable: limits the address space")


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
def test_a_forced_model_is_used_for_all_blocks(graphlane, stored, algorithm):
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


def test_explain_shows_predicted_and_real_cost(graphlane, stored):
    _, iterations = explained(graphlane, stored, "bfs", "--source", GRAPH.source)
    assert iterations[0]["active"] == 1
    assert sum(one["predicted_bytes"] for one in iterations) > 0
    for one in iterations:
        assert one["seconds"] > 0 and one["predicted_seconds"] >= 0
    lines = graphlane("-q", "algo", "bfs", "--source", GRAPH.source, "--explain", stored).stdout.splitlines()
    assert lines[0].split() == ["iteration", *iterations[0]]
    assert [int(line.split()[1]) for line in lines[1:len(iterations) + 1]] == [one["active"] for one in iterations]


def test_the_prediction_equals_the_bytes_read(graphlane, stored):
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


def test_another_engine_names_its_format(graphlane, stored):
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


VALUE_PROGRAMS = {"bfs": (8, "--source", GRAPH.source), "sssp": (8, "--source", GRAPH.source), "wcc": (4,), "cdlp": (8,),
                  "pagerank": (28, "--iterations", "4"), "pagerank-to-tolerance": (28, "--tolerance", "1e-4")}


@pytest.fixture(scope="module", params=[[], ["--undirected"]], ids=["directed", "undirected"])
def in_seven(request, graphlane, tmp_path_factory):
    return GRAPH.store(graphlane, tmp_path_factory.mktemp("seven"), "reference", "dual", "-p", "7", *request.param)


@pytest.mark.parametrize("name", VALUE_PROGRAMS)
def test_values_beyond_their_memory_are_in_a_file_and_the_results_the_same(graphlane, in_seven, tmp_path, name):
    bytes_a_vertex, *options = VALUE_PROGRAMS[name]
    interval = bytes_a_vertex * -(-GRAPH.vertex_count // 7)
    results = {}
    for memory, models in [(None, MODELS[:1]), (2 * interval, ["hybrid", "random"]), (5 * interval, MODELS[:1])]:  # of seven intervals
        for model in models:
            out = tmp_path / f"{memory}-{model}.npy"
            given = [] if memory is None else ["--value-memory", memory]
            told = json.loads(graphlane("algo", name.split("-")[0], *options, "--model", model, *given, "--explain", "--json",
                                        "--out", out, in_seven).stdout)
            results[memory, model] = (np.load(out), told["summary"] if model == "hybrid" else None)
            stats, moved = told["stats"], [one.get("value_bytes") for one in told["iterations"]]
            assert (stats["value_bytes_written"] > 0) == (memory is not None)
            assert memory is not None or not any(moved)
            if memory is not None:
                assert 0 < sum(moved) <= stats["value_bytes_read"] + stats["value_bytes_written"]
    values, summary = results[None, "hybrid"]
    for (memory, model), (got, told) in results.items():
        exact = model == "hybrid" or not name.startswith("pagerank")  # a coin also chooses the order of a sum
        assert (got == values).all() if exact else np.allclose(got["rank"] if got.dtype.names else got, values), (memory, model)
        assert told is None or told == summary
    assert sorted(os.listdir(in_seven.parent)) == sorted({in_seven.name, f"{GRAPH.name}.bin"})  # no file of values is left


@pytest.mark.parametrize("algorithm", ["bfs", "wcc", "sssp"])
def test_updates_may_wait_for_the_next_iteration(graphlane, in_seven, tmp_path, algorithm):
    interval = VALUE_PROGRAMS[algorithm][0] * -(-GRAPH.vertex_count // 7)
    results, iterations = [], []
    for words in (["--updates", "immediate"], ["--updates", "accumulated"], ["--updates", "accumulated", "--value-memory", 4 * interval]):
        told = json.loads(graphlane("algo", algorithm, *VALUE_PROGRAMS["bfs"][1:], *words, "--json", "--out", tmp_path / "out.npy", in_seven).stdout)
        results.append(np.load(tmp_path / "out.npy"))
        iterations.append(told["stats"]["iterations"])
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()
    assert iterations[0] <= iterations[1] == iterations[2]


def test_values_of_which_two_intervals_do_not_fit(graphlane, stored):
    refused(graphlane, stored, "bfs", "--value-memory", "32767", naming="--value-memory: the values of a block's two intervals take 32768 bytes")


@without_sanitizer
def test_values_that_cannot_be_written_are_one_line(stored, tmp_path):
    limit = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))  # noqa: E731
    result = subprocess.run([BUILD / "bin/graphlane", "algo", "wcc", "--value-memory", "16K", stored], capture_output=True,
                            text=True, preexec_fn=limit, check=False)
    assert result.returncode == 1 and result.stderr == f"graphlane: {stored.parent}: cannot write vertices' values: File too large\n"


@without_sanitizer
def test_no_memory_for_the_values_is_one_line(graphlane, tmp_path):
    """Values of 8 bytes for 60 million vertices, in 400 MiB."""
    few = graphs.StoredGraph("few", 60_000_000, np.array([[0, 1], [59_999_999, 5]]))
    path = few.store(graphlane, tmp_path, "varint", "dual", "-p", "1")
    result = subprocess.run([BUILD / "bin/graphlane", "algo", "bfs", "--threads", "1", "--cache", "4M", "--out",
                             tmp_path / "out.npy", path], capture_output=True, text=True, preexec_fn=limited_to(400 << 20), check=False)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    assert "no memory" in result.stderr and not (tmp_path / "out.npy").exists()
