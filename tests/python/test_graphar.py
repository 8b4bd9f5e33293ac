"""GraphAr and Parquet: round trips, the arrays in the chunks, resuming after a kill, and refusals."""

import decimal
import fcntl
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.sparse

import graphs
from harness import BUILD, run
from package import SITE

import graphlane
from graphlane import graphar

VERTICES = 900
EDGES = np.unique(graphs.random_edges(VERTICES, 5000, 4), axis=0)
WEIGHTS = np.random.default_rng(4).random(len(EDGES)) * 1000
FOLDER = "edge/vertex_edge_vertex"


@pytest.fixture
def small_chunks(monkeypatch):
    """Several parts and chunks of a small graph."""
    monkeypatch.setattr(graphar, "EDGE_CHUNK_MAX", 1024)
    monkeypatch.setattr(graphar, "VERTEX_CHUNK", 256)
    for name in ("VERTEX_YML", "EDGE_YML"):
        monkeypatch.setattr(graphar, name, getattr(graphar, name).replace(str(1 << 18), "256"))


def same(one, other):
    assert (one.directed, one.weight_type, one.num_vertices) == (other.directed, other.weight_type, other.num_vertices)
    assert (one.to_scipy() != other.to_scipy()).nnz == 0


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("dtype", [None, np.float32, np.float64, np.int64])
def test_a_round_trip_changes_nothing(tmp_path, small_chunks, dtype, directed):
    edges = EDGES if directed else np.unique(np.sort(EDGES, axis=1), axis=0)
    weights = None if dtype is None else WEIGHTS[:len(edges)].astype(dtype)
    g = graphlane.from_edges(edges, tmp_path / "g", weights=weights, directed=directed, num_vertices=VERTICES)
    graphar.to_graphar(g, tmp_path / "gar")
    assert len(list((tmp_path / "gar" / FOLDER / "ordered_by_source/adj_list/part0").iterdir())) > 1
    same(graphar.from_graphar(tmp_path / "gar", tmp_path / "back"), g)


def test_chunks_are_the_csr_and_the_csc(tmp_path, small_chunks):
    g = graphlane.from_edges(EDGES, tmp_path / "g", weights=WEIGHTS, num_vertices=VERTICES)
    graphar.to_graphar(g, tmp_path / "gar", memory="1M", threads=2)
    matrix = scipy.sparse.coo_array((WEIGHTS, EDGES.T), shape=(VERTICES,) * 2).tocsr()
    for folder, own, other, rows in (("ordered_by_source", "_graphArSrcIndex", "_graphArDstIndex", matrix),
                                     ("ordered_by_dest", "_graphArDstIndex", "_graphArSrcIndex", matrix.T.tocsr())):
        base = tmp_path / "gar" / FOLDER / folder
        for part in range(4):
            first, end = part * 256, min(part * 256 + 256, VERTICES)
            begin, stop = rows.indptr[first], rows.indptr[end]
            tables = [pa.concat_tables(pa.parquet.read_table(path) for path in
                                       sorted((base / name / f"part{part}").iterdir(), key=lambda path: int(path.name[5:])))
                      for name in ("adj_list", "weight")]
            np.testing.assert_array_equal(tables[0][other], rows.indices[begin:stop])
            np.testing.assert_array_equal(tables[0][own], np.repeat(np.arange(first, end), np.diff(rows.indptr[first:end + 1])))
            np.testing.assert_array_equal(tables[1]["weight"], rows.data[begin:stop])
            offsets = pa.parquet.read_table(base / "offset" / f"chunk{part}")["_graphArOffset"]
            np.testing.assert_array_equal(offsets, rows.indptr[first:end + 1] - begin)
            assert int.from_bytes((base / f"edge_count{part}").read_bytes(), "little") == stop - begin


