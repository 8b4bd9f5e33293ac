"""Measures the cost of the preload library for a program, in nanoseconds.

It measures loading, the first read of a striped file (attaching), calls on foreign descriptors, and small
reads of striped files. Each is compared with the same on a plain file without the library, in turn.
Attaching should take 2 ms at most, a foreign call 10 ns more.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from experiments.costs.warm_reads import prepare
from experiments.measure.options import OUT_FILE
from experiments.measure.samples import commit
from experiments.paths import BUILD
from experiments.workspace import StepFailed, workspace

LIBRARY = BUILD / "lib/libgraphlane.so"
LOADING = "start and end"
SPREAD_DOUBTFUL = 0.25  # between the quartiles, of the median


def compile_program(directory: Path) -> Path:
    program = directory / "preload_costs"
    result = subprocess.run(
        ["gcc", "-O2", Path(__file__).with_name("preload_costs.c"), "-o", program], capture_output=True, text=True)
    if result.returncode != 0:
        raise StepFailed(f"gcc: {result.stderr.strip()}")
    return program


def run(program: Path, environment: dict, *words) -> str:
    result = subprocess.run([program, *words], capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        raise StepFailed(f"{program} {' '.join(map(str, words))}: {result.stderr.strip()}")
    return result.stdout


def measure(program: Path, variants: dict, rounds: int, calls_every: int = 5) -> dict:
    """variant -> what -> samples, in nanoseconds. Variants take turns. Calls take longest to measure, so they
    are measured only every so many rounds."""
    samples = {variant: {} for variant in variants}
    for number in range(rounds + 1):
        for variant, (path, environment) in variants.items():
            begin = time.perf_counter_ns()
            run(program, environment)
            took = {LOADING: time.perf_counter_ns() - begin}
            took |= json.loads(run(program, environment, path, "first"))
            if number % calls_every == 0:
                took = json.loads(run(program, environment, path)) | took
            for what, value in took.items():
                if number > 0:  # the first round warms
                    samples[variant].setdefault(what, []).append(value)
    return samples


def shown_ns(values: list[float]) -> str:
    middle = statistics.median(values)
    text = f"{middle / 1e6:.2f} ms" if middle > 1e6 else (
        f"{middle / 1e3:.1f} µs" if middle > 1e4 else f"{middle:.0f} ns")
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (middle,) * 3
    return text + (" (doubtful: wide)" if high - low > SPREAD_DOUBTFUL * middle else "")


def table(samples: dict) -> Table:
    plain, *others = samples
    shown = Table("call", *samples, *(f"{variant}, more" for variant in others))
    for what in samples[plain]:
        more = [statistics.median(samples[variant][what]) - statistics.median(samples[plain][what])
                for variant in others]
        shown.add_row(what, *(shown_ns(samples[variant][what]) for variant in samples),
                      *(f"{value:+,.0f} ns" for value in more))
    return shown


@click.command(help=__doc__)
@click.option("--rounds", default=40, show_default=True)
@click.option("--out", type=OUT_FILE, help="Keep the samples as JSON.")
def main(rounds, out):
    console = Console()
    size = 48 << 20
    with workspace(console, 2 * size) as (directory, undo):
        program = compile_program(directory)
        environment = {"PATH": os.environ["PATH"]}
        preloaded = {**environment, "LD_PRELOAD": str(LIBRARY)}
        paths = prepare(directory, undo, size, "1M")
        variants = {variant: (path, preloaded if "preloaded" in variant else environment)
                for variant, (path, _) in paths.items() if variant != "mounted"}
        samples = measure(program, variants, rounds)
    console.print(table(samples))
    if out:
        out.write_text(json.dumps({"samples": samples, "commit": commit(), "argv": sys.argv[1:],
                                   "machine": platform.platform(), "cores": os.cpu_count()},
                                  indent=1))
