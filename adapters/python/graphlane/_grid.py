"""Graphs of the format `grid`: GridGraph's blocks, read by the partition of the source."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphlane import _files
from graphlane._core import Error
from graphlane._csr import gather
from graphlane._graph import Graph, Side, offsets_of, side_number


class GridGraph(Graph):
    """A partition's edges (a row of blocks, or a column for in-neighbours) are read together and sorted by vertex. The
    last one of each side stays in memory, so vertices in ascending order are far faster than in a random one."""

    format = "grid"
    directed = True

    def __init__(self, path: Path) -> None:
        self.path = path
        words = (path / "meta").read_text().split()
        try:
            kind, self.num_vertices, self.num_arcs, self.partitions = (int(word) for word in words)
        except ValueError:
            raise Error(f"{path / 'meta'}: is no grid's") from None
        self.weight_type = "float32" if kind == 1 else "none"
        pair = [("source", "<u4"), ("target", "<u4")]
        self._record = np.dtype([*pair, ("weight", "<f4")] if self.weighted else pair)
        self._kept: dict[int, tuple[int, NDArray, NDArray, NDArray | None]] = {}
        self._begins = self._partition_begins()
        self._tables = [self._table("row_offset"), self._table("column_offset")]

    def _partition_begins(self) -> NDArray[np.int64]:
        """GridGraph's rule: the first n mod P partitions have one vertex more."""
        each, more = divmod(self.num_vertices, self.partitions)
        numbers = np.arange(self.partitions + 1)
        return numbers * each + np.minimum(numbers, more)

    def _table(self, name: str) -> NDArray[np.int64]:
        table = np.asarray(_files.array(self.path, name, "<i8"))
        if len(table) != self.partitions**2 + 1 or table[-1] != self.num_arcs * self._record.itemsize:
            raise Error(f"{self.path / name}: does not fit what `meta` says")
        return table

    def _edges(self, partition: int, side: int) -> NDArray:
        table = self._tables[side]
        begin, end = int(table[partition * self.partitions]), int(table[(partition + 1) * self.partitions])
        name = "row" if side == 0 else "column"
        return _files.array(self.path, name, self._record, begin, (end - begin) // self._record.itemsize)

    def _partition(self, partition: int, side: int) -> tuple[NDArray, NDArray, NDArray | None]:
        """The partition as CSR: (indptr, indices, weights)."""
        kept = self._kept.get(side)
        if kept is not None and kept[0] == partition:
            return kept[1:]
        edges = self._edges(partition, side)
        own, other = ("source", "target") if side == 0 else ("target", "source")
        first, end = int(self._begins[partition]), int(self._begins[partition + 1])
        order = np.lexsort((edges[other], edges[own]))
        indptr = offsets_of(np.bincount(edges[own] - first, minlength=end - first))
        weights = np.asarray(edges["weight"])[order] if self.weighted else None
        self._kept[side] = (partition, indptr, np.asarray(edges[other])[order], weights)
        return self._kept[side][1:]

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        number = side_number(side)
        counts = np.zeros(self.num_vertices, np.uint64)
        own = "source" if number == 0 else "target"
        for partition in range(self.partitions):
            first, end = int(self._begins[partition]), int(self._begins[partition + 1])
            edges = self._edges(partition, number)
            counts[first:end] = np.bincount(edges[own] - first, minlength=end - first)
        return counts

    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray, ...]:
        if len(ids) and int(ids.max()) >= self.num_vertices:
            raise IndexError(f"{self.path}: has no vertex {ids.max()}: its {self.num_vertices} vertices begin with 0")
        partitions = np.searchsorted(self._begins, ids.astype(np.int64), side="right") - 1
        found = np.unique(partitions)
        parts = {}
        for partition in found:
            places = np.flatnonzero(partitions == partition)
            indptr, indices, data = self._partition(int(partition), side)
            lists = gather(ids[places], indptr, indices, data, weights=weights, path=self.path,
                           first=int(self._begins[partition]))
            if len(found) == 1:
                return lists
            parts[int(partition)] = (places, lists)
        return _merge(len(ids), parts, weights)


def _merge(count: int, parts: dict[int, tuple[NDArray, tuple[NDArray, ...]]], weights: bool) -> tuple[NDArray, ...]:
    """Lists that were gathered by partition, in the order in which they were asked for."""
    lengths = np.zeros(count, np.int64)
    for places, lists in parts.values():
        lengths[places] = np.diff(lists[0].astype(np.int64))
    offsets = offsets_of(lengths)
    merged = [np.empty(int(offsets[-1]), np.uint32)] + ([np.empty(int(offsets[-1]))] if weights else [])
    for places, lists in parts.values():
        own = np.diff(lists[0].astype(np.int64))
        at = np.repeat(offsets[places].astype(np.int64) - lists[0][:-1].astype(np.int64), own) + np.arange(own.sum())
        for whole, part in zip(merged, lists[1:], strict=True):
            whole[at] = part
    return offsets, *merged
