"""from_edges and from_scipy: what they take, and what they refuse. Nothing is changed in silence."""

import decimal

import numpy as np
import pytest
import scipy.sparse

from package import SITE  # noqa: F401

import graphlane

EDGES = np.array([[0, 1], [1, 2], [2, 0]])
IDS = (EDGES[:, 0], EDGES[:, 1])
MATRIX = scipy.sparse.random(50, 50, 0.2, random_state=1)


def edges_of(g):
    sources, targets, weights = g.to_edges()
    return np.column_stack([sources, targets]).tolist(), None if weights is None else weights.tolist()


class Stream:
    """A table that gives its columns as Arrow does, as polars and DuckDB have it."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_vertices_of_every_type_of_whole_numbers(dtype):
    assert edges_of(graphlane.from_edges(EDGES.astype(dtype))) == (EDGES.tolist(), None)


@pytest.mark.parametrize("dtype, stored", [
    ("bool", "int64"), ("int8", "int64"), ("int64", "int64"), ("uint64", "int64"), ("float16", "float64"),
    ("float32", "float32"), ("float64", "float64"), ("longdouble", "float64")])
def test_weights_of_every_type_of_numbers(dtype, stored):
    weights = np.array([1, 0, 1]).astype(dtype)
    g = graphlane.from_edges(EDGES, weights=weights)
    assert (g.weight_type, edges_of(g)) == (stored, (EDGES.tolist(), [1.0, 0.0, 1.0]))


def test_tables_are_taken_as_they_come():
    import pyarrow as pa

    table = pa.table({"s": IDS[0], "t": IDS[1].astype(np.int32), "w": [0.5, 1.5, 2.5]})
    for given in (table, Stream(table), table.to_reader(), table.to_batches()[0], iter(table.to_batches())):
        assert edges_of(graphlane.from_edges(given)) == (EDGES.tolist(), [0.5, 1.5, 2.5])
    assert edges_of(graphlane.from_edges((pa.array(IDS[0]), pa.array(IDS[1])))) == (EDGES.tolist(), None)
    exact = pa.table({"s": [0], "t": [1], "w": [decimal.Decimal("0.1")]})
    assert edges_of(graphlane.from_edges(exact)) == ([[0, 1]], [0.1])


def refused_tables():
    import pyarrow as pa

    return {"nulls": pa.table({"s": [0, None], "t": [1, 2]}), "null weights": pa.table({"s": [0], "t": [1], "w": pa.array([None], pa.int64())}),
            "text": pa.table({"s": ["a"], "t": ["b"]}), "text weights": pa.table({"s": [0], "t": [1], "w": ["2"]}),
            "one column": pa.table({"s": [0]}), "no row": pa.table({"s": pa.array([], pa.int64()), "t": pa.array([], pa.int64())})}


@pytest.mark.parametrize("name, error", [("nulls", ValueError), ("null weights", ValueError), ("text", TypeError), ("text weights", TypeError),
                                         ("one column", ValueError), ("no row", ValueError)])
def test_tables_without_edges_are_refused(tmp_path, name, error):
    refused(tmp_path, error, refused_tables()[name])


def refused(tmp_path, error, edges, **options):
    with pytest.raises(error) as raised:
        graphlane.from_edges(edges, tmp_path / "bad", **options)
    assert len(str(raised.value).splitlines()) == 1 and "len()" not in str(raised.value)
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize("edges, error", [
    ([[-1, 2]], ValueError), ([[0, 2**32 - 1]], ValueError), (np.array([[0, 2**64 - 1]], np.uint64), ValueError), ([[0.5, 1.0]], TypeError),
    ([1, 2, 3], ValueError), ([("a", "b")], TypeError), ([], ValueError), (iter([]), ValueError), ((IDS[0],), ValueError),
    ((*IDS, *IDS), ValueError), ((1, 2), ValueError), ((EDGES, EDGES), ValueError), (((0, 1), (1, 2)), ValueError),
    (((i, i + 1) for i in range(3)), TypeError), ("edges.txt", TypeError), ({"s": [1]}, TypeError), (None, TypeError), (5, TypeError),
    (np.ma.masked_array(EDGES, EDGES == 2), ValueError), ((IDS[0], IDS[1][:2]), ValueError)])
def test_what_is_no_edges_is_refused(tmp_path, edges, error):
    refused(tmp_path, error, edges)


@pytest.mark.parametrize("weights, error", [
    ([1, 2, np.nan], ValueError), ([1, 2, -np.inf], ValueError), (np.array([1, 2, 2**63], np.uint64), ValueError), ([1j, 2, 3], TypeError),
    (["1", "2", "3"], TypeError), (np.array([1, 2, 3], "datetime64[s]"), TypeError), ([1, None, 3], TypeError), ([[1], [2], [3]], ValueError),
    (3, ValueError), ([1, 2], ValueError)])
def test_what_is_no_weights_is_refused(tmp_path, weights, error):
    refused(tmp_path, error, EDGES, weights=weights)


@pytest.mark.parametrize("first, second", [
    (np.array([1, 2, 3]), np.array([1, 2, 3.5])), (np.array([1, 2, 3], np.float32), np.array([1, 2, 0.1])),
    (np.array([0.5, 1, 2]), np.array([1, 2, 2**53 + 1])), (np.array([1, 2, 3]), None), (None, np.array([1, 2, 3]))])
def test_weights_of_a_stream_do_not_change_with_the_first_ones_type(tmp_path, first, second):
    refused(tmp_path, ValueError, iter([(*IDS, first), (*IDS, second)]))


def test_a_stream_may_have_other_types_that_fit():
    g = graphlane.from_edges(iter([(*IDS, np.array([1.5, 2, 3])), (*IDS, np.array([4, 5, 6])), (*IDS, np.array([7, 8, 9], np.float32))]))
    assert sorted(edges_of(g)[1]) == [1.5, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("options, error", [
    ({"num_vertices": 2}, ValueError), ({"num_vertices": -2}, ValueError), ({"num_vertices": 2**32}, ValueError), ({"num_vertices": 5.0}, TypeError),
    ({"memory": "1GX"}, ValueError), ({"memory": 1.5}, TypeError), ({"memory": -1}, ValueError), ({"format": "zip"}, ValueError),
    ({"codec": "zip"}, graphlane.Error)])
def test_bad_options_are_refused(tmp_path, options, error):
    refused(tmp_path, error, EDGES, **options)


def test_a_path_may_begin_with_a_dash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert graphlane.from_edges(EDGES, "-x").num_arcs == 3 and graphlane.algo.wcc("-x").tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_matrices_of_every_kind(kind):
    for matrix in (MATRIX.asformat(kind), scipy.sparse.coo_array(MATRIX).asformat(kind)):
        assert (graphlane.from_scipy(matrix, weights=True).to_scipy() != MATRIX.tocsr()).nnz == 0
    wide = MATRIX.tocsr()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert (graphlane.from_scipy(wide, weights=True).to_scipy() != MATRIX.tocsr()).nnz == 0


@pytest.mark.parametrize("matrix, error", [
    (MATRIX.tocsr()[:3], ValueError), (np.eye(3), TypeError), ([[1]], TypeError), (scipy.sparse.csr_array((3, 3)), ValueError),
    (scipy.sparse.csr_array([[0, np.nan], [1, 0]]), ValueError), (scipy.sparse.csr_array([[0, 1j], [1, 0]]), TypeError)])
def test_what_is_no_matrix_of_weights_is_refused(matrix, error):
    with pytest.raises(error):
        graphlane.from_scipy(matrix, weights=True)
