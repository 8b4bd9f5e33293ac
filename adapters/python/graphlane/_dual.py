"""Graphs of the format `dual`, read by whole rows of blocks."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphlane import _core
from graphlane._graph import Side, side_number
from graphlane._partitions import Csr, PartitionedGraph


class DualGraph(PartitionedGraph):
    format = "dual"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._core = _core.BlockGraph(str(path))
        self.num_vertices, self.num_arcs = self._core.num_vertices, self._core.num_arcs
        self.directed = self._core.directed
        self.weight_type = self._core.weight_type
        self.partitions = self._core.partitions
        self._begin(np.array([self._core.first_vertex(row) for row in range(self.partitions + 1)], np.int64))
        self._degrees: dict[int, NDArray[np.uint64]] = {}

    def _load(self, partition: int, side: int) -> Csr:
        return self._core.row(partition, side)

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        """Reads all lists once, and keeps what it found."""
        number = side_number(side) if self.directed else 0
        if number not in self._degrees:
            rows = [np.diff(self._load(row, number)[0]) for row in range(self.partitions)]
            self._degrees[number] = np.concatenate(rows).astype(np.uint64)
        return self._degrees[number].copy()

    def stored(self) -> Path:
        return self.path
