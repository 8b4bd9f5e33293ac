"""Graph: what all stored graphs have in common."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from operator import index
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphlane import _command
from graphlane._core import Error

Side = Literal["out", "in"]
# Bytes that a block takes for each arc while it is made: neighbours, weights, and a converted copy of both.
ARC_BYTES = 24
EXACT_MAX = 2.0**53  # below, float64 has all whole numbers


class Neighbors(NamedTuple):
    """Lists of several vertices: of the i-th, ids[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[np.uint64]
    ids: NDArray[np.uint32]


class WeightedNeighbors(NamedTuple):
    offsets: NDArray[np.uint64]
    ids: NDArray[np.uint32]
    weights: NDArray[np.float64]


class Block(NamedTuple):
    """The lists of the vertices [first, first + len(offsets) - 1)."""

    first: int
    offsets: NDArray[np.uint64]
    ids: NDArray[np.uint32]
    weights: NDArray[np.float64] | None

    def sources(self) -> NDArray[np.uint32]:
        """The vertex of each id."""
        count = len(self.offsets) - 1
        return np.repeat(np.arange(self.first, self.first + count, dtype=np.uint32), np.diff(self.offsets).astype(np.int64))


def side_number(side: str) -> int:
    if side == "out":
        return 0
    if side == "in":
        return 1
    raise ValueError(f"side={side!r}: 'out' or 'in'")


class Graph(ABC):
    """A stored graph that is open for reading. Vertices are 0 … num_vertices - 1. In an undirected graph each edge is an
    arc of both of its ends. Any thread may use it. A forked child, and a process that gets it by pickle, open their own
    at the first use."""

    path: Path
    format: str
    num_vertices: int
    num_arcs: int
    directed: bool
    weight_type: str  # "none", "float32", "float64" or "int64"

    @property
    def weighted(self) -> bool:
        return self.weight_type != "none"

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<graphlane.Graph {str(self.path)!r}: {self.format}, {kind}, {self.num_vertices} vertices, {self.num_arcs} arcs>"

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    _options: dict[str, Any]  # of open()

    def __reduce__(self) -> tuple[Any, ...]:
        from graphlane._open import open_by_options

        return open_by_options, (self.path.absolute(), self._options)

    def __copy__(self) -> "Graph":
        return self  # it cannot be changed

    def __deepcopy__(self, _: Any) -> "Graph":
        return self

    # ---- What a format implements

    @abstractmethod
    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        """Neighbours of each vertex."""

    @abstractmethod
    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray[Any], ...]:
        """(offsets, ids), or with weights (offsets, ids, weights); every id is checked."""

    # ---- Lists

    def degree(self, vertex: int, side: Side = "out") -> int:
        return len(self.neighbors(vertex, side))

    def neighbors(self, vertex: int, side: Side = "out") -> NDArray[np.uint32]:
        """The neighbours, ascending. IndexError: there is no such vertex."""
        return self._read(vertex_ids([index(vertex)]), side_number(side), False)[1]

    def multi_neighbors(self, ids: ArrayLike, side: Side = "out") -> Neighbors:
        """The lists of many vertices, in any order, also again: far faster than one by one."""
        return Neighbors(*self._read(vertex_ids(ids), side_number(side), False))

    def multi_neighbors_weighted(self, ids: ArrayLike, side: Side = "out") -> WeightedNeighbors:
        """As above, with weights; each is 1 where the graph has none."""
        return WeightedNeighbors(*self._read_weighted(vertex_ids(ids), side_number(side)))

    def _read_weighted(self, ids: NDArray[np.uint64], side: int) -> tuple[NDArray[Any], ...]:
        """Error: float64 may not hold a weight."""
        found = self._read(ids, side, True)
        if self.weight_type == "int64" and len(found[2]) and np.abs(found[2]).max() >= EXACT_MAX:
            raise Error(f"{self.path}: has weights from 2^53 on, which are read as float64 and would not be exact")
        return found

    # ---- The whole graph

    @property
    def indptr(self) -> NDArray[Any]:
        """Where each vertex's neighbours begin in `indices`: num_vertices + 1 numbers."""
        return offsets_of(self.degrees())

    @property
    def indices(self) -> NDArray[np.uint32]:
        """All neighbours, as CSR has them. Where the file holds them raw, they are its pages; else a copy is made."""
        return np.concatenate([block.ids for block in self.blocks(weights=False)] or [np.empty(0, np.uint32)])

    def blocks(self, memory: int | str = "64MiB", *, side: Side = "out", weights: bool | None = None, first: int = 0,
               end: int | None = None) -> Iterator[Block]:
        """The vertices [first, end), else all, as blocks of consecutive ones, each within `memory` (but for a vertex with
        more neighbours). IndexError: they are no vertices."""
        first, last = index(first), self.num_vertices if end is None else min(index(end), self.num_vertices)
        if not 0 <= first <= last:
            raise IndexError(f"{self.path}: has no vertices [{first}, {last}): its {self.num_vertices} vertices begin with 0")
        return self._blocks(memory, side, weights, first, last)

    def _blocks(self, memory: int | str, side: Side, weights: bool | None, first: int, last: int) -> Iterator[Block]:
        arcs_max = max(_command.size_bytes(memory) // ARC_BYTES, 1)
        wants = self.weighted if weights is None else weights
        ends = self._ends(side)
        while first < last:
            stop = int(np.searchsorted(ends, ends[first] + np.uint64(arcs_max), side="right")) - 1
            stop = min(max(stop, first + 1), first + arcs_max, last)
            ids = np.arange(first, stop, dtype=np.uint64)
            parts = self._read_weighted(ids, side_number(side)) if wants else self._read(ids, side_number(side), False)
            yield Block(first, parts[0], parts[1], parts[2] if wants else None)
            first = stop

    _kept_ends: tuple[str, NDArray[np.uint64]] | None = None

    def _ends(self, side: Side) -> NDArray[np.uint64]:
        """Where each vertex's arcs begin among all of the side; those of the last side are kept."""
        if self._kept_ends is None or self._kept_ends[0] != side:
            self._kept_ends = (side, offsets_of(self.degrees(side)))
        return self._kept_ends[1]

    def batches(self, memory: int | str = "64MiB", **options: Any) -> Iterator[Any]:
        """The arcs as record batches of Arrow: source, target and, with weights, weight. Needs pyarrow."""
        import pyarrow as pa

        for block in self.blocks(memory, **options):
            columns = {"source": pa.array(block.sources()), "target": pa.array(block.ids)}
            if block.weights is not None:
                columns["weight"] = pa.array(block.weights)
            yield pa.RecordBatch.from_pydict(columns)

    def scipy_blocks(self, memory: int | str = "64MiB", **options: Any) -> Iterator[tuple[int, Any]]:
        """(first vertex, rows of the adjacency matrix from there on as scipy.sparse.csr_array)."""
        from scipy.sparse import csr_array

        for block in self.blocks(memory, **options):
            data = np.ones(len(block.ids)) if block.weights is None else block.weights
            shape = (len(block.offsets) - 1, self.num_vertices)
            dtype = index_type(self.num_vertices, len(block.ids))
            yield block.first, csr_array((data, block.ids.astype(dtype), block.offsets.astype(dtype)), shape=shape)

    def to_scipy(self, *, weights: bool | None = None) -> Any:
        """The adjacency matrix as scipy.sparse.csr_array. Needs memory for all of it."""
        from scipy.sparse import csr_array

        wants = self.weighted if weights is None else weights
        dtype = index_type(self.num_vertices, self.num_arcs)
        ids: NDArray[Any] = np.empty(self.num_arcs, dtype)
        data = np.ones(self.num_arcs)
        at = 0
        for block in self.blocks("256MiB", weights=wants):
            ids[at:at + len(block.ids)] = block.ids
            if block.weights is not None:
                data[at:at + len(block.ids)] = block.weights
            at += len(block.ids)
        return csr_array((data, ids, np.asarray(self.indptr).astype(dtype)), shape=(self.num_vertices,) * 2)

    def to_edges(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64] | None]:
        """(sources, targets, weights or None): of an undirected graph each edge once."""
        parts = [self._edges_of(block) for block in self.blocks("256MiB")]
        if not parts:
            return np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0) if self.weighted else None
        sources, targets, weights = zip(*parts, strict=True)
        return np.concatenate(sources), np.concatenate(targets), np.concatenate(weights) if self.weighted else None

    def _edges_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        sources = block.sources()
        if self.directed:
            return sources, block.ids, block.weights
        once = sources <= block.ids
        return sources[once], block.ids[once], None if block.weights is None else block.weights[once]

    def to_igraph(self) -> Any:
        """igraph.Graph; weights are the edges' attribute "weight"."""
        import igraph

        sources, targets, weights = self.to_edges()
        attributes = {} if weights is None else {"weight": weights}
        return igraph.Graph(n=self.num_vertices, edges=np.column_stack([sources, targets]), directed=self.directed,
                            edge_attrs=attributes)

    def to_networkit(self) -> Any:
        """networkit.Graph."""
        import networkit
        from scipy.sparse import coo_matrix

        sources, targets, weights = self.to_edges()
        data = np.ones(len(sources)) if weights is None else weights
        matrix = coo_matrix((data, (sources, targets)), shape=(self.num_vertices,) * 2)
        return networkit.GraphFromCoo(matrix, n=self.num_vertices, weighted=self.weighted, directed=self.directed)

    def to_networkx(self) -> Any:
        """networkx.Graph or DiGraph, in memory. For a graph that NetworkX cannot hold: as_networkx()."""
        import networkx as nx

        sources, targets, weights = self.to_edges()
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(range(self.num_vertices))
        if weights is None:
            graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
        else:
            graph.add_weighted_edges_from(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))
        return graph

    def as_networkx(self) -> Any:
        """A graph for NetworkX's functions, which compute on the stored one (graphlane.nx_graph)."""
        from graphlane.nx_graph import GraphlaneGraph

        return GraphlaneGraph(self)

    # ---- The copy on which algorithms run

    _scratch: tempfile.TemporaryDirectory[str] | None = None
    _own: tempfile.TemporaryDirectory[str] | None = None  # of a graph without a path of the user's

    def stored(self) -> Path:
        """The path of this graph for `graphlane.algo`. A format without an engine is converted to lists at the first call,
        in the folder for temporary files; close() removes the copy."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="graphlane-")
            target = Path(self._scratch.name) / "lists"
            weights = ["--weights", self.weight_type] if self.weighted else []
            _command.run("convert", "--to", "lists", *weights, self.path, target)
        return Path(self._scratch.name) / "lists"

    _is_closed = False

    def close(self) -> None:
        """Gives files and memory back, and removes temporary files. Each use of the graph is a ValueError from now on."""
        for folder in (self._scratch, self._own):
            if folder is not None:
                folder.cleanup()
        self._scratch = self._own = None
        if not self._is_closed:
            self._is_closed = True
            kept = {"path": self.path, "_is_closed": True}
            self.__dict__.clear()
            self.__dict__.update(kept)
            self.__class__ = ClosedGraph  # so that open graphs need no look at each call


class ClosedGraph(Graph):
    """A graph after close()."""

    def __init__(self) -> None:
        raise TypeError("graphs are closed by close()")

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in ("close", "path", "_is_closed", "_scratch", "_own"):
            return super().__getattribute__(name)
        raise ValueError(f"{self.path}: the graph is closed")

    def __repr__(self) -> str:
        return f"<graphlane.Graph {str(self.path)!r}: closed>"

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        raise NotImplementedError

    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray[Any], ...]:
        raise NotImplementedError


def vertex_ids(ids: ArrayLike) -> NDArray[np.uint64]:
    array = np.asarray(ids)
    if array.ndim != 1:
        raise ValueError("vertices are an array of one dimension")
    if array.dtype == np.uint64:
        return np.ascontiguousarray(array)
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"vertices are whole numbers, not {array.dtype}")
    if array.dtype.kind == "i" and array.min() < 0:
        raise IndexError(f"there is no vertex {array.min()}")
    return array.astype(np.uint64)


def offsets_of(degrees: NDArray[Any]) -> NDArray[np.uint64]:
    offsets = np.zeros(len(degrees) + 1, np.uint64)
    np.cumsum(degrees, out=offsets[1:])
    return offsets


def index_type(vertices: int, arcs: int) -> type:
    """scipy's rule: int32 where all numbers fit."""
    return np.int32 if max(vertices, arcs) <= np.iinfo(np.int32).max else np.int64
