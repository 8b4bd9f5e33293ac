"""Making stored graphs out of what Python has: arrays, tables of Arrow, matrices of scipy, BVGraph."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _command
from graphlane._bvgraph import BvGraph
from graphlane._graph import Graph
from graphlane._open import open_graph

PIECE_EDGES = 1 << 20
VERTEX_MAX = 2**32 - 2
FORMATS = ("lists", "dual", "pages", "grid", "csr", "shards")

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]


def from_edges(edges: Any, path: str | os.PathLike[str] | None = None, *, weights: Any = None, directed: bool = True,
               num_vertices: int | None = None, format: str = "lists", codec: str | None = None, simple: bool = False,
               memory: int | str = "1GiB", overwrite: bool = False, progress: bool | None = None) -> Graph:
    """Stores edges as a graph at `path`, and opens it. Without a path it is temporary: its close() removes it.

    `edges` is one of these, or an iterator of them, which is streamed:
    - an array of shape (n, 2);
    - a pair of arrays, sources and targets;
    - a table or record batch of Arrow: source, target and perhaps weight are its first columns.
    `weights`: an array; float32, float64 and int64 keep their type.
    `directed=False` stores every edge both ways. `simple` drops self-loops and duplicates."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r}: one of {', '.join(FORMATS)}")
    pieces = _pieces(edges, weights)
    first = next(pieces, None)
    dtype = None if first is None else _weight_dtype(first[2])
    words = ["convert", "--from", "u32", "--as-given", "--to", format, "--memory", _command.size(memory)]
    if dtype is not None:
        words += ["--weights", {"<f4": "float32", "<f8": "float64", "<i8": "int64"}[dtype.str]]
        if format in ("grid", "shards") and dtype.str != "<f4":
            words.append("--round")
    words += [word for word, given in {"--undirected": not directed, "--simple": simple, "--overwrite": overwrite}.items() if given]
    if codec is not None:
        words += ["--codec", codec]
    if num_vertices is not None:
        words += ["--vertices", str(num_vertices)]

    def feed(file: Any) -> None:
        for sources, targets, values in _chain(first, pieces):
            _write(file, sources, targets, values, dtype)

    return _made(path, lambda target: _command.run(*words, "-", target, feed=feed, progress=progress))


def from_scipy(matrix: Any, path: str | os.PathLike[str] | None = None, *, weights: bool = False, **options: Any) -> Graph:
    """Stores the adjacency matrix (scipy.sparse, square): an arc for each entry, `weights` its value. Options as from_edges."""
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

    return from_edges(pieces(), path, num_vertices=matrix.shape[0], **options)


def from_webgraph(basename: str | os.PathLike[str], path: str | os.PathLike[str] | None = None, **options: Any) -> Graph:
    """Stores a BVGraph (basename.graph, basename.properties), streamed. Options as from_edges."""
    graph = BvGraph(basename)
    return from_edges(graph.pieces(), path, num_vertices=graph.num_vertices, **options)


def _made(path: str | os.PathLike[str] | None, build: Callable[[Path], Any]) -> Graph:
    if path is not None:
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


def _chain(first: Arrays | None, rest: Iterator[Arrays]) -> Iterator[Arrays]:
    if first is not None:
        yield first
        yield from rest


def _pieces(edges: Any, weights: Any) -> Iterator[Arrays]:
    """(sources, targets, weights or None), piece by piece."""
    if _is_arrow(edges) or isinstance(edges, (np.ndarray, tuple, list)):
        yield from _cut(*_arrays(edges, weights))
        return
    if weights is not None:
        raise ValueError("a stream of edges has its weights in its pieces")
    for piece in edges:
        yield from _cut(*_arrays(piece, None))


def _is_arrow(edges: Any) -> bool:
    return hasattr(edges, "column_names") or hasattr(edges, "schema")


def _arrays(edges: Any, weights: Any) -> Arrays:
    if _is_arrow(edges):
        columns = [np.asarray(edges.column(i)) for i in range(min(edges.num_columns, 3))]
        if len(columns) < 2:
            raise ValueError("a table of edges has the columns source and target")
        return columns[0], columns[1], columns[2] if len(columns) == 3 else None
    if isinstance(edges, tuple):
        sources, targets = np.asarray(edges[0]), np.asarray(edges[1])
        weights = edges[2] if len(edges) == 3 else weights
    else:
        pairs = np.asarray(edges)
        if pairs.size == 0:
            pairs = pairs.reshape(0, 2).astype(np.uint32)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"edges are an array of shape (n, 2), not {pairs.shape}")
        sources, targets = pairs[:, 0], pairs[:, 1]
    values = None if weights is None else np.asarray(weights)
    if len(sources) != len(targets) or (values is not None and len(values) != len(sources)):
        raise ValueError("sources, targets and weights have different lengths")
    return sources, targets, values


def _cut(sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None) -> Iterator[Arrays]:
    for begin in range(0, len(sources), PIECE_EDGES):
        end = begin + PIECE_EDGES
        yield sources[begin:end], targets[begin:end], None if weights is None else weights[begin:end]


def _weight_dtype(weights: NDArray[Any] | None) -> np.dtype | None:
    """float32, float64 or int64: the type that holds them all."""
    if weights is None:
        return None
    if weights.dtype.kind in "iub":
        return np.dtype("<i8")
    return np.dtype("<f4") if weights.dtype == np.float32 else np.dtype("<f8")


def _vertices(numbers: NDArray[Any]) -> NDArray[Any]:
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"vertices are whole numbers, not {numbers.dtype}")
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) > VERTEX_MAX):
        raise ValueError(f"vertices are 0 to {VERTEX_MAX}")
    return numbers


def _write(file: Any, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None, dtype: np.dtype | None) -> None:
    if (weights is None) != (dtype is None):
        raise ValueError("some of the pieces have weights, and some have none")
    fields: list[Any] = [("source", "<u4"), ("target", "<u4")]
    records = np.empty(len(sources), fields if dtype is None else [*fields, ("weight", dtype)])
    records["source"], records["target"] = _vertices(sources), _vertices(targets)
    if weights is not None:
        records["weight"] = weights
    file.write(records.data)
