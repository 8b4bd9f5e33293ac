"""Graphs of the format `csr`: arrays of numpy, used where they lie."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _files
from graphlane._core import Error
from graphlane._graph import Graph, Side, side_number


class CsrGraph(Graph):
    """indptr.npy, indices.npy and perhaps data.npy. In-neighbours are found by a transposed copy in memory."""

    format = "csr"
    directed = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._indptr = _files.npy(path, "indptr.npy")
        self._indices = _files.npy(path, "indices.npy")
        self._data = _files.npy(path, "data.npy") if (path / "data.npy").exists() else None
        if self._indptr.ndim != 1 or self._indptr.dtype.kind not in "iu" or not len(self._indptr):
            raise Error(f"{path / 'indptr.npy'}: is no array of whole numbers")
        if self._indices.ndim != 1 or self._indices.dtype.kind not in "iu":
            raise Error(f"{path / 'indices.npy'}: is no array of whole numbers")
        if self._data is not None and (self._data.dtype.kind not in "iuf" or self._data.shape != self._indices.shape):
            raise Error(f"{path / 'data.npy'}: is no array of as many numbers as indices.npy has")
        self._transposed: tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None] | None = None
        self.num_vertices, self.num_arcs = len(self._indptr) - 1, len(self._indices)
        self.weight_type = "none" if self._data is None else weight_type(self._data.dtype)
        if int(self._indptr[-1]) != self.num_arcs:
            raise Error(f"{path}: indptr.npy ends with another number than indices.npy has")

    @property
    def indptr(self) -> NDArray[Any]:
        return self._indptr

    @property
    def indices(self) -> NDArray[Any]:
        return self._indices

    def _arrays(self, side: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        if side == 0:
            return self._indptr, self._indices, self._data
        if self._transposed is None:
            self._transposed = transpose(self._indptr, self._indices, self._data)
        return self._transposed

    def degrees(self, side: Side = "out") -> NDArray[np.uint64]:
        if side_number(side) == 1:
            return np.bincount(self._indices, minlength=self.num_vertices).astype(np.uint64)
        return np.diff(self._indptr).astype(np.uint64)

    def _read(self, ids: NDArray[np.uint64], side: int, weights: bool) -> tuple[NDArray[Any], ...]:
        return gather(ids, *self._arrays(side), weights=weights, path=self.path, vertices=self.num_vertices)


def weight_type(dtype: np.dtype) -> str:
    return dtype.name if dtype.name in ("float32", "float64", "int64") else "float64"


def gather(ids: NDArray[np.uint64], indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any] | None, *, weights: bool,
           path: Path, vertices: int, first: int = 0) -> tuple[NDArray[Any], ...]:
    """Reads lists of a CSR with `first` as its first vertex. Error: one of these lists is damaged."""
    count = len(indptr) - 1
    if len(ids) and (int(ids.min()) < first or int(ids.max()) >= first + count):
        wrong = int(ids.max()) if int(ids.max()) >= first + count else int(ids.min())
        raise IndexError(f"{path}: has no vertex {wrong}: its {first + count} vertices begin with 0")
    rows = (ids - np.uint64(first)).astype(np.int64)
    begins = np.asarray(indptr)[rows].astype(np.int64)
    lengths = np.asarray(indptr)[rows + 1].astype(np.int64) - begins
    if len(rows) and (lengths.min() < 0 or begins.min() < 0 or (begins + lengths).max() > len(indices)):
        raise Error(f"{path}: is damaged: some list has no place among the neighbours")
    offsets = np.zeros(len(ids) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    if len(rows) and np.all(np.diff(rows) == 1):  # consecutive: one slice
        places: slice | NDArray[Any] = slice(int(begins[0]), int(begins[-1] + lengths[-1]))
    else:
        places = np.repeat(begins - offsets[:-1].astype(np.int64), lengths) + np.arange(int(offsets[-1]))
    found = np.asarray(indices[places])
    if len(found) and (found.min() < 0 or found.max() >= vertices):
        raise Error(f"{path}: is damaged: a neighbour is none of its {vertices} vertices")
    lists = found.astype(np.uint32)
    if not weights:
        return offsets, lists
    values = np.ones(len(lists)) if data is None else np.asarray(data[places]).astype(np.float64)
    return offsets, lists, values


def transpose(indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    count = len(indptr) - 1
    order = np.argsort(indices, kind="stable")
    sources = np.repeat(np.arange(count, dtype=np.uint32), np.diff(indptr))[order]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(indices, minlength=count), out=offsets[1:])
    return offsets, sources, None if data is None else np.asarray(data)[order]
