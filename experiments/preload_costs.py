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

from experiments.options import OUT_FILE
from experiments.samples import commit
from experiments.warm_reads import BUILD, ROOT, prepare
from experiments.workspace import StepFailed, stop_on_signals, workspace

LIBRARY = BUILD / "lib/libgraphlane.so"
LOADING = "start and end"
SPREAD_DOUBTFUL = 0.25  # between the quartiles, of the median


def compile_program(directory: Path) -> Path:
    program = directory / "preload_costs"
    result = subprocess.run(
        ["gcc", "-O2", ROOT / "experiments/preload_costs.c", "-o", program], capture_output=True, text=True)
    if result.returncode != 0:
        raise StepFailed(f"gcc: {result.stderr.strip()}")
    return program


def run(program: Path, environment: dict, *words) -> str:
    result = subprocess.run([program, *words], capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        raise StepFailed(f"{program} {' '.join(map(str, words))}: {result.stderr.strip()}")
    return result.stdout


def measure(program: Path, ways: dict, rounds: int, calls_every: int = 5) -> dict:
    """way -> what -> samples, in nanoseconds. Ways take turns; calls, which take longest to
    measure, every so many rounds."""
    samples = {way: {} for way in ways}
    for number in range(rounds + 1):
        for way, (path, environment) in ways.items():
            begin = time.perf_counter_ns()
            run(program, environment)
            took = {LOADING: time.perf_counter_ns() - begin}
            took |= json.loads(run(program, environment, path, "first"))
            if number % calls_every == 0:
                took = json.loads(run(program, environment, path)) | took
            for what, value in took.items():
                if number > 0:  # the first round warms
                    samples[way].setdefault(what, []).append(value)
    return samples


def shown_ns(values: list[float]) -> str:
    middle = statistics.median(values)
    text = f"{middle / 1e6:.2f} ms" if middle > 1e6 else (
        f"{middle / 1e3:.1f} µs" if middle > 1e4 else f"{middle:.0f} ns")
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (middle,) * 3
    return text + (" (doubtful: wide)" if high - low > SPREAD_DOUBTFUL * middle else "")


def table(samples: dict) -> Table:
    plain, *others = samples
    shown = Table("call", *samples, *(f"{way}, more" for way in others))
    for what in samples[plain]:
        more = [statistics.median(samples[way][what]) - statistics.median(samples[plain][what])
                for way in others]
        shown.add_row(what, *(shown_ns(samples[way][what]) for way in samples),
                      *(f"{value:+,.0f} ns" for value in more))
    return shown


@click.command(help=__doc__)
@click.option("--rounds", default=40, show_default=True)
@click.option("--out", type=OUT_FILE, help="Keep the samples as JSON.")
def main(rounds, out):
    console = Console()
    stop_on_signals()
    size = 48 << 20
    try:
        with workspace(console, 2 * size) as (directory, undo):
            program = compile_program(directory)
            environment = {"PATH": os.environ["PATH"]}
            preloaded = {**environment, "LD_PRELOAD": str(LIBRARY)}
            paths = prepare(directory, undo, size, "1M")
            ways = {way: (path, preloaded if "preloaded" in way else environment)
                    for way, (path, _) in paths.items() if way != "mounted"}
            samples = measure(program, ways, rounds)
    except StepFailed as failed:
        print(f"preload_costs: {failed}", file=sys.stderr)
        sys.exit(1)
    console.print(table(samples))
    if out:
        out.write_text(json.dumps({"samples": samples, "commit": commit(), "argv": sys.argv[1:],
                                   "machine": platform.platform(), "cores": os.cpu_count()},
                                  indent=1))


if __name__ == "__main__":
    main()
