"""NetworkX's backend "graphlane": nx.pagerank(G, backend="graphlane"), or any covered function of a GraphlaneGraph.

A function is here under NetworkX's own name and signature. Beside it stands, where it does not take all arguments, the
rule for those that it takes."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graphlane import algo
from graphlane._graph import Graph
from graphlane.nx_graph import GraphlaneGraph

MISSING = object()
LENGTH_MAX = 2**53  # below, float64 has all whole numbers

FUNCTIONS: dict[str, Callable[..., Any]] = {}
RULES: dict[str, Callable[..., bool]] = {}


def covered(rule: Callable[..., bool] | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`rule` takes the function's arguments; False: NetworkX must do it."""

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function.__name__] = function
        if rule is not None:
            RULES[function.__name__] = rule
        return function

    return note


class Backend:
    """The interface that NetworkX expects of a backend."""

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if name not in FUNCTIONS:
            return False
        try:
            return name not in RULES or bool(RULES[name](*args, **kwargs))
        except TypeError:  # arguments that the function does not have either: NetworkX tells of them
            return False

    should_run = can_run

    @staticmethod
    def convert_from_nx(graph: Any, edge_attrs: dict[str, Any] | None = None, preserve_edge_attrs: bool = False, **_: Any) -> GraphlaneGraph:
        if isinstance(graph, (GraphlaneGraph, Graph)):
            return graph if isinstance(graph, GraphlaneGraph) else GraphlaneGraph(graph)
        if edge_attrs and len(edge_attrs) > 1:
            raise NotImplementedError("more than one attribute of edges")
        weight, default = next(iter(edge_attrs.items())) if edge_attrs else (None, 1)
        return GraphlaneGraph.from_networkx(graph, weight, 1 if default is None else default)

    @staticmethod
    def convert_to_nx(result: Any, **_: Any) -> Any:
        return result.to_networkx() if isinstance(result, GraphlaneGraph) else result

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return FUNCTIONS[name]
        except KeyError:
            raise AttributeError(name) from None


backend = Backend()


# ---- Rules

def weights_of(graph: Any, weight: Any) -> Iterator[Any]:
    """The values that the edges have by an attribute; nothing where none has it."""
    yield from (value for _, _, value in graph.edges(data=weight, default=MISSING) if value is not MISSING)


def is_unweighted(graph: Any, weight: Any) -> bool:
    if weight is None:
        return True
    if isinstance(graph, GraphlaneGraph):
        return not graph.has_weights(weight)
    return isinstance(weight, str) and all(value == 1 for value in weights_of(graph, weight))


def has_lengths(graph: Any, weight: Any) -> bool:
    """Weights that Dijkstra's algorithm takes, and float64 holds."""
    if weight is None:
        return True
    if not isinstance(weight, str):
        return False
    return isinstance(graph, GraphlaneGraph) or all(
        isinstance(value, (int, float, np.number)) and 0 <= value < LENGTH_MAX for value in weights_of(graph, weight))


def is_undirected(graph: Any) -> bool:
    return not graph.is_directed()


def is_simple(graph: Any) -> bool:
    """Undirected, and without parallel edges."""
    return not graph.is_directed() and not graph.is_multigraph()


def is_plain(graph: Any) -> bool:
    """Without attributes, which a stored graph does not keep."""
    if isinstance(graph, GraphlaneGraph):
        return True
    return (not graph.graph and not graph.is_multigraph() and not any(data for _, data in graph.nodes(data=True))
            and not any(data for _, _, data in graph.edges(data=True)))


def _known(graph: GraphlaneGraph, node: Hashable, error: type[Exception], text: str) -> int:
    if node not in graph:
        raise error(text)
    return graph.place(node)


# ---- PageRank

CACHE_BYTES = 64 << 20  # what `graphlane algo` keeps of the lists


def _fits_cache(graph: Graph) -> bool:
    """Whether its lists take no more memory when all are read before, which is faster where all are read anyhow."""
    return graph.format == "lists" and sum(file.stat().st_size for file in graph.path.glob("*.lists")) <= CACHE_BYTES


@covered(lambda G, alpha=0.85, personalization=None, max_iter=100, tol=1e-6, nstart=None, weight="weight", dangling=None:
         personalization is None and nstart is None and dangling is None and not G.is_multigraph() and is_unweighted(G, weight))
def pagerank(G, alpha=0.85, personalization=None, max_iter=100, tol=1e-6, nstart=None, weight="weight", dangling=None):
    if len(G) == 0:
        return {}
    if G.store is None:  # without edges all are equal
        return dict.fromkeys(G, 1 / len(G))
    # One iteration more than allowed is used only if the allowed ones did not converge.
    run = algo.run("pagerank", G.store, damping=alpha, tolerance=tol * len(G), iterations=max_iter + 1,
                   in_memory=_fits_cache(G.store))
    if run.stats["iterations"] > max_iter:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.labelled(run.values)


