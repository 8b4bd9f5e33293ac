"""A graph to compute on, and the formats that `graphlane convert` stores it in."""

from dataclasses import dataclass
from pathlib import Path

from experiments.devices.journal import command
from experiments.paths import GRAPHLANE
from experiments.workloads.engines import EDGES_PER_VERTEX, rmat

PAIR_BYTES = 8


@dataclass(frozen=True)
class Source:
    """An edge list of the user's, or an R-MAT graph."""

    path: Path | None = None
    scale: int = 21
    density: int = EDGES_PER_VERTEX

    @property
    def name(self) -> str:
        return self.path.name if self.path else f"rmat-{self.scale}"

    def bytes(self) -> int:
        """About what its edges take as pairs."""
        return self.path.stat().st_size if self.path else (self.density << self.scale) * PAIR_BYTES

    def make(self, edges: Path) -> None:
        """Writes it as binary pairs."""
        if self.path is None:
            rmat(self.scale, edges, self.density)
        else:
            command(GRAPHLANE, "convert", "--to", "bin", self.path, edges)


@dataclass(frozen=True)
class Stored:
    """One of its stored forms."""

    format: str = "lists"
    codec: str = "varint"
    words: tuple[str, ...] = ()  # further words of `graphlane convert`

    @property
    def name(self) -> str:
        return "-".join([self.format, self.codec, *self.words]).replace("--", "")

    def make(self, edges: Path, directory: Path) -> None:
        command(GRAPHLANE, "convert", "--from", "bin", "--to", self.format, "--codec", self.codec,
                *self.words, edges, directory / self.name)
