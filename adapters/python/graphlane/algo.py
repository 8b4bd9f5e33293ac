"""Algorithms on stored graphs. Each returns arrays of numpy with a value for each vertex.

    rank = graphlane.algo.pagerank(g, tolerance=1e-9, cache="1GiB")
    levels, parents = graphlane.algo.bfs(g, source=7)
    result = graphlane.algo.run("wcc", g)        # columns, summary and statistics

They run in a process of their own, by the engine of the graph's format: the interpreter goes on, Ctrl-C ends them, and
memory that they lack is not the caller's. Progress shows on terminals and in notebooks (`progress=False`: never).

Options that all take: `cache` (of lists in memory, "64MiB"), `threads` (all cores), `in_memory`, `engine`, `progress`.
A name that is not below, of an engine that was added later, is called the same way with run()'s options."""

import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from graphlane import _command
from graphlane._graph import Graph

Source = Graph | str | os.PathLike[str]


class Options(TypedDict, total=False):
    cache: int | str
    threads: int
    in_memory: bool
    engine: str
    progress: bool | None


class BFS(NamedTuple):
    levels: NDArray[np.int32]   # -1: not reached
    parents: NDArray[np.int64]  # -1: none


@dataclass
class Result:
    """The result of a run: its columns by name, and the summary of the command."""

    columns: dict[str, NDArray[Any]]
    summary: dict[str, Any] = field(repr=False)
    stats: dict[str, Any] = field(repr=False)
    engine: str = ""

    @property
    def values(self) -> NDArray[Any]:
        """The first column, which is the algorithm's own."""
        return next(iter(self.columns.values()))


def names() -> list[str]:
    """All algorithms of all engines."""
    described = _command.run("algo", "--help").partition("\nAlgorithms:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\S+)", described, re.MULTILINE)


def run(name: str, graph: Source, *, sources: Iterable[int] = (), values: bool = True, cache: int | str | None = None,
        threads: int | None = None, in_memory: bool = False, engine: str = "auto", progress: bool | None = None,
        **options: Any) -> Result:
    """Any algorithm by its name. Options that are not named here are those of `graphlane algo` (iterations=5 is --iterations 5).
    `values=False`: the summary alone. graphlane.Error: a graph, an option or a source that does not suit."""
    path = graph.stored() if isinstance(graph, Graph) else Path(graph)
    words: list[str | os.PathLike[str]] = ["algo", name, path, "--engine", engine]
    for source in sources:
        words += ["--source", str(index(source))]
    if cache is not None:
        words += ["--cache", _command.size(cache)]
    if threads is not None:
        words += ["--threads", str(threads)]
    if in_memory:
        words.append("--in-memory")
    for option, value in options.items():
        if value is not None:
            words += [f"--{option.replace('_', '-')}", str(value)]
    if not values:
        return _result({}, _command.run_json(*words, progress=progress))
    with tempfile.TemporaryDirectory(prefix="graphlane-") as folder:
        out = Path(folder) / "values.npy"
        told = _command.run_json(*words, "--out", out, progress=progress)
        return _result(_columns(np.load(out), told), told)


def _columns(array: NDArray[Any], told: dict[str, Any]) -> dict[str, NDArray[Any]]:
    if array.dtype.names is None:
        return {told["algorithm"]: array}
    return {name: np.ascontiguousarray(array[name]) for name in array.dtype.names}


def _result(columns: dict[str, NDArray[Any]], told: dict[str, Any]) -> Result:
    return Result(columns, told["summary"], told["stats"], told["engine"])


def bfs(graph: Source, source: int = 0, **options: Unpack[Options]) -> BFS:
    """Breadth-first search: the level of each vertex, and the lowest neighbour of the level before."""
    found = run("bfs", graph, sources=[source], **options).columns
    return BFS(found["level"], found["parent"])


def pagerank(graph: Source, *, iterations: int | None = None, tolerance: float | None = None, damping: float = 0.85,
             dangling: str = "uniform", **options: Unpack[Options]) -> NDArray[np.float64]:
    """PageRank: 30 iterations, or so many, or until all ranks together move by no more than `tolerance`. `dangling`:
    rank of vertices without out-arcs goes to all ("uniform") or nowhere ("none")."""
    return run("pagerank", graph, iterations=iterations, tolerance=tolerance, damping=damping, dangling=dangling,
               **options).values


