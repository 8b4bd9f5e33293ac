"""Each algorithm of `graphlane algo` against its reference: algorithm × engine × codec × threads."""

from copy import copy

import numpy as np
import pytest

from algo import reference
from algo import stored_graphs as graphs
from harness import SANITIZED

# The format of an engine's graphs, and how to make it. kv runs to a fixpoint: it has no bfs and no iteration count.
ENGINES = {"semiext": ["lists"], "hybrid": ["dual", "-p", "3"], "kv": ["pages"]}
CODECS = ["raw", "varint", "simd"]
# Threads, and options. The smallest cache is below all files but the smallest.
WAYS = {
    "1-thread": ["--threads", "1", "--cache", "4M"],
    "8-threads": ["--threads", "8", "--cache", "4M"],
    "in-memory": ["--threads", "8", "--in-memory"],
}
if SANITIZED:  # one codec, and threads that share lists
    CODECS = ["varint"]
    WAYS = {way: WAYS[way] for way in ("8-threads", "in-memory")}
# A codec that only the format dual has.
OF_DUAL = [("reference", way) for way in ("8-threads", "in-memory")]
# Each block pushed or pulled by a throw of a coin: no choice may change a result.
RANDOM = ["--threads", "8", "--cache", "4M", "--model", "random"]


def exactly(got, want):
    np.testing.assert_array_equal(got, want)


def closely(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-15)


def within_tolerance(got, want):
    assert np.abs(got - want).sum() < 1e-8


def nearly(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-8)


BLOCKS = ("semiext", "hybrid")
OF_HYBRID = ("bfs", "pagerank", "wcc", "sssp", "cdlp")
ALL = ("semiext", "hybrid", "kv")


