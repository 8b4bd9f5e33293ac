"""Measures the cost of reading a striped file from memory.

fio sweeps a warm file by 24 MiB preads: the plain file, and the striped one preloaded and mounted, in
turn. The result is the ratio of each round's pair; the raw samples are kept as JSON.
"""

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from experiments.measure.options import OUT_FILE
from experiments.measure.samples import commit
from experiments.paths import GRAPHLANE
from experiments.workspace import StepFailed, workspace

BLOCK = 24 << 20
SPREAD_DOUBTFUL = 0.25  # (max - min) / median of a variant's ratios


def fio(path: Path, prefix, *words) -> tuple[list[dict], list[str]]:
    """fio's result for each of its jobs, and the command."""
    command = [*map(str, prefix), "fio", "--name=sweep", "--ioengine=psync", "--invalidate=0",
               "--output-format=json", f"--filename={path}", *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise StepFailed(f"{shlex.join(command)}: {result.stderr.strip()}")
    text = result.stdout
    return json.loads(text[text.index("{"):])["jobs"], command


def sweep(path: Path, loops: int, prefix=()) -> tuple[float, list[str]]:
    """Bytes a second, and the command."""
    jobs, command = fio(path, prefix, "--readonly", "--rw=read", f"--bs={BLOCK}",
                        f"--loops={loops}")
    job = jobs[0]["read"]
    return job["io_bytes"] / job["runtime"] * 1000, command


def graphlane(*words) -> None:
    result = subprocess.run([str(GRAPHLANE), *map(str, words)], capture_output=True, text=True)
    if result.returncode != 0:
        raise StepFailed(result.stderr.strip())


def prepare(directory: Path, undo, size: int, depth: str) -> dict[str, tuple[Path, list]]:
    """The file, plain and striped. Variant -> (path, words before the command)."""
    plain = directory / "plain"
    with plain.open("wb") as file:
        for _ in range(size // BLOCK):
            file.write(os.urandom(BLOCK))
    volume = directory / "vol"
    devices = [directory / f"d{i}" for i in range(4)]
    for device in devices:
        device.mkdir()
    graphlane("create", volume, "--stripe-depth", depth,
              *(word for device in devices for word in ("--device", device)))
    graphlane("import", plain, volume)
    variants = {"plain": (plain, []),
            "preloaded on stubs": (volume / "plain", [GRAPHLANE, "run", "--no-mount", "--"])}
    mounted = directory / "mnt"
    mounted.mkdir()
    try:
        graphlane("mount", volume, mounted)
    except StepFailed as failed:
        print(f"left out the mount: {failed}", file=sys.stderr)
        return variants
    undo.callback(graphlane, "umount", mounted)
    variants["preloaded over a mount"] = (mounted / "plain", [GRAPHLANE, "run", "--"])
    variants["mounted"] = (mounted / "plain", [])
    return variants


def measure(variants, rounds: int, loops: int) -> dict:
    samples = {variant: [] for variant in variants}
    commands = {}
    for number in range(rounds + 1):
        for variant, (path, prefix) in variants.items():
            speed, commands[variant] = sweep(path, loops, prefix)
            if number > 0:  # the first round warms
                samples[variant].append(speed)
    return {"samples": samples, "commands": commands}


def table(samples) -> Table:
    shown = Table("variant", "GiB/s, median", "of plain, median", "min", "max")
    for variant, speeds in samples.items():
        ratios = [a / b for a, b in zip(speeds, samples["plain"])]
        middle = statistics.median(ratios)
        doubtful = " (doubtful: wide)" if max(ratios) - min(ratios) > SPREAD_DOUBTFUL * middle else ""
        shown.add_row(variant, f"{statistics.median(speeds) / 2**30:.2f}", f"{middle:.2f}{doubtful}",
                      f"{min(ratios):.2f}", f"{max(ratios):.2f}")
    return shown


def save(out: Path, size: int, measured: dict) -> None:
    """The samples, with what they are of."""
    out.write_text(json.dumps({**measured, "commit": commit(), "argv": sys.argv[1:],
                               "size_bytes": size, "machine": platform.platform(),
                               "cores": os.cpu_count()}, indent=1))


@click.command(help=__doc__)
@click.option("--size", "size_mib", default=480, show_default=True, help="Size of the file in MiB.")
@click.option("--depth", default="12M", show_default=True, help="Stripe depth.")
@click.option("--rounds", default=9, show_default=True)
@click.option("--loops", default=8, show_default=True, help="Sweeps per run.")
@click.option("--out", type=OUT_FILE, help="Keep the samples as JSON.")
def main(size_mib, depth, rounds, loops, out):
    console = Console()
    size = size_mib * 2**20 // BLOCK * BLOCK
    with workspace(console, 2 * size) as (directory, undo):
        measured = measure(prepare(directory, undo, size, depth), rounds, loops)
    console.print(table(measured["samples"]))
    if out:
        save(out, size, measured)
