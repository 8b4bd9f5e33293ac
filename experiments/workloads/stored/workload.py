"""One algorithm on a stored graph, by `graphlane algo` and by peers.

    VOLUME         the graph is in a volume, and its lists are read from the devices
    IN_MEMORY      the same, after all lists were read into memory

    BASELINE       the same engine on plain files of the OS striped volume
    a peer's name  the peer on its own files
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from experiments.paths import GRAPHLANE
from experiments.workloads.engines import SameResult, timed
from experiments.workloads.stored.graph import Source, Stored
from experiments.workloads.stored.peers import Peer, Request, need_bytes
from experiments.workloads.variants import BASELINE, IN_MEMORY

# Numbers of a summary that threads may change.
COUNTS = ("iterations", "rounds", "gets", "cache_hits", "buffer_hits", "requests")


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
        self.source.make(edges)
        for stored in self.all_stored:
            stored.make(edges, directory)
        for peer in self.peers:
            peer.prepare(edges, directory, lanes)
        edges.unlink()

    def run(self, directory: Path, prefix) -> dict:
        return self.run_as(BASELINE, directory, prefix)

    def run_as(self, variant: str, directory: Path, prefix) -> dict:
        for peer in self.peers:
            if peer.variant == variant:
                got, output = timed([*prefix, *peer.words(self.request, directory)], directory)
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
        return {**got, **said["stats"], **more}


def compute_seconds(sample: dict) -> float:
    """Without opening the graph, where the engine tells."""
    return sample.get("run_seconds", sample["seconds"])

