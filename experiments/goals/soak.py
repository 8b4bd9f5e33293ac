"""Runs jobs of adapters/share that start and die at random on one grid, and checks their coordinator.

Some jobs are killed, some stopped for a while, some stopped and killed. The others must print what they
print alone. After all have ended the coordinator must hold what it held before: descriptors, threads,
memory, no buffer. Exit status 1: one of these was wrong.
"""

import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

from experiments.devices.journal import command, retry
from experiments.measure.sizes import SIZE
from experiments.paths import BUILD, GRAPHLANE
from experiments.workloads.captured_process import CapturedProcess
from experiments.workloads.engines import rmat
from experiments.workspace import StepFailed

PROGRAM = BUILD / "bin/grid_program"
COORDINATOR = BUILD / "bin/graphlane-share-coordinator"
MEMORY = 1 << 40  # the programs' own idea of it
ROOTS = 8
SETTLED_SECONDS_MAX = 20
GROWTH_BYTES_MAX = 16 << 20  # of a coordinator that holds no partition: its allocator's
# The fates of jobs, with their weights.
FATES = {"lives": 10, "is stopped": 3, "is killed": 4, "is terminated": 2, "is stopped and killed": 1}


class Job:
    def __init__(self, words: tuple, directory: Path, fate: str, at: float, rest: float):
        self.words = words
        self.fate = fate
        self.at = at  # seconds after its start: the signal
        self.rest = rest  # for so long it is stopped
        self.started = time.monotonic()
        self.stopped = False
        self.done = False  # its fate has come
        self.program = CapturedProcess(words, directory)

    def poll(self) -> bool:
        """False: it has ended."""
        if self.program.status() is not None:
            return False
        age = time.monotonic() - self.started
        if not self.done and age >= self.at and self.fate != "lives":
            self.apply_fate(age)
        return True

    def apply_fate(self, age: float) -> None:
        if self.fate == "is killed":
            self.program.send(signal.SIGKILL)
        elif self.fate == "is terminated":
            self.program.send(signal.SIGTERM)
        elif not self.stopped:
            self.program.send(signal.SIGSTOP)
            self.stopped = True
            return
        elif age < self.at + self.rest:
            return
        else:
            self.program.send(signal.SIGCONT if self.fate == "is stopped" else signal.SIGKILL)
        self.done = True


@dataclass(frozen=True)
class Resources:
    """The resources of a process."""

    descriptors: int
    threads: int
    memory_bytes: int

    @classmethod
    def by(cls, pid: int) -> "Resources":
        status = dict(line.split(":", 1) for line in
                      Path(f"/proc/{pid}/status").read_text().splitlines())
        return cls(len(list(Path(f"/proc/{pid}/fd").iterdir())), int(status["Threads"]),
                   int(status["VmRSS"].split()[0]) << 10)

    def is_more_than(self, before: "Resources") -> bool:
        return (self.descriptors, self.threads) != (before.descriptors, before.threads) or \
            self.memory_bytes > before.memory_bytes + GROWTH_BYTES_MAX

    def __str__(self) -> str:
        return (f"{self.descriptors} descriptors, {self.threads} threads, "
                f"{self.memory_bytes / 2**20:.1f} MiB")


