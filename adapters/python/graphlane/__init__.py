"""Graphs larger than memory, stored by Graphlane.

    import graphlane

    g = graphlane.open("graphs/livejournal")      # lists, dual, pages, grid or CSR
    g.neighbors(7)                                # numpy.uint32
    offsets, ids = g.multi_neighbors([3, 1, 4])
    rank = graphlane.algo.pagerank(g, cache="1GiB")

`open` reads a stored graph, `from_edges` and `from_scipy` make one, `algo` computes on it, `Volume` stripes it over devices.
"""

from graphlane import algo
from graphlane._build import from_edges, from_scipy, from_webgraph
from graphlane._core import Error, __version__
from graphlane._graph import Block, Graph, Neighbors
from graphlane._open import open_graph
from graphlane._volume import Volume

open = open_graph  # noqa: A001

__all__ = ["__version__", "Block", "Error", "Graph", "Neighbors", "Volume", "algo", "from_edges", "from_scipy", "from_webgraph", "open"]
