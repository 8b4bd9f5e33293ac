"""Graphs of the format `grid`: GridGraph's blocks, read by the partition of the source."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _files
from graphlane._core import Error
from graphlane._graph import Side, offsets_of, side_number
from graphlane._partitions import Csr, PartitionedGraph


class GridGraph(PartitionedGraph):
    """A partition's edges (a row of blocks, or a column for in-neighbours) are read together and sorted by vertex."""

    format = "grid"
    directed = True

    def __init__(self, path: Path) -> None:
        self.path = path
        words = (path / "meta").read_text().split()
        try:
            kind, self.num_vertices, self.num_arcs, self.partitions = (int(word) for word in words)
        except ValueError:
            raise Error(f"{path / 'meta'}: is no grid's") from None
        if kind not in (0, 1) or self.num_vertices < 0 or self.num_arcs < 0 or self.partitions < 1:
            raise Error(f"{path / 'meta'}: is no grid's")
        self.weight_type = "float32" if kind == 1 else "none"
        pair = [("source", "<u4"), ("target", "<u4")]
        self._record = np.dtype([*pair, ("weight", "<f4")] if self.weighted else pair)
        self._begin(self._partition_begins())
        self._tables = [self._table("row_offset"), self._table("column_offset")]

    def _partition_begins(self) -> NDArray[np.int64]:
        """GridGraph's rule: the first n mod P partitions have one vertex more."""
        each, more = divmod(self.num_vertices, self.partitions)
        numbers = np.arange(self.partitions + 1)
        return numbers * each + np.minimum(numbers, more)

    def _table(self, name: str) -> NDArray[np.int64]:
        table = np.asarray(_files.array(self.path, name, "<i8"))
        if (len(table) != self.partitions**2 + 1 or table[0] != 0 or table[-1] != self.num_arcs * self._record.itemsize
                or np.diff(table).min() < 0):
            raise Error(f"{self.path / name}: does not fit what `meta` says")
        return table

    def _edges(self, partition: int, side: int) -> NDArray[Any]:
        table = self._tables[side]
        begin, end = int(table[partition * self.partitions]), int(table[(partition + 1) * self.partitions])
        name, own = ("row", "source") if side == 0 else ("column", "target")
        try:
            edges = _files.array(self.path, name, self._record, begin, (end - begin) // self._record.itemsize)
        except ValueError:  # of numpy's map
            raise Error(f"{self.path / name}: is shorter than its table says") from None
        if len(edges) and not self._begins[partition] <= edges[own].min() <= edges[own].max() < self._begins[partition + 1]:
            raise Error(f"{self.path / name}: is damaged: an edge is in another block than its own")
        return edges

    def _load(self, partition: int, side: int) -> Csr:
        edges = self._edges(partition, side)
        own, other = ("source", "target") if side == 0 else ("target", "source")
        first, end = int(self._begins[partition]), int(self._begins[partition + 1])
        order = np.lexsort((edges[other], edges[own]))
        indptr = offsets_of(np.bincount(edges[own] - first, minlength=end - first))
        weights = np.asarray(edges["weight"])[order] if self.weighted else None
        return indptr, np.asarray(edges[other])[order], weights

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        number = side_number(side)
        counts = np.zeros(self.num_vertices, np.uint64)
        own = "source" if number == 0 else "target"
        for partition in range(self.partitions):
            first, end = int(self._begins[partition]), int(self._begins[partition + 1])
            edges = self._edges(partition, number)
            counts[first:end] = np.bincount(edges[own] - first, minlength=end - first)
        return counts
