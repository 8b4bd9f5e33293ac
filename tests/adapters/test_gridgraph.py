"""Programs written to GridGraph's interface, and GridGraph's own (GRIDGRAPH_SOURCE), compute on
shared partitions. Their results agree with numpy and igraph."""

import ctypes
import fcntl
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import graphs
from harness import BUILD, ROOT, run

from experiments.workloads import share_sweep

PLENTY = 1 << 40
COORDINATOR = BUILD / "bin/graphlane-share-coordinator"
ROOT_VERTEX = 100


@pytest.fixture(scope="module")
def truth() -> graphs.Truth:
    edges = graphs.random_edges(30_000, 25_000, seed=7)
    return graphs.Truth(np.concatenate([edges, edges[:, ::-1]]))


@pytest.fixture(scope="module")
def weights(truth) -> np.ndarray:
    return np.random.default_rng(5).random(len(truth.edges), dtype="f4")


HELD = []


def write_grid(path: Path, *more) -> Path:
    """As graphs.write_grid(), of files that stay open. A file of a later test could have their inodes otherwise, and
    its jobs would find the coordinator of the earlier one, which waits for two seconds."""
    graphs.write_grid(path, *more)
    HELD.extend(open(file, "rb") for file in path.rglob("*") if file.is_file())
    return path


@pytest.fixture
def grid(truth, tmp_path) -> Path:
    return write_grid(tmp_path / "grid", truth.edges, truth.vertex_count, 4)


@pytest.fixture
def weighted(truth, weights, tmp_path) -> Path:
    return write_grid(tmp_path / "weighted", truth.edges, truth.vertex_count, 4, weights)


def program(*words):
    return run(BUILD / "bin/grid_program", *words).stdout


def component_count(truth) -> int:
    return len(set(truth.labels().tolist()))


def reached_count(truth) -> int:
    return int((truth.parents(ROOT_VERTEX) >= 0).sum())


def test_components(grid, truth):
    assert program("components", grid, PLENTY) == f"{component_count(truth)}\n"


def test_levels(grid, truth):
    assert program("levels", grid, PLENTY, ROOT_VERTEX) == f"{reached_count(truth)}\n"


# 30,000 vertices of 8 bytes: 240,000 in four partitions.
@pytest.mark.parametrize("memory, windows", [(PLENTY, 1), (160_000, 2), (1000, 4), (0, 4)])
def test_ranks_by_windows(grid, truth, memory, windows):
    total = truth.pagerank(10).sum()
    said = program("ranks", grid, memory).split()
    assert float(said[0]) == pytest.approx(total, rel=1e-6)
    assert int(said[2]) == windows
    assert np.allclose(np.fromfile(grid / "rank"), truth.pagerank(10), rtol=1e-9)


def test_weights(weighted, truth, weights):
    expected = (truth.edges[:, 0] * weights.astype("f8")).sum()
    assert float(program("products", weighted, PLENTY)) == pytest.approx(expected, rel=1e-6)


def test_many_at_once(grid, truth):
    jobs = [subprocess.Popen([BUILD / "bin/grid_program", *map(str, words)], stdout=subprocess.PIPE,
                             text=True)
            for words in 2 * [("components", grid, PLENTY), ("levels", grid, PLENTY, ROOT_VERTEX),
                              ("ranks", grid, PLENTY)]]
    said = [job.communicate(timeout=100)[0] for job in jobs]
    assert said[0] == said[3] == f"{component_count(truth)}\n"
    assert said[1] == said[4] == f"{reached_count(truth)}\n"
    for ranks in [said[2], said[5]]:
        assert float(ranks.split()[0]) == pytest.approx(truth.pagerank(10).sum(), rel=1e-6)


# A mounted volume has no O_TMPFILE: the second job once ended there.
def test_jobs_on_a_mounted_volume_have_separate_vertices(graphlane, volume, mount, grid, truth):
    made = volume(depth="64K", stripe=["column", "row"])
    graphlane("import", grid, made.path)
    with mount(made) as at, open(at / "grid/rank", "wb") as first:
        fcntl.flock(first, fcntl.LOCK_EX)  # as the first job does
        said = program("ranks", at / "grid", PLENTY)
        assert float(said.split()[0]) == pytest.approx(truth.pagerank(10).sum(), rel=1e-6)
        assert os.fstat(first.fileno()).st_size == 0
        assert [path.name for path in (at / "grid").glob("rank*")] == ["rank"]


