"""One serial reference for each algorithm, by igraph, numpy and scipy: none of Graphlane's code.

Each function takes a `graphs.StoredGraph` and gives an array with a value for each vertex. Of an undirected graph
every edge counts as an arc in both directions, a loop as one.
"""

import igraph
import numpy as np
from scipy import sparse

from algo.stored_graphs import StoredGraph


def directed(graph: StoredGraph) -> igraph.Graph:
    return graph.once("directed", lambda: igraph.Graph(n=graph.vertex_count, edges=graph.arcs, directed=True))


def simple(graph: StoredGraph) -> igraph.Graph:
    """Undirected, without loops and duplicates."""
    return graph.once("simple", lambda: igraph.Graph(n=graph.vertex_count, edges=graph.arcs).simplify())


def bfs_levels(graph, source: int) -> np.ndarray:
    levels = np.array(directed(graph).distances(source=source, mode="out")[0])
    return np.where(np.isfinite(levels), levels, -1).astype(np.int64)


def bfs_parents(graph, source: int) -> np.ndarray:
    """For each vertex the lowest one of the level before that has an arc to it; -1: not reached."""
    levels = bfs_levels(graph, source)
    start, end = graph.arcs.T
    tree = (levels[end] >= 1) & (levels[start] == levels[end] - 1)
    parents = np.full(graph.vertex_count, graph.vertex_count)
    np.minimum.at(parents, end[tree], start[tree])
    parents[parents == graph.vertex_count] = -1
    parents[source] = source
    return parents


def components(graph) -> np.ndarray:
    """The lowest vertex of each vertex's component."""
    membership = np.array(directed(graph).connected_components(mode="weak").membership, dtype=np.int64)
    lowest = np.full(graph.vertex_count, graph.vertex_count)
    np.minimum.at(lowest, membership, np.arange(graph.vertex_count))
    return lowest[membership]


def pagerank(graph, iterations: int, damping: float = 0.85, dangling: str = "uniform") -> np.ndarray:
    start, end = graph.arcs.T
    n = graph.vertex_count
    degree = np.bincount(start, minlength=n)
    rank = np.full(n, 1 / n)
    for _ in range(iterations):
        share = np.divide(rank, degree, out=np.zeros(n), where=degree > 0)
        lost = rank[degree == 0].sum() if dangling == "uniform" else 0
        rank = (1 - damping) / n + damping * (np.bincount(end, share[start], n) + lost / n)
    return rank


def pagerank_limit(graph) -> np.ndarray:
    """igraph deals the rank of vertices without out-arcs out to all, too."""
    return np.array(directed(graph).pagerank(damping=0.85, implementation="prpack"))


def personalised(graph, sources) -> np.ndarray:
    """PageRank that starts at the sources, and restarts there after a vertex without out-arcs."""
    return np.array(directed(graph).personalized_pagerank(damping=0.85, reset_vertices=list(sources), implementation="prpack"))


def katz(graph, alpha: float | None = None) -> np.ndarray:
    """1 for each vertex, and α times the value of each that has an arc to it. Without α: 1 over one more than the most out-arcs."""
    start, end = graph.arcs.T
    n = graph.vertex_count
    if alpha is None:
        alpha = 1 / (1 + np.bincount(start, minlength=n).max())
    value = np.ones(n)
    while True:
        next_value = 1 + alpha * np.bincount(end, value[start], n)
        if np.abs(next_value - value).max() < 1e-14 * next_value.max():
            return next_value
        value = next_value


def distances(graph, source: int) -> np.ndarray:
    """Dijkstra; float64 sums of float32 weights."""
    weights = graph.arc_weights.astype(np.float64) if graph.arc_weights is not None else None
    return np.array(directed(graph).distances(source=source, mode="out", weights=weights)[0], dtype=np.float64)


def triangles(graph) -> np.ndarray:
    """For each vertex: igraph's share of connected pairs of neighbours, times the pairs."""
    return graph.once("triangles", lambda: _triangles(graph))


