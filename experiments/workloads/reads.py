"""Workloads in which fio reads one large file, as engines read it."""

from dataclasses import dataclass
from pathlib import Path

from experiments.devices.journal import command
from experiments.workloads import fio
from experiments.workspace import StepFailed


@dataclass
class Read:
    """fio reads a large file as engines do. Each thread takes as many blocks as any other: what
    is left of the size is not there."""

    size: int
    threads: int
    direct: bool
    stripe: tuple = ()
    name: str = "read"
    ioengine: str = "psync"
    iodepth: int = 1

    def __post_init__(self):
        turn = fio.LARGE * self.threads
        if self.size < turn:
            raise StepFailed(f"--file {self.size >> 20}M: too little for {self.threads} threads")
        self.size = self.size // turn * turn

    @property
    def files(self) -> str:
        return f"file of {self.size >> 20} MiB"

    def labels(self) -> dict:
        how = f", {self.ioengine}" if self.ioengine != "psync" else ""
        depth = f", depth {self.iodepth}" if self.iodepth > 1 else ""
        direct = ", O_DIRECT" if self.direct else ""
        return {"engine": "fio", "algorithm": "read" + how + depth + direct,
                "graph": self.files, "threads": self.threads}

    def need_bytes(self) -> int:
        return self.size

    def plain_bytes(self) -> int:
        return 0

    def prepare(self, directory: Path, lanes=()) -> None:
        blocks = self.size // fio.LARGE
        command("dd", "if=/dev/urandom", f"of={directory / 'file'}", f"bs={fio.LARGE}",
                f"count={blocks}", "iflag=fullblock", "status=none")

    def run(self, directory: Path, prefix) -> dict:
        words = fio.engine_words(directory / "file", self.size, self.threads, self.direct,
                                 ioengine=self.ioengine, iodepth=self.iodepth)
        return fio.fio(*words, prefix=prefix)


@dataclass
class Sweeps(Read):
    """A file that the cache holds half of, from its begin to its end, again and again."""

    threads: int = 1
    direct: bool = False
    sweeps: int = 5
    name: str = "sweeps"

    @property
    def cache_bytes(self) -> int:
        """Room for half of the file, and for prefetching: a quarter of all, at most 64M."""
        half = self.size // 2
        return half + min(half // 3, 64 << 20)

    def labels(self) -> dict:
        return {**super().labels(), "algorithm": f"{self.sweeps} sweeps, cache for half"}

    def run(self, directory: Path, prefix) -> dict:
        words = fio.engine_words(directory / "file", self.size, self.threads, self.direct,
                                 sweeps=self.sweeps)
        return fio.fio(*words, prefix=["env", f"GRAPHLANE_CACHE={self.cache_bytes}", *prefix])
