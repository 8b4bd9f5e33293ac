"""Unmodified engines compute the same on a volume as on plain files. On plain files they agree
with igraph."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import graphs
from harness import run

PARTITIONS = 4
SHARDS = 3
# The ways to a volume. "native" is a plain directory: the others must give its results.
WAYS = ["preload", "private mount", "mount"]


@pytest.fixture(scope="module")
def gowalla() -> graphs.Truth:
    return graphs.Truth(graphs.load("gowalla"))


class Stage:
    """A directory of files, plain and on a volume, and the ways to run a program on it."""

    def __init__(self, graphlane, plain: Path, scratch: Path, **volume_options):
        self.graphlane = graphlane
        self.plain = plain
        self.scratch = scratch
        self.volume = graphlane.create(scratch / "stage", depth="256K", **volume_options)
        graphlane("import", "--min-size", "64K", plain, self.volume.path / plain.name)

    def run(self, way: str, program: Path, *words, env=None):
        """Runs a program. A word "{dir}" becomes the directory to work on."""
        env = os.environ | (env or {})

        def command(root: Path):
            return [program, *(str(word).replace("{dir}", str(root)) for word in words)]

        on_volume = self.volume.path / self.plain.name
        if way == "native":
            return run(*command(self.plain), env=env)
        if way == "preload":
            return self.graphlane("run", "--no-mount", "--", *command(on_volume), env=env)
        if way == "private mount":
            return self.graphlane("run", "--", *command(on_volume), env=env)
        with self.graphlane.mounted(self.volume, self.scratch / "mnt") as mnt:
            return run(*command(mnt / self.plain.name), env=env)


def possible(request) -> str:
    """The requested way, or a skip where this machine lacks it."""
    if request.param in ["private mount", "mount"]:
        request.getfixturevalue("fuse")
    return request.param


@pytest.fixture(params=WAYS)
def way(request):
    return possible(request)


# --- the grid ---------------------------------------------------------------


@pytest.fixture(scope="module")
def grid_stage(graphlane, gowalla, tmp_path_factory) -> Stage:
    scratch = tmp_path_factory.mktemp("grid")
    edges = graphs.write_bin(scratch / "gowalla.bin", gowalla.edges)
    grid = scratch / "gowalla"
    graphlane("convert", "--from", "bin", "--to", "grid", "--partitions", PARTITIONS, edges, grid)
    return Stage(graphlane, grid, scratch)


def sorted_edges(path: Path) -> np.ndarray:
    edges = np.fromfile(path, "<i4").reshape(-1, 2)
    return edges[np.lexsort(edges.T)]


def test_convert_makes_the_grid_of_gridgraphs_own_preprocessing(gowalla, grid_stage, tmp_path):
    expected = graphs.write_grid(
        tmp_path / "grid", gowalla.edges, gowalla.vertex_count, PARTITIONS)
    names = {path.name for path in expected.iterdir()}
    assert names <= {path.name for path in grid_stage.plain.iterdir()}
    for name in ["meta", "column_offset", "row_offset"]:
        assert (grid_stage.plain / name).read_bytes() == (expected / name).read_bytes(), name
    offsets = {name: np.fromfile(expected / f"{name}_offset", "<i8") // 8
               for name in ["row", "column"]}
    for name, offset in offsets.items():
        ours = np.fromfile(grid_stage.plain / name, "<i4").reshape(-1, 2)
        theirs = np.fromfile(expected / name, "<i4").reshape(-1, 2)
        for begin, end in zip(offset[:-1], offset[1:]):
            one, other = ours[begin:end], theirs[begin:end]
            assert (one[np.lexsort(one.T)] == other[np.lexsort(other.T)]).all(), name
    for name in names:
        if name.startswith("block-"):
            same = sorted_edges(grid_stage.plain / name) == sorted_edges(expected / name)
            assert np.all(same), name


def grid_results(engines, stage, way, scratch, *options) -> dict[str, bytes]:
    """PageRank, components and BFS of grid_engine, whole."""
    out = scratch / "out"
    results = {}
    for words in [("pagerank", "{dir}", "--iterations", 10), ("wcc", "{dir}"),
                  ("bfs", "{dir}", "--root", 100)]:
        stage.run(way, engines / "grid_engine", *words, *options, "--out", out)
        results[words[0]] = out.read_bytes()
    return results


GRID_OPTIONS = {
    "buffered": ("--buffered",),
    "direct": ("--direct", "--threads", 4),
    # 196591 vertices of 16 bytes do not fit: windows, and vertices by direct I/O.
    "small memory": ("--memory", "512K", "--threads", 3),
}


@pytest.fixture(scope="module", params=GRID_OPTIONS)
def grid_options(request):
    return GRID_OPTIONS[request.param]


@pytest.fixture(scope="module")
def native_grid_results(grid_stage, engines, tmp_path_factory, grid_options):
    return grid_results(engines, grid_stage, "native", tmp_path_factory.mktemp("native"), *grid_options)


def test_grid_engine_agrees_with_igraph(gowalla, native_grid_results):
    results = native_grid_results
    assert np.allclose(np.frombuffer(results["pagerank"]), gowalla.pagerank(10), rtol=1e-9)
    assert (np.frombuffer(results["wcc"], "<i4") == gowalla.labels()).all()
    assert (np.frombuffer(results["bfs"], "<i4") == gowalla.parents(100)).all()


def test_grid_engine_pagerank_converges_to_igraphs(gowalla, grid_stage, engines, tmp_path):
    out = tmp_path / "out"
    run(engines / "grid_engine", "pagerank", grid_stage.plain, "--iterations", 100, "--out", out)
    assert np.allclose(np.fromfile(out), gowalla.pagerank_limit(), rtol=1e-6)


def test_grid_engine_computes_the_same_on_a_volume(
        grid_stage, native_grid_results, engines, tmp_path, way, grid_options):
    assert grid_results(engines, grid_stage, way, tmp_path, *grid_options) == native_grid_results


class Jobs:
    """Several programs at once under `graphlane run`, over one mount. Each has a directory of
    its own, with symbolic links to the grid's files."""

    COUNT = 16
    GRID = ["meta", "row", "row_offset", "column", "column_offset", "block-*"]

    def __init__(self, stage: Stage, mount: Path, share: str):
        self.stage = stage
        self.share = share
        self.places = [mount / f"job-{i}" for i in range(self.COUNT)]
        for place in self.places:
            place.mkdir()
            for path in [path for glob in self.GRID for path in stage.plain.glob(glob)]:
                (place / path.name).symlink_to(Path("..") / stage.plain.name / path.name)

    def run(self, command) -> list[str]:
        """The output of each; command(i, place) is the i-th command."""
        env = os.environ | {"GRAPHLANE_IO": "direct"}  # otherwise the page cache would serve everything
        words = [self.stage.graphlane.program, "run", f"--share={self.share}", "--"]
        jobs = [subprocess.Popen([*words, *map(str, command(i, place))], env=env, text=True,
                                 stdout=subprocess.PIPE) for i, place in enumerate(self.places)]
        said = [job.communicate(timeout=100)[0] for job in jobs]
        assert [job.returncode for job in jobs] == [0] * self.COUNT
        return said

    def remove(self) -> None:
        for place in self.places:
            shutil.rmtree(place)