def test_vertices_may_have_a_directory_of_their_own(grid, truth, tmp_path):
    run(BUILD / "bin/grid_program", "ranks", grid, PLENTY,
        env=os.environ | {"GRAPHLANE_VERTEX_DIR": str(tmp_path)})
    assert np.allclose(np.fromfile(tmp_path / "rank"), truth.pagerank(10), rtol=1e-9)
    assert not (grid / "rank").exists()


def test_an_invalid_grid_is_reported_in_one_line(tmp_path):
    result = run(BUILD / "bin/grid_program", "components", tmp_path, PLENTY, check=False)
    assert result.returncode == 1
    assert result.stderr == f"{tmp_path}/meta: cannot open: No such file or directory\n"


def test_the_budget_may_be_an_environment_variable(truth, tmp_path):
    def components(budget):
        # A grid of its own: a running coordinator would keep its own budget.
        grid = write_grid(tmp_path / budget, truth.edges, truth.vertex_count, 4)
        log = tmp_path / f"log-{budget}"
        result = run(BUILD / "bin/grid_program", "components", grid, PLENTY, check=False,
                     env=os.environ | {"GRAPHLANE_SHARE_BUDGET": budget, "GRAPHLANE_SHARE_LOG": str(log)})
        return result.returncode, result.stderr, log.read_text()

    assert components("10M") == (0, "", "")
    status, said, log = components("1K")
    assert (status, log) == (1, "")
    assert re.fullmatch(r"column: partition 0 has \d+ bytes, the buffers' budget is 1024\n", said)
    status, said, log = components("lots")
    assert status == 1
    assert said.endswith(": did not start; GRAPHLANE_SHARE_LOG=FILE tells why\n")
    assert log.startswith("graphlane-share-coordinator: GRAPHLANE_SHARE_BUDGET: 'lots': not a size")


# A coordinator stays for some seconds after its last job. Once it was found by the inode number
# alone, so that it served a new graph as well, with its own budget.
def test_a_graph_made_after_another_was_deleted_gets_a_coordinator_of_its_own(truth, tmp_path):
    grid = tmp_path / "grid"

    def components(budget):
        write_grid(grid, truth.edges, truth.vertex_count, 4)
        inode = (grid / "column").stat().st_ino
        result = run(BUILD / "bin/grid_program", "components", grid, PLENTY, check=False,
                     env=os.environ | {"GRAPHLANE_SHARE_BUDGET": budget})
        shutil.rmtree(grid)
        return inode, result.returncode

    first_inode, status = components("10M")
    assert status == 0
    inode, status = components("1K")
    if inode != first_inode:
        pytest.skip("not applicable: this file system gave the new file another inode number")
    assert status == 1


def test_the_order_of_loading_may_be_that_of_the_graph(grid, truth, tmp_path):
    def components(order):
        log = tmp_path / "log"
        result = run(BUILD / "bin/grid_program", "components", grid, PLENTY, check=False,
                     env=os.environ | {"GRAPHLANE_SHARE_ORDER": order,
                                       "GRAPHLANE_SHARE_LOG": str(log)})
        return result.returncode, result.stdout, log.read_text()

    assert components("graph") == (0, f"{component_count(truth)}\n", "")


def test_an_unknown_order_is_reported(grid, tmp_path):
    log = tmp_path / "log"
    result = run(BUILD / "bin/grid_program", "components", grid, PLENTY, check=False,
                 env=os.environ | {"GRAPHLANE_SHARE_ORDER": "any", "GRAPHLANE_SHARE_LOG": str(log)})
    assert result.returncode == 1
    assert log.read_text() == ("graphlane-share-coordinator: GRAPHLANE_SHARE_ORDER: 'any': "
                               "neither priority nor graph\n")


# --- the example ------------------------------------------------------------------


