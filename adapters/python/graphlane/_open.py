"""open(): a stored graph by its path, whatever its format."""

import os
from pathlib import Path

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
    if not folder.is_dir():
        kind = NotADirectoryError if folder.exists() else FileNotFoundError
        raise kind(f"{folder}: is not a graph's directory")
    if (folder / "graph").exists():
        kept = _core.stored_format(str(folder))
        if kept == "lists":
            return ListsGraph(folder, _command.size_bytes(cache), in_memory)
        if kept == "pages":
            return PagesGraph(folder, _command.size_bytes(cache), in_memory)
        return DualGraph(folder)
    elif (folder / "indptr.npy").exists():
        return CsrGraph(folder)
    elif (folder / "meta").exists() and (folder / "row").exists():
        return GridGraph(folder)
    raise _core.Error(f"{folder}: holds no lists, dual, pages, grid or CSR")
