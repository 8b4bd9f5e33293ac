"""Graphs of the format `lists`."""

from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _core, _files
from graphlane._graph import Graph, Side, side_number


class ListsGraph(Graph):
    """The index is in memory; lists are read from the devices past a cache, or are all in memory."""

    format = "lists"

    def __init__(self, path: Path, cache_bytes: int, in_memory: bool) -> None:
        self.path = path
        self._core = _core.ListGraph(str(path), cache_bytes, in_memory, True)
        self.num_vertices, self.num_arcs = self._core.num_vertices, self._core.num_arcs
        self.directed = self._core.directed
        self.weight_type = self._core.weight_type
        self.codec = self._core.codec

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        into = np.empty(self.num_vertices, np.uint64)
        self._core.degrees(0, into, side_number(side))
        return into

    def degree(self, vertex: int, side: Side = "out") -> int:
        number = index(vertex)
        if number < 0:
            raise IndexError(f"{self.path}: has no vertex {vertex}")
        return self._core.degree(number, side_number(side))

    def neighbors(self, vertex: int, side: Side = "out") -> NDArray[np.uint32]:
        try:
            return self._core.neighbors(vertex, 0 if side == "out" else side_number(side))
        except (TypeError, OverflowError):  # numpy's own numbers, and what is no vertex at all
            return super().neighbors(vertex, side)

    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray[Any], ...]:
        return self._core.multi_neighbors(ids, side, weights)

    @property
    def indices(self) -> NDArray[np.uint32]:
        if self.codec == "raw" and not _files.is_striped(self.path, "out.lists"):
            return _files.array(self.path, "out.lists", np.uint32, 0, self.num_arcs)
        return super().indices

    def stored(self) -> Path:
        return self.path
