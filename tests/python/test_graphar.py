"""GraphAr and Parquet: round trips, the arrays in the chunks, resuming after a kill, and refusals."""

import os
import sys

import numpy as np
import pyarrow as pa
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
    with pytest.raises(TypeError):  # the first column is text
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
