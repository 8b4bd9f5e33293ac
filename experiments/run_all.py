"""Runs all measurements, and writes DIR/report.html.

These are the devices' limits, the goals, CSMqGraph's figures on disks and on SSDs, GraphM's on disks, and the
cost of its labels. The options --graph and --scale are for CSMqGraph's figures.

The samples stay in DIR too. It takes hours; `--resume` continues after an interruption. Your engines
come from GRIDGRAPH_BIN, GRIDGRAPH_KIT_BIN, GRAPHCHI_ROOT, GRAPHCHI_KIT_BIN and
CSMQGRAPH_BIN. Exit status 1: a goal is short, or a step failed and the report lacks it.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click

from experiments import MODULES
from experiments.figures import figures
from experiments.measure import samples
from experiments.measure.plan import graph_options
from experiments.paths import ROOT
from experiments.workspace import StepFailed

KINDS = ["hdd", "ssd"]
WITHOUT_DEVICES = ("labels",)
RESUMABLE = ("check", "figure")  # which can go on in the middle
JOBS_MEMORY = "1200M"  # of sixteen GridGraphs each has buffers of 48 MiB, and vertices


def run(*words) -> int:
    """One command of ours, by itself, so that its results say how to make them again. It takes
    down what it has set up, also when we are stopped."""
    click.echo(f"$ python -m experiments {' '.join(map(str, words))}")
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "experiments", *map(str, words)], cwd=ROOT,
                               stdin=subprocess.DEVNULL)
    try:
        status = process.wait()
        click.echo(f"{words[0]}: {(time.monotonic() - begun) / 60:.1f} minutes")
        return status
    except KeyboardInterrupt:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise


def from_environment(command: str) -> list[str]:
    """The options that it takes from there, the engines', so that its results say them too."""
    there = {param.opts[0]: os.environ.get(param.envvar) for param
             in import_module(f"experiments.{MODULES[command]}").main.params if param.envvar}
    return [word for option, value in there.items() if value for word in (option, value)]


def steps(quick: bool, rounds: int | None = None, devices: tuple = (),
          graphs: tuple = ()) -> dict[str, list[str]]:
    """Where the results of a command go: a file, or a directory of them; and the command."""
    as_often = ["--rounds", rounds] if rounds else []
    few = [*(["--quick"] if quick else []), *as_often]
    limits_few = ["--rounds", rounds or 1, "--seconds", 1] if quick else as_often
    made = {
        **{f"limits-{kind}.json": ["limits", "--kind", kind, *limits_few] for kind in KINDS},
        "check.json": ["check", *few],
        **{f"figures-{kind}": ["figure", "all", "--kind", kind, *few, *graphs]
           for kind in KINDS},
        "jobs-hdd": ["figure", "all-jobs", "--kind", "hdd", *few,
                     *([] if quick else ["--memory", JOBS_MEMORY])],
        "labels.json": ["labels", *(["--scale", 16] if quick else []), *as_often]}
    return {name: [*map(str, [*words, *([] if words[0] in WITHOUT_DEVICES else devices),
                              *from_environment(words[0])])] for name, words in made.items()}


def results(out: Path, words: list) -> list[Path]:
    """The files that the command writes, when it has measured all of it."""
    if words[0] != "figure":
        return [out]
    with_kit = bool(os.environ.get("GRIDGRAPH_KIT_BIN"))
    return [out / f"{name}.json" for name in figures.group(words[1], with_kit)]


def load_complete(path: Path) -> dict | None:
    """The recorded result; None: there is none, or its run was interrupted."""
    try:
        return samples.load(path)
    except StepFailed:
        return None


def check_options(path: Path, words: list[str]) -> None:
    """Fails unless the recorded result is of the same command."""
    if recorded := load_complete(path):
        *before, _, _ = [word for word in recorded["argv"] if word != "--resume"]  # --out PATH
        if before != words:
            raise StepFailed(f"{path}: measured by `{shlex.join(before)}`, not by "
                             f"`{shlex.join(words)}`: give the options that it was begun with")


def has_short_goals(recorded: dict) -> bool:
    return not all(goal["ok"] for goal in recorded.get("goals", []))


@click.command(help=__doc__)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--quick", is_flag=True, help="Small graphs and few rounds: a test that it works.")
@click.option("--resume", is_flag=True,
              help="Continue in a DIRECTORY that was begun with the same options, and keep its "
                   "results.")
@graph_options
@click.option("--rounds", type=click.IntRange(1), help="Rounds of each measurement. [its own]")
@click.option("--count", default=8, show_default=True, type=click.IntRange(2, 64),
              help="The largest number of devices.")
@click.option("--size", default="3G", show_default=True, help="Size of each device.")
@click.option("--dilate", default=8, show_default=True, type=click.FloatRange(0, min_open=True),
              help="How many times slower the devices are than real ones.")
@click.pass_context
def main(ctx, directory, quick, resume, scales, graphs, rounds, count, size, dilate):
    directory = directory.resolve()
    try:
        directory.mkdir(parents=True, exist_ok=resume)
    except FileExistsError:
        raise StepFailed(f"{directory}: there already: give one for new results, "
                         "or --resume") from None
    devices = ("--count", count, "--size", size, "--dilate", dilate)
    of = (*(word for scale in scales for word in ("--scale", scale)),
          *(word for graph in graphs for word in ("--graph", graph.resolve())))
    commands = {directory / name: words
                for name, words in steps(quick, rounds, devices, of).items()}
    for out, words in commands.items():
        for path in results(out, words):
            check_options(path, words)
    short = False
    found = []
    for out, words in commands.items():
        wanted = results(out, words)
        before = [load_complete(path) for path in wanted] if resume else [None]
        if all(before):
            click.echo(f"{out}: there already")
            short |= any(map(has_short_goals, before))
        else:
            poll = ["--resume"] if resume and words[0] in RESUMABLE else []
            short |= run(*words, *poll, "--out", out) != 0
        found += filter(load_complete, wanted)
    short |= run("report", *found, "--out", directory / "report.html") != 0
    ctx.exit(int(short))