@pytest.fixture(params=["auto", "map"])
def jobs(request, fuse, grid_stage, tmp_path):
    with grid_stage.graphlane.mounted(grid_stage.volume, tmp_path / "mnt") as mount:
        several = Jobs(grid_stage, mount, request.param)
        try:
            yield several
            shared = json.loads(os.getxattr(mount, "user.graphlane.stats"))["shared"]
            assert shared["fetched_bytes"] > 0 and shared["hit_bytes"] > 0, "they have met"
        finally:
            several.remove()


def test_sixteen_jobs_share_a_mount_and_each_is_right(jobs, engines, gowalla, tmp_path):
    mix = [("wcc",), ("pagerank", "--iterations", 10), ("bfs", "--root", 100)]
    jobs.run(lambda i, place: [engines / "grid_engine", mix[i % 3][0], place, *mix[i % 3][1:],
                               "--out", tmp_path / f"out-{i}"])
    for i in range(Jobs.COUNT):
        out = (tmp_path / f"out-{i}").read_bytes()
        if mix[i % 3][0] == "pagerank":
            assert np.allclose(np.frombuffer(out), gowalla.pagerank(10), rtol=1e-9), i
        else:
            truth = gowalla.labels() if mix[i % 3][0] == "wcc" else gowalla.parents(100)
            assert (np.frombuffer(out, "<i4") == truth).all(), i


def test_every_device_holds_a_share_of_the_edges(grid_stage):
    total = sum((grid_stage.plain / name).stat().st_size for name in ["row", "column"])
    for device in grid_stage.volume.devices:
        parts = [path for path in device.rglob("*") if path.is_file()]
        held = sum(path.stat().st_size for path in parts)
        assert held >= total / len(grid_stage.volume.devices) * 0.9, device