def compiled(source: Path, headers: Path, program: Path, *more) -> Path:
    run("g++", "-std=c++11", "-O2", "-fopenmp", "-I", headers, "-I", ROOT / "adapters/share/client", source,
        "-o", program, *more)
    return program


def shared(source: Path, program: Path) -> Path:
    """Compiled with these headers."""
    return compiled(source, ROOT / "adapters/gridgraph", program,
                    ROOT / "build/plain/lib/libgraphlane-share.a", "-lfmt")


def example_lengths(edges: np.ndarray) -> np.ndarray:
    source, target = edges.astype("u4").T
    return 1 + (source * np.uint32(2654435761) + target * np.uint32(2246822519) >> np.uint32(28))


def distances(truth, lengths) -> np.ndarray:
    return np.array(truth.graph.distances(ROOT_VERTEX, weights=lengths.tolist())[0])


@pytest.fixture(scope="module")
def sssp(tmp_path_factory):
    """sssp(grid, root)"""
    program = shared(ROOT / "adapters/gridgraph/examples/sssp.cpp",
                     tmp_path_factory.mktemp("example") / "sssp")
    return lambda grid, root, **how: run(
        program, grid, root, 1, env=os.environ | {"GRAPHLANE_SHARE_COORDINATOR": str(COORDINATOR)},
        **how)


def test_shortest_paths(sssp, grid, truth):
    said = sssp(grid, ROOT_VERTEX).stdout
    expected = distances(truth, example_lengths(truth.edges))
    assert np.array_equal(np.fromfile(grid / "distance", "f4"), expected.astype("f4"))
    assert said.startswith(f"{np.isfinite(expected).sum()} vertices reached from {ROOT_VERTEX} by ")


def test_shortest_paths_by_weights(sssp, weighted, truth, weights):
    sssp(weighted, ROOT_VERTEX)
    assert np.allclose(np.fromfile(weighted / "distance", "f4"), distances(truth, weights), rtol=1e-5)


def test_shortest_paths_from_nowhere(sssp, grid, truth):
    result = sssp(grid, truth.vertex_count, check=False)
    assert result.returncode == 2
    assert result.stderr == f"sssp: no vertex {truth.vertex_count}: there are {truth.vertex_count}\n"


def test_the_example_compiles_with_gridgraphs_own_headers(grid, truth, tmp_path):
    if "GRIDGRAPH_SOURCE" not in os.environ:
        pytest.skip("not applicable: GRIDGRAPH_SOURCE is not set")
    run(compiled(ROOT / "adapters/gridgraph/examples/sssp.cpp", Path(os.environ["GRIDGRAPH_SOURCE"]),
                 tmp_path / "sssp"), grid, ROOT_VERTEX, 1)
    expected = distances(truth, example_lengths(truth.edges))
    assert np.array_equal(np.fromfile(grid / "distance", "f4"), expected.astype("f4"))


