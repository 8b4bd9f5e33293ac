"""Measures the first open of a file: its name and inode are not in memory (--kind hdd).

The files of a directory are opened in a random order, and one byte of each is read: plain files on the first
device, and striped ones preloaded and mounted, in turn. The result is the milliseconds of an open; the raw samples are
kept as JSON.
"""

import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from experiments.costs.warm_reads import graphlane
from experiments.measure.options import chosen_devices, run_options
from experiments.measure.samples import commit
from experiments.paths import GRAPHLANE

FILE_BYTES = 16 << 10
OPENER = """
import os, sys, threading, time
threading.Thread(target=threading.Event().wait, daemon=True).start()
begin = time.monotonic()
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    os.read(file, 1)
    os.close(file)
print(time.monotonic() - begin, flush=True)
os._exit(0)
"""


def seconds_of(prefix: list, paths: list[Path]) -> float:
    done = subprocess.run([*map(str, prefix), sys.executable, "-c", OPENER, *map(str, paths)],
                          check=True, capture_output=True, text=True)
    return float(done.stdout)


def prepare(devices, directory: Path, undo: ExitStack, count: int) -> dict[str, tuple[Path, list]]:
    """The directories of the same files. Variant -> (directory, words before the command)."""
    plain = devices.filesystems[0] / "plain"
    plain.mkdir()
    for number in range(count):
        (plain / f"f{number}").write_bytes(os.urandom(FILE_BYTES))
    volume, mounted = directory / "vol", directory / "mnt"
    graphlane("create", volume, "--stripe-depth", "4K", "--min-size", "1",
              *(word for each in devices.filesystems for word in ("--device", each)))
    undo.callback(graphlane, "destroy", volume, "--yes")
    graphlane("import", plain, volume)
    mounted.mkdir()
    graphlane("mount", volume, mounted)
    undo.callback(graphlane, "umount", mounted)
    return {"plain": (plain, []),
            "preloaded on stubs": (volume / "plain", [GRAPHLANE, "run", "--no-mount", "--"]),
            "mounted": (mounted / "plain", [])}


@click.command(help=__doc__)
@click.option("--files", default=60, show_default=True)
@run_options
def main(files, at, rounds, out, **options):
    milliseconds = {}
    with chosen_devices(at, options) as devices, tempfile.TemporaryDirectory() as directory, ExitStack() as undo:
        variants = prepare(devices, Path(directory), undo, files)
        for number in range(rounds):
            order = list(range(files))
            random.Random(number).shuffle(order)
            for variant, (folder, prefix) in variants.items():
                devices.drop_caches()
                taken = seconds_of(prefix, [folder / f"f{i}" for i in order])
                milliseconds.setdefault(variant, []).append(taken * 1000 / files)
        described = devices.describe()
    shown = Table("variant", "ms an open, median", "min", "max")
    for variant, series in milliseconds.items():
        shown.add_row(variant, *(f"{value:.1f}" for value in
                                 (statistics.median(series), min(series), max(series))))
    Console().print(shown)
    if out:
        out.write_text(json.dumps({"milliseconds": milliseconds, "files": files, "commit": commit(),
                                   "argv": sys.argv[1:], **described,
                                   "machine": platform.platform()}, indent=1))