def test_grid_engine_finds_the_components_of_a_web_graph(graphlane, engines, tmp_path):
    truth = graphs.Truth(graphs.load("cnr-2000"))
    snap = graphs.write_snap(tmp_path / "cnr-2000.txt", truth.edges)
    graphlane("convert", "--from", "snap", "--to", "grid", "--partitions", 3, snap, tmp_path / "grid")
    out = tmp_path / "out"
    run(engines / "grid_engine", "wcc", tmp_path / "grid", "--out", out)
    assert (np.fromfile(out, "<i4") == truth.labels()).all()


def test_grid_engine_agrees_with_igraph_on_a_graph_of_many_components(engines, tmp_path):
    truth = graphs.Truth(graphs.random_edges(20_000, 18_000, seed=7))
    grid = graphs.write_grid(tmp_path / "grid", truth.edges, truth.vertex_count, 5)
    out = tmp_path / "out"
    run(engines / "grid_engine", "wcc", grid, "--out", out)
    assert (np.fromfile(out, "<i4") == truth.labels()).all()
    run(engines / "grid_engine", "bfs", grid, "--root", 3, "--out", out)
    assert (np.fromfile(out, "<i4") == truth.parents(3)).all()


def test_grid_engine_steps_over_weights(engines, tmp_path):
    truth = graphs.Truth(graphs.random_edges(20_000, 60_000, seed=9))
    grid = graphs.write_grid(tmp_path / "grid", truth.edges, truth.vertex_count, 4,
                             weights=np.ones(len(truth.edges)))
    out = tmp_path / "out"
    for memory in ["1G", "32K"]:
        run(engines / "grid_engine", "pagerank", grid, "--memory", memory, "--out", out)
        assert np.allclose(np.fromfile(out), truth.pagerank(10), rtol=1e-9)


def test_grid_engine_stops_at_a_read_that_is_short(engines, tmp_path):
    edges = graphs.random_edges(1000, 5000, seed=1)
    grid = graphs.write_grid(tmp_path / "grid", edges, 1000, 2)
    os.truncate(grid / "column", 4096)
    result = run(engines / "grid_engine", "wcc", grid, check=False)
    assert result.returncode == 1
    assert "column: offset" in result.stderr


# --- the shards -------------------------------------------------------------


@pytest.fixture(scope="module")
def shard_stage(graphlane, gowalla, engines, tmp_path_factory) -> Stage:
    scratch = tmp_path_factory.mktemp("shards")
    edges = graphs.write_bin(scratch / "gowalla.bin", gowalla.edges)
    plain = scratch / "shards"
    plain.mkdir()
    run(engines / "shard_engine", "shard", edges, plain / "gowalla", "--shards", SHARDS)
    return Stage(graphlane, plain, scratch, stripe=["*.adj"])


def shard_results(engines, stage, way, scratch) -> dict[str, bytes]:
    out = scratch / "out"
    results = {}
    for words in [("wcc",), ("pagerank", "--iterations", 30)]:
        stage.run(way, engines / "shard_engine", *words, "{dir}/gowalla", "--shards", SHARDS,
                  "--out", out)
        results[words[0]] = out.read_bytes()
    return results


@pytest.fixture(scope="module")
def native_shard_results(shard_stage, engines, tmp_path_factory):
    return shard_results(engines, shard_stage, "native", tmp_path_factory.mktemp("native"))


def test_shard_engine_agrees_with_igraph(gowalla, native_shard_results):
    results = native_shard_results
    assert (np.frombuffer(results["wcc"], "<i4") == gowalla.labels()).all()
    # 30 iterations in float32
    assert np.allclose(np.frombuffer(results["pagerank"]), gowalla.pagerank_limit(), rtol=1e-3)


def test_shard_engine_computes_the_same_on_a_volume(
        shard_stage, native_shard_results, engines, tmp_path, way):
    assert shard_results(engines, shard_stage, way, tmp_path) == native_shard_results


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_shard_engine_agrees_with_igraph_for_any_number_of_shards(engines, tmp_path, shards):
    truth = graphs.Truth(graphs.random_edges(20_000, 18_000, seed=7))
    edges = graphs.write_bin(tmp_path / "edges.bin", truth.edges)
    run(engines / "shard_engine", "shard", edges, tmp_path / "g", "--shards", shards)
    out = tmp_path / "out"
    run(engines / "shard_engine", "wcc", tmp_path / "g", "--shards", shards, "--out", out)
    assert (np.fromfile(out, "<i4") == truth.labels()).all()


# --- the user's own engines -------------------------------------------------


