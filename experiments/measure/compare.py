"""How much of the devices' bandwidth does each variant give a program?

One workload runs on the OS striped volume (btrfs raid0), on Graphlane's mount, and with
Graphlane preloaded. They take turns on the same devices. Each round also measures the
devices' own ceiling by fio. Caches are dropped before each sample, unless all is to be in
memory. The results are ratios of medians, with the range of the rounds' own ratios. A ?
marks a wide range.
"""

import math
from pathlib import Path

import click
from click.core import ParameterSource

from experiments.measure import comparison, samples, summary
from experiments.measure.comparison import Case
from experiments.measure.options import (
    chosen_devices,
    csmqgraph_options,
    engines_of,
    graphchi_kit_options,
    graphchi_options,
    gridgraph_kit_options,
    gridgraph_options,
    jobs_timeout_option,
    measuring_options,
    run_options,
)
from experiments.measure.plan import READ_BYTES
from experiments.measure.sizes import SIZE
from experiments.workloads import fio
from experiments.workloads.engines import EDGES_PER_VERTEX, PARTITIONS, Grid, Shards
from experiments.workloads.jobs import HOPS_MAX, Jobs
from experiments.workloads.reads import Read
from experiments.workloads.variants import BASELINE, IN_TURN, KIT, MAPPED, MOUNTED, PRELOADED, SHARED

VARIANTS = {"baseline": BASELINE, "mounted": MOUNTED, "preloaded": PRELOADED}
JOB_VARIANTS = {"in-turn": IN_TURN, "baseline": BASELINE, "preloaded": PRELOADED, "shared": SHARED, "mapped": MAPPED,
                "kit": KIT}


def compare(workload, at, rounds, out, memory, depth, ceiling_seconds, variant, rivals=(),
            known=VARIANTS, in_memory=False, **options) -> None:
    variants = tuple(name for word, name in known.items() if word in variant)
    with chosen_devices(at, options) as devices:
        depth = depth or comparison.DEPTHS[devices.spec.kind]
        case = Case(workload, len(devices.devices), depth, variants, rivals, in_memory)
        found = comparison.measure(devices, [case], rounds, ceiling_seconds, memory)
        if out:
            samples.write(out, samples.record("compare", devices, found, memory_bytes=memory))
    summary.table(found).show()


def was_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) != ParameterSource.DEFAULT


def variant_option(variants):
    return click.option("--variant", multiple=True, type=click.Choice(list(variants)), default=list(variants),
                        show_default=True, help="Only this variant; may be given several times.")


def depth_option(function):
    return click.option("--depth", help=f"Stripe depth. [{comparison.DEPTHS_HELP}]")(function)


def compare_options(function):
    return run_options(measuring_options(depth_option(variant_option(VARIANTS)(function))))


SCALE = click.option("--scale", type=click.IntRange(8, 27), default=20, show_default=True,
                     help="The R-MAT graph has 2^SCALE vertices and 16 edges for each.")
ITERATIONS = click.option("--iterations", type=click.IntRange(1), default=5, show_default=True,
                          help="Iterations of PageRank.")


@click.group(help=__doc__)
def main():
    pass


@main.command()
@compare_options
@click.option("--file", "file_size", type=SIZE, default=f"{READ_BYTES >> 20}M",
              show_default=True, help="Size of the file.")
@click.option("--threads", type=click.IntRange(1, 8), default=4, show_default=True)
@click.option("--direct", is_flag=True, help="Open it with O_DIRECT.")
@click.option("--ioengine", type=click.Choice(fio.SYNCHRONOUS + fio.ASYNCHRONOUS),
              default="psync", show_default=True,
              help="fio's engine. The preload library does not see reads by libaio and io_uring, so "
                   "preloaded is left out. If asked for, its mount serves it.")
