"""BVGraph, the compressed format of WebGraph (law.di.unimi.it): NAME.graph and NAME.properties, read from begin to end.

The package webgraph of PyPI reads it at random, and needs a NAME.ef that another program makes. A conversion needs neither."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _core
from graphlane._core import Error

PIECE_ARCS = 1 << 20
VERTEX_COUNT_MAX = 2**32 - 1
INT_MAX = 2**31 - 1
CODES = ("UNARY", "GAMMA", "DELTA", "ZETA")  # as bv_reader.h numbers them
# The parts of a list, and their codes unless the properties say otherwise.
PARTS = {"OUTDEGREES": "GAMMA", "REFERENCES": "UNARY", "BLOCK_COUNT": "GAMMA", "BLOCKS": "GAMMA", "RESIDUALS": "ZETA"}


class BvGraph:
    """Error: the files are none, or of a kind that is not read."""

    def __init__(self, basename: str | os.PathLike[str]) -> None:
        self.path = Path(f"{os.fspath(basename)}.graph")
        self.properties_path = Path(f"{os.fspath(basename)}.properties")
        self.properties = _properties(self.properties_path)
        if not self.properties.get("graphclass", "").endswith("BVGraph"):
            raise Error(f"{self.properties_path}: graphclass is {self.properties.get('graphclass', 'missing')!r}, not BVGraph")
        if self.properties.get("endianness", "big") != "big":
            raise Error(f"{self.properties_path}: only big-endian graphs are read")
        self.num_vertices, self.num_arcs = self._number("nodes", most=VERTEX_COUNT_MAX), self._number("arcs")
        self.codes = self._codes()

    def _number(self, name: str, default: str = "", least: int = 0, most: int = 2**63 - 1) -> int:
        text = self.properties.get(name, default)
        if not text.isdecimal() or not least <= int(text) <= most:
            raise Error(f"{self.properties_path}: {name} is {text!r}, not a number from {least} to {most}")
        return int(text)

    def _codes(self) -> list[int]:
        codes = dict(PARTS)
        for flag in filter(None, self.properties.get("compressionflags", "").replace(" ", "").split("|")):
            part, _, code = flag.rpartition("_")
            if part == "OFFSETS":  # of a file that is not read
                continue
            if part not in PARTS or code not in CODES:
                raise Error(f"{self.properties_path}: the code {flag} is not read")
            codes[part] = code
        return [CODES.index(code) for code in codes.values()]

    def pieces(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32], None]]:
        """(sources, targets, None) of about PIECE_ARCS arcs each."""
        try:
            bits: NDArray[Any] = np.memmap(self.path, np.uint8, "r") if self.path.stat().st_size else np.empty(0, np.uint8)
        except OSError as error:
            raise Error(f"{self.path}: {os.strerror(error.errno or 0)}") from None
        reader = _core.BvGraph(bits, str(self.path), self.num_vertices, self._number("windowsize", "7", most=INT_MAX),
                               self._number("minintervallength", "4", most=INT_MAX), self._number("zetak", "3", 1, 16), self.codes)
        count = 0
        while True:
            sources, targets = reader.read(PIECE_ARCS)
            if not len(targets):
                break
            count += len(targets)
            yield sources, targets, None
        if count != self.num_arcs:
            raise Error(f"{self.path}: has {count} arcs, but {self.properties_path.name} says {self.num_arcs}")


def _properties(path: Path) -> dict[str, str]:
    """The lines of a Java properties file."""
    try:
        text = path.read_text("latin-1")
    except OSError as error:
        raise Error(f"{path}: {os.strerror(error.errno or 0)}") from None
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith(("#", "!")))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