def pagerank_delta(graph: Source, *, tolerance: float = 1e-9, damping: float = 0.85, dangling: str = "uniform",
                   **options: Unpack[Options]) -> NDArray[np.float64]:
    """PageRank by sending what changed, to a tolerance."""
    return run("pagerank-delta", graph, tolerance=tolerance, damping=damping, dangling=dangling, **options).values


def wcc(graph: Source, **options: Unpack[Options]) -> NDArray[np.uint32]:
    """Weakly connected components: of each vertex, the lowest vertex of its component."""
    return run("wcc", graph, **options).values


def sssp(graph: Source, source: int = 0, **options: Unpack[Options]) -> NDArray[np.float64]:
    """Distances from `source` by the graph's weights; infinite where there is no path. Without weights each arc is 1."""
    return run("sssp", graph, sources=[source], **options).values


def triangles(graph: Source, **options: Unpack[Options]) -> NDArray[np.uint64]:
    """Triangles of each vertex; directions do not count."""
    return run("triangles", graph, **options).values


def lcc(graph: Source, **options: Unpack[Options]) -> NDArray[np.float64]:
    """Local clustering coefficients, as LDBC Graphalytics defines them."""
    return run("lcc", graph, **options).values


def cdlp(graph: Source, *, iterations: int = 10, **options: Unpack[Options]) -> NDArray[np.uint32]:
    """Communities by label propagation, as LDBC Graphalytics defines them."""
    return run("cdlp", graph, iterations=iterations, **options).values


def kcore(graph: Source, **options: Unpack[Options]) -> NDArray[Any]:
    """Core numbers; directions do not count."""
    return run("kcore", graph, **options).values


def betweenness(graph: Source, sources: Iterable[int] | None = None, **options: Unpack[Options]) -> NDArray[np.float64]:
    """Betweenness, of shortest paths from each source to all; of an undirected graph each path counts from both of its ends.
    None: all vertices are sources."""
    found = range(_vertex_count(graph)) if sources is None else list(sources)
    total: NDArray[Any] | None = None
    for begin in range(0, len(found), 1000):  # the command line takes no more
        part = run("betweenness", graph, sources=found[begin:begin + 1000], **options).values
        total = part if total is None else total + part
    return np.zeros(_vertex_count(graph)) if total is None else total


def scan(graph: Source, **options: Unpack[Options]) -> NDArray[Any]:
    """Scan statistics: edges among a vertex and its neighbours."""
    return run("scan", graph, **options).values


def msbfs(graph: Source, sources: Iterable[int], **options: Unpack[Options]) -> Result:
    """Breadth-first searches from up to 64 sources at once."""
    return run("msbfs", graph, sources=_some(sources), **options)


def ppr(graph: Source, sources: Iterable[int], *, tolerance: float | None = None, damping: float = 0.85,
        **options: Unpack[Options]) -> NDArray[np.float64]:
    """Personalised PageRank: rank begins at the sources and returns to them. Of graphs of the format `pages`."""
    return run("ppr", graph, sources=_some(sources), tolerance=tolerance, damping=damping, **options).values


def katz(graph: Source, *, alpha: float | None = None, tolerance: float | None = None,
         **options: Unpack[Options]) -> NDArray[np.float64]:
    """Katz's centrality. Of graphs of the format `pages`."""
    return run("katz", graph, alpha=alpha, tolerance=tolerance, **options).values


def _some(sources: Iterable[int]) -> list[int]:
    found = list(sources)
    if not found:
        raise ValueError("sources: at least one")
    return found


def _vertex_count(graph: Source) -> int:
    if isinstance(graph, Graph):
        return graph.num_vertices
    from graphlane._open import open_graph

    return open_graph(graph).num_vertices


def __getattr__(name: str) -> Callable[..., Result]:
    """Algorithms of engines that this page does not know."""
    word = name.replace("_", "-")
    if name.startswith("_") or word not in names():
        raise AttributeError(f"graphlane.algo has no {name!r}")
    return lambda graph, **options: run(word, graph, **options)
