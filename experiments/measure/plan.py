"""The inputs of figures and goals: graphs, algorithms, numbers of devices; and the cases made of them."""

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from experiments.measure import stored_plan
from experiments.measure.comparison import DEPTH, DEPTHS, DEPTHS_HELP, Case, bytes_of
from experiments.measure.options import (
    AT,
    Engines,
    device_options,
    engine_options,
    engines_of,
    jobs_timeout_option,
)
from experiments.measure.sizes import SIZE
from experiments.workloads import fio
from experiments.workloads.csmqgraph import NAME, CsmqGraph
from experiments.workloads.engines import Grid, Shards
from experiments.workloads.jobs import Jobs
from experiments.workloads.reads import Read, Sweeps
from experiments.workloads.stored.graph import Source
from experiments.workloads.stored.peers import Blaze, Gap, GraphChi, GridGraph, Lumos
from experiments.workloads.variants import BASELINE, KIT, PRELOADED, VARIANTS
from experiments.workspace import StepFailed

ALGORITHMS = ("wcc", "bfs", "pagerank", "spmv")
RIVAL_SHARE = 0.75  # of the memory: its buffers
THREADS_IN_MEMORY = 2  # the memory has room for the buffers of so many; further ones add to it
DEVICES_OF_SWEEPS = 2  # as in CSMqGraph's figures 13, 17 and 18
JOB_PARTITIONS = 16  # of the vertices: what jobs share is a block of their square
# Whole rows of 3 MiB on 2, 4, 6 and 8 devices, and equal blocks for each of 1, 4 and 8 threads. With 320
# units two of six devices had one more than the others, and all waited for them.
READ_BYTES = 1152 << 20
SHARD_JOBS_SMALLER = 2  # their scale: each has values of its own, as large as what they share


