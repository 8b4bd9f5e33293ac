"""Graphs of the format `pages`."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _core
from graphlane._graph import Graph, Side, side_number


class PagesGraph(Graph):
    """Lists by key. The degrees are not in memory: degrees() reads all pages once, and keeps what it found."""

    format = "pages"

    def __init__(self, path: Path, cache_bytes: int, in_memory: bool) -> None:
        self.path = path
        self._core = _core.KeyedGraph(str(path), cache_bytes, in_memory)
        self.num_vertices, self.num_arcs = self._core.num_vertices, self._core.num_arcs
        self.directed = self._core.directed
        self.weight_type = self._core.weight_type
        self._degrees: dict[int, NDArray[np.uint64]] = {}

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        number = side_number(side) if self.directed else 0
        if number not in self._degrees:
            counts = np.empty(self.num_vertices, np.uint64)
            self._core.degrees(counts, number)
            self._degrees[number] = counts
        return self._degrees[number].copy()

    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray[Any], ...]:
        return self._core.multi_neighbors(ids, side, weights)

    def stored(self) -> Path:
        return self.path
