"""Neighbour sampling on a stored graph, as a graph neural network trains: a batch of vertices, and of each some
neighbours, layer by layer. Each layer is one call of multi_neighbors.

    python sampling.py graphs/livejournal"""

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import graphlane


class Layer(NamedTuple):
    sources: NDArray[np.uint32]  # an arc from each source …
    targets: NDArray[np.uint32]  # … to this vertex of the layer before


def sample(graph: graphlane.Graph, seeds: NDArray, fanouts: list[int], random: np.random.Generator) -> list[Layer]:
    """At most fanouts[i] in-neighbours of each vertex of layer i, without replacement."""
    layers, frontier = [], np.unique(seeds)
    for fanout in fanouts:
        offsets, ids = graph.multi_neighbors(frontier, "in")
        targets = np.repeat(frontier, np.diff(offsets).astype(np.int64))
        # A random order within each list; its first `fanout` stay.
        order = np.lexsort((random.random(len(ids)), targets))
        rank = np.arange(len(ids)) - np.repeat(offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64))
        kept = order[rank < fanout]
        layers.append(Layer(ids[kept], targets[kept].astype(np.uint32)))
        frontier = np.unique(ids[kept])
    return layers


def main(path: str) -> None:
    graph = graphlane.open(path, cache="256MiB")
    random = np.random.default_rng(1)
    for batch in range(3):
        seeds = random.integers(0, graph.num_vertices, min(1024, graph.num_vertices))
        layers = sample(graph, seeds, [10, 5], random)
        print(f"batch {batch}: {', '.join(str(len(layer.sources)) for layer in layers)} arcs")


if __name__ == "__main__":
    main(sys.argv[1])