@pytest.fixture(scope="module")
def gridgraph() -> Path:
    if "GRIDGRAPH_BIN" not in os.environ:
        pytest.skip("not applicable: GRIDGRAPH_BIN is not set")
    return Path(os.environ["GRIDGRAPH_BIN"])


@pytest.fixture(scope="module")
def graphchi() -> Path:
    if "GRAPHCHI_ROOT" not in os.environ:
        pytest.skip("not applicable: GRAPHCHI_ROOT is not set")
    return Path(os.environ["GRAPHCHI_ROOT"])


@pytest.fixture(params=["native", *WAYS])
def any_way(request):
    return possible(request)


def vertex_file(stage, way, name) -> Path:
    """The engine's result: a plain file, on the volume too."""
    root = stage.plain if way == "native" else stage.volume.path / stage.plain.name
    return root / name


def test_gridgraph_pagerank(gridgraph, gowalla, grid_stage, any_way):
    grid_stage.run(any_way, gridgraph / "pagerank", "{dir}", 10, 8)
    rank = np.fromfile(vertex_file(grid_stage, any_way, "pagerank"), "<f4")
    # Its threads add float32 in any order.
    assert np.allclose(rank[:gowalla.vertex_count], gowalla.pagerank(10), rtol=1e-4)


def test_gridgraph_wcc(gridgraph, gowalla, grid_stage, any_way):
    grid_stage.run(any_way, gridgraph / "wcc", "{dir}", 8)
    label = np.fromfile(vertex_file(grid_stage, any_way, "label"), "<i4")
    assert (label == gowalla.labels()).all()


def test_gridgraph_bfs(gridgraph, gowalla, grid_stage, any_way):
    result = grid_stage.run(any_way, gridgraph / "bfs", "{dir}", 100, 8)
    reached = int((gowalla.parents(100) >= 0).sum())
    assert f"discovered {reached} vertices from 100" in result.stdout


def test_sixteen_gridgraphs_share_a_mount_and_each_is_right(gridgraph, jobs, gowalla):
    mix = [("wcc", 8), ("pagerank", 10, 8), ("bfs", 100, 8)]
    said = jobs.run(lambda i, place: [gridgraph / mix[i % 3][0], place, *mix[i % 3][1:]])
    reached = int((gowalla.parents(100) >= 0).sum())
    for i, place in enumerate(jobs.places):
        if mix[i % 3][0] == "wcc":
            assert (np.fromfile(place / "label", "<i4") == gowalla.labels()).all(), i
        elif mix[i % 3][0] == "pagerank":
            rank = np.fromfile(place / "pagerank", "<f4")[:gowalla.vertex_count]
            assert np.allclose(rank, gowalla.pagerank(10), rtol=1e-4), i
        else:
            assert f"discovered {reached} vertices from 100" in said[i], i


def test_gridgraph_spmv(gridgraph, graphlane, gowalla, tmp_path, any_way):
    weights = np.random.default_rng(5).random(len(gowalla.edges), dtype="f4")
    grid = graphs.write_grid(
        tmp_path / "weighted", gowalla.edges, gowalla.vertex_count, PARTITIONS, weights)
    stage = Stage(graphlane, grid, tmp_path)
    stage.run(any_way, gridgraph / "spmv", "{dir}", 8)
    output = np.fromfile(vertex_file(stage, any_way, "output"), "<f4")
    source, target = gowalla.edges.T
    expected = np.bincount(target, source * weights.astype("f8"), gowalla.vertex_count)
    assert np.allclose(output[:gowalla.vertex_count], expected, rtol=1e-4)


def test_graphchi_connected_components(
        graphchi, graphlane, gowalla, tmp_path, monkeypatch, any_way):
    monkeypatch.chdir(tmp_path)
    plain = tmp_path / "chi"
    plain.mkdir()
    graphs.write_snap(plain / "gowalla", gowalla.edges)
    words = ["--file={dir}/gowalla", "--filetype=edgelist", f"--nshards={SHARDS}",
             "--edgedatatype=uint"]
    env = {"GRAPHCHI_ROOT": str(graphchi)}
    program = graphchi / "bin/example_apps/connectedcomponents"
    # The first run makes the shards, on plain files; its metrics land where it runs.
    run(program, *(word.replace("{dir}", str(plain)) for word in words),
        env=os.environ | env)
    stage = Stage(graphlane, plain, tmp_path, stripe=["*.adj"])
    stage.run(any_way, program, *words, env=env)
    label = np.fromfile(vertex_file(stage, any_way, "gowalla.4B.vout"), "<u4")
    assert (label == gowalla.labels()).all()
