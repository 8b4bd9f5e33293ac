"""GraphlaneGraph: a stored graph as NetworkX dispatches on it. NetworkX itself never holds it.

    G = GraphlaneGraph("graphs/livejournal")
    nx.pagerank(G)"""

import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graphlane._build import from_edges
from graphlane._graph import Graph
from graphlane._open import open_graph

# Neighbours of a frontier that are in memory at once.
FRONTIER_VERTICES = 1 << 16


class GraphlaneGraph:
    """Its nodes are 0 … n - 1, or the labels of the NetworkX graph that it was made of. It cannot be changed."""

    __networkx_backend__ = "graphlane"

    def __init__(self, graph: Graph | str | os.PathLike[str], **options: Any) -> None:
        """`graph` is open, or a path for graphlane.open with its options."""
        self.store: Graph | None = graph if isinstance(graph, Graph) else open_graph(graph, **options)
        self._directed = self.store.directed
        self._labels: Sequence[Hashable] = range(self.store.num_vertices)
        self._places: dict[Hashable, int] | None = None
        self._weight: str | None = "weight"
        self.graph: dict[str, Any] = {}
        self.__networkx_cache__: dict[str, Any] = {}

    @classmethod
    def from_networkx(cls, graph: Any, weight: str | None = None, default: float = 1) -> "GraphlaneGraph":
        """Stores a graph of NetworkX in a temporary file. Of parallel edges the lightest stays. NotImplementedError: a
        weight is None. (NetworkX keeps what is made here also for functions without weights, for which that edge is there.)"""
        made = cls.__new__(cls)
        made._directed = graph.is_directed()
        made._labels = list(graph)
        made._places = {label: place for place, label in enumerate(made._labels)}
        made.graph = dict(graph.graph)
        made._weight = weight
        made.__networkx_cache__ = {}
        made.store = made._stored(graph, weight, default)
        return made

    def _stored(self, graph: Any, weight: str | None, default: float) -> Graph | None:
        """None: there are no edges, which no stored graph has."""
        places = self._places
        assert places is not None
        edges: dict[tuple[int, int], float] = {}
        for source, target, value in graph.edges(data=weight, default=default) if weight else ((s, t, 1) for s, t in graph.edges()):
            key = (places[source], places[target])
            if not self._directed and key[0] > key[1]:
                key = (key[1], key[0])
            if value is None:
                raise NotImplementedError("an edge whose weight is None")
            edges[key] = min(value, edges[key]) if key in edges else value
        if not edges:
            return None
        weights = np.fromiter(edges.values(), np.float64, len(edges)) if weight else None
        pairs = np.fromiter((place for key in edges for place in key), np.uint32, 2 * len(edges)).reshape(-1, 2)
        return from_edges(pairs, weights=weights, directed=self._directed, num_vertices=len(self._labels))

    def __repr__(self) -> str:
        kind = "directed" if self._directed else "undirected"
        return f"<graphlane.nx_graph.GraphlaneGraph: {kind}, {len(self)} nodes, of {self.store!r}>"

    # ---- What NetworkX asks of a graph

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return False

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._labels)

    def __contains__(self, node: object) -> bool:
        if self._places is not None:
            return node in self._places
        return isinstance(node, (int, np.integer)) and bool(0 <= node < len(self._labels))

    def __getitem__(self, node: Hashable) -> dict[Hashable, dict[str, Any]]:
        return {neighbor: {} for neighbor in self.neighbors(node)}

    @property
    def nodes(self) -> Sequence[Hashable]:
        return self._labels

    def number_of_nodes(self) -> int:
        return len(self._labels)

    order = number_of_nodes

    def number_of_edges(self) -> int:
        return sum(len(sources) for sources, _, _ in self._edge_blocks())

    def neighbors(self, node: Hashable) -> Iterator[Hashable]:
        if node not in self:
            raise nx.NetworkXError(f"The node {node} is not in the graph.")
        ids = [] if self.store is None else self.store.neighbors(self.place(node)).tolist()
        return (self._labels[place] for place in dict.fromkeys(ids))

    successors = neighbors

    def edges(self, data: bool | str = False) -> Iterator[tuple[Any, ...]]:
        """Streamed: (u, v), or (u, v, data) with the weight."""
        for sources, targets, weights in self._edge_blocks():
            values = [1.0] * len(sources) if weights is None else weights.tolist()
            for source, target, value in zip(sources.tolist(), targets.tolist(), values, strict=True):
                ends = (self._labels[source], self._labels[target])
                if data is False:
                    yield ends
                elif data is True:
                    yield (*ends, {} if weights is None else {self._weight: value})
                else:
                    yield (*ends, value if self.has_weights(data) else None)

    def _edge_blocks(self) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
        if self.store is not None:
            yield from map(self.store._edges_of, self.store.blocks())

    def to_networkx(self) -> Any:
        """In memory. A graph that NetworkX cannot hold ends with MemoryError."""
        graph = nx.DiGraph() if self._directed else nx.Graph()
        graph.graph.update(self.graph)
        graph.add_nodes_from(self._labels)
        graph.add_edges_from(self.edges(data=True))
        return graph

    # ---- For the algorithms

    def has_weights(self, attribute: Any) -> bool:
        """Whether the edges have weights of this name. NetworkX counts each edge as 1 where they have none."""
        return self.store is not None and self.store.weighted and attribute is not None and attribute == self._weight

    def place(self, node: Hashable) -> int:
        return self._places[node] if self._places is not None else int(node)  # type: ignore[call-overload]

    def label(self, place: int) -> Hashable:
        return self._labels[place]

    def labelled(self, values: NDArray[Any]) -> dict[Hashable, Any]:
        return dict(zip(self._labels, values.tolist(), strict=True))

    def has_loops(self) -> bool:
        return any((sources == targets).any() for sources, targets, _ in self._edge_blocks())

    def search(self, sources: Iterable[int], *, reverse: bool = False,
               depth_max: float = float("inf")) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Breadth first: of each level the vertices in the order in which a queue meets them, and the parent of each
        (-1 of sources). Neighbours come in the order of their numbers."""
        level = np.fromiter(dict.fromkeys(sources), np.int64)
        seen = np.zeros(len(self._labels), bool)
        seen[level] = True
        yield level, np.full(len(level), -1)
        depth = 0
        while self.store is not None and len(level) and depth < depth_max:
            found = [self._next(level[at:at + FRONTIER_VERTICES], seen, "in" if reverse else "out")
                     for at in range(0, len(level), FRONTIER_VERTICES)]
            level = np.concatenate([vertices for vertices, _ in found])
            if len(level):
                yield level, np.concatenate([parents for _, parents in found])
            depth += 1

    def _next(self, frontier: NDArray[Any], seen: NDArray[np.bool_], side: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        assert self.store is not None
        offsets, ids = self.store.multi_neighbors(frontier, side)
        parents = np.repeat(frontier, np.diff(offsets).astype(np.int64))
        fresh = ~seen[ids]
        ids, parents = ids[fresh], parents[fresh]
        first = np.sort(np.unique(ids, return_index=True)[1])
        seen[ids] = True
        return ids[first].astype(np.int64), parents[first]
