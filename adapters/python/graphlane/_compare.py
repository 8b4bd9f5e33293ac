"""compare-results: whether two runs gave the same values.

A result is a file of `graphlane algo --out` (.npy, .csv, .txt), or Parquet: a file, or a folder of files. Parquet has the
column vertex, in any order, and columns of values."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane._core import Error

TOLERANCE = 1e-6
NOISE = 1e-12  # what rounding leaves of a zero
UNREACHED = 2**63 - 1  # of Graphalytics' text; -1 elsewhere

Columns = dict[str, NDArray[Any]]


@dataclass
class Difference:
    """How two columns differ. `largest` is relative to the larger of both values, and infinite where one alone is."""

    vertices: int
    different: int = 0
    largest: float = 0.0
    worst: int | None = None  # the vertex of `largest`
    first: int | None = None  # the first that differs
    values: tuple[Any, Any] | None = None  # of `first`

    def as_json(self) -> dict[str, Any]:
        """JSON has no infinity: `largest` is null, and values are text."""
        return vars(self) | {"largest": self.largest if np.isfinite(self.largest) else None,
                             "values": None if self.values is None else [str(value) for value in self.values]}


def load(path: str | os.PathLike[str]) -> Columns:
    """The columns of a result, by vertex. Error: it is none, or it lacks vertices."""
    file = Path(path)
    if not file.exists():
        raise Error(f"{file}: there is no such result")
    kind = "" if file.is_dir() else file.suffix
    try:
        return {".npy": _npy, ".csv": _csv, ".txt": _txt}.get(kind, _parquet)(file)
    except (OSError, ValueError) as error:
        raise Error(f"{file}: {(str(error).splitlines() or ['unreadable'])[0]}") from None


def _npy(path: Path) -> Columns:
    array = np.load(path, allow_pickle=False)
    if array.ndim != 1:
        raise Error(f"{path}: is no array of one dimension")
    return {name: array[name] for name in array.dtype.names} if array.dtype.names else {"value": array}


def _csv(path: Path) -> Columns:
    with open(path) as file:
        names = file.readline().strip().split(",")
    if len(names) < 2:
        raise Error(f"{path}: has no columns vertex and value in its first line")
    columns = [_numbers(path, column, ",", 1) for column in range(len(names))]
    return _by_vertex(path, columns[0], dict(zip(names[1:], columns[1:], strict=True)))


def _txt(path: Path) -> Columns:
    values = _numbers(path, 1, None, 0)
    if values.dtype.kind in "iu":
        values = np.where(values == UNREACHED, -1, values)
    return _by_vertex(path, _numbers(path, 0, None, 0), {"value": values})


def _numbers(path: Path, column: int, delimiter: str | None, skip: int) -> NDArray[Any]:
    if os.path.getsize(path) == 0 or (skip and _lines_are_over(path, skip)):
        return np.empty(0, np.int64)
    for kind in (np.int64, np.uint64):
        try:
            return np.loadtxt(path, kind, delimiter=delimiter, skiprows=skip, usecols=column, ndmin=1)
        except (ValueError, OverflowError):
            continue
    return np.loadtxt(path, np.float64, delimiter=delimiter, skiprows=skip, usecols=column, ndmin=1)


def _lines_are_over(path: Path, count: int) -> bool:
    with open(path) as file:
        for _ in range(count):
            file.readline()
        return not file.readline()


def _parquet(path: Path) -> Columns:
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError(f"{path}: Parquet needs the package pyarrow: pip install 'graphlane[arrow]'") from None
    if (path / "_temporary").exists():
        raise Error(f"{path}: is half written: the run has not ended")
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    names = table.schema.names
    if "vertex" not in names or len(names) < 2:
        raise Error(f"{path}: has the columns {', '.join(names)}, not vertex and values")
    if any(column.null_count for column in table.columns):
        raise Error(f"{path}: has nulls")
    values = {name: table.column(name).to_numpy() for name in names if name != "vertex"}
    return _by_vertex(path, table.column("vertex").to_numpy(), values)


def _by_vertex(path: Path, vertices: NDArray[Any], values: Columns) -> Columns:
    """Rows in the order of their vertices, which are 0 … n - 1, each once."""
    if len(vertices) and vertices.dtype.kind not in "iu":
        raise Error(f"{path}: its vertices are no whole numbers")
    order = np.argsort(vertices, kind="stable")
    if not np.array_equal(vertices[order], np.arange(len(vertices))):
        raise Error(f"{path}: its vertices are not 0 to {len(vertices) - 1}, each once")
    return {name: column[order] for name, column in values.items()}


def compare(one: NDArray[Any], other: NDArray[Any], tolerance: float = TOLERANCE) -> Difference:
    """Whole numbers are equal or not. Others differ by their distance over the larger of both; see NOISE. Infinities and
    NaN equal themselves alone."""
    with np.errstate(invalid="ignore", over="ignore"):
        if one.dtype.kind in "iub" and other.dtype.kind in "iub":
            apart = np.where(one == other, 0.0, np.inf)
        else:
            a, b = one.astype(np.float64), other.astype(np.float64)
            distance, size = np.abs(a - b), np.maximum(np.abs(a), np.abs(b))
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)) | (distance <= NOISE), 0.0, distance / size)
            apart[np.isnan(apart)] = np.inf  # one of them is infinite or NaN
    return _difference(one, other, apart, ~(apart <= tolerance))


def compare_groups(one: NDArray[Any], other: NDArray[Any]) -> Difference:
    """Whether the values group the vertices alike. A vertex differs if its groups have other first members."""
    leaders = [_leaders(values) for values in (one, other)]
    differs = leaders[0] != leaders[1]
    return _difference(one, other, np.where(differs, np.inf, 0.0), differs)


def _leaders(values: NDArray[Any]) -> NDArray[np.int64]:
    """For each vertex, the first one of its group."""
    _, first, group = np.unique(values, return_index=True, return_inverse=True)
    return np.asarray(first[group], np.int64)


def _difference(one: NDArray[Any], other: NDArray[Any], apart: NDArray[np.float64], differs: NDArray[np.bool_]) -> Difference:
    if not len(apart):
        return Difference(0)
    worst = int(np.argmax(apart))
    if not differs.any():
        return Difference(len(apart), 0, float(apart[worst]), worst)
    first = int(np.argmax(differs))
    return Difference(len(apart), int(differs.sum()), float(apart[worst]), worst, first, (one[first].item(), other[first].item()))


def pairs(one: str, other: str) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """The columns that are compared: those of the same name, or the only one of each."""
    a, b = load(one), load(other)
    if len(a) == 1 or len(b) == 1:  # text has the first column alone
        name = next((name for name in a if name in b), next(iter(b if len(a) == 1 else a), "value"))
        found = [(name, next(iter(a.values())) if len(a) == 1 else a[name], next(iter(b.values())) if len(b) == 1 else b[name])]
    else:
        found = [(name, a[name], b[name]) for name in a if name in b]
    if not found:
        raise Error(f"{one}, {other}: have no column in common: {', '.join(a)}; {', '.join(b)}")
    for _, left, right in found:
        if len(left) != len(right):
            raise Error(f"{one}: has {len(left)} vertices, but {other} {len(right)}")
    return found


def line(name: str, found: Difference, groups: bool) -> str:
    largest = "" if groups or not np.isfinite(found.largest) else f", largest difference {found.largest:.2g}"
    if not found.different:
        return f"{name}: equal: {found.vertices} vertices{largest}"
    assert found.values is not None
    return (f"{name}: different: {found.different} of {found.vertices} vertices{largest}; "
            f"the first is {found.first}: {found.values[0]} and {found.values[1]}")