# --- GridGraph's own programs -------------------------------------------------


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Compiles an unmodified example of GridGraph: examples("wcc")."""
    if "GRIDGRAPH_SOURCE" not in os.environ:
        pytest.skip("not applicable: GRIDGRAPH_SOURCE is not set")
    source = Path(os.environ["GRIDGRAPH_SOURCE"]) / "examples"
    built = tmp_path_factory.mktemp("examples")

    def example(name: str) -> Path:
        if not (built / name).exists():
            shared(source / f"{name}.cpp", built / name)
        return built / name

    return example


def own(program: Path, *words) -> str:
    return run(program, *words, env=os.environ | {"GRAPHLANE_SHARE_COORDINATOR": str(COORDINATOR)}).stdout


def test_gridgraph_wcc(examples, grid, truth):
    assert f"{component_count(truth)} components found" in own(examples("wcc"), grid, 8)
    assert (np.fromfile(grid / "label", "<i4") == truth.labels()).all()


def test_gridgraph_bfs(examples, grid, truth):
    said = own(examples("bfs"), grid, ROOT_VERTEX, 8)
    assert f"discovered {reached_count(truth)} vertices from {ROOT_VERTEX}" in said


def test_gridgraph_pagerank(examples, grid, truth):
    own(examples("pagerank"), grid, 10, 8)
    # Its threads add float32 in any order. A vertex without edges divides 0 by 0.
    rank = np.fromfile(grid / "pagerank", "<f4")
    linked = np.bincount(truth.edges[:, 0], minlength=truth.vertex_count) > 0
    assert np.allclose(rank[linked], truth.pagerank(10)[linked], rtol=1e-4)


def test_gridgraph_spmv(examples, weighted, truth, weights):
    own(examples("spmv"), weighted, 8, 8)
    output = np.fromfile(weighted / "output", "<f4")
    source, target = truth.edges.T
    expected = np.bincount(target, source * weights.astype("f8"), truth.vertex_count)
    assert np.allclose(output, expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["mis", "radii"])
def test_gridgraph_others_end(examples, grid, name):
    assert "time:" in own(examples(name), grid, 8)


@contextmanager
def watched(grid: Path, budget_bytes: int):
    """A job that only reads the counters: the partitions granted to all jobs, and the loads for
    them."""
    kit = ctypes.CDLL(str(share_sweep.LIBRARY))
    job, counts = ctypes.c_void_p(), (ctypes.c_uint64 * 14)()  # graphlane_share_statistics

    def statistics() -> dict[str, int]:
        assert kit.graphlane_share_get_statistics(job, counts) == 0
        return {"loaded": counts[2], "given": counts[4]}

    options = share_sweep.Options(budget_bytes=budget_bytes)
    assert kit.graphlane_share_init_grid(str(grid).encode(), ctypes.byref(options), ctypes.byref(job),
                                         None) == 0
    try:
        yield statistics
    finally:
        kit.graphlane_share_end(job)


def test_sixteen_gridgraph_jobs_at_once(examples, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHLANE_SHARE_COORDINATOR", str(COORDINATOR))
    edges = graphs.random_edges(50_000, 400_000, seed=11)
    truth = graphs.Truth(np.concatenate([edges, edges[:, ::-1]]))
    grid = write_grid(tmp_path / "grid", truth.edges, truth.vertex_count, 4)
    graph_bytes = (grid / "column").stat().st_size
    kinds = [("wcc", grid, 8), ("pagerank", grid, 5, 8), ("bfs", grid, ROOT_VERTEX, 8), ("wcc", grid, 8)]
    places = [tmp_path / f"job-{i}" for i in range(16)]

    with watched(grid, graph_bytes // 8) as statistics:
        jobs = []
        for place, (name, *words) in zip(places, 4 * kinds):
            place.mkdir()
            jobs.append(subprocess.Popen([examples(name), *map(str, words)], stdout=subprocess.PIPE,
                                         text=True, env=os.environ | {"GRAPHLANE_VERTEX_DIR": str(place)}))
        said = [job.communicate(timeout=100)[0] for job in jobs]
        counts = statistics()

    ranks, labels, reached = truth.pagerank(5), truth.labels(), truth.parents(ROOT_VERTEX) >= 0
    edge_numbers = truth.edges @ [truth.vertex_count, 1]
    for i, place in enumerate(places):
        match kinds[i % 4][0]:
            case "wcc":
                assert f"{len(set(labels.tolist()))} components" in said[i]
                assert (np.fromfile(place / "label", "<i4") == labels).all()
            case "pagerank":
                assert "5 iterations" in said[i]
                assert np.allclose(np.fromfile(place / "pagerank", "<f4"), ranks, rtol=1e-4)
            case "bfs":
                assert f"discovered {reached.sum()} vertices" in said[i]
                parent = np.fromfile(place / "parent", "<i4").astype(np.int64)
                assert ((parent >= 0) == reached).all()
                child = np.flatnonzero(reached & (parent != np.arange(len(parent))))
                assert np.isin(parent[child] * truth.vertex_count + child, edge_numbers).all()
                assert len(child) == reached.sum() - 1
    # One coordinator served all of them: each PageRank sweeps six times. With an eighth of the
    # graph in memory, separate jobs would load 0.88 of the granted bytes. One convoy loads 0.22,
    # and more where it waits for cores.
    assert counts["given"] >= 4 * 6 * graph_bytes
    assert counts["loaded"] <= counts["given"] / 2