# ---- Components

def _components(G: GraphlaneGraph) -> Iterator[set[Hashable]]:
    labels = np.arange(len(G)) if G.store is None else algo.wcc(G.store)
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    for part in np.split(order, cuts) if len(order) else ():
        yield {G.label(place) for place in part.tolist()}


def _component_count(G: GraphlaneGraph) -> int:
    if G.store is None:
        return len(G)
    return int(algo.run("wcc", G.store, values=False).summary["components"])


def _is_one_component(G: GraphlaneGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _component_count(G) == 1


@covered()
def connected_components(G):
    return _components(G)


@covered()
def weakly_connected_components(G):
    return _components(G)


@covered()
def number_connected_components(G):
    return _component_count(G)


@covered()
def number_weakly_connected_components(G):
    return _component_count(G)


@covered()
def is_connected(G):
    return _is_one_component(G)


@covered()
def is_weakly_connected(G):
    return _is_one_component(G)


@covered()
def node_connected_component(G, n):
    if n not in G:
        raise KeyError(n)
    return _reached(G, n)


# ---- Breadth-first search

def _reached(G: GraphlaneGraph, source: Hashable, reverse: bool = False) -> set[Hashable]:
    return {G.label(place) for level, _ in G.search([G.place(source)], reverse=reverse) for place in level.tolist()}


def _tree_edges(G: GraphlaneGraph, source: Hashable, reverse: bool, depth_limit: int | None) -> Iterator[tuple[Hashable, Hashable]]:
    place = _known(G, source, nx.NetworkXError, f"The node {source} is not in the graph.")
    depth_max = float("inf") if depth_limit is None else depth_limit
    for level, parents in G.search([place], reverse=reverse, depth_max=depth_max):
        for child, parent in zip(level.tolist(), parents.tolist(), strict=True):
            if parent >= 0:
                yield G.label(parent), G.label(child)


def _in_any_order(G, source, reverse=False, depth_limit=None, sort_neighbors=None):
    return sort_neighbors is None


@covered(_in_any_order)
def bfs_edges(G, source, reverse=False, depth_limit=None, sort_neighbors=None):
    yield from _tree_edges(G, source, reverse, depth_limit)


@covered(_in_any_order)
def bfs_tree(G, source, reverse=False, depth_limit=None, sort_neighbors=None):
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(_tree_edges(G, source, reverse, depth_limit))
    return tree


@covered(lambda G, source, depth_limit=None, sort_neighbors=None: sort_neighbors is None)
def bfs_predecessors(G, source, depth_limit=None, sort_neighbors=None):
    for parent, child in _tree_edges(G, source, False, depth_limit):
        yield child, parent


@covered(lambda G, source, depth_limit=None, sort_neighbors=None: sort_neighbors is None)
def bfs_successors(G, source, depth_limit=None, sort_neighbors=None):
    parent: Hashable = source
    children: list[Hashable] = []
    for node, child in _tree_edges(G, source, False, depth_limit):
        if node != parent:
            yield parent, children
            parent, children = node, []
        children.append(child)
    yield parent, children


@covered()
def bfs_layers(G, sources):
    nodes = [sources] if isinstance(sources, Hashable) and sources in G else list(sources)
    places = [_known(G, node, nx.NetworkXError, f"The node {node} is not in the graph.") for node in nodes]
    for level, _ in G.search(places):
        if len(level):
            yield [G.label(place) for place in level.tolist()]


@covered()
def descendants_at_distance(G, source, distance):
    place = _known(G, source, nx.NetworkXError, f"The node {source} is not in the graph.")
    for depth, (level, _) in enumerate(G.search([place], depth_max=distance)):
        if depth == distance:
            return {G.label(vertex) for vertex in level.tolist()}
    return set()


@covered()
def descendants(G, source):
    _known(G, source, nx.NetworkXError, f"The node {source} is not in the graph.")
    return _reached(G, source) - {source}


@covered()
def ancestors(G, source):
    _known(G, source, nx.NetworkXError, f"The node {source} is not in the graph.")
    return _reached(G, source, reverse=True) - {source}


@covered()
def has_path(G, source, target):
    for node in (source, target):
        _known(G, node, nx.NodeNotFound, f"Either source {source} or target {target} is not in G")
    goal = G.place(target)
    return any((level == goal).any() for level, _ in G.search([G.place(source)]))


def _levels(G: GraphlaneGraph, node: Hashable, cutoff: float | None, reverse: bool) -> dict[Hashable, int]:
    depth_max = float("inf") if cutoff is None else cutoff
    return {G.label(place): depth
            for depth, (level, _) in enumerate(G.search([G.place(node)], reverse=reverse, depth_max=depth_max))
            for place in level.tolist()}


@covered()
def single_source_shortest_path_length(G, source, cutoff=None):
    _known(G, source, nx.NodeNotFound, f"Source {source} is not in G")
    return _levels(G, source, cutoff, False)


@covered()
def single_target_shortest_path_length(G, target, cutoff=None):
    _known(G, target, nx.NodeNotFound, f"Target {target} is not in G")
    return _levels(G, target, cutoff, True)


@covered()
def single_source_shortest_path(G, source, cutoff=None):
    place = _known(G, source, nx.NodeNotFound, f"Source {source} not in G")
    paths: dict[int, list[Hashable]] = {}
    for level, parents in G.search([place], depth_max=float("inf") if cutoff is None else cutoff):
        for vertex, parent in zip(level.tolist(), parents.tolist(), strict=True):
            paths[vertex] = [*paths.get(parent, ()), G.label(vertex)]
    return {G.label(vertex): path for vertex, path in paths.items()}


# ---- Shortest paths by weights

def _distances(G: GraphlaneGraph, source: Hashable, weight: str | None) -> NDArray[np.float64]:
    place = _known(G, source, nx.NodeNotFound, f"Node {source} not found in graph")
    if G.store is None or not G.has_weights(weight):
        distances = np.full(len(G), np.inf)
        for depth, (level, _) in enumerate(G.search([place])):
            distances[level] = depth
        return distances
    return algo.sssp(G.store, place)


def _lengths(G: GraphlaneGraph, source: Hashable, weight: str | None, cutoff: float | None = None) -> dict[Hashable, float]:
    """The nearest first, as NetworkX has them."""
    distances = _distances(G, source, weight)
    bound = np.inf if cutoff is None else cutoff
    reached = np.flatnonzero(np.isfinite(distances) & (distances <= bound))
    nearest = reached[np.argsort(distances[reached], kind="stable")]
    return {G.label(place): _whole(distance) for place, distance in zip(nearest.tolist(), distances[nearest].tolist(), strict=True)}


def _whole(distance: float) -> float | int:
    return int(distance) if distance == int(distance) else distance


def _length(G: GraphlaneGraph, source: Hashable, target: Hashable, weight: str | None) -> float:
    distances = _distances(G, source, weight)
    if target not in G or not np.isfinite(distances[G.place(target)]):
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return _whole(float(distances[G.place(target)]))


@covered(lambda G, source, cutoff=None, weight="weight": has_lengths(G, weight))
def single_source_dijkstra_path_length(G, source, cutoff=None, weight="weight"):
    return _lengths(G, source, weight, cutoff)


@covered(lambda G, source, weight="weight": has_lengths(G, weight))
def single_source_bellman_ford_path_length(G, source, weight="weight"):
    return _lengths(G, source, weight)


@covered(lambda G, source, target, weight="weight": has_lengths(G, weight))
def dijkstra_path_length(G, source, target, weight="weight"):
    if source == target and source in G:
        return 0
    return _length(G, source, target, weight)


@covered(lambda G, source, target, weight="weight": has_lengths(G, weight))
def bellman_ford_path_length(G, source, target, weight="weight"):
    return dijkstra_path_length(G, source, target, weight)


@covered(lambda G, source=None, target=None, weight=None, method="dijkstra":
         method in ("dijkstra", "bellman-ford") and has_lengths(G, weight) and source is not None)
def shortest_path_length(G, source=None, target=None, weight=None, method="dijkstra"):
    if target is None:
        return _lengths(G, source, weight) if weight is not None else single_source_shortest_path_length(G, source)
    for node in (source, target) if weight is None else (source,):  # NetworkX's rule
        _known(G, node, nx.NodeNotFound, f"Either source {source} or target {target} is not in G")
    return dijkstra_path_length(G, source, target, weight)


# ---- Betweenness

@covered(lambda G, k=None, normalized=True, weight=None, endpoints=False, seed=None: weight is None)
def betweenness_centrality(G, k=None, normalized=True, weight=None, endpoints=False, seed=None):
    count = len(G)
    sources = None if k is None or k == count else [G.place(node) for node in seed.sample(list(G), k)]
    if G.store is None:
        totals = np.zeros(count)
    else:
        totals = algo.betweenness(G.store, sources)
    if endpoints:
        totals = totals + _ends(G, range(count) if sources is None else sources)
    return G.labelled(totals * _scales(count, sources, normalized, G.is_directed(), endpoints))


def _ends(G: GraphlaneGraph, sources: Iterable[int]) -> NDArray[np.float64]:
    """The number of pairs that have a vertex as source or target."""
    totals = np.zeros(len(G))
    for source in sources:
        reached = np.concatenate([level for level, _ in G.search([source])])
        totals[reached] += 1
        totals[source] += len(reached) - 2  # itself is no target
    return totals


def _scales(count: int, sources: list[int] | None, normalized: bool, directed: bool, endpoints: bool) -> NDArray[np.float64]:
    """NetworkX's rule: by the pairs of a source and a target that could have a path through the vertex."""
    pairs = count if endpoints else count - 1
    if pairs < 2:
        return np.ones(count)
    halves = 1 if directed else 2
    used = pairs if sources is None else len(sources)
    scale = np.full(count, 1 / (used * (pairs - 1)) if normalized else pairs / (used * halves))
    if sources is not None and not endpoints:  # a source is no vertex between its own pairs
        own = np.nan
        if used > 1:
            own = 1 / ((used - 1) * (pairs - 1)) if normalized else pairs / ((used - 1) * halves)
        scale[sources] = own
    return scale


# ---- Triangles and clustering

def _triangles(G: GraphlaneGraph) -> NDArray[Any]:
    return np.zeros(len(G), np.int64) if G.store is None else algo.triangles(G.store)


def _clustering(G: GraphlaneGraph) -> NDArray[np.float64]:
    return np.zeros(len(G)) if G.store is None else algo.lcc(G.store)


def _picked(G: GraphlaneGraph, values: NDArray[Any], nodes: Any) -> Any:
    """Takes `nodes` as NetworkX does: all, one, or some."""
    if nodes is None:
        return G.labelled(values)
    if isinstance(nodes, Hashable) and nodes in G:
        return _number(values[G.place(nodes)])
    if not isinstance(nodes, Iterable):
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.")
    return {node: _number(values[G.place(node)]) for node in nodes if node in G}


def _number(value: Any) -> Any:
    return value.item()


@covered(lambda G, nodes=None: is_simple(G))
def triangles(G, nodes=None):
    return _picked(G, _triangles(G), nodes)


@covered(lambda G, nodes=None, weight=None: weight is None and is_simple(G))
def clustering(G, nodes=None, weight=None):
    return _picked(G, _clustering(G), nodes)


@covered(lambda G, nodes=None, weight=None, count_zeros=True: weight is None and is_simple(G))
def average_clustering(G, nodes=None, weight=None, count_zeros=True):
    found = _picked(G, _clustering(G), nodes)
    values = [value for value in found.values() if count_zeros or abs(value) > 0]
    return sum(values) / len(values)


@covered(is_simple)
def transitivity(G):
    triads = closed = 0
    if G.store is not None:
        degrees = G.store.degrees().astype(np.int64) - _loops(G)
        triads = int((degrees * (degrees - 1)).sum())
        closed = 2 * int(_triangles(G).sum())
    return 0 if closed == 0 else closed / triads


def _loops(G: GraphlaneGraph) -> NDArray[np.int64]:
    loops = np.zeros(len(G), np.int64)
    for sources, targets, _ in G._edge_blocks():
        np.add.at(loops, sources[sources == targets], 1)
    return loops


# ---- Cores

def _cores(G: GraphlaneGraph) -> NDArray[Any]:
    if G.has_loops():
        raise nx.NetworkXNotImplemented("Input graph has self loops which is not permitted; "
                                        "Consider using G.remove_edges_from(nx.selfloop_edges(G)).")
    return np.zeros(len(G), np.int64) if G.store is None else algo.kcore(G.store)


@covered(is_undirected)
def core_number(G):
    return G.labelled(_cores(G))


@covered(lambda G, k=None, core_number=None: is_undirected(G) and is_plain(G) and core_number is None)
def k_core(G, k=None, core_number=None):
    cores = _cores(G)
    least = (int(cores.max()) if len(cores) else 0) if k is None else k
    return _induced(G, cores >= least)


@covered(lambda G, k=None, core_number=None: is_undirected(G) and is_plain(G) and core_number is None)
def k_shell(G, k=None, core_number=None):
    cores = _cores(G)
    shell = (int(cores.max()) if len(cores) else 0) if k is None else k
    return _induced(G, cores == shell)


def _induced(G: GraphlaneGraph, kept: NDArray[np.bool_]) -> Any:
    """The subgraph in memory; the rest of the graph is streamed past."""
    graph = nx.Graph()
    graph.add_nodes_from(G.label(place) for place in np.flatnonzero(kept).tolist())
    for sources, targets, _ in G._edge_blocks():
        inside = kept[sources] & kept[targets]
        graph.add_edges_from((G.label(u), G.label(v)) for u, v in zip(sources[inside].tolist(), targets[inside].tolist(), strict=True))
    return graph
