"""Graphs that are read by partitions of their vertices: grids and `dual`."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane._csr import gather
from graphlane._graph import Graph, offsets_of

Csr = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]


class PartitionedGraph(Graph):
    """The last partition of each side stays in memory: vertices in ascending order are far faster than in a random one."""

    def _begin(self, begins: NDArray[np.int64]) -> None:
        """`begins`: the first vertex of each partition, and the end."""
        self._begins = begins
        self._kept: dict[int, tuple[int, Csr]] = {}

    @abstractmethod
    def _load(self, partition: int, side: int) -> Csr:
        """The lists of the partition's vertices."""

    def _partition(self, partition: int, side: int) -> Csr:
        number = side if self.directed else 0
        kept = self._kept.get(number)
        if kept is None or kept[0] != partition:
            kept = self._kept[number] = (partition, self._load(partition, number))
        return kept[1]

    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray[Any], ...]:
        if len(ids) and int(ids.max()) >= self.num_vertices:
            raise IndexError(f"{self.path}: has no vertex {ids.max()}: its {self.num_vertices} vertices begin with 0")
        partitions = np.searchsorted(self._begins, ids.astype(np.int64), side="right") - 1
        parts = {}
        for partition in np.unique(partitions).tolist():
            places = np.flatnonzero(partitions == partition)
            indptr, indices, data = self._partition(partition, side)
            parts[partition] = (places, gather(ids[places], indptr, indices, data, weights=weights, path=self.path,
                                               vertices=self.num_vertices, first=int(self._begins[partition])))
            if len(places) == len(ids):
                return parts[partition][1]
        return _merge(len(ids), parts, weights)


def _merge(count: int, parts: dict[int, tuple[NDArray[Any], tuple[NDArray[Any], ...]]], weights: bool) -> tuple[NDArray[Any], ...]:
    """Lists that were gathered by partition, in the order in which they were asked for."""
    lengths = np.zeros(count, np.int64)
    for places, lists in parts.values():
        lengths[places] = np.diff(lists[0].astype(np.int64))
    offsets = offsets_of(lengths)
    merged = [np.empty(int(offsets[-1]), np.uint32)] + ([np.empty(int(offsets[-1]))] if weights else [])
    for places, lists in parts.values():
        own = np.diff(lists[0].astype(np.int64)).astype(np.int64)
        at = np.repeat(offsets[places].astype(np.int64) - lists[0][:-1].astype(np.int64), own) + np.arange(own.sum())
        for whole, part in zip(merged, lists[1:], strict=True):
            whole[at] = part
    return offsets, *merged