def path_ends(graph, count):
    """Some sources for algorithms that take several."""
    return sorted({graph.source, *(graph.vertex_count * i // count for i in range(count))})[:count]


class Case:
    def __init__(self, name, want, *options, column=None, check=exactly, sources=0, engines=None):
        self.name, self.want, self.options, self.column = name, want, options, column
        self.check, self.sources = check, sources
        self.engines = engines or (BLOCKS if name in OF_HYBRID else ("semiext",))

    def arguments(self, graph):
        sources = [graph.source] if self.sources == 1 else path_ends(graph, self.sources) if self.sources else []
        return [*self.options, *(word for source in sources for word in ("--source", str(source)))]


CASES = {
    "bfs-levels": Case("bfs", lambda g: reference.bfs_levels(g, g.source), column="level", sources=1),
    "bfs-parents": Case("bfs", lambda g: reference.bfs_parents(g, g.source), column="parent", sources=1),
    "wcc": Case("wcc", reference.components, engines=ALL),
    "pagerank-7": Case("pagerank", lambda g: reference.pagerank(g, 7), "--iterations", "7", check=closely),
    "pagerank-none": Case("pagerank", lambda g: reference.pagerank(g, 5, 0.6, "none"), "--iterations", "5",
                          "--damping", "0.6", "--dangling", "none", check=closely),
    "pagerank-limit": Case("pagerank", reference.pagerank_limit, "--tolerance", "1e-10", check=within_tolerance),
    "pagerank-delta": Case("pagerank-delta", reference.pagerank_limit, "--tolerance", "1e-9", check=within_tolerance,
                           engines=("semiext", "kv")),
    "ppr": Case("ppr", lambda g: reference.personalised(g, path_ends(g, 3)), check=within_tolerance, sources=3, engines=("kv",)),
    "katz": Case("katz", reference.katz, check=nearly, engines=("kv",)),
    "katz-alpha": Case("katz", lambda g: reference.katz(g, 1e-4), "--alpha", "1e-4", check=nearly, engines=("kv",)),
    "sssp": Case("sssp", lambda g: reference.distances(g, g.source), sources=1, engines=ALL),
    "triangles": Case("triangles", reference.triangles),
    "lcc": Case("lcc", reference.clustering, check=closely),
    "cdlp": Case("cdlp", reference.communities),
    "cdlp-3": Case("cdlp", lambda g: reference.communities(g, 3), "--iterations", "3"),
    "kcore": Case("kcore", reference.cores),
    "betweenness": Case("betweenness", lambda g: reference.betweenness(g, [g.source]), check=closely, sources=1),
    "betweenness-3": Case("betweenness", lambda g: reference.betweenness(g, path_ends(g, 3)), check=closely, sources=3),
    "scan": Case("scan", reference.scans),
    "msbfs": Case("msbfs", lambda g: reference.reached_by(g, path_ends(g, 5)), column="sources", sources=5),
}


@pytest.fixture(scope="session")
def stored(graphlane, tmp_path_factory):
    """stored(graph, codec, engine): the path of the graph, made once."""
    directory = tmp_path_factory.mktemp("graphs")
    return lambda graph, codec, engine: graph.store(graphlane, directory, codec, *ENGINES[engine])


def compute(graphlane, path, case, graph, engine, options, out):
    graphlane("-q", "algo", "--engine", engine, *case.arguments(graph), *options, "--out", out, case.name, path)
    values = np.load(out)
    return values[case.column] if case.column else values


def check(graphlane, stored, graph, case, runs, out, of_dual=()):
    """Compares each run, a codec and a way, with the reference; of_dual: those of the format dual alone."""
    want = graph.once(("want", case.want), lambda: case.want(graph))
    for engine in case.engines:
        for codec, way in [*runs, *(of_dual if engine == "hybrid" else ())]:
            options = RANDOM if engine == "hybrid" and way == "in-memory" else WAYS[way]
            got = compute(graphlane, stored(graph, codec, engine), case, graph, engine, options, out)
            assert got.shape == (graph.vertex_count,)
            try:
                case.check(got, want)
            except AssertionError as wrong:
                raise AssertionError(f"{graph.name}, {engine}, {codec}, {way}: {wrong}") from None


SMALL = graphs.small()


def pairs(number):
    """Every codec and every way, in pairs that differ from one number to the next; three numbers have all pairs.
    One pair with a sanitizer."""
    count = 1 if SANITIZED else max(len(CODECS), len(WAYS))
    ways = list(WAYS)
    return [(CODECS[i % len(CODECS)], ways[(i + number) % len(ways)]) for i in range(count)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("number", range(len(SMALL)), ids=[graph.name for graph in SMALL])
def test_small_graphs(graphlane, stored, number, case, tmp_path):
    check(graphlane, stored, SMALL[number], CASES[case], pairs(number), tmp_path / "out.npy",
          of_dual=[OF_DUAL[number % len(OF_DUAL)]])


without_sanitizer = pytest.mark.skipif(SANITIZED, reason="not applicable: under a sanitizer small graphs do")

# One of each algorithm: small graphs test the others.
ONCE = [case for case in CASES if case not in ("bfs-parents", "pagerank-none", "pagerank-limit", "pagerank-delta",
                                                "cdlp", "betweenness-3")]


def of_large(graph, name):
    """The case on a star or a chain. On some of them kv takes a round for each vertex of a chain; on an undirected
    star, what is left goes from the centre to a million leaves and back a hundred times."""
    case = copy(CASES[name])
    too_long = ("wcc", "sssp") if graph.name.startswith("chain") else ("ppr", "katz-alpha") if graph.name == "star" else ()
    if name in too_long:
        case.engines = tuple(engine for engine in case.engines if engine != "kv")
    return case


LARGE = [(graph, of_large(graph, name)) for graph in graphs.large() for name in ONCE if of_large(graph, name).engines]


@without_sanitizer
@pytest.mark.parametrize("graph, case", LARGE, ids=lambda value: value.name)
def test_stars_and_chains(graphlane, stored, graph, case, tmp_path):
    codec = "raw" if graph.name == "star" else "varint"  # a raw list of 4 MB is more than one range
    check(graphlane, stored, graph, case, [(codec, "1-thread"), (codec, "8-threads")], tmp_path / "out.npy")


@without_sanitizer
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", graphs.REAL)
def test_real_graphs(graphlane, stored, name, case, tmp_path):
    graph = real_graph(name)
    ways = ["1-thread", "8-threads"]
    if CASES[case].check is not exactly:  # these take many rounds: each graph one way
        ways = [ways[graphs.REAL.index(name) % 2]]
    check(graphlane, stored, graph, CASES[case], [("varint", way) for way in ways], tmp_path / "out.npy")


REAL_GRAPHS = {}


def real_graph(name):
    if name not in REAL_GRAPHS:
        REAL_GRAPHS[name] = graphs.real(name)
    if REAL_GRAPHS[name] is None:
        pytest.skip(f"not applicable: GRAPHLANE_TEST_DATA has no {name}")
    return REAL_GRAPHS[name]
