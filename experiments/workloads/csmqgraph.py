"""CSMqGraph, the user's own build, as one more variant of computing on a grid.

It reads the columns from a file on each device, which hold them in turn, and all else from
its directory. That one lies on the OS striped volume, as GridGraph's does.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from experiments.devices.journal import Journal
from experiments.workloads.engines import timed

COLUMN = "column"
NAME = "CSMqGraph"


@dataclass(frozen=True)
class CsmqGraph:
    """With so many I/O threads a device."""

    programs: Path
    workers: int
    name: str | None = None

    @property
    def variant(self) -> str:
        return self.name or f"{NAME}, {self.workers} a device"

    def run(self, workload, directory: Path, prefix, device_count: int, depth: int) -> dict:
        # With fewer workers than devices it would leave some devices out, and not say so.
        options = [self.workers * device_count, device_count, depth >> 10]
        words = workload.words_of_gridgraph(self.programs, directory)
        return timed([*prefix, *words, *options], directory)[0]


def deal(source: Path, targets: list[Path], depth: int) -> None:
    """A file's bytes, `depth` of them to each of several files in turn."""
    files = [open(path, "xb") for path in targets]
    try:
        with open(source, "rb") as column:
            turn = 0
            while unit := column.read(depth):
                files[turn % len(files)].write(unit)
                turn += 1
    finally:
        for file in files:
            file.close()


class Layout:
    """CSMqGraph's directory for a grid, and a file for it in a directory on each device; gone
    with the section that the caller is in."""

    def __init__(self, journal: Journal, grid: Path, directory: Path, devices: list[Path]):
        self.column = grid / COLUMN
        self.directory = directory
        self.parts = [device / f"{COLUMN}_disk{i}_{len(devices)}"
                      for i, device in enumerate(devices)]
        for path in self.parts:
            journal.note("file", path=str(path))
        journal.note("tree", path=str(directory))
        directory.mkdir()
        for path in [*grid.iterdir(), *self.parts]:
            if path.name != COLUMN:
                os.symlink(path, directory / path.name)

    def stripe(self, depth: int) -> None:
        for path in self.parts:
            path.unlink(missing_ok=True)
        deal(self.column, self.parts, depth)
