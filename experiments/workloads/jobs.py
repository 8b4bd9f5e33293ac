"""Several programs on one graph, as GraphM's evaluation has them (§5.1): algorithms in turn, BFS
and SSSP from roots anywhere, submitted all at once or as they happen to come.

Each works in a directory of its own, where what all have in common are symbolic links; of what a
program changes it has copies, which on btrfs take no time.
"""

import math
import random
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from experiments.devices.journal import command
from experiments.workloads import share_times
from experiments.workloads.captured_process import CapturedProcess
from experiments.workloads.engines import EDGES_AT_ONCE, Grid, Shards
from experiments.workspace import StepFailed

SEED = 1
# Mean seconds between two submissions: on devices dilated 8 times 16 a second of theirs, as GraphM's
# λ = 16, if that counts by the second: it does not say.
GAP = 0.5
# GraphM's figure 2: a week in which by day twice as many jobs run as on average, by night few.
DAYS = 2
SWING = 0.9  # of the average
# How far each vertex is from the one with the most edges: beside the grid, a byte each.
HOPS_FILE = "hops"
HOPS_MAX = 3


@dataclass
class Jobs:
    model: Grid | Shards  # of each; its algorithm is not used
    count: int
    kit: Path | None = None  # the engine's programs, compiled against adapters/
    algorithms: tuple[str, ...] = ()  # in turn; none: all there are
    gap: float = 0  # mean seconds between two submissions: a Poisson process
    trace: bool = False  # more by day than by night
    hops: int | None = None  # roots are so near to one vertex
    cores: int | None = None  # that all of them have; none: as many as there are
    jobs_timeout: float = math.inf  # seconds; what is not through then is ended
    jobs: list[Grid | Shards] = field(init=False)
    submitted: list[float] = field(init=False)  # seconds after the first

    def __post_init__(self):
        chance = random.Random(SEED)
        self.algorithms = self.algorithms or self.mix()
        self.jobs = [self.model.job(self.algorithms[i % len(self.algorithms)], chance)
                     for i in range(self.count)]
        self.submitted = submissions(self.count, self.gap, SWING if self.trace else 0, chance)

    def mix(self) -> tuple[str, ...]:
        models = [self.model, *([self.model.with_programs(self.kit)] if self.kit else [])]
        return tuple(name for name in self.model.MIX if all(model.has_program(name) for model in models))

    @property
    def name(self) -> str:
        return f"{self.count} jobs by {self.labels()['engine']}"

    @property
    def files(self) -> str:
        return self.model.files

    @property
    def stripe(self) -> tuple:
        return self.model.stripe

    def labels(self) -> dict:
        mix = "" if self.algorithms == self.mix() else f" of {', '.join(self.algorithms)}"
        pace = f", one in {self.gap:g} s" if self.gap else ""
        pace += ", most by day" if self.trace else ""
        jobs_near_hub = f", roots within {self.hops} hop{'s' * (self.hops > 1)}" if self.hops else ""
        cores = f", on {self.cores} core{'s' * (self.cores > 1)}" if self.cores else ""
        return {**self.model.labels(), "algorithm": f"{self.count} jobs{mix}{jobs_near_hub}{pace}{cores}"}

    def need_bytes(self) -> int:
        return self.model.need_bytes()

    def plain_bytes(self) -> int:
        return self.model.plain_bytes() + self.count * self.model.job_bytes()

    def prepare(self, directory: Path, lanes=()) -> None:
        self.model.prepare(directory, lanes)
        for job in {job.algorithm: job for job in self.jobs}.values():
            job.prepare_algorithm(directory)
        if isinstance(self.model, Grid):
            hops_from_hub(directory, self.model).tofile(directory / HOPS_FILE)

    def jobs_near_hub(self, directory: Path) -> list[Grid | Shards]:
        """The jobs, with roots that are as near as they are to be."""
        if self.hops is None:
            return self.jobs
        chance = random.Random(SEED)
        there = np.flatnonzero(np.fromfile(directory / HOPS_FILE, "u1") <= self.hops).tolist()
        return [replace(job, root=chance.choice(there)) for job in self.jobs if isinstance(job, Grid)]

    def with_kit(self) -> "Jobs":
        return replace(self, model=self.model.with_programs(self.kit))

    def run_with_kit(self, directory: Path, prefix) -> dict:
        with share_times.library() as library:
            return self.with_kit().run(directory, [*prefix, "env", f"LD_PRELOAD={library}"])

    def words(self, job: Grid | Shards, place: Path, prefix) -> list:
        bound = ["taskset", "--cpu-list", f"0-{self.cores - 1}"] if self.cores else []
        return [*prefix, *bound, *job.words(place)]

    def run(self, directory: Path, prefix) -> dict:
        """Each as soon as it is submitted."""
        chosen = self.jobs_near_hub(directory)
        with self.directories(directory) as places:
            started = time.monotonic()
            jobs = [Process(job, self.words(job, place, prefix), place) for job, place
                    in zip(chosen, places)]
            try:
                while not all(job.ended for job in jobs) and self.has_time(started):
                    for job, submitted in zip(jobs, self.submitted):
                        if time.monotonic() >= started + submitted:
                            job.poll()
                    time.sleep(0.01)
            finally:
                for job in jobs:
                    job.kill()
            return self.outcome(started, [job.ended for job in jobs], places)

    def run_in_turn(self, directory: Path, prefix) -> dict:
        """Each as soon as it is submitted and the one before it is through."""
        chosen = self.jobs_near_hub(directory)
        with self.directories(directory) as places:
            started, ended = time.monotonic(), []
            for job, place, submitted in zip(chosen, places, self.submitted):
                time.sleep(max(0, started + submitted - time.monotonic()))
                running = Process(job, self.words(job, place, prefix), place)
                try:
                    while not running.ended and self.has_time(started):
                        running.poll()
                        time.sleep(0.01)
                finally:
                    running.kill()
                ended.append(running.ended)
            return self.outcome(started, ended, places)

    def has_time(self, started: float) -> bool:
        return time.monotonic() < started + self.jobs_timeout

    def outcome(self, started: float, ended: list[float | None], places: list[Path]) -> dict:
        """Seconds until the last is through, and of each since its submission. Of what was ended,
        until then: no longer than it would have taken."""
        now = time.monotonic()
        return {"seconds": max(end or now for end in ended) - started,
                "unfinished": ended.count(None),
                "edge_bytes": self.model.shared_bytes(places[0]),
                "jobs": [{"algorithm": job.algorithm, "submitted": submitted,
                          "seconds": (end or now) - started - submitted, **share_times.read(place)}
                         for job, submitted, end, place
                         in zip(self.jobs, self.submitted, ended, places)]}

    @contextmanager
    def directories(self, directory: Path):
        def named(globs):
            return [path for path in sorted(directory.iterdir())
                    if any(fnmatch(path.name, glob) for glob in globs)]

        shared = [path for path in named(self.model.SHARED) if path.is_file()]
        own = [path for path in named(self.model.OWN) if path not in shared]
        places = [directory / f"job-{i}" for i in range(self.count)]
        try:
            for place in places:
                place.mkdir()
                for path in shared:
                    (place / path.name).symlink_to(Path("..") / path.name)
                if own:
                    command("cp", "-a", "--reflink=auto", *own, place)
            yield places
        finally:
            for place in places:
                shutil.rmtree(place, ignore_errors=True)


