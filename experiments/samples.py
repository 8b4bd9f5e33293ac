"""Raw samples as JSON, with what they are of; and what is said of a series."""

import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from experiments.devices import ROOT, Devices

COLUMNS_MIN = 130  # of a table that is not to be broken
SPREAD_DOUBTFUL = 0.25  # (most - least) / median


def commit() -> str:
    """With a + where the tree is not what was committed."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True,
                             text=True).stdout
    return head.strip() + ("+" if changed else "")


def machine() -> dict:
    cpus = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")]
    return {"platform": platform.platform(), "cores": os.cpu_count(), "cpu": cpus[:1],
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")}


def save(out: Path, devices: Devices, samples: list[dict], **more) -> None:
    out.write_text(json.dumps({"argv": sys.argv[1:], "commit": commit(), "machine": machine(),
                               **devices.describe(), **more, "samples": samples}, indent=1))


def series(samples: list[dict], what: str, **where) -> list[float]:
    """One number of each sample that is as told, in order of the rounds."""
    return [sample[what] for sample in samples
            if all(sample[key] == value for key, value in where.items())]


def ratio(numerators: list[float], denominators: list[float]) -> dict[str, float]:
    """Of the medians; and the least and the most of the rounds' own."""
    of_rounds = [a / b for a, b in zip(numerators, denominators, strict=True)]
    middle = statistics.median(numerators) / statistics.median(denominators)
    return {"ratio": middle, "least": min(of_rounds), "most": max(of_rounds)}


def shown(found: dict[str, float]) -> str:
    """'1.24 (1.20–1.31)'; with a ? where the rounds differ too widely to be believed."""
    wide = found["most"] - found["least"] > SPREAD_DOUBTFUL * found["ratio"]
    return f"{found['ratio']:.2f} ({found['least']:.2f}–{found['most']:.2f}){'?' if wide else ''}"


def new_table(*columns: str, **options) -> Table:
    table = Table(box=box.SIMPLE, **options)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=True, justify="left" if number == 0 else "right")
    return table


def show(table: Table) -> None:
    Console(width=max(Console().width, COLUMNS_MIN)).print(table)
