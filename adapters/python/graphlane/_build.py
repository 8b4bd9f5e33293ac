"""Making stored graphs out of what Python has: arrays, tables of Arrow, matrices of scipy, BVGraph."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _command
from graphlane._bvgraph import BvGraph
from graphlane._graph import Graph
from graphlane._open import check_name, open_graph

PIECE_EDGES = 1 << 20
VERTEX_MAX = 2**32 - 2
FORMATS = ("lists", "dual", "pages", "grid", "csr", "shards")


class EdgeError(ValueError):
    """Edges that no graph can have."""


Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]


def from_edges(edges: Any, path: str | os.PathLike[str] | None = None, *, weights: Any = None, directed: bool = True,
               num_vertices: int | None = None, format: str = "lists", codec: str | None = None, simple: bool = False,
               memory: int | str = "1GiB", overwrite: bool = False, progress: bool | None = None) -> Graph:
    """Stores edges as a graph at `path`, and opens it. Without a path it is temporary: its close() removes it.

    `edges` is one of these, or an iterator of them, which is streamed:
    - an array of shape (n, 2), or a list of pairs;
    - a tuple of arrays: sources, targets and perhaps weights;
    - a table of Arrow, pandas, polars or DuckDB: source, target and perhaps weight are its first columns.
    `weights`: an array. Whole numbers become int64; float32 stays, and all others become float64. A stream has the type of its
    first piece. `directed=False` stores every edge both ways. `simple` drops self-loops and duplicates.
    TypeError, ValueError (EdgeError): they are no edges. graphlane.Error: the graph cannot be made there."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r}: one of {', '.join(FORMATS)}")
    if num_vertices is not None and not 0 < index(num_vertices) <= VERTEX_MAX + 1:
        raise ValueError(f"num_vertices={num_vertices}: is not within 1 and {VERTEX_MAX + 1}")
    pieces = (piece for piece in _pieces(edges, weights) if len(piece[0]))
    first = next(pieces, None)
    if first is None:
        raise EdgeError("there are no edges, and a stored graph has at least one")
    dtype = _weight_dtype(first[2])
    words = ["convert", "--from", "u32", "--as-given", "--to", format, "--memory", _command.size(memory)]
    if dtype is not None:
        words += ["--weights", {"<f4": "float32", "<f8": "float64", "<i8": "int64"}[dtype.str]]
        if format in ("grid", "shards") and dtype.str != "<f4":
            words.append("--round")
    words += [word for word, given in {"--undirected": not directed, "--simple": simple, "--overwrite": overwrite}.items() if given]
    if codec is not None:
        words += ["--codec", codec]
    if num_vertices is not None:
        words += ["--vertices", str(index(num_vertices))]

    def feed(file: Any) -> None:
        count = 0
        for sources, targets, values in _chain(first, pieces):
            _write(file, count, sources, targets, values, dtype, num_vertices)
            count += len(sources)

    return _made(path, lambda target: _command.run(*words, "-", target, feed=feed, progress=progress))


def from_scipy(matrix: Any, path: str | os.PathLike[str] | None = None, *, weights: bool = False, **options: Any) -> Graph:
    """Stores the adjacency matrix (scipy.sparse, square): an arc for each entry, `weights` its value. Options as from_edges.
    Formats other than CSR are converted by scipy, which sums the duplicates of COO."""
    if not hasattr(matrix, "tocsr"):
        raise TypeError(f"an adjacency matrix is one of scipy.sparse, not {type(matrix).__name__}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix is square, not {matrix.shape}")
    rows = matrix.tocsr()

    def pieces() -> Iterator[Arrays]:
        indptr = rows.indptr.astype(np.int64)
        for begin in range(0, rows.nnz, PIECE_EDGES):
            end = min(begin + PIECE_EDGES, rows.nnz)
            first, last = np.searchsorted(indptr, [begin, end - 1], side="right") - 1
            counts = np.minimum(indptr[first + 1:last + 2], end) - np.maximum(indptr[first:last + 1], begin)
            sources = np.repeat(np.arange(first, last + 1), counts)
            yield sources, rows.indices[begin:end], rows.data[begin:end] if weights else None

    return from_edges(pieces(), path, num_vertices=matrix.shape[0] or None, **options)