def test_an_interrupted_export_goes_on(tmp_path, small_chunks, monkeypatch):
    g = graphlane.from_edges(EDGES, tmp_path / "g", num_vertices=VERTICES)
    written = []
    whole = graphar._Writer._part

    def part(self, *arguments):
        written.append(arguments[1:3])
        if len(written) == 3:
            raise KeyboardInterrupt
        return whole(self, *arguments)

    monkeypatch.setattr(graphar._Writer, "_part", part)
    with pytest.raises(KeyboardInterrupt):
        graphar.to_graphar(g, tmp_path / "gar")
    assert not (tmp_path / "gar").exists()
    graphar.to_graphar(g, tmp_path / "gar")
    assert len(written) == 3 + 8 - 2  # two parts of eight were complete
    same(graphar.from_graphar(tmp_path / "gar"), g)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_parquet_comes_in(tmp_path):
    table = pa.table({"note": ["x"] * len(EDGES), "from": EDGES[:, 0], "to": EDGES[:, 1], "cost": WEIGHTS})
    pa.parquet.write_table(table, tmp_path / "calls.parquet", row_group_size=700)
    got = graphar.from_parquet(tmp_path / "calls.parquet", source="from", to="to", weight="cost", num_vertices=VERTICES)
    same(got, graphlane.from_edges(EDGES, weights=WEIGHTS, num_vertices=VERTICES))
    with pytest.raises(graphlane.Error, match="no column 'away'"):
        graphar.from_parquet(tmp_path / "calls.parquet", to="away")
    with pytest.raises(graphlane.Error, match="calls.parquet: the column 'note' is of string"):
        graphar.from_parquet(tmp_path / "calls.parquet", tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


def test_damage_is_reported(tmp_path):
    g = graphlane.from_edges(EDGES, tmp_path / "g", weights=WEIGHTS)
    graphar.to_graphar(g, tmp_path / "gar")
    with pytest.raises(graphlane.Error, match="there already"):
        graphar.to_graphar(g, tmp_path / "gar")
    lists = tmp_path / "gar" / FOLDER / "ordered_by_source"
    count = (lists / "edge_count0").read_bytes()
    (lists / "edge_count0").write_bytes(b"\x05" + b"\0" * 7)
    with pytest.raises(graphlane.Error, match="edge_count0 says 5"):
        graphar.from_graphar(tmp_path / "gar", tmp_path / "back")
    (lists / "edge_count0").write_bytes(count)
    (lists / "adj_list/part0/chunk0").write_bytes(b"PAR1")
    with pytest.raises(graphlane.Error, match="chunk0"):
        graphar.from_graphar(tmp_path / "gar", tmp_path / "back")
    assert not (tmp_path / "back").exists()
    with pytest.raises(graphlane.Error, match=r"holds 0 files"):
        graphar.from_graphar(tmp_path)


@pytest.mark.parametrize("columns", [
    {"s": [0, None], "t": [1, 2]}, {"s": [0, -1], "t": [1, 2]}, {"s": [0, 2**33], "t": [1, 2]}, {"s": [0.0], "t": [1.0]}, {"s": ["a"], "t": ["b"]},
    {"s": [True], "t": [False]}, {"s": [[1]], "t": [[2]]}, {"s": [decimal.Decimal(1)], "t": [decimal.Decimal(2)]}, {"s": [1]},
    {"s": pa.array([], pa.int64()), "t": pa.array([], pa.int64())}, {"s": [0], "t": [1], "w": pa.array([None], pa.int64())},
    {"s": [0], "t": [1], "w": ["2.5"]}, {"s": [0], "t": [1], "w": [float("nan")]}, {"s": [0], "t": [1], "w": pa.array([2**63], pa.uint64())}])
def test_columns_that_are_no_edges_are_one_line(tmp_path, columns):
    pa.parquet.write_table(pa.table(columns), tmp_path / "bad.parquet")
    refused_by_command(tmp_path, "from-parquet", *(["--weight", "w"] if "w" in columns else []), tmp_path / "bad.parquet")


@pytest.mark.parametrize("damage", [lambda data: data[:-100], lambda data: data[:60] + b"\xff" * 30 + data[90:], lambda data: b"", lambda data: b"0 1\n"])
def test_damaged_parquet_is_one_line(tmp_path, damage):
    pa.parquet.write_table(pa.table({"s": range(1000), "t": range(1000)}), tmp_path / "bad.parquet")
    (tmp_path / "bad.parquet").write_bytes(damage((tmp_path / "bad.parquet").read_bytes()))
    refused_by_command(tmp_path, "from-parquet", tmp_path / "bad.parquet")


def refused_by_command(tmp_path, *words):
    done = run(sys.executable, "-m", "graphlane", *words, tmp_path / "out", check=False, env=os.environ | {"PYTHONPATH": str(SITE)})
    assert done.returncode == 1 and not (tmp_path / "out").exists()
    assert done.stderr.startswith(f"graphlane: {words[-1]}") and done.stderr.count("\n") == 1


def test_folders_of_parquet(tmp_path):
    table = pa.table({"s": [0, 1, 0], "t": [1, 2, 2], "w": [0.5, 1.5, 2.5]})
    pyarrow.dataset.write_dataset(table, tmp_path / "hive", format="parquet", partitioning=["s"], partitioning_flavor="hive")
    got = graphar.from_parquet(tmp_path / "hive", source="s", to="t", weight="w")
    same(got, graphlane.from_edges(([0, 1, 0], [1, 2, 2]), weights=[0.5, 1.5, 2.5]))
    with pytest.raises(graphlane.Error, match="must be named, of t, s"):
        graphar.from_parquet(pyarrow_folder(tmp_path / "one", pa.table({"s": [0], "t": [1]}), ["s"]))
    (tmp_path / "many").mkdir()
    for part in range(5):
        pa.parquet.write_table(pa.table({"s": [part], "t": [part + 1]}), tmp_path / f"many/{part}.parquet")
    (tmp_path / "many/_SUCCESS").touch()
    assert graphar.from_parquet(tmp_path / "many").num_arcs == 5
    pa.parquet.write_table(pa.table({"s": [0.5], "t": [1]}), tmp_path / "many/5.parquet")  # another type than the first file's
    with pytest.raises(graphlane.Error, match="many"):
        graphar.from_parquet(tmp_path / "many")
    (tmp_path / "empty").mkdir()
    with pytest.raises(graphlane.Error, match="holds no files"):
        graphar.from_parquet(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        graphar.from_parquet(tmp_path / "none")


def pyarrow_folder(path, table, partitioning):
    pyarrow.dataset.write_dataset(table, path, format="parquet", partitioning=partitioning, partitioning_flavor="hive")
    return path


def test_weights_are_exact_or_an_error(tmp_path):
    """float64 would round 2**53 + 1."""
    g = graphlane.from_edges(EDGES, tmp_path / "g", weights=np.arange(len(EDGES)) + 2**53 - 5)
    with pytest.raises(graphlane.Error, match="would not be exact"):
        graphar.to_graphar(g, tmp_path / "gar")
    assert not (tmp_path / "gar").exists()


@pytest.mark.parametrize("file, old, new, told", [
    ("edge", "src_type", "zzz", "lacks 'src_type'"), ("edge", "\nchunk_size", "\nzzz", "lacks 'chunk_size'"),
    ("edge", "\nchunk_size: ", "\nchunk_size: x", "chunk_size is 'x"), ("edge", "src_chunk_size: 2", "src_chunk_size: -2", "src_chunk_size is -2"),
    ("edge", "\nprefix:", "\nzzz:", "lacks 'prefix'"), ("edge", "- name: weight", "- zzz: weight", "lacks 'name'"),
    ("edge", "parquet", "csv", "has no lists in Parquet"), ("vertex", "\nprefix:", "\nzzz:", "lacks 'prefix'"),
    ("vertex", "type: vertex", "zzz: vertex", "lacks 'type'"), ("graph", "edges:\n  - vertex_edge_vertex.edge.yml", "edges: 5", "edges is 5"),
    ("graph", "edges:\n  - vertex_edge_vertex.edge.yml", "edges: []", "describes no edges"), ("graph", "name", "]", "gar.graph.yml"),
    ("edge", "directed: true", "directed: false", "does not have|do not have each of them both ways")])
def test_a_wrong_description_is_one_line(tmp_path, file, old, new, told):
    graphar.to_graphar(graphlane.from_edges(EDGES, weights=WEIGHTS, num_vertices=VERTICES), tmp_path / "gar")
    path = next((tmp_path / "gar").glob(f"*.{file}.yml"))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(graphlane.Error, match=told) as raised:
        graphar.from_graphar(tmp_path / "gar", tmp_path / "back")
    assert len(str(raised.value).splitlines()) == 1 and not (tmp_path / "back").exists()


def test_what_is_in_the_way_of_an_export_stays(tmp_path):
    g = graphlane.from_edges(EDGES, tmp_path / "g")
    (tmp_path / ".gar.partial").mkdir()
    (tmp_path / ".gar.partial/mine").touch()
    with pytest.raises(graphlane.Error, match="is in the way"):
        graphar.to_graphar(g, tmp_path / "gar")
    assert (tmp_path / ".gar.partial/mine").exists()
    (tmp_path / ".gar.partial/mine").rename(tmp_path / ".gar.partial/state.json")  # cut short by a kill
    graphar.to_graphar(g, tmp_path / "gar")
    same(graphar.from_graphar(tmp_path / "gar"), g)
    (tmp_path / ".other.partial").mkdir()
    held = os.open(tmp_path / ".other.partial", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(graphlane.Error, match="another export writes it now"):
        graphar.to_graphar(g, tmp_path / "other")
    os.close(held)
    graphar.to_graphar(g, tmp_path / "other")
    with pytest.raises(graphlane.Error, match="cannot be made: No such file"):
        graphar.to_graphar(g, tmp_path / "no/gar")


def test_convert_runs_the_package(tmp_path):
    command = BUILD / "bin/graphlane"
    graphs.write_snap(tmp_path / "list.txt", EDGES)
    environment = os.environ | {"GRAPHLANE_PYTHON": sys.executable, "PYTHONPATH": str(SITE)}
    told = run(command, "convert", "--to", "graphar", tmp_path / "list.txt", tmp_path / "gar", env=environment)
    assert "arcs" in told.stdout
    run(command, "-q", "convert", "--from", "graphar", "--to", "dual", tmp_path / "gar", tmp_path / "back", env=environment)
    same(graphlane.open(tmp_path / "back"), graphlane.from_edges(EDGES))
    lacks = run(command, "convert", "--to", "graphar", tmp_path / "list.txt", tmp_path / "other", check=False,
                env=os.environ | {"GRAPHLANE_PYTHON": "/bin/false"})
    assert lacks.returncode == 1 and "pip install" in lacks.stderr and lacks.stderr.count("\n") == 1
    wrong = run(command, "convert", "--simple", "--to", "graphar", tmp_path / "list.txt", tmp_path / "other", check=False)
    assert wrong.returncode == 2
