"""One algorithm on a stored graph, by `graphlane algo` and by peers.

    VOLUME         the graph is in a volume, and its lists are read from the devices
    IN_MEMORY      the same, after all lists were read into memory

    BASELINE       the same engine on plain files of the OS striped volume
    a peer's name  the peer on its own files
"""

import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.paths import GRAPHLANE
from experiments.workloads.engines import SameResult, timed
from experiments.workloads.stored.graph import Source, Stored
from experiments.workloads.stored.peers import Peer, Request, need_bytes
from experiments.workloads.variants import BASELINE, IN_MEMORY

EDGES = "edges"  # the edge list itself

# Numbers of a summary that threads may change.
COUNTS = ("iterations", "rounds", "gets", "cache_hits", "buffer_hits", "requests")


def bytes_below(*directories: Path) -> int:
    return sum(os.lstat(Path(root, name)).st_size for directory in directories
               for root, _, names in os.walk(directory) for name in names)


@dataclass
class Made:
    """Keeps the seconds that making a graph's files took, and their bytes, by format and by peer."""

    seconds: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    def note(self, name: str, make, *directories: Path) -> None:
        before, begin = bytes_below(*directories), time.monotonic()
        make()
        self.seconds[name] = time.monotonic() - begin
        self.bytes[name] = bytes_below(*directories) - before

    def of(self, name: str) -> dict:
        return {"build_seconds": self.seconds[name], "stored_bytes": self.bytes[name],
                "edges_bytes": self.bytes[EDGES]} if name in self.seconds else {}


MADE: dict[str, Made] = {}  # by graph: what this process has made


@dataclass
class Algo:
    request: Request
    source: Source
    stored: Stored
    all_stored: tuple[Stored, ...]  # that are made at the same time: of all cases that take turns
    peers: tuple[Peer, ...] = ()    # that are made at the same time
    words: tuple = ()               # further words of `graphlane algo`
    variation: str = ""             # what these words try
    stripe: tuple = ()
    result: SameResult = field(default_factory=SameResult, compare=False)

    @property
    def name(self) -> str:
        return f"{self.request.algorithm} on {self.files}"

    @property
    def files(self) -> str:
        return self.source.name

    def labels(self) -> dict:
        variation = f", {self.variation}" if self.variation else ""
        return {"engine": self.stored.name, "algorithm": self.request.algorithm + variation,
                "graph": self.files, "threads": self.request.threads}

    def need_bytes(self) -> int:
        own = (1 + len(self.all_stored)) * self.source.bytes()  # the edges, and each form
        return own + need_bytes(self.source, self.peers)

    def plain_bytes(self) -> int:
        return 0

    def is_in_volume(self, name: str) -> bool:
        return name in [stored.name for stored in self.all_stored]

    def prepare(self, directory: Path, lanes=()) -> None:
        edges = directory / "edges.bin"
        made = MADE[self.files] = Made()
        made.note(EDGES, lambda: self.source.make(edges), directory)
        for stored in self.all_stored:
            made.note(stored.name, lambda: stored.make(edges, directory), directory)
        for peer in self.peers:
            made.note(peer.variant, lambda: peer.prepare(edges, directory, lanes), directory, *lanes)
        edges.unlink()

    def with_files_of(self, others: list["Algo"]) -> "Algo":
        """Returns the same workload, for which the files of all these are made."""
        def union(name):
            return tuple(dict.fromkeys(one for other in others for one in getattr(other, name)))

        return replace(self, all_stored=union("all_stored"), peers=union("peers"))

    def run(self, directory: Path, prefix) -> dict:
        return self.run_as(BASELINE, directory, prefix)

    def run_as(self, variant: str, directory: Path, prefix) -> dict:
        for peer in self.peers:
            if peer.variant == variant:
                got, output = timed([*prefix, *peer.words(self.request, directory)], directory)
                got |= self.made(peer.variant)
                seconds = peer.seconds_of(output)
                return {**got, "run_seconds": seconds} if seconds is not None else got
        return self.run_ours(directory, [*prefix], ["--in-memory"] if variant == IN_MEMORY else [])

    def run_ours(self, directory: Path, prefix, more) -> dict:
        request = self.request
        options = ["--source", request.source] if request.algorithm in (
            "bfs", "sssp", "betweenness", "msbfs") else []
        if request.algorithm in ("pagerank", "cdlp"):
            options = ["--iterations", request.iterations]
        got, output = timed([*prefix, GRAPHLANE, "algo", request.algorithm, *options, "--threads",
                             request.threads, *self.words, *more, "--json",
                             directory / self.stored.name], directory)
        said = json.loads(output)
        exact = {name: value for name, value in said["summary"].items()
                 if isinstance(value, int) and name not in COUNTS}
        self.result.compare(json.dumps(exact))
        more = {"each_iteration": said["iterations"]} if said.get("iterations") else {}
        return {**got, **said["stats"], **more, **self.made(self.stored.name)}

    def made(self, name: str) -> dict:
        return MADE[self.files].of(name) if self.files in MADE else {}


def compute_seconds(sample: dict) -> float:
    """Without opening the graph, where the engine tells."""
    return sample.get("run_seconds", sample["seconds"])