def submissions(count: int, gap: float, swing: float, chance: random.Random) -> list[float]:
    """Seconds after the first, one in `gap` on average; their rate swings by such a share of it."""
    if not gap:
        return [0.0] * count
    day = count * gap / DAYS
    at, found = 0.0, [0.0]
    while len(found) < count:
        at += chance.expovariate((1 + swing) / gap)
        rate = 1 + swing * math.sin(2 * math.pi * at / day)
        if chance.random() * (1 + swing) < rate:
            found.append(at)
    return found


def hops_from_hub(directory: Path, grid: Grid) -> np.ndarray:
    """HOPS_MAX + 1: further, or not to be reached."""
    edges = np.memmap(directory / "column", "<i4", "r").reshape(-1, grid.edge_bytes // 4)
    parts = [slice(at, at + EDGES_AT_ONCE) for at in range(0, len(edges), EDGES_AT_ONCE)]
    degree = np.zeros(grid.vertex_count, np.int64)
    for part in parts:
        degree += np.bincount(edges[part, 0], minlength=grid.vertex_count)
    hops = np.full(grid.vertex_count, HOPS_MAX + 1, "u1")
    hops[degree.argmax()] = 0
    for hop in range(1, HOPS_MAX + 1):
        for part in parts:
            source, target = edges[part, 0], edges[part, 1]
            reached = target[hops[source] == hop - 1]
            hops[reached] = np.minimum(hops[reached], hop)
    return hops


class Process:
    """A job that can be looked at while it runs."""

    def __init__(self, job: Grid | Shards, words: list, place: Path):
        self.job = job
        self.words = words
        self.place = place
        self.program: CapturedProcess | None = None
        self.ended: float | None = None  # monotonic seconds

    def poll(self) -> None:
        """Starts it; then sees whether it is through."""
        if self.program is None:
            self.program = CapturedProcess(self.words, self.place)
        elif self.ended is None and self.program.status() is not None:
            self.ended = time.monotonic()
            check(self.job, self.program.output(), self.program.status())

    def kill(self) -> None:
        if self.program is not None:
            self.program.close()


def check(job: Grid | Shards, output: str, status: int) -> None:
    if status != 0:
        last = (output.splitlines() or [f"exit status {status}"])[-1]
        raise StepFailed(f"{job.name}: {last}")
    job.check(output)