def _triangles(graph) -> np.ndarray:
    undirected = simple(graph)
    degree = np.array(undirected.degree(), dtype=np.float64)
    share = np.array(undirected.transitivity_local_undirected(mode="zero"))
    return np.rint(share * degree * (degree - 1) / 2).astype(np.int64)


def clustering(graph) -> np.ndarray:
    """LDBC's, by matrices: the arcs between neighbours over those that could be."""
    n = graph.vertex_count
    start, end = graph.arcs[graph.arcs[:, 0] != graph.arcs[:, 1]].T
    out = sparse.csr_array((np.ones(len(start), dtype=np.int32), (start, end)), shape=(n, n))
    out.data[:] = 1  # without duplicates
    around = out + out.T
    around.data[:] = 1
    near = around.sum(axis=1)
    value = np.zeros(n)
    several = np.flatnonzero(near >= 2)
    for part in np.array_split(several, 1 + len(several) // 8192):  # as the product is large
        rows = around[part]
        value[part] = (rows @ out).multiply(rows).sum(axis=1) / (near[part] * (near[part] - 1))
    return value


COMMUNITY_ITERATIONS = 10


def communities(graph, iterations: int = COMMUNITY_ITERATIONS) -> np.ndarray:
    """LDBC's: the most frequent label around, the smallest of those; arcs in both directions count."""
    return graph.once("communities", lambda: _communities(graph))[iterations]


def _communities(graph) -> list[np.ndarray]:
    """The labels after each number of iterations from 0 on."""
    n = graph.vertex_count
    start, end = graph.arcs.T
    if graph.directed:
        start, end = np.concatenate([start, end]), np.concatenate([end, start])
    label = np.arange(n)
    labels = [label]
    for _ in range(COMMUNITY_ITERATIONS):
        pairs, counts = np.unique(start * n + label[end], return_counts=True)
        vertex, seen = pairs // n, pairs % n
        order = np.lexsort([seen, -counts, vertex])
        vertex, seen = vertex[order], seen[order]
        first = np.flatnonzero(np.concatenate([[True], vertex[1:] != vertex[:-1]])) if len(vertex) else []
        label = label.copy()
        label[vertex[first]] = seen[first]
        labels.append(label)
    return labels


def cores(graph) -> np.ndarray:
    return np.array(simple(graph).coreness(), dtype=np.int64)


def betweenness(graph, sources) -> np.ndarray:
    """Brandes, a vertex at a time; duplicates are paths of their own."""
    n = graph.vertex_count
    order = np.argsort(graph.arcs[:, 0], kind="stable")
    ends = graph.arcs[order, 1].tolist()
    begin = np.searchsorted(graph.arcs[order, 0], np.arange(n + 1)).tolist()
    total = np.zeros(n)
    for source in sources:
        level, paths, dependency = [-1] * n, [0.0] * n, [0.0] * n
        level[source], paths[source] = 0, 1.0
        visited = [source]
        for v in visited:  # grows
            for u in ends[begin[v]:begin[v + 1]]:
                if level[u] < 0:
                    level[u] = level[v] + 1
                    visited.append(u)
                if level[u] == level[v] + 1:
                    paths[u] += paths[v]
        for v in reversed(visited):
            for u in ends[begin[v]:begin[v + 1]]:
                if level[u] == level[v] + 1:
                    dependency[v] += paths[v] / paths[u] * (1 + dependency[u])
        dependency[source] = 0
        total += np.array(dependency)
    return total


def scans(graph) -> np.ndarray:
    """Edges among each vertex and its neighbours."""
    return np.array(simple(graph).degree(), dtype=np.int64) + triangles(graph)


def reached_by(graph, sources) -> np.ndarray:
    """How many of the sources reach each vertex."""
    return np.isfinite(np.array(directed(graph).distances(source=sources, mode="out"))).sum(axis=0)
