"""The graphs that test every algorithm, and their formats."""

import lzma
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np


@dataclass
class StoredGraph:
    name: str
    vertex_count: int
    edges: np.ndarray  # (n, 2), as the file has them
    directed: bool = True
    weights: np.ndarray | None = None
    only_loops: bool = False  # which --simple leaves out: `convert` takes no empty edge list
    _made: dict = field(default_factory=dict)

    def once(self, key, make):
        """Computes a value from the graph, once."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @property
    def arcs(self) -> np.ndarray:
        """All arcs; an undirected graph has each edge in both directions, a loop once."""
        if self.only_loops:
            return NONE
        return self.once("arcs", lambda: self._doubled(self.edges))

    @property
    def arc_weights(self) -> np.ndarray | None:
        return None if self.weights is None else self.once("weights", lambda: self._doubled(self.weights))

    def _doubled(self, of_edges):
        if self.directed:
            return of_edges
        other = self.edges[:, 0] != self.edges[:, 1]
        back = of_edges[other][:, ::-1] if of_edges.ndim == 2 else of_edges[other]
        return np.concatenate([of_edges, back])

    @property
    def source(self) -> int:
        """The vertex with the most arcs, so that a search from it reaches others."""
        if self.only_loops:
            return 0
        return int(np.bincount(self.arcs[:, 0]).argmax())

    def store(self, graphlane, directory: Path, codec: str, to: str = "lists", *more: str) -> Path:
        """Stores it by `graphlane convert --to`: lists, or another format of stored graphs, with more options."""
        path = directory / "-".join([self.name, codec, to, *more])
        if not path.exists():
            # A star whose arcs all end at vertex 0 looks like pairs of 64-bit numbers.
            flags = ["--from", "bin", "--as-given", "--to", to, "--codec", codec, *more,
                     "--vertices", str(self.vertex_count)]
            flags += [] if self.directed else ["--undirected"]
            flags += [] if self.weights is None else ["--weighted"]
            flags += ["--simple"] if self.only_loops else []
            edges = directory / f"{self.name}.bin"
            if not edges.exists():
                self._write(edges)
            graphlane("convert", *flags, edges, path)
        return path

    def _write(self, path: Path) -> None:
        if self.weights is None:
            self.edges.astype("<u4").tofile(path)
            return
        rows = np.empty(len(self.edges), dtype=[("ends", "<u4", 2), ("weight", "<f4")])
        rows["ends"], rows["weight"] = self.edges, self.weights
        rows.tofile(path)


def random_pairs(vertices: int, edges: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, vertices, (edges, 2))


def rmat_pairs(scale: int, edges: int, seed: int) -> np.ndarray:
    """R-MAT with Graph500's probabilities; duplicates and loops as they come."""
    random = np.random.default_rng(seed)
    ends = np.zeros((edges, 2), dtype=np.int64)
    for _ in range(scale):
        quarter = random.choice(4, edges, p=[0.57, 0.19, 0.19, 0.05])
        ends = ends * 2 + np.stack([quarter >> 1, quarter & 1], axis=1)
    return ends


def weighted(graph: StoredGraph, seed: int) -> StoredGraph:
    weights = np.random.default_rng(seed).random(len(graph.edges)).astype(np.float32)
    weights[::7] = 0
    return StoredGraph(f"{graph.name}-weighted", graph.vertex_count, graph.edges, graph.directed, weights)


NONE = np.empty((0, 2), dtype=np.int64)


@cache
def small() -> list[StoredGraph]:
    with_duplicates = random_pairs(300, 1500, 1)
    all_graphs = [
        StoredGraph("one-vertex", 1, np.array([[0, 0]]), only_loops=True),
        StoredGraph("isolated", 1000, np.array([[3, 3], [999, 999]]), only_loops=True),
        StoredGraph("loop", 2, np.array([[0, 0]])),
        StoredGraph("loops-and-duplicates", 320, np.concatenate([with_duplicates, with_duplicates[::3], np.stack(
            [np.arange(0, 300, 5)] * 2, axis=1)])),
        StoredGraph("duplicates-undirected", 320, np.concatenate([with_duplicates, with_duplicates[::3]]), False),
        StoredGraph("random", 5000, random_pairs(5000, 20000, 2)),
        StoredGraph("random-undirected", 3000, random_pairs(2900, 9000, 3), False),
        StoredGraph("rmat", 1 << 11, rmat_pairs(11, 30000, 4)),
        StoredGraph("rmat-undirected", 1 << 11, rmat_pairs(11, 16000, 5), False),
    ]
    return all_graphs + [weighted(graph, 6) for graph in all_graphs[3:5] + all_graphs[7:]]


@cache
def large() -> list[StoredGraph]:
    star = np.stack([np.zeros(10**6, dtype=np.int64), np.arange(1, 10**6 + 1)], axis=1)
    chain = np.stack([np.arange(10**5 - 1), np.arange(1, 10**5)], axis=1)
    return [
        StoredGraph("star", 10**6 + 1, star, False),
        StoredGraph("star-directed", 10**6 + 1, star[:, ::-1]),
        StoredGraph("chain", 10**5, chain),
        StoredGraph("chain-undirected", 10**5, chain, False),
    ]


REAL = ("gowalla", "cnr-2000")


def real(name: str) -> StoredGraph | None:
    """None: GRAPHLANE_TEST_DATA does not have it."""
    path = Path(os.environ.get("GRAPHLANE_TEST_DATA", "")) / f"{name}.u32.xz"
    if "GRAPHLANE_TEST_DATA" not in os.environ or not path.exists():
        return None
    edges = np.frombuffer(lzma.open(path).read(), dtype="<u4").reshape(-1, 2).astype(np.int64)
    return StoredGraph(name, int(edges.max()) + 1, edges)
