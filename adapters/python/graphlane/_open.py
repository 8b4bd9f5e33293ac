"""open(): a stored graph by its path, whatever its format."""

import os
from pathlib import Path
from typing import Any

from graphlane import _command, _core
from graphlane._csr import CsrGraph
from graphlane._dual import DualGraph
from graphlane._graph import Graph
from graphlane._grid import GridGraph
from graphlane._lists import ListsGraph
from graphlane._pages import PagesGraph


def open_graph(path: str | os.PathLike[str], *, cache: int | str = "64MiB", in_memory: bool = False) -> Graph:
    """Opens a graph that `graphlane convert` made: lists, dual, pages, a grid or a CSR; plain, under a mount, or in a volume's
    directory without one.

    `cache`: how much of the lists is kept in memory (at least 4 MiB). `in_memory`: all of them.
    FileNotFoundError, NotADirectoryError; graphlane.Error: damaged, or no graph."""
    folder = Path(path)
    check_name(folder)
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(f"{folder}: is a file, and a stored graph is a directory")
        raise FileNotFoundError(f"{folder}: there is no such graph")
    cache_bytes = _command.size_bytes(cache)
    graph = _open(folder, cache_bytes, in_memory)
    graph._options = {"cache": cache_bytes, "in_memory": in_memory}
    return graph


def check_name(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{str(path)!r}: the name of a graph is UTF-8") from None


def open_by_options(path: Path, options: dict[str, Any]) -> Graph:
    """Opens a graph for pickle."""
    return open_graph(path, **options)


def _open(folder: Path, cache_bytes: int, in_memory: bool) -> Graph:
    if (folder / "graph").exists():
        kept = _core.stored_format(str(folder))
        if kept == "lists":
            return ListsGraph(folder, cache_bytes, in_memory)
        if kept == "pages":
            return PagesGraph(folder, cache_bytes, in_memory)
        return DualGraph(folder)
    if (folder / "indptr.npy").exists():
        return CsrGraph(folder)
    if (folder / "meta").exists() and (folder / "row").exists():
        return GridGraph(folder)
    raise _core.Error(f"{folder}: holds no lists, dual, pages, grid or CSR")