@click.option("--iodepth", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Reads that a thread has in flight, by libaio and io_uring.")
def read(file_size, threads, direct, ioengine, iodepth, **options):
    """fio reads a large file by 24 MiB, in the order of engines."""
    asynchronous = ioengine in fio.ASYNCHRONOUS
    if iodepth > 1 and not asynchronous:
        raise click.UsageError(f"--iodepth: {ioengine} waits for each read: "
                               f"give --ioengine {' or '.join(fio.ASYNCHRONOUS)}")
    if asynchronous and not was_given("variant"):
        options["variant"] = [variant for variant in options["variant"] if variant != "preloaded"]
    compare(Read(file_size, threads, direct, ioengine=ioengine, iodepth=iodepth), **options)


@main.command()
@click.argument("algorithm", type=click.Choice(["pagerank", "wcc", "bfs", "spmv"]))
@compare_options
@gridgraph_options
@csmqgraph_options
@click.option("--graph", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="A grid made by `graphlane convert` or GridGraph's preprocess. Without: "
                   "an R-MAT graph.")
@SCALE
@ITERATIONS
@click.option("--budget", type=SIZE, help="The memory that the engine is told it has.")
def gridgraph(algorithm, graph, scale, iterations, budget, **options):
    """GridGraph, or the stand-in of the tests, computes on a grid."""
    engines = engines_of(options)
    workload = Grid(algorithm, engines.gridgraph, graph and graph.resolve(), scale, iterations,
                    budget)
    compare(workload, rivals=engines.csmqgraph, **options)


def jobs_options(mix):
    """The options of several programs at once, of these algorithms."""
    def options(function):
        for option in [
                click.option("--jobs", "job_count", type=click.IntRange(1), default=4,
                             show_default=True),
                click.option("--algorithm", "algorithms", type=click.Choice(mix), multiple=True,
                             help="Algorithms of the jobs in turn; may be given several times. [all that have a program]"),
                click.option("--gap", type=click.FloatRange(0), default=0, show_default=True,
                             help="Mean seconds between two submissions, which are a Poisson "
                                  "process."),
                click.option("--trace", is_flag=True,
                             help="More submissions by day than by night, as in GraphM's trace."),
                jobs_timeout_option("as long as it takes"),
                click.option("--in-memory", is_flag=True,
                             help="Nothing is to be read: each sample is the second of two, "
                                  "devices unlimited.")]:
            function = option(function)
        return run_options(measuring_options(depth_option(variant_option(JOB_VARIANTS)(function))))
    return options


def compare_jobs(model, kit, kit_option, job_count, algorithms, gap, trace, jobs_timeout, hops=None,
                 **options) -> None:
    if not kit and "kit" in options["variant"] and was_given("variant"):
        raise click.UsageError(f"--variant kit: it needs {kit_option}")
    if trace and not gap:
        raise click.UsageError("--trace: how many jobs come by day: give --gap")
    known = {word: name for word, name in JOB_VARIANTS.items() if kit or name != KIT}
    compare(Jobs(model, job_count, kit, algorithms, gap, trace, hops,
                 jobs_timeout=jobs_timeout or math.inf), known=known, **options)


@main.command()
@jobs_options(Grid.MIX)
@gridgraph_options
@gridgraph_kit_options
@click.option("--graph", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="A grid, in place of an R-MAT graph.")
@SCALE
@ITERATIONS
@click.option("--partitions", type=click.IntRange(1, 512), default=PARTITIONS, show_default=True,
              help="Partitions of the R-MAT graph's vertices. The grid has the square of it in blocks.")
@click.option("--density", type=click.IntRange(1), default=EDGES_PER_VERTEX, show_default=True,
              help="Edges for each vertex of the R-MAT graph.")
@click.option("--scramble", is_flag=True,
              help="Permute its vertices' numbers: all blocks are about as large.")
@click.option("--budget", type=SIZE, help="The memory that each engine is told it has.")
@click.option("--hops", type=click.IntRange(1, HOPS_MAX),
              help="The largest distance of roots from the vertex with most edges. [any]")
def jobs(graph, scale, iterations, partitions, density, scramble, budget, **options):
    """Several GridGraphs, or stand-ins, compute on one grid at once."""
    engines = engines_of(options)
    grid = Grid("wcc", engines.gridgraph, graph and graph.resolve(), scale, iterations, budget,
                partitions=partitions, density=density, scramble=scramble)
    compare_jobs(grid, engines.gridgraph_kit, "--gridgraph-kit-bin", **options)


@main.command("graphchi-jobs")
@jobs_options(Shards.MIX)
@graphchi_options
@graphchi_kit_options
@SCALE
@ITERATIONS
def graphchi_jobs(scale, iterations, **options):
    """Several GraphChis, or stand-ins, compute on the same shards at once."""
    engines = engines_of(options)
    if engines.graphchi_kit and not engines.graphchi:
        raise click.UsageError("--graphchi-kit-bin: what is it beside? give --graphchi-root")
    compare_jobs(Shards("wcc", engines.graphchi, scale, iterations), engines.graphchi_kit,
                 "--graphchi-kit-bin", **options)


@main.command()
@click.argument("algorithm", type=click.Choice(["wcc", "pagerank"]))
@compare_options
@graphchi_options
@SCALE
@ITERATIONS
def graphchi(algorithm, scale, iterations, **options):
    """GraphChi, or the stand-in of the tests, computes on shards."""
    compare(Shards(algorithm, engines_of(options).graphchi, scale, iterations), **options)