class Soak:
    def __init__(self, grid: Path, vertex_count: int, seed: int):
        self.grid = grid
        self.chance = random.Random(seed)
        self.roots = [self.chance.randrange(vertex_count) for _ in range(ROOTS)]
        self.alone = {}
        self.counts = Counter()
        self.wrong = []

    def components(self) -> tuple:
        return PROGRAM, "components", self.grid, MEMORY

    def levels(self, root: int) -> tuple:
        return PROGRAM, "levels", self.grid, MEMORY, root

    def any_words(self) -> tuple:
        return self.chance.choice([self.components(), self.levels(self.chance.choice(self.roots))])

    def expected(self, words: tuple) -> str:
        """The program's output when it runs alone."""
        if words not in self.alone:
            self.alone[words] = command(*words)
        return self.alone[words]

    def record_expected(self) -> None:
        self.expected(self.components())
        for root in self.roots:
            self.expected(self.levels(root))

    def check_expected_again(self) -> None:
        """Runs all programs again after the others have ended."""
        before, self.alone = self.alone, {}
        self.record_expected()
        self.wrong += [f"{words[1]}: said {said!r} at first, {self.alone[words]!r} at last"
                       for words, said in before.items() if said != self.alone[words]]

    def new_job(self, directory: Path, job_seconds: float) -> Job:
        (fate,) = self.chance.choices(list(FATES), list(FATES.values()))
        return Job(self.any_words(), directory, fate, at=self.chance.uniform(0, job_seconds),
                   rest=self.chance.uniform(0.1, 3))

    def check_ended(self, job: Job) -> None:
        status, said = job.program.status(), job.program.output()
        job.program.close()
        self.counts["survived" if status == 0 else job.fate] += 1
        if status == 0 and said != self.expected(job.words):
            self.wrong.append(f"{job.words[1]}: said {said!r}, alone {self.expected(job.words)!r}")
        if status > 0 or (status < 0 and job.fate in ["lives", "is stopped"]):
            self.wrong.append(f"{job.words[1]}, which {job.fate}: status {status}: {said.strip()}")

    def run(self, seconds: float, max_jobs: int, directory: Path) -> None:
        end = time.monotonic() + seconds
        running, job_seconds = [], 1.0
        try:
            while running or time.monotonic() < end:
                if len(running) < max_jobs and time.monotonic() < end and self.chance.random() < 0.3:
                    running.append(self.new_job(directory, job_seconds))
                for job in [job for job in running if not job.poll()]:
                    running.remove(job)
                    self.check_ended(job)
                    if job.program.status() == 0:  # so that signals come at all times of a life
                        job_seconds += (time.monotonic() - job.started - job_seconds) / 8
                time.sleep(0.01)
        finally:
            for job in running:
                job.program.close()


@click.command(help=__doc__)
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=10, show_default=True)
@click.option("--jobs", "max_jobs", type=click.IntRange(1), default=64, show_default=True,
              help="The largest number of concurrent jobs.")
@click.option("--scale", type=click.IntRange(8, 24), default=17, show_default=True,
              help="The R-MAT graph has 2^SCALE vertices and 16 edges for each.")
@click.option("--budget", type=SIZE, default="8M", show_default=True, help="The coordinator's budget.")
@click.option("--seed", default=1, show_default=True)
def main(minutes, max_jobs, scale, budget, seed):
    with tempfile.TemporaryDirectory(prefix="graphlane-soak-") as directory:
        directory = Path(directory)
        rmat(scale, directory / "edges.bin")
        command(GRAPHLANE, "convert", "--from", "bin", "--to", "grid", "--partitions", 8,
                directory / "edges.bin", directory / "grid")
        soak = Soak(directory / "grid", 1 << scale, seed)
        coordinator = subprocess.Popen([COORDINATOR, f"--serve={directory / 'grid'}",
                                        f"--budget={budget}"], stdin=subprocess.DEVNULL)
        try:
            retry(lambda: serves(coordinator))
            soak.record_expected()  # by it, which so has all that it keeps
            before = settled(coordinator)
            soak.run(60 * minutes, max_jobs, directory)
            after = settled(coordinator, before)
            soak.check_expected_again()
        finally:
            coordinator.terminate()
            coordinator.wait()
    ended = ", ".join(f"{count} {fate}" for fate, count in sorted(soak.counts.items()))
    click.echo(f"{sum(soak.counts.values())} jobs: {ended}")
    click.echo(f"coordinator before: {before}\ncoordinator after:  {after}")
    for line in soak.wrong:
        click.echo(f"wrong: {line}", err=True)
    if soak.wrong:
        raise StepFailed(f"{len(soak.wrong)} jobs were wrong")
    if after.is_more_than(before):
        raise StepFailed("the coordinator holds more than before")


def serves(coordinator: subprocess.Popen) -> None:
    """It starts its threads when it has taken its place; a job that came sooner would start one."""
    if Resources.by(coordinator.pid).threads == 1:
        raise OSError


def settled(coordinator: subprocess.Popen, before: Resources | None = None) -> Resources:
    """The coordinator's resources once it has noticed that all jobs have gone, or after a timeout."""
    def look():
        if coordinator.poll() is not None:
            raise StepFailed(f"the coordinator ended: {coordinator.returncode}")
        held = Resources.by(coordinator.pid)
        if before and held.is_more_than(before):
            raise OSError
        return held
    time.sleep(1)
    try:
        return retry(look, SETTLED_SECONDS_MAX)
    except OSError:
        return Resources.by(coordinator.pid)