def from_webgraph(basename: str | os.PathLike[str], path: str | os.PathLike[str] | None = None, **options: Any) -> Graph:
    """Stores a BVGraph (basename.graph, basename.properties), streamed. Options as from_edges."""
    graph = BvGraph(basename)
    return from_edges(graph.pieces(), path, num_vertices=graph.num_vertices, **options)


def _made(path: str | os.PathLike[str] | None, build: Callable[[Path], Any]) -> Graph:
    if path is not None:
        check_name(Path(path))
        build(Path(path))
        return open_graph(path)
    scratch = tempfile.TemporaryDirectory(prefix="graphlane-")
    target = Path(scratch.name) / "graph"
    try:
        build(target)
        graph = open_graph(target)
    except BaseException:
        scratch.cleanup()
        raise
    graph._own = scratch
    return graph


def _chain(first: Arrays, rest: Iterator[Arrays]) -> Iterator[Arrays]:
    yield first
    yield from rest


def _pieces(edges: Any, weights: Any) -> Iterator[Arrays]:
    """(sources, targets, weights or None), piece by piece."""
    if _is_table(edges) or isinstance(edges, (np.ndarray, tuple, list)):
        yield from _cut(edges, weights)
        return
    if weights is not None:
        raise ValueError("a stream of edges has its weights in its pieces")
    if isinstance(edges, (str, bytes, os.PathLike, dict)) or not isinstance(edges, Iterable) or hasattr(edges, "adj"):
        raise TypeError(f"edges are arrays, tables or an iterator of them, not {type(edges).__name__}")
    for piece in edges:
        if not (_is_table(piece) or isinstance(piece, (np.ndarray, tuple, list))) or (
                isinstance(piece, tuple) and all(np.ndim(end) == 0 for end in piece)):
            raise TypeError(f"a stream of edges has arrays or tables as its pieces, not {type(piece).__name__}: {piece!r:.40}")
        yield from _cut(piece, None)


def _is_table(edges: Any) -> bool:
    """Arrow's, or what gives Arrow its columns: pandas, polars, DuckDB."""
    return hasattr(edges, "__arrow_c_stream__") or (hasattr(edges, "__arrow_c_array__") and hasattr(edges, "schema"))


def _cut(edges: Any, weights: Any) -> Iterator[Arrays]:
    """Pieces of at most PIECE_EDGES."""
    for sources, targets, values in (_table_arrays(edges, weights) if _is_table(edges) else [_arrays(edges, weights)]):
        for begin in range(0, len(sources), PIECE_EDGES):
            end = begin + PIECE_EDGES
            yield sources[begin:end], targets[begin:end], None if values is None else values[begin:end]


def _table_arrays(table: Any, weights: Any) -> Iterator[Arrays]:
    import pyarrow as pa

    if weights is not None:
        raise ValueError("a table of edges has its weights in its third column")
    if hasattr(table, "__arrow_c_stream__"):
        batches: Any = pa.RecordBatchReader.from_stream(table)
    else:
        batches = [pa.record_batch(table)]
    for batch in batches:
        names = batch.schema.names[:3]
        if len(names) < 2:
            raise ValueError("a table of edges has the columns source and target")
        yield arrow_arrays(names, batch.columns[:3])


def arrow_arrays(names: list[str], columns: list[Any]) -> Arrays:
    """Columns of Arrow as arrays of numpy. ValueError: there are nulls."""
    import pyarrow as pa

    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise ValueError(f"the column {name!r} has nulls: an edge has both ends, and its weight")
    if len(columns) == 3 and pa.types.is_decimal(columns[2].type):
        columns = [*columns[:2], columns[2].cast(pa.float64())]
    arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
    for name, array in zip(names, arrays[:2], strict=False):
        if array.dtype.kind not in "iu":
            raise TypeError(f"the column {name!r} is of {columns[names.index(name)].type}: vertices are whole numbers")
    if len(arrays) == 3 and not is_number(arrays[2].dtype):
        raise TypeError(f"the column {names[2]!r} is of {columns[2].type}: weights are numbers")
    return arrays[0], arrays[1], arrays[2] if len(arrays) == 3 else None


