"""What `compare` runs: a program that reads a data set, in whichever directory
that is given."""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from experiments import fio
from experiments.devices import BUILD
from experiments.journal import command
from experiments.workspace import StepFailed

GRAPHLANE = BUILD / "bin/graphlane"
PARTITIONS = 4
EDGES_PER_VERTEX = 16
GRID_BYTES_PER_EDGE = 3 * 8  # blocks, rows, columns
BUDGET_GIB = 8


@dataclass
class Read:
    """fio reads a large file as engines do. Each thread takes as many blocks as any other: what
    is left of the size is not there."""

    size: int
    threads: int
    direct: bool
    stripe: tuple = ()  # what globs of names are striped; none: what is large
    name: str = "read"

    def __post_init__(self):
        turn = fio.LARGE * self.threads
        if self.size < turn:
            raise StepFailed(f"--file {self.size >> 20}M: too little for {self.threads} threads")
        self.size = self.size // turn * turn

    def need_bytes(self) -> int:
        return self.size

    def prepare(self, directory: Path) -> None:
        blocks = self.size // fio.LARGE
        command("dd", "if=/dev/urandom", f"of={directory / 'file'}", f"bs={fio.LARGE}",
                f"count={blocks}", "iflag=fullblock", "status=none")

    def run(self, directory: Path, prefix) -> dict:
        return fio.fio(*fio.engine_words(directory / "file", self.size, self.threads,
                                         self.direct), prefix=prefix)


@dataclass
class Grid:
    """GridGraph, or its stand-in, computes on a grid."""

    algorithm: str
    programs: Path | None  # None: the stand-in
    graph: Path | None  # None: an R-MAT graph
    scale: int
    iterations: int
    budget: int | None  # bytes
    stripe: tuple = ("column", "row")
    said: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.algorithm} by " + ("GridGraph" if self.programs else "grid_engine")

    def need_bytes(self) -> int:
        if self.graph is not None:
            return sum(path.stat().st_size for path in self.graph.iterdir())
        return (EDGES_PER_VERTEX << self.scale) * (GRID_BYTES_PER_EDGE + 8)

    def prepare(self, directory: Path) -> None:
        if self.graph is not None:
            shutil.copytree(self.graph, directory, dirs_exist_ok=True)
            return
        edges = directory / "edges.bin"
        command(GRAPHLANE, "gen", "rmat", "--scale", self.scale, "--edges",
                EDGES_PER_VERTEX << self.scale, "--seed", 1, edges)
        command(GRAPHLANE, "convert", "--from", "bin", "--to", "grid", "--partitions",
                PARTITIONS, edges, directory / "grid")
        edges.unlink()
        for path in (directory / "grid").iterdir():
            path.rename(directory / path.name)
        (directory / "grid").rmdir()

    def words(self, directory: Path) -> list:
        if self.programs is None:
            budget = ["--memory", self.budget] if self.budget else []
            return [BUILD / "engines/grid_engine", self.algorithm, directory, *budget,
                    *(["--iterations", self.iterations] if self.algorithm == "pagerank" else [])]
        # It counts in whole GB, and loops for ever with none.
        gib = max(1, self.budget >> 30) if self.budget else BUDGET_GIB
        first = {"pagerank": [self.iterations], "bfs": [0], "wcc": []}[self.algorithm]
        return [self.programs / self.algorithm, directory, *first, gib]

    def run(self, directory: Path, prefix) -> dict:
        start = time.monotonic()
        output = command(*prefix, *self.words(directory))
        seconds = time.monotonic() - start
        if self.programs is None:  # the stand-in's first line has a checksum
            self.compare(output.splitlines()[0])
        return {"seconds": seconds}

    def compare(self, result: str) -> None:
        self.said.append(result)
        if result != self.said[0]:
            raise StepFailed(f"results differ: '{self.said[0]}' and '{result}'")
