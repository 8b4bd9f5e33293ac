"""The abilities of the engine kv: portions, workers, warm starts, cache policies, and its refusals."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from algo import reference
from algo import stored_graphs as graphs
from harness import BUILD, SANITIZED

SCALE, ARCS = (11, 30_000) if SANITIZED else (13, 150_000)
GRAPH = graphs.StoredGraph("kv", 1 << SCALE, graphs.rmat_pairs(SCALE, ARCS, 31))


@pytest.fixture(scope="module")
def stored(graphlane, tmp_path_factory):
    return GRAPH.store(graphlane, tmp_path_factory.mktemp("kv"), "varint", "pages")


@pytest.fixture
def ranks(graphlane, stored, tmp_path):
    """ranks(*options): the values, the summary and the stats of a PageRank."""

    def run(*options, algorithm="pagerank-delta", graph=None):
        out = tmp_path / "out.npy"
        told = json.loads(graphlane("algo", algorithm, *options, "--json", "--out", out, graph or stored).stdout)
        return np.load(out), told["summary"], told["stats"]

    return run


WAYS = {
    "portion-0.1": ["--portion", "0.1", "--threads", "1"],
    "portion-0.01": ["--portion", "0.01"],
    "2-workers": ["--workers", "2"],
    "5-workers-portion-0.1": ["--workers", "5", "--portion", "0.1"],
    "prefetch": ["--prefetch", "16", "--buffer", "2", "--cache", "0"],
    "hot-last": ["--cache-policy", "hot-last", "--cache", "64K"],
    "lru": ["--cache-policy", "lru", "--cache", "64K"],
    "s3fifo": ["--cache-policy", "s3fifo", "--cache", "64K", "--portion", "0.1"],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_reaches_the_fixpoint(ranks, way):
    want = GRAPH.once("limit", lambda: reference.pagerank_limit(GRAPH))
    assert np.abs(ranks(*WAYS[way])[0] - want).sum() < 1e-8


@pytest.mark.parametrize("workers", ["2", "3"])
def test_minima_by_workers(graphlane, ranks, workers, tmp_path):
    assert (ranks("--workers", workers, algorithm="wcc")[0] == reference.components(GRAPH)).all()
    weighted = graphs.weighted(GRAPH, 32)
    path = weighted.store(graphlane, tmp_path, "simd", "pages")
    got = ranks("--workers", workers, "--source", weighted.source, algorithm="sssp", graph=path)[0]
    assert (got == reference.distances(weighted, weighted.source)).all()


def test_a_warm_start_after_the_graph_changed(graphlane, ranks, stored, tmp_path):
    before, _, cold = ranks()
    np.save(tmp_path / "before.npy", before)
    # A few arcs are removed and a few added.
    changed = graphs.StoredGraph("changed", GRAPH.vertex_count, np.concatenate([GRAPH.edges[50:], graphs.random_pairs(GRAPH.vertex_count, 50, 33)]))
    path = changed.store(graphlane, tmp_path, "varint", "pages")
    want = reference.pagerank_limit(changed)
    cold = ranks(graph=path)[2]
    for workers in ["1", "2"]:
        warm, _, stats = ranks("--init", tmp_path / "before.npy", "--workers", workers, "--threads", "1", graph=path)
        assert np.abs(warm - want).sum() < 1e-8
    warm = ranks("--init", tmp_path / "before.npy", "--threads", "1", graph=path)[2]
    assert warm["messages"] < 0.9 * cold["messages"]
    same = ranks("--init", tmp_path / "before.npy", "--threads", "1")
    assert np.abs(same[0] - before).sum() < 1e-8 and same[2]["messages"] < 0.1 * cold["messages"]


def test_a_portion_takes_fewer_lists_to_the_fixpoint(ranks):
    whole, part = ranks("--threads", "1")[2], ranks("--threads", "1", "--portion", "0.1")[2]
    assert part["lists"] < whole["lists"] and part["iterations"] > whole["iterations"]


def test_a_killed_worker_ends_the_run_and_is_named(stored, tmp_path):
    command = [BUILD / "bin/graphlane", "algo", "pagerank-delta", "--workers", "2", "--tolerance", "1e-300", "--out",
               tmp_path / "out.npy", stored]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    deadline = time.monotonic() + 60
    while len(pids := children.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(int(pids[1]), signal.SIGKILL)
    out, error = job.communicate(timeout=60)
    assert job.returncode == 1 and out == "", error
    assert error.splitlines()[-1].startswith(f"graphlane: worker 1 (process {pids[1]}) was ended by signal 9"), error
    assert not list(tmp_path.iterdir())
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_damaged_page_is_named_by_a_worker_too(graphlane, tmp_path):
    path = GRAPH.store(graphlane, tmp_path, "raw", "pages")
    store = path / "out.pages"
    content = bytearray(store.read_bytes())
    content[8192 + 3 * 8192 + 500] ^= 8
    store.write_bytes(content)
    for options in [[], ["--in-memory"], ["--workers", "2"]]:
        result = graphlane("algo", "pagerank-delta", *options, path, check=False)
        assert result.returncode == 1 and f"{store}: page 3 " in result.stderr, result.stderr


@pytest.mark.parametrize("words, naming", [
    (["--portion", "0"], "--portion"),
    (["--portion", "1.5"], "--portion"),
    (["--workers", "0"], "--workers"),
    (["--cache-policy", "best"], "best"),
    (["--iterations", "3"], "--iterations"),
    (["--tolerance", "0"], "--tolerance"),
    (["--init", "none.npy"], "none.npy"),
])
def test_refusals(graphlane, stored, words, naming):
    result = graphlane("algo", "pagerank-delta", *words, stored, check=False)
    assert result.returncode in (1, 2) and naming in result.stderr and result.stderr.count("\n") <= 2, result.stderr


def test_other_refusals(graphlane, stored, tmp_path):
    def refused(*words):
        result = graphlane("algo", *words, check=False)
        assert result.returncode == 1 and result.stderr.count("\n") == 1, result.stderr
        return result.stderr

    np.save(tmp_path / "short.npy", np.zeros(3))
    assert f"{GRAPH.vertex_count} vertices" in refused("pagerank-delta", "--init", tmp_path / "short.npy", stored)
    assert "takes no --init" in refused("wcc", "--init", tmp_path / "short.npy", stored)
    assert "does not converge" in refused("katz", "--alpha", "10", stored)
    assert "does not converge" in refused("katz", "--alpha", "10", "--workers", "2", stored)
    lists = GRAPH.store(graphlane, tmp_path, "varint")
    assert "--portion is for the engine kv" in refused("wcc", "--portion", "0.1", lists)
    assert "expected pages" in refused("wcc", "--engine", "kv", lists)
