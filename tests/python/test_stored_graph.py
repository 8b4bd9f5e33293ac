"""graphlane.open and the functions that make graphs: every format agrees with scipy's matrix of the same edges."""

import copy
import os
import pickle
import shutil
import signal
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse

import graphs
from harness import run
from package import SITE

import graphlane

VERTICES = 700
FORMATS = ["lists", "dual", "pages", "csr", "grid"]


def random_arcs(seed: int = 3):
    """Distinct arcs, and weights that float32 holds."""
    edges = np.unique(graphs.random_edges(VERTICES - 20, 6000, seed), axis=0)  # the last vertices have none
    weights = np.random.default_rng(seed).integers(1, 1000, len(edges)).astype(np.float32) / 8
    return edges, weights


EDGES, WEIGHTS = random_arcs()
MATRIX = scipy.sparse.coo_array((WEIGHTS.astype(float), EDGES.T), shape=(VERTICES, VERTICES)).tocsr()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Stores one weighted graph in each format."""
    root = tmp_path_factory.mktemp("stored")
    for name in FORMATS:
        graphlane.from_edges(EDGES, root / name, weights=WEIGHTS, num_vertices=VERTICES, format=name)
    return root


@pytest.mark.parametrize("name", FORMATS)
def test_lists_of_all_vertices(stored, name):
    g = graphlane.open(stored / name)
    assert (g.format, g.num_vertices, g.num_arcs, g.directed, g.weighted) == (name, VERTICES, len(EDGES), True, True)
    for side, matrix in (("out", MATRIX), ("in", MATRIX.T.tocsr())):
        np.testing.assert_array_equal(g.degrees(side), np.diff(matrix.indptr))
        ids = np.random.default_rng(1).permutation(np.tile(np.arange(VERTICES), 2))
        found = g.multi_neighbors_weighted(ids, side)
        rows = matrix[ids]
        np.testing.assert_array_equal(found.offsets, rows.indptr)
        np.testing.assert_array_equal(found.ids, rows.indices)
        np.testing.assert_array_equal(found.weights, rows.data)
        plain = g.multi_neighbors(ids, side)
        np.testing.assert_array_equal(plain.ids, rows.indices)
        for vertex in (0, 17, np.int32(300), VERTICES - 1):
            np.testing.assert_array_equal(g.neighbors(vertex, side), matrix[[int(vertex)]].indices)
            assert g.degree(vertex, side) == matrix[[int(vertex)]].nnz


@pytest.mark.parametrize("name", FORMATS)
def test_bad_vertices_are_reported(stored, name):
    g = graphlane.open(stored / name)
    for vertex in (VERTICES, -1, 2**40):
        for call in (g.neighbors, g.degree, lambda v: g.multi_neighbors([0, v])):
            with pytest.raises(IndexError, match=r"no vertex"):
                call(vertex)
    for vertex in (1.5, "1", None):
        with pytest.raises(TypeError):
            g.neighbors(vertex)
    with pytest.raises(TypeError):
        g.multi_neighbors([1.5])
    with pytest.raises(ValueError, match="'out' or 'in'"):
        g.neighbors(0, "both")
    assert len(g.multi_neighbors([]).ids) == 0


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_are_the_whole_graph_in_bounded_memory(stored, name):
    g = graphlane.open(stored / name)
    blocks = list(g.blocks("8K"))
    assert len(blocks) > 10 and blocks[0].first == 0
    longest = int(np.diff(MATRIX.indptr).max())
    assert max(len(block.ids) for block in blocks) <= max(longest, 8192 // 24)
    np.testing.assert_array_equal(np.concatenate([block.ids for block in blocks]), MATRIX.indices)
    np.testing.assert_array_equal(np.concatenate([block.weights for block in blocks]), MATRIX.data)
    np.testing.assert_array_equal(np.concatenate([block.sources() for block in blocks]), MATRIX.tocoo().row)
    np.testing.assert_array_equal(g.indptr, MATRIX.indptr)
    np.testing.assert_array_equal(g.indices, MATRIX.indices)
    rows = scipy.sparse.vstack([part for _, part in g.scipy_blocks("64K")])
    assert (rows != MATRIX).nnz == 0 and (g.to_scipy() != MATRIX).nnz == 0
    batches = list(g.batches("64K"))
    assert batches[0].schema.names == ["source", "target", "weight"]
    assert sum(batch.num_rows for batch in batches) == len(EDGES)


def test_raw_arrays_map_the_files_pages(tmp_path, stored):
    raw = graphlane.from_edges(EDGES, tmp_path / "raw", num_vertices=VERTICES, codec="raw")
    csr = graphlane.open(stored / "csr")
    for g in (raw, csr):
        np.testing.assert_array_equal(g.indices, MATRIX.indices)
        assert isinstance(g.indices, np.memmap) and not g.indices.flags.writeable
    assert isinstance(csr.indptr, np.memmap)


def test_a_volume_without_a_mount(tmp_path, stored):
    devices = [tmp_path / "d0", tmp_path / "d1"]
    for device in devices:
        device.mkdir()
    volume = graphlane.Volume.create(tmp_path / "vol", devices, stripe_depth="4K", min_size="4K")
    for name in FORMATS:
        volume.import_(stored / name)
        g, plain = volume.open(name), graphlane.open(stored / name)
        assert (g.to_scipy() != MATRIX).nnz == 0
        np.testing.assert_array_equal(g.multi_neighbors([5, 699, 5], "in").ids, plain.multi_neighbors([5, 699, 5], "in").ids)
    assert volume.info()["devices"]
    volume.check(scrub=True)
    volume.export("lists", tmp_path / "back")
    assert (graphlane.open(tmp_path / "back").to_scipy() != MATRIX).nnz == 0
    largest = max((path for path in devices[0].rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    largest.write_bytes(b"")  # a part of some file
    with pytest.raises(graphlane.Error):
        volume.check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, None])
def test_a_round_trip_keeps_the_edges_of_arrays(dtype):
    weights = None if dtype is None else (WEIGHTS * 8).astype(dtype)
    if dtype == np.float64:
        weights = weights + 0.1
    pieces = ((EDGES[i:i + 1000, 0], EDGES[i:i + 1000, 1], None if dtype is None else weights[i:i + 1000])
              for i in range(0, len(EDGES), 1000))
    with graphlane.from_edges(pieces, num_vertices=VERTICES) as g:
        assert g.weight_type == ("none" if dtype is None else np.dtype(dtype).name)
        sources, targets, found = g.to_edges()
        np.testing.assert_array_equal(np.column_stack([sources, targets]), EDGES)
        if dtype is None:
            assert found is None
        else:
            np.testing.assert_array_equal(found, weights)
        path = g.path
    assert not path.exists()  # it was temporary


def test_an_undirected_graph_has_each_edge_once(tmp_path):
    edges = [[0, 1], [1, 2], [2, 2], [4, 0]]
    g = graphlane.from_edges(edges, tmp_path / "g", directed=False)
    assert not g.directed and g.num_arcs == 7
    assert g.neighbors(0).tolist() == [1, 4] and g.neighbors(2).tolist() == [1, 2]
    sources, targets, _ = g.to_edges()
    assert list(zip(sources.tolist(), targets.tolist())) == [(0, 1), (0, 4), (1, 2), (2, 2)]
    assert g.to_igraph().ecount() == 4 and g.to_networkx().number_of_edges() == 4


def test_matrices_and_tables(tmp_path):
    import pyarrow as pa

    g = graphlane.from_scipy(MATRIX, tmp_path / "scipy", weights=True)
    assert (g.to_scipy() != MATRIX).nnz == 0 and g.num_vertices == VERTICES
    table = pa.table({"source": EDGES[:, 0], "target": EDGES[:, 1], "weight": WEIGHTS.astype(float)})
    assert (graphlane.from_edges(table, tmp_path / "arrow", num_vertices=VERTICES).to_scipy() != MATRIX).nnz == 0
    graph = g.to_igraph()
    assert graph.is_directed() and graph.vcount() == VERTICES and sorted(graph.es["weight"]) == sorted(WEIGHTS.tolist())
    with pytest.raises(ValueError, match="square"):
        graphlane.from_scipy(MATRIX[:3])


def test_an_invalid_graph_is_reported(tmp_path, stored):
    with pytest.raises(FileNotFoundError):
        graphlane.open(tmp_path / "none")
    with pytest.raises(graphlane.Error, match="holds no"):
        graphlane.open(tmp_path)
    with pytest.raises(graphlane.Error):
        graphlane.from_edges(EDGES, stored / "lists")  # it is there
    graphlane.from_edges(EDGES, tmp_path / "damaged", codec="raw")
    with open(tmp_path / "damaged/out.lists", "r+b") as file:
        file.write(b"\xff\xff")
    g = graphlane.open(tmp_path / "damaged")
    with pytest.raises(graphlane.Error, match="out.lists"):
        list(g.blocks())


def test_threads_share_a_graph(stored):
    g = graphlane.open(stored / "lists", cache="4M")
    wrong = []

    def read(seed):
        for vertex in np.random.default_rng(seed).integers(0, VERTICES, 300).tolist():
            if g.neighbors(vertex).tolist() != MATRIX[[vertex]].indices.tolist():
                wrong.append(vertex)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("name", FORMATS)
def test_a_forked_child_and_another_process_open_their_own(tmp_path, stored, name):
    """A child that used its parent's readers would wait for threads that it does not have, or read from the parent's queue."""
    g = graphlane.open(stored / name, cache="4M")
    g.neighbors(3)
    everything = np.arange(VERTICES)
    child = os.fork()
    if child == 0:
        equal = False
        try:
            again = pickle.loads(pickle.dumps(g))
            lists = [each.multi_neighbors(everything).ids for each in (g, again)]
            equal = all(np.array_equal(ids, MATRIX.indices) for ids in lists)
            del g, again
        finally:
            os._exit(0 if equal else 1)
    for _ in range(300):  # the parent reads meanwhile
        np.testing.assert_array_equal(g.multi_neighbors(everything[:50]).ids, MATRIX[:50].indices)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0
    assert copy.deepcopy(g) is g


@pytest.mark.parametrize("name", FORMATS)
def test_a_closed_graph_says_so(stored, name):
    g = graphlane.open(stored / name)
    blocks = g.blocks("8K")
    next(blocks)
    g.close()
    g.close()
    for use in (lambda: g.neighbors(0), lambda: g.degrees(), lambda: g.num_vertices, lambda: next(blocks),
                lambda: graphlane.algo.wcc(g), lambda: pickle.dumps(g)):
        with pytest.raises(ValueError, match="the graph is closed"):
            use()
    assert "closed" in repr(g)


def test_bad_arguments_are_one_line(tmp_path, stored):
    g = graphlane.open(stored / "lists")
    for call, error in ((lambda: g.blocks(first=-5), IndexError), (lambda: g.blocks(first=VERTICES + 1), IndexError),
                        (lambda: g.blocks(end=-1), IndexError), (lambda: list(g.blocks("1GX")), ValueError),
                        (lambda: list(g.blocks(-1)), ValueError), (lambda: list(g.blocks(1.5)), TypeError),
                        (lambda: graphlane.open(stored / "lists", cache=-1), ValueError),
                        (lambda: graphlane.open(stored / "csr", cache="x"), ValueError),
                        (lambda: graphlane.open(stored / "lists/graph"), NotADirectoryError),
                        (lambda: graphlane.open(tmp_path / "\udcff"), ValueError),
                        (lambda: graphlane.open(stored / "csr").degrees("both"), ValueError),
                        (lambda: graphlane.Volume(stored / "lists"), graphlane.Error),
                        (lambda: graphlane.Volume.create(tmp_path / "v", str(tmp_path)), TypeError)):
        with pytest.raises(error) as raised:
            call()
        assert raised.type is error and len(str(raised.value).splitlines()) == 1
    assert [block.first for block in g.blocks(first=5, end=10**9)] == [5]


def test_a_damaged_csr_or_grid_gives_no_wrong_list(tmp_path, stored):
    """They have no checksums: what cannot be is an error."""
    def changed(name, file, change):
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(stored / name, tmp_path / "bad")
        change(tmp_path / "bad" / file)
        with pytest.raises(graphlane.Error) as raised:
            list(graphlane.open(tmp_path / "bad").blocks())
        assert str(tmp_path / "bad") in str(raised.value) and len(str(raised.value).splitlines()) == 1

    def array(change):
        def rewrite(path):
            values = np.load(path)
            np.save(path, change(values))
        return rewrite

    indices = np.load(stored / "csr/indices.npy")
    changed("csr", "indices.npy", array(lambda values: np.where(np.arange(len(values)) == 9, VERTICES, values)))
    changed("csr", "indices.npy", array(lambda values: np.where(np.arange(len(values)) == 9, 2**32 + 5, values.astype(np.int64))))
    changed("csr", "indices.npy", array(lambda values: values.astype(float)))
    changed("csr", "indptr.npy", array(lambda values: np.where(np.arange(len(values)) == 9, len(indices) + 9, values)))
    changed("csr", "data.npy", array(lambda values: values[1:]))
    changed("csr", "data.npy", lambda path: path.write_bytes(path.read_bytes()[:-5]))
    changed("grid", "row", lambda path: path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:]))
    changed("grid", "row", lambda path: path.write_bytes(path.read_bytes()[:-12]))
    changed("grid", "meta", lambda path: path.write_text("0 700 6000 0\n"))


def test_weights_that_float64_would_round_are_not_read(tmp_path):
    for name in ("lists", "dual", "pages", "csr"):
        g = graphlane.from_edges([[0, 1], [1, 2]], tmp_path / name, weights=[1, 2**53 + 1], format=name)
        assert g.multi_neighbors_weighted([0]).weights.tolist() == [1.0]
        with pytest.raises(graphlane.Error, match="would not be exact"):
            g.multi_neighbors_weighted([1])


def test_the_wheel_needs_only_numpy_and_has_its_help(tmp_path):
    metadata = next(SITE.glob("graphlane-*.dist-info")).joinpath("METADATA").read_text()
    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert needs == ["Requires-Dist: numpy"]
    environment = {"PYTHONPATH": str(SITE), "PATH": "/usr/bin:/bin"}
    told = run(sys.executable, "-P", "-m", "graphlane", "--help", env=environment, cwd=tmp_path).stdout
    assert told.startswith("usage: python -m graphlane")
    assert "Subcommands" in run(sys.executable, "-m", "graphlane", "commands", env=environment, cwd=tmp_path).stdout
    closed = run("sh", "-c", f"{sys.executable} -m graphlane --help | true", env=environment, cwd=tmp_path)
    assert closed.stderr == ""
    script = "import sys, graphlane; print(sorted({'scipy', 'pyarrow', 'networkx', 'igraph'} & set(sys.modules)))"
    assert run(sys.executable, "-c", script, env=environment, cwd=tmp_path).stdout == "[]\n"
