"""graphlane.algo: the numbers of the references of tests/algo, from every format; and Ctrl-C ends a run."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from algo import reference
from algo.stored_graphs import StoredGraph, rmat_pairs, weighted
from package import SITE

import graphlane
from graphlane import algo

GRAPH = weighted(StoredGraph("python", 1 << 10, rmat_pairs(10, 6000, 5)), 5)
SOURCE = GRAPH.source


def made(path, name):
    return graphlane.from_edges(GRAPH.edges, path / name, weights=GRAPH.weights, num_vertices=GRAPH.vertex_count,
                                format=name)


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    return made(tmp_path_factory.mktemp("algo"), "lists")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return made(tmp_path_factory.mktemp("algo"), "pages")


FUNCTIONS = {
    "bfs levels": (lambda g: algo.bfs(g, SOURCE).levels, lambda g: reference.bfs_levels(g, SOURCE)),
    "bfs parents": (lambda g: algo.bfs(g, SOURCE).parents, lambda g: reference.bfs_parents(g, SOURCE)),
    "pagerank": (lambda g: algo.pagerank(g, iterations=7, cache="4MiB", threads=2), lambda g: reference.pagerank(g, 7)),
    "pagerank limit": (lambda g: algo.pagerank(g, tolerance=1e-12), reference.pagerank_limit),
    "pagerank_delta": (algo.pagerank_delta, reference.pagerank_limit),
    "wcc": (algo.wcc, reference.components),
    "sssp": (lambda g: algo.sssp(g, SOURCE, in_memory=True), lambda g: reference.distances(g, SOURCE)),
    "triangles": (algo.triangles, reference.triangles),
    "lcc": (algo.lcc, reference.clustering),
    "cdlp": (algo.cdlp, reference.communities),
    "kcore": (algo.kcore, reference.cores),
    "betweenness": (lambda g: algo.betweenness(g, [1, 2, 3]), lambda g: reference.betweenness(g, [1, 2, 3])),
    "scan": (algo.scan, reference.scans),
    "msbfs": (lambda g: algo.msbfs(g, [1, 2]).columns["sources"], lambda g: reference.reached_by(g, [1, 2])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_gives_its_reference(lists, name):
    function, want = FUNCTIONS[name]
    np.testing.assert_allclose(function(lists), want(GRAPH), rtol=1e-6, atol=1e-8)


def test_each_name_of_the_command_is_a_function(pages):
    assert "bfs" in algo.names() and "katz" in algo.names()
    for name in algo.names():
        assert callable(getattr(algo, name.replace("-", "_")))
    with pytest.raises(AttributeError):
        _ = algo.nonsense
    np.testing.assert_allclose(algo.ppr(pages, [1, 2]), reference.personalised(GRAPH, [1, 2]), atol=1e-8)
    np.testing.assert_allclose(algo.katz(pages), reference.katz(GRAPH), rtol=1e-6, atol=1e-8)
    assert algo.run("wcc", pages.path, values=False).summary["components"] > 0


@pytest.mark.parametrize("name", ["csr", "grid"])
def test_a_format_without_an_engine_is_converted(tmp_path, lists, name):
    with made(tmp_path, name) as g:
        np.testing.assert_allclose(algo.sssp(g, SOURCE), algo.sssp(lists, SOURCE))
        copy = g.stored()
        assert copy.exists()
    assert not copy.exists()


def test_errors_have_the_commands_line(lists):
    with pytest.raises(graphlane.Error, match=r"99999"):
        algo.bfs(lists, 99999)
    with pytest.raises(graphlane.Error, match="does not have this algorithm"):
        algo.katz(lists)


@pytest.mark.parametrize("number, told", [(signal.SIGINT, "interrupted\n"), (signal.SIGKILL, "")])
def test_the_command_ends_with_the_run(tmp_path, number, told):
    """Only the interpreter gets the signal, as in notebooks. After SIGKILL the kernel interrupts the command."""
    edges = np.random.default_rng(1).integers(0, 1 << 17, (1 << 20, 2))
    graphlane.from_edges(edges, tmp_path / "g")
    script = f"""
import graphlane
try:
    graphlane.algo.pagerank({str(tmp_path / "g")!r}, iterations=10_000_000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                               env=os.environ | {"PYTHONPATH": str(SITE)}, start_new_session=True)
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    ends = time.monotonic() + 30
    while not (started := open(children).read().split()):
        assert time.monotonic() < ends
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    assert process.communicate(timeout=30)[0] == told
    while any(is_running(child) for child in started):
        assert time.monotonic() < ends
        time.sleep(0.05)


def is_running(process: str) -> bool:
    """A zombie has ended: a container without an init keeps it."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_other_threads_run_during_an_algorithm(lists):
    """A thread counts while an algorithm runs in another one."""
    import threading

    done = threading.Event()
    count = 0

    def work():
        algo.pagerank(lists, iterations=200)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        count += 1
    thread.join()
    assert count > 0