@dataclass(frozen=True)
class Plan:
    device_counts: tuple[int, ...]
    scales: tuple[int, ...] = (21,)  # of R-MAT graphs
    graphs: tuple[Path, ...] = ()  # grids of the user's, in their place
    iterations: int = 5  # of PageRank
    budget: int | None = None  # the engine's own idea of the memory that it has
    depth: str | None = DEPTH  # None: the default of the devices' kind
    file_bytes: int = READ_BYTES  # of what fio reads
    engines: Engines = field(default_factory=Engines)
    memory: int | None = None  # bytes
    job_count: int = 16  # the most at once
    jobs_timeout: float = math.inf  # seconds that several have
    threads: int = 2  # that compute on stored graphs

    def on(self, kind: str) -> "Plan":
        return replace(self, depth=self.depth or DEPTHS[kind])

    @property
    def max_devices(self) -> int:
        return max(self.device_counts)

    def stored(self) -> stored_plan.Plan:
        """For figures of engines on stored graphs: the first graph, an edge list."""
        source = Source(self.graphs[0]) if self.graphs else Source(scale=self.scales[0])
        engines = self.engines
        peers = [engines.gridgraph and GridGraph(engines.gridgraph),
                 engines.graphchi and GraphChi(engines.graphchi),
                 engines.lumos and Lumos(engines.lumos),
                 engines.blaze and Blaze(engines.blaze), engines.gap and Gap(engines.gap)]
        return stored_plan.Plan(source, self.max_devices, self.depth, self.iterations, self.threads,
                                   self.memory, tuple(filter(None, peers)))

    def grids(self) -> list[tuple[Path | None, int]]:
        for graph in self.graphs:
            if not graph.is_dir():
                raise StepFailed(f"{graph}: a grid is a directory, as `graphlane convert --to grid` "
                                 "makes it")
        return [(graph, 0) for graph in self.graphs] or [(None, scale) for scale in self.scales]

    def algorithms(self) -> list[str]:
        """A grid of the user's may have no weights, and the stand-in has no use for them."""
        weights = self.engines.gridgraph and not self.graphs
        return [name for name in ALGORITHMS if name != "spmv" or weights]

    def grid(self, algorithm: str, device_count: int, depth: str | None = None, variants=VARIANTS,
             of: int = 0, threads: int | None = None) -> Case:
        """An algorithm on the n-th graph. Numbers of threads are the stand-in's to have."""
        graph, scale = self.grids()[of]
        engine = None if threads else self.engines.gridgraph
        workload = Grid(algorithm, engine, graph, scale, self.iterations, self.budget, threads)
        depth = depth or self.depth
        # It cannot have stripes that end inside of an edge.
        rivals = self.engines.csmqgraph if bytes_of(depth) % workload.edge_bytes == 0 else ()
        if threads and rivals:
            # With a thread for each device, or several, or not at all.
            rivals = (CsmqGraph(rivals[0].programs, threads // device_count, NAME),) \
                if threads % device_count == 0 else ()
        rivals = tuple(rival for rival in rivals if self.has_room(rival, device_count))
        more = max(0, (threads or 0) - THREADS_IN_MEMORY) * fio.LARGE
        return Case(workload, device_count, depth, variants, rivals, more_bytes=more)

    def has_room(self, rival: CsmqGraph, device_count: int) -> bool:
        """A thread has a buffer of LARGE. What is killed for want of memory says nothing."""
        buffers = rival.workers * device_count * fio.LARGE
        return self.memory is None or buffers <= self.memory * RIVAL_SHARE

    def shards(self, algorithm: str, device_count: int) -> Case:
        return Case(Shards(algorithm, self.engines.graphchi, self.scales[0], self.iterations),
                    device_count, self.depth)

    def jobs(self, count: int, variants: tuple, **how) -> Case:
        """Several at once; with programs that were compiled against the kit, of them too."""
        graph, scale = self.grids()[0]
        grid = Grid("wcc", self.engines.gridgraph, graph, scale, self.iterations, self.budget,
                    partitions=JOB_PARTITIONS, scramble=graph is None)
        return self.jobs_case(grid, self.engines.gridgraph_kit, count, variants, **how)

    def shard_jobs(self, count: int, variants: tuple) -> Case:
        shards = Shards("wcc", self.engines.graphchi, self.scales[0] - SHARD_JOBS_SMALLER,
                        self.iterations)
        kit = self.engines.graphchi and self.engines.graphchi_kit
        return self.jobs_case(shards, kit, count, variants)

    def jobs_case(self, model, kit: Path | None, count: int, variants: tuple, **how) -> Case:
        return Case(Jobs(model, count, kit, jobs_timeout=self.jobs_timeout, **how), self.max_devices, self.depth,
                    (*variants, KIT) if kit else variants)

    def read(self, threads: int, device_count: int) -> Case:
        return Case(Read(self.file_bytes, threads, direct=False), device_count, self.depth)

    def sweeps(self, device_count: int) -> Case:
        return Case(Sweeps(self.file_bytes // 2), device_count, self.depth,
                    (BASELINE, PRELOADED))


# --- options ---

@dataclass(frozen=True)
class Effort:
    """The defaults of the options."""

    scale: int
    iterations: int
    rounds: int
    ceiling_seconds: float
    memory: int | None
    budget: int | None
    depth: str | None
    file_bytes: int
    job_count: int
    jobs_timeout: float = 600  # seconds


# The edges that a sweep reads are 8 * 16 * 2^scale bytes, and the memory is less.
THOROUGH = Effort(scale=21, iterations=5, rounds=5, ceiling_seconds=5, memory=240 << 20,
                  budget=None, depth=None, file_bytes=READ_BYTES, job_count=16)
# A graph that would be in memory after the first sweep, but that the stand-in reads directly:
# its budget is less than the edges. Its blocks are small, and so is the depth.
QUICK = Effort(scale=18, iterations=2, rounds=1, ceiling_seconds=1, memory=None,
               budget=16 << 20, depth="2M", file_bytes=240 << 20, job_count=4)


def graph_options(function):
    for option in [
            click.option("--scale", "scales", type=click.IntRange(8, 27), multiple=True,
                         help="R-MAT graphs of 2^SCALE vertices and 16 edges for each; may be "
                              f"given several times. [{THOROUGH.scale}; quick: {QUICK.scale}]"),
            click.option("--graph", "graphs", multiple=True,
                         type=click.Path(exists=True, path_type=Path),
                         help="A grid instead of an R-MAT graph; may be given several times. For "
                              "figures of stored graphs: an edge list.")]:
        function = option(function)
    return function


def effort_options(function):
    """How much is measured, and with what."""
    for option in [
            click.option("--quick", is_flag=True,
                         help="Small graphs and few rounds: a test that it works, not how fast."),
            click.option("--iterations", type=click.IntRange(1),
                         help=f"Iterations of PageRank. [{THOROUGH.iterations}; quick: {QUICK.iterations}]"),
            click.option("--rounds", type=click.IntRange(1),
                         help=f"[{THOROUGH.rounds}; quick: {QUICK.rounds}]"),
            click.option("--memory", type=SIZE,
                         help="The memory of the program, the daemons and the page cache together. "
                              f"[{THOROUGH.memory >> 20}M; quick: all]"),
            click.option("--budget", type=SIZE,
                         help="The memory that the engine is told it has. "
                              f"[its own; quick: {QUICK.budget >> 20}M]"),
            click.option("--depth", help=f"Stripe depth. [{DEPTHS_HELP}; quick: {QUICK.depth}]"),
            click.option("--file", "file_bytes", type=SIZE,
                         help="Size of the file that fio reads. "
                              f"[{THOROUGH.file_bytes >> 20}M; quick: {QUICK.file_bytes >> 20}M]"),
            click.option("--jobs", "job_count", type=click.IntRange(1),
                         help="The largest number of concurrent jobs. "
                              f"[{THOROUGH.job_count}; quick: {QUICK.job_count}]"),
            jobs_timeout_option(f"{THOROUGH.jobs_timeout}"),
            click.option("--compute-threads", "threads", type=click.IntRange(1),
                         default=os.cpu_count(), show_default="all cores",
                         help="Threads of engines on stored graphs."),
            click.option("--ceiling-seconds", type=click.FloatRange(0.5),
                         help=f"Seconds of each sample of the ceiling. [{THOROUGH.ceiling_seconds}; "
                              f"quick: {QUICK.ceiling_seconds}]")]:
        function = option(function)
    return engine_options(graph_options(function))


def plan_options(function):
    """For commands that measure by plan, on devices of one kind."""
    return effort_options(AT(device_options(function)))


def counts_up_to(count: int) -> tuple[int, ...]:
    """2, 4, 6 as in CSMqGraph's figures; and the last, whatever it is."""
    if count < 2:
        raise StepFailed("nothing to stripe over: give --count 2 or more")
    return tuple(sorted({*range(2, count + 1, 2), count}))


def plan_of(options: dict, count: int) -> tuple[Plan, dict]:
    """Takes what says how to measure out of all the options given. The plan, and the arguments
    of comparison.measure() beside devices and cases."""
    effort = QUICK if options.pop("quick") else THOROUGH

    def chosen(name):
        value = options.pop(name)
        return getattr(effort, name) if value is None else value

    plan = Plan(device_counts=counts_up_to(count),
                scales=options.pop("scales") or (effort.scale,),
                graphs=tuple(graph.resolve() for graph in options.pop("graphs")),
                iterations=chosen("iterations"), budget=chosen("budget"),
                depth=chosen("depth"), file_bytes=chosen("file_bytes"),
                engines=engines_of(options), memory=chosen("memory"),
                job_count=chosen("job_count"), jobs_timeout=chosen("jobs_timeout"),
                threads=options.pop("threads"))
    return plan, {"rounds": chosen("rounds"), "seconds": chosen("ceiling_seconds"),
                  "memory_bytes": plan.memory}
