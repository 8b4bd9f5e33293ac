"""Graphs for tests: their sources, and reference results.

An edge list is a numpy array of shape (n, 2), int32. The grid writer here follows GridGraph's own
preprocessing and uses none of Graphlane's code, so it can check `graphlane convert`.
"""

import lzma
import os
import struct
import zlib
from pathlib import Path

import igraph
import numpy as np
import pytest


def load(name: str) -> np.ndarray:
    """A real graph of $GRAPHLANE_TEST_DATA, or a skip."""
    data = os.environ.get("GRAPHLANE_TEST_DATA")
    if not data:
        pytest.skip("not applicable: GRAPHLANE_TEST_DATA is not set: no real graphs")
    path = Path(data) / f"{name}.u32.xz"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    with lzma.open(path) as file:
        return np.frombuffer(file.read(), dtype="<u4").reshape(-1, 2).astype(np.int32)


def random_edges(vertex_count: int, edge_count: int, seed: int) -> np.ndarray:
    """Skewed like real graphs: a source is the square of a uniform number."""
    random = np.random.default_rng(seed)
    source = (random.random(edge_count) ** 2 * vertex_count).astype(np.int32)
    target = random.integers(0, vertex_count, edge_count, dtype=np.int32)
    return np.stack([source, target], axis=1)


def write_snap(path: Path, edges: np.ndarray) -> Path:
    with open(path, "w") as file:
        file.write("# Directed graph\n# FromNodeId\tToNodeId\n")
        file.writelines(f"{source}\t{target}\n" for source, target in edges.tolist())
    return path


def write_bin(path: Path, edges: np.ndarray) -> Path:
    np.ascontiguousarray(edges, dtype="<i4").tofile(path)
    return path


def write_grid(directory: Path, edges: np.ndarray, vertex_count: int, partitions: int,
               weights: np.ndarray | None = None) -> Path:
    """Blocks keep the order of the edge list, as GridGraph's do with one thread."""
    directory.mkdir(parents=True)
    records = np.ascontiguousarray(edges, dtype="<i4")
    if weights is not None:
        records = np.column_stack([records, weights.astype("<f4").view("<i4")])
    edge_bytes = records.itemsize * records.shape[1]
    quotient, remainder = divmod(vertex_count, partitions)
    begins = np.arange(partitions) * quotient + np.minimum(np.arange(partitions), remainder)
    block = np.searchsorted(begins, edges, side="right") - 1
    for order, (outer, inner) in {"column": (1, 0), "row": (0, 1)}.items():
        at = block[:, outer] * partitions + block[:, inner]
        records[np.argsort(at, kind="stable")].tofile(directory / order)
        offsets = np.zeros(partitions**2 + 1, dtype="<i8")
        offsets[1:] = np.cumsum(np.bincount(at, minlength=partitions**2)) * edge_bytes
        offsets.tofile(directory / f"{order}_offset")
    for i in range(partitions):
        for j in range(partitions):
            here = (block[:, 0] == i) & (block[:, 1] == j)
            records[here].tofile(directory / f"block-{i}-{j}")
    kind = 0 if weights is None else 1
    (directory / "meta").write_text(f"{kind} {vertex_count} {len(edges)} {partitions}")
    return directory


def write_shards(base: Path, edges: np.ndarray, vertex_count: int, shards: int,
                 index_edges: int = 1 << 20) -> Path:
    """As GraphChi's own sharder does, for values of 4 bytes, compressed."""
    base.parent.mkdir(parents=True, exist_ok=True)
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    last = (np.arange(1, shards + 1) * vertex_count // shards - 1).tolist()
    Path(f"{base}.{shards}.intervals").write_text("".join(f"{v}\n" for v in last))
    Path(f"{base}.numvertices").write_text(f"{vertex_count}\n")
    degrees = np.stack([np.bincount(edges[:, 1], minlength=vertex_count),
                        np.bincount(edges[:, 0], minlength=vertex_count)], axis=1)
    degrees.astype("<i4").tofile(f"{base}_degs.bin")
    shard = np.searchsorted(last, edges[:, 1])
    for p in range(shards):
        adjacency, index, edge = bytearray(), bytearray(), 0

        def skip(count):
            for run in [256] * (count // 256) + [count % 256]:
                if run:
                    adjacency.extend([0, run - 1])

        here = edges[shard == p]
        following, indexed = 0, 0
        starts = np.unique(here[:, 0], return_index=True)
        for source, targets in zip(starts[0].tolist(), np.split(here[:, 1], starts[1][1:])):
            skip(source - following)
            if edge - indexed >= index_edges:
                index += struct.pack("<IIQQ", source, 0, len(adjacency), edge)
                indexed = edge
            count = len(targets)
            adjacency += bytes([count]) if count < 255 else struct.pack("<BI", 255, count)
            adjacency += targets.astype("<u4").tobytes()
            edge += count
            following = source + 1
        Path(f"{base}.edata_azv.{p}_{shards}.adj").write_bytes(adjacency)
        Path(f"{base}.edata_azv.{p}_{shards}.adjidx").write_bytes(index)
        name = f"{base}.edata..Z.e4B.{p}_{shards}"
        Path(f"{name}.size").write_text(str(4 * edge))
        blocks = Path(f"{name}_blockdir_{1 << 20}")
        blocks.mkdir()
        for i, begin in enumerate(range(0, 4 * edge, 1 << 20)):
            (blocks / str(i)).write_bytes(zlib.compress(bytes(min(1 << 20, 4 * edge - begin)), 1))
    return base


class Truth:
    """Another library's results for a graph."""

    def __init__(self, edges: np.ndarray):
        self.edges = edges
        self.vertex_count = int(edges.max()) + 1
        self.graph = igraph.Graph(n=self.vertex_count, edges=edges, directed=True)

    def labels(self) -> np.ndarray:
        """Every vertex's lowest vertex in its weak component."""
        membership = np.array(self.graph.connected_components(mode="weak").membership)
        lowest = np.full(membership.max() + 1, self.vertex_count)
        np.minimum.at(lowest, membership, np.arange(self.vertex_count))
        return lowest[membership].astype(np.int32)

    def parents(self, root: int) -> np.ndarray:
        """Every vertex's lowest neighbour one level nearer to root; -1: not reached."""
        level = np.array(self.graph.distances(source=root, mode="out")[0])
        source, target = self.edges.T
        tree = np.isfinite(level[target]) & (level[target] == level[source] + 1)
        parent = np.full(self.vertex_count, self.vertex_count, dtype=np.int32)
        np.minimum.at(parent, target[tree], source[tree])
        parent[parent == self.vertex_count] = -1
        parent[root] = root
        return parent

    def pagerank(self, iterations: int) -> np.ndarray:
        """GridGraph's: rank = 0.15 + 0.85 * sum(rank / out-degree), from 1; in float64."""
        source, target = self.edges.T
        degree = np.bincount(source, minlength=self.vertex_count)
        rank = np.ones(self.vertex_count)
        for _ in range(iterations):
            share = rank / np.maximum(degree, 1)
            rank = 0.15 + 0.85 * np.bincount(target, share[source], self.vertex_count)
        return rank

    def pagerank_limit(self) -> np.ndarray:
        """The fixed point by igraph, which scales to a sum of 1. Only for graphs
        without dead ends: igraph lets rank leave a dead end, GridGraph does not."""
        return np.array(self.graph.pagerank(damping=0.85)) * self.vertex_count
