"""Workloads: programs that read files in a given directory.

    files        a name of the files; workloads with the same name can take turns on them
    stripe       globs of the names that are striped; none: large files are

    need_bytes() the size of all files; plain_bytes(): of those that are not striped
    labels()     distinguish its samples from those of other workloads

    prepare()    makes the files in an empty directory; lanes: directories on each device, for programs
                 that stripe by themselves
    run()        runs the program there
    run_as()     optional: runs the variant of that name, where the workload has variants of its own
    is_in_volume()    optional: whether a file of this name is imported into the volume

Workloads that can run as several jobs at once (jobs.py) have more:

    MIX          algorithms, in turn, as in GraphM's evaluation
    SHARED, OWN  globs of the files that all jobs share, and of those that each has a copy of

    has_program()          whether it has a program for an algorithm
    job()                  the job of an algorithm
    prepare_algorithm()    makes the files of its algorithm, after another's were prepared
    with_programs()        the same workload by other programs

    shared_bytes()   the bytes of the striped files
    job_bytes()      the bytes of the files that a job has for itself
"""

import random
import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from experiments.devices.journal import command
from experiments.paths import BUILD, GRAPHLANE
from experiments.workspace import StepFailed

PARTITIONS = 4
SHARDS = 4
# For the thorough measurements' graph: with so many shards GraphChi has room within their memory.
GRAPHCHI_SHARDS = 12
GRAPHCHI_MEMORY_MIB = 100
EDGES_PER_VERTEX = 16
EDGE_BYTES = 8
WEIGHT_BYTES = 4
VALUE_BYTES = 4  # of an edge, in shards
JOB_VERTEX_BYTES = 16  # that a job keeps of each vertex, in files of its own
GRID_COPIES = 3  # blocks, rows, columns
SHARD_BYTES_PER_EDGE = 16  # the arcs, their values, and the files beside them
ADJACENCY_BYTES_PER_EDGE = 5  # of them, striped
TEXT_BYTES_PER_EDGE = 16
BUDGET_GIB = 8
EDGES_AT_ONCE = 1 << 20


def timed(words, directory: Path) -> tuple[dict, str]:
    """Seconds, and what the program printed. It may leave notes where it is started."""
    start = time.monotonic()
    output = command(*words, cwd=directory)
    return {"seconds": time.monotonic() - start}, output


def rmat(scale: int, path: Path, density: int = EDGES_PER_VERTEX, scramble: bool = False) -> None:
    command(GRAPHLANE, "gen", "rmat", "--scale", scale, "--edges", density << scale,
            "--seed", 1, *(["--scramble"] if scramble else []), path)


