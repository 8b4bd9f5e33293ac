"""Other engines, the user's own builds. Each has files of its own on the same devices.

    variant        the variant of its samples
    algorithms     the algorithms that it has programs for
    bytes_per_edge the size of its files, about

    prepare()      makes its files below a directory of the OS striped volume
                   (lanes: a directory on each device, for an engine that stripes by itself)

    words()        the command
    seconds_of()   its own seconds of computing, without reading the graph; None if it prints none
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.devices.journal import command
from experiments.paths import GRAPHLANE
from experiments.workloads.engines import Grid, Shards
from experiments.workloads.stored.graph import Source

BLAZE_PAGE = 4096
BLAZE_GROUP = 16  # vertices for each offset in its index
BLAZE_LINE = 64


@dataclass(frozen=True)
class Request:
    """One run."""

    algorithm: str
    source: int = 0
    iterations: int = 5
    threads: int = 2
    memory: int | None = None  # bytes


def seconds_after(label: str, output: str) -> float | None:
    found = re.search(rf"{label}\D*?([\d.]+)", output)
    return float(found.group(1)) if found else None


@dataclass(frozen=True)
class GridGraph:
    programs: Path
    partitions: int = 4
    variant: str = "GridGraph"
    algorithms: tuple = ("bfs", "wcc", "pagerank", "sssp")
    bytes_per_edge: int = 24

    def prepare(self, edges: Path, directory: Path, lanes: list[Path]) -> None:
        command(GRAPHLANE, "convert", "--from", "bin", "--to", "grid", "--partitions", self.partitions,
                edges, directory / "gridgraph")

    def words(self, request: Request, directory: Path) -> list:
        grid = Grid(request.algorithm, self.programs, directory / "gridgraph", 0, request.iterations,
                    request.memory, root=request.source)
        return grid.words(directory / "gridgraph")

    def seconds_of(self, output: str) -> float | None:
        return None


@dataclass(frozen=True)
class GraphChi:
    root: Path
    variant: str = "GraphChi"
    algorithms: tuple = ("wcc", "pagerank")
    bytes_per_edge: int = 40

    def shards(self, request: Request) -> Shards:
        return Shards(request.algorithm, self.root, 0, request.iterations)

    def prepare(self, edges: Path, directory: Path, lanes: list[Path]) -> None:
        """Its first run makes the shards."""
        for algorithm in self.algorithms:
            own = directory / f"graphchi-{algorithm}"
            own.mkdir()
            command(GRAPHLANE, "convert", "--from", "bin", "--to", "snap", edges, own / "graph")
            command(*self.shards(Request(algorithm, iterations=1)).words(own), cwd=own)

    def words(self, request: Request, directory: Path) -> list:
        return self.shards(request).words(directory / f"graphchi-{request.algorithm}")

    def seconds_of(self, output: str) -> float | None:
        return seconds_after("runtime:", output)


@dataclass(frozen=True)
class Lumos:
    """A grid, as GridGraph has, of renumbered vertices; it counts its memory in whole GB."""

    programs: Path
    partitions: int = 4
    variant: str = "Lumos"
    algorithms: tuple = ("pagerank",)
    bytes_per_edge: int = 40  # the renumbered edges, and two grids

    def prepare(self, edges: Path, directory: Path, lanes: list[Path]) -> None:
        count = int(np.fromfile(edges, "<u4").max(initial=0)) + 1
        command(self.programs / "preprocess", "-i", edges, "-o", directory / "lumos", "-v", count,
                "-p", self.partitions, "-t", 0, "-m", 0)

    def words(self, request: Request, directory: Path) -> list:
        gigabytes = max(1, -(-(request.memory or 1) // (1 << 30)))
        return [self.programs / "pagerank", directory / "lumos", request.iterations, gigabytes]

    def seconds_of(self, output: str) -> float | None:
        return None


@dataclass(frozen=True)
class Blaze:
    """One file of 4-byte neighbours a device, page by page in turn, and an index. WCC reads the
    reversed graph, too."""

    programs: Path
    variant: str = "Blaze"
    algorithms: tuple = ("wcc", "pagerank")  # its BFS crashes on small machines
    bytes_per_edge: int = 8

    def prepare(self, edges: Path, directory: Path, lanes: list[Path]) -> None:
        own = directory / "blaze"
        own.mkdir()
        pairs = np.fromfile(edges, "<u4").reshape(-1, 2)
        count = int(pairs.max()) + 1 if len(pairs) else 0
        for side, source in [("out", 0), ("in", 1)]:
            order = np.argsort(pairs[:, source], kind="stable")
            degrees = np.bincount(pairs[:, source], minlength=count).astype("<u4")
            self.write_index(own / f"{side}.index", degrees)
            self.write_lists(np.ascontiguousarray(pairs[order, 1 - source]), side, own, lanes)

    @staticmethod
    def write_index(path: Path, degrees: np.ndarray) -> None:
        header = np.array([0, 4, len(degrees), degrees.sum()], "<u8").tobytes()
        firsts = np.concatenate([[0], np.cumsum(degrees, dtype="<u8")])[:-1:BLAZE_GROUP]
        head = header + firsts.astype("<u8").tobytes()
        path.write_bytes(head + bytes(-len(head) % BLAZE_LINE) + degrees.tobytes())

    @staticmethod
    def write_lists(neighbours: np.ndarray, side: str, own: Path, lanes: list[Path]) -> None:
        content = neighbours.tobytes()
        content += bytes(-len(content) % BLAZE_PAGE)
        pages = np.frombuffer(content, "u1").reshape(-1, BLAZE_PAGE)
        for turn, lane in enumerate(lanes):
            file = lane / f"blaze-{side}.adj.{turn}"
            pages[turn::len(lanes)].tofile(file)
            os.symlink(file, own / f"{side}.adj.{turn}")

    @staticmethod
    def files(own: Path, side: str) -> list[Path]:
        return sorted(own.glob(f"{side}.adj.*"))

    def words(self, request: Request, directory: Path) -> list:
        own = directory / "blaze"
        more = {"pagerank": ["-epsilon", 0, "-maxIterations", request.iterations],
                "wcc": ["-inIndexFilename", own / "in.index",
                        *(f"-inAdjFilenames={file}" for file in self.files(own, "in"))]}
        # Buffers of its own size would be more than all the memory.
        memory = [] if request.memory is None else [
            "-binSpace", max(16, request.memory >> 22), "-ioBufferSize", max(8, request.memory >> 24)]
        return [self.programs / request.algorithm, "-computeWorkers", request.threads, *memory,
                *more[request.algorithm], own / "out.index", *self.files(own, "out")]

    def seconds_of(self, output: str) -> float | None:
        return None


@dataclass(frozen=True)
class Gap:
    """The GAP benchmark suite: in memory."""

    programs: Path
    variant: str = "GAP"
    algorithms: tuple = ("bfs", "pagerank", "wcc", "triangles", "betweenness")
    bytes_per_edge: int = 12

    def prepare(self, edges: Path, directory: Path, lanes: list[Path]) -> None:
        own = directory / "gap"
        own.mkdir()
        text = own / "graph.el"
        command(GRAPHLANE, "convert", "--from", "bin", "--to", "snap", edges, own / "graph.snap")
        with open(own / "graph.snap") as lines, open(text, "w") as pairs:
            pairs.writelines(line for line in lines if not line.startswith("#"))
        (own / "graph.snap").unlink()
        command(self.programs / "converter", "-f", text, "-b", own / "graph.sg")
        command(self.programs / "converter", "-s", "-f", text, "-b", own / "both.sg")
        text.unlink()

    def words(self, request: Request, directory: Path) -> list:
        own = directory / "gap"
        program = {"bfs": "bfs", "pagerank": "pr_spmv", "wcc": "cc_sv", "triangles": "tc",
                   "betweenness": "bc"}[request.algorithm]
        more = {"bfs": ["-r", request.source], "betweenness": ["-r", request.source],
                "pagerank": ["-i", request.iterations, "-t", 0]}.get(request.algorithm, [])
        file = "both.sg" if request.algorithm == "triangles" else "graph.sg"
        return ["env", f"OMP_NUM_THREADS={request.threads}", self.programs / program, "-f", own / file,
                "-n", 1, *more]

    def seconds_of(self, output: str) -> float | None:
        return seconds_after("Average Time:", output)


Peer = GridGraph | GraphChi | Lumos | Blaze | Gap


def need_bytes(source: Source, peers: tuple[Peer, ...]) -> int:
    return sum(source.bytes() // 8 * peer.bytes_per_edge for peer in peers)