def _arrays(edges: Any, weights: Any) -> Arrays:
    if isinstance(edges, tuple):
        if len(edges) not in (2, 3) or (len(edges) == 3 and weights is not None):
            raise ValueError(f"a tuple of edges is (sources, targets) or (sources, targets, weights), and not of {len(edges)}")
        if all(isinstance(member, tuple) for member in edges):
            raise ValueError("a tuple of tuples may be edges, or sources and targets: use a list of pairs, or a tuple of arrays")
        sources, targets = (_plain(end, "vertices") for end in edges[:2])
        weights = edges[2] if len(edges) == 3 else weights
    else:
        pairs = _plain(edges, "edges")
        if pairs.size == 0:
            pairs = pairs.reshape(0, 2).astype(np.uint32)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"edges are an array of shape (n, 2), not {pairs.shape}")
        sources, targets = pairs[:, 0], pairs[:, 1]
    values = None if weights is None else _plain(weights, "weights")
    given = [array for array in (sources, targets, values) if array is not None]
    if any(array.ndim != 1 for array in given):
        raise ValueError("sources, targets and weights are arrays of one dimension")
    if len({len(array) for array in given}) != 1:
        raise ValueError("sources, targets and weights have different lengths")
    return sources, targets, values


def _plain(values: Any, name: str) -> NDArray[Any]:
    """Nothing is masked."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name}: some are masked")
    return np.asarray(values)


def is_number(dtype: np.dtype) -> bool:
    return dtype.kind in "iubf"


def _weight_dtype(weights: NDArray[Any] | None) -> np.dtype | None:
    if weights is None:
        return None
    if not is_number(weights.dtype):
        raise TypeError(f"weights are numbers, not {weights.dtype}")
    if weights.dtype.kind in "iub":
        return np.dtype("<i8")
    return np.dtype("<f4") if weights.dtype == np.float32 else np.dtype("<f8")


def _vertices(numbers: NDArray[Any], num_vertices: int | None) -> NDArray[Any]:
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"vertices are whole numbers, not {numbers.dtype}")
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0 or high > VERTEX_MAX:
        raise EdgeError(f"{low if low < 0 else high}: vertices are 0 to {VERTEX_MAX}")
    if num_vertices is not None and high >= num_vertices:
        raise EdgeError(f"{high}: is no vertex, as num_vertices is {num_vertices}")
    return numbers


def _write(file: Any, first: int, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None,
           dtype: np.dtype | None, num_vertices: int | None) -> None:
    """The edges from number `first` on."""
    if (weights is None) != (dtype is None):
        raise EdgeError("some of the pieces have weights, and some have none")
    fields: list[Any] = [("source", "<u4"), ("target", "<u4")]
    records = np.empty(len(sources), fields if dtype is None else [*fields, ("weight", dtype)])
    records["source"], records["target"] = _vertices(sources, num_vertices), _vertices(targets, num_vertices)
    if weights is not None and dtype is not None:
        records["weight"] = _as_weights(first, weights, dtype)
    file.write(records.data)


def _as_weights(first: int, weights: NDArray[Any], dtype: np.dtype) -> NDArray[Any]:
    """Converted; ValueError: one changes by that. Only float128 may become the nearest float64."""
    with np.errstate(all="ignore"):
        values = weights.astype(dtype)
        if dtype.kind == "i":
            held = weights <= np.iinfo(np.int64).max
            if weights.dtype.kind == "f":
                held = (weights == np.trunc(weights)) & (weights >= -2.0**63) & (weights < 2.0**63)
        elif dtype == weights.dtype or (dtype.itemsize == 8 and weights.dtype.kind == "f"):
            held = np.isfinite(values)
        else:
            held = np.isfinite(values) & (values.astype(np.longdouble) == weights.astype(np.longdouble))
    if held.all():
        return values
    at = int(np.argmin(held))
    if weights.dtype.kind == "f" and not np.isfinite(weights[at]):
        raise EdgeError(f"the weight of edge {first + at} is {weights[at]}: weights are finite")
    raise EdgeError(f"the weight of edge {first + at} is {weights[at]}, which {dtype.name} does not hold"
                     + (": the first edges set the type" if _weight_dtype(weights) != dtype else ""))