def add_weights(edges: Path, weighted: Path) -> None:
    """1 to each."""
    with open(edges, "rb") as source, open(weighted, "xb") as target:
        while len(pairs := np.fromfile(source, "<i4", 2 * EDGES_AT_ONCE)):
            records = np.empty(len(pairs) // 2, "<i4,<i4,<f4")
            records["f0"], records["f1"], records["f2"] = pairs[::2], pairs[1::2], 1
            records.tofile(target)


class SameResult:
    """A stand-in prints the same first line in every variant."""

    def __init__(self):
        self.first = None

    def compare(self, result: str) -> None:
        self.first = self.first or result
        if result != self.first:
            raise StepFailed(f"results differ: '{self.first}' and '{result}'")


class EngineWorkload:
    """The common part of grids and shards; `programs` is searched first for programs."""

    result: SameResult
    is_stand_in: bool

    def words(self, directory: Path) -> list:
        raise NotImplementedError

    def check(self, output: str) -> None:
        if self.is_stand_in:
            self.result.compare(output.splitlines()[0])

    def run(self, directory: Path, prefix) -> dict:
        got, output = timed([*prefix, *self.words(directory)], directory)
        self.check(output)
        return got


@dataclass
class Grid(EngineWorkload):
    """GridGraph, or its stand-in, computes on a grid."""

    MIX = ("wcc", "pagerank", "sssp", "bfs")
    SHARED = ("*",)
    OWN = ()
    algorithm: str  # pagerank, wcc, bfs; with GridGraph also spmv, sssp
    programs: Path | None  # None: the stand-in
    graph: Path | None  # None: an R-MAT graph
    scale: int
    iterations: int
    budget: int | None  # bytes
    threads: int | None = None  # None: the engine's own choice, as GridGraph's always is
    partitions: int = PARTITIONS
    density: int = EDGES_PER_VERTEX  # of an R-MAT graph
    scramble: bool = False  # its vertices' numbers, so that all blocks are about as large
    root: int = 0  # of BFS, SSSP
    stripe: tuple = ("column", "row")
    result: SameResult = field(default_factory=SameResult, compare=False)

    def __post_init__(self):
        if self.algorithm == "spmv" and self.programs is None:
            raise StepFailed("spmv: the stand-in has none: give --gridgraph-bin")
        if self.threads and self.programs:
            raise StepFailed("GridGraph has as many threads as there are cores: "
                             "leave out --gridgraph-bin, or the number of threads")

    @property
    def name(self) -> str:
        return f"{self.algorithm} by {self.labels()['engine']}"

    @property
    def vertex_count(self) -> int:
        return int((self.graph / "meta").read_text().split()[1]) if self.graph else 1 << self.scale

    @property
    def weighted(self) -> bool:
        return self.algorithm == "spmv"

    @property
    def edge_bytes(self) -> int:
        return EDGE_BYTES + WEIGHT_BYTES * self.weighted

    @property
    def column_bytes(self) -> int:
        """The edges'."""
        return (self.graph / "column").stat().st_size if self.graph else \
            (self.density << self.scale) * self.edge_bytes

    @property
    def files(self) -> str:
        if self.graph:
            return self.graph.name + ", weighted" * self.weighted
        dense = f", {self.density} edges a vertex" if self.density != EDGES_PER_VERTEX else ""
        return f"rmat-{self.scale}{dense}" + ", scrambled" * self.scramble + \
            ", weighted" * self.weighted

    def labels(self) -> dict:
        return {"engine": "GridGraph" if self.programs else "grid_engine",
                "algorithm": self.algorithm, "graph": self.files, "threads": self.threads}

    def need_bytes(self) -> int:
        if self.graph is not None:
            return sum(path.stat().st_size for path in self.graph.iterdir())
        # The edge list is there as long as the grid is made.
        copies = GRID_COPIES + 1 + self.weighted
        return self.column_bytes * copies

    def plain_bytes(self) -> int:
        """The blocks: engines that stream rows or columns do not use them, but they are there."""
        if self.graph is not None:
            return sum(path.stat().st_size for path in self.graph.iterdir()
                       if path.name not in self.stripe)
        return self.column_bytes

    def prepare(self, directory: Path, lanes=()) -> None:
        if self.graph is not None:
            shutil.copytree(self.graph, directory, dirs_exist_ok=True)
            return
        edges = directory / "edges.bin"
        rmat(self.scale, edges, self.density, self.scramble)
        if self.weighted:
            add_weights(edges, directory / "weighted.bin")
            (directory / "weighted.bin").replace(edges)
        command(GRAPHLANE, "convert", "--from", "bin", "--to", "grid", "--partitions",
                self.partitions, *(["--weighted"] if self.weighted else []), edges,
                directory / "grid")
        edges.unlink()
        for path in (directory / "grid").iterdir():
            path.rename(directory / path.name)
        (directory / "grid").rmdir()

    def has_program(self, algorithm: str) -> bool:
        """SSSP has no stand-in and no program of GridGraph's; adapters/gridgraph has one."""
        return algorithm != "sssp" or bool(self.programs) and (self.programs / algorithm).exists()

    def job(self, algorithm: str, chance: random.Random) -> "Grid":
        return replace(self, algorithm=algorithm, root=chance.randrange(self.vertex_count),
                       result=SameResult())

    def prepare_algorithm(self, directory: Path) -> None:
        pass

    def shared_bytes(self, directory: Path) -> int:
        return (directory / "column").stat().st_size

    def job_bytes(self) -> int:
        return self.vertex_count * JOB_VERTEX_BYTES

    def words_of_stand_in(self, directory: Path) -> list:
        return [BUILD / "engines/grid_engine", self.algorithm, directory,
                *(["--memory", self.budget] if self.budget else []),
                *(["--threads", self.threads] if self.threads else []),
                *(["--root", self.root] if self.algorithm == "bfs" else []),
                *(["--iterations", self.iterations] if self.algorithm == "pagerank" else [])]

    def words_of_gridgraph(self, programs: Path, directory: Path) -> list:
        """CSMqGraph has these words first too."""
        before = {"pagerank": [self.iterations], "bfs": [self.root],
                  "sssp": [self.root]}.get(self.algorithm, [])
        return [programs / self.algorithm, directory, *before, self.budget_gib]

    @property
    def budget_gib(self) -> int:
        """They count in whole GB, and loop for ever with none."""
        return max(1, self.budget >> 30) if self.budget else BUDGET_GIB

    def words(self, directory: Path) -> list:
        if self.programs is None:
            return self.words_of_stand_in(directory)
        # GridGraph's spmv takes its budget from the word after that which it asks for.
        again = [self.budget_gib] if self.algorithm == "spmv" else []
        return [*self.words_of_gridgraph(self.programs, directory), *again]

    def with_programs(self, programs: Path) -> "Grid":
        return replace(self, programs=programs)

    @property
    def is_stand_in(self) -> bool:  # type: ignore[override]
        return self.programs is None


@dataclass
class Shards(EngineWorkload):
    """GraphChi, or its stand-in, computes on shards."""

    MIX = ("wcc", "pagerank")
    SHARED = ("graph", "*.adj", "*.adjidx")
    OWN = ("graph?*",)
    algorithm: str  # wcc, pagerank
    root: Path | None  # of GraphChi; None: the stand-in
    scale: int
    iterations: int
    programs: Path | None = None  # where GraphChi's are, if not in its directory
    stripe: tuple = ("*.adj",)
    result: SameResult = field(default_factory=SameResult, compare=False)

    @property
    def name(self) -> str:
        return f"{self.algorithm} by {self.labels()['engine']}"

    @property
    def shards(self) -> int:
        return GRAPHCHI_SHARDS if self.root else SHARDS

    @property
    def files(self) -> str:
        wanted_by = f" for {self.algorithm}" if self.root else ""
        return f"rmat-{self.scale}, {self.shards} shards{wanted_by}"

    def labels(self) -> dict:
        return {"engine": "GraphChi" if self.root else "shard_engine",
                "algorithm": self.algorithm, "graph": self.files, "threads": None}

    def need_bytes(self) -> int:
        text = TEXT_BYTES_PER_EDGE if self.root else EDGE_BYTES
        return (EDGES_PER_VERTEX << self.scale) * (SHARD_BYTES_PER_EDGE + text)

    def plain_bytes(self) -> int:
        """The values."""
        return (EDGES_PER_VERTEX << self.scale) * (SHARD_BYTES_PER_EDGE - ADJACENCY_BYTES_PER_EDGE)

    def prepare(self, directory: Path, lanes=()) -> None:
        edges = directory / "edges.bin"
        rmat(self.scale, edges)
        if self.root:
            command(GRAPHLANE, "convert", "--from", "bin", "--to", "snap", edges,
                    directory / "graph")
            edges.unlink()
            timed(self.words(directory), directory)  # the first run makes the shards
        else:
            command(BUILD / "engines/shard_engine", "shard", edges, directory / "graph",
                    "--shards", self.shards)
            edges.unlink()

    def words(self, directory: Path) -> list:
        base = directory / "graph"
        if self.root is None:
            return [BUILD / "engines/shard_engine", self.algorithm, base, "--shards", self.shards,
                    *(["--iterations", self.iterations] if self.algorithm == "pagerank" else [])]
        programs = self.programs or self.root / "bin/example_apps"
        program = {"wcc": "connectedcomponents", "pagerank": "pagerank"}[self.algorithm]
        more = {"wcc": ["--edgedatatype=uint"], "pagerank": [f"--niters={self.iterations}"]}
        return ["env", f"GRAPHCHI_ROOT={self.root}", programs / program, f"--file={base}",
                "--filetype=edgelist", f"--nshards={self.shards}",
                f"--membudget_mb={GRAPHCHI_MEMORY_MIB}", "--metrics.reporter=console",
                *more[self.algorithm]]

    def has_program(self, algorithm: str) -> bool:
        return algorithm in self.MIX

    def job(self, algorithm: str, chance: random.Random) -> "Shards":
        return replace(self, algorithm=algorithm, result=SameResult())

    def prepare_algorithm(self, directory: Path) -> None:
        """Makes GraphChi's values, of which each program has its own, in a first run."""
        if self.root:
            timed(self.words(directory), directory)

    def shared_bytes(self, directory: Path) -> int:
        return sum(path.stat().st_size for path in directory.glob("*.adj"))

    def job_bytes(self) -> int:
        return (EDGES_PER_VERTEX * VALUE_BYTES + JOB_VERTEX_BYTES) << self.scale

    def with_programs(self, programs: Path) -> "Shards":
        return replace(self, programs=programs)

    @property
    def is_stand_in(self) -> bool:  # type: ignore[override]
        return self.root is None
