"""Raw samples as JSON, with their circumstances; and statistics of a series.

    what       the command: compare, figure, check, limits
    argv, date, commit    (the commit has a + if files differ from it)

    machine    cpu, cores, memory, kernel, and whether it pages out by itself
    spec, devices    kind, count, speed, dilation of the devices, if there were any

    samples    each with its round and its variant
"""

import datetime
import errno
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.devices.emulated import Devices
from experiments.paths import ROOT
from experiments.workspace import StepFailed

SPREAD_DOUBTFUL = 0.25  # (most - least) / median
KDAMONDS = Path("/sys/kernel/mm/damon/admin/kdamonds")
BUSY_TRIES, BUSY_SECONDS = 100, 0.01
HEAD = ["what", "argv", "date", "commit", "machine", "samples"]
# Keys in files of an older version, and their names today.
OLD_KEYS = {"way": "variant", "memory_bytes_most": "memory_bytes_max", "least": "min", "most": "max"}


def commit() -> str:
    """The commit, with a + if the tree differs from it; "unknown" in an unpacked archive."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True,
                              text=True).stdout.strip()
    try:
        head, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "-uno")
    except FileNotFoundError:
        head = changed = ""
    return head + ("+" if changed else "") or "unknown"


def read_damon(attribute: Path) -> str | None:
    """The attribute; None if it is not readable or gone. Tries again while another process uses DAMON."""
    for _ in range(BUSY_TRIES):
        try:
            return attribute.read_text().strip()
        except OSError as error:
            if error.errno != errno.EBUSY:
                return None
        time.sleep(BUSY_SECONDS)
    return None


def pages_out(kdamonds: Path = KDAMONDS) -> bool:
    """Whether DAMON takes from the page cache what looks cold, as some hosts have their guests do."""
    return any(read_damon(kdamond / "state") == "on" and
               any(read_damon(action) == "pageout" for action in kdamond.rglob("action"))
               for kdamond in kdamonds.glob("[0-9]*"))


def machine() -> dict:
    cpus = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")]
    return {"platform": platform.platform(), "kernel": platform.release(),
            "cores": os.cpu_count(), "cpu": cpus[:1],
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "pages_out": pages_out()}


def record(what: str, devices: Devices | None, samples: list[dict], **more) -> dict:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"what": what, "argv": sys.argv[1:], "date": now, "commit": commit(),
            "machine": machine(), **(devices.describe() if devices else {}), **more,
            "samples": samples}


def write(out: Path, recorded: dict) -> None:
    out.write_text(json.dumps(recorded, indent=1))


def load(path: Path) -> dict:
    """Reads what write() wrote; rejects anything else."""
    try:
        recorded = json.loads(path.read_text())
    except OSError as error:
        raise StepFailed(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise StepFailed(f"{path}: not JSON: {error}") from None
    missing = [key for key in HEAD if not isinstance(recorded, dict) or key not in recorded]
    if missing:
        raise StepFailed(f"{path}: no results of `python -m experiments`: '{missing[0]}' is "
                         "missing; give a file that --out wrote")
    return upgraded(recorded)


def upgraded(value):
    """The value with today's names in place of OLD_KEYS, at every depth."""
    if isinstance(value, dict):
        return {OLD_KEYS.get(key, key): upgraded(inner) for key, inner in value.items()}
    return [upgraded(inner) for inner in value] if isinstance(value, list) else value


def matches(sample: dict, where: dict) -> bool:
    return all(sample.get(key) == value for key, value in where.items())


def series(samples: list[dict], what: str, **where) -> list[float]:
    """One number of each sample that is as told, in order of the rounds."""
    return [sample[what] for sample in samples if matches(sample, where)]


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> dict[str, float] | None:
    """The ratio of the medians, with the least and the most of the rounds. None: one was not measured."""
    if not numerators or not denominators:
        return None
    of_rounds = [a / b for a, b in zip(numerators, denominators, strict=True)]
    middle = statistics.median(numerators) / statistics.median(denominators)
    return {"ratio": middle, "min": min(of_rounds), "max": max(of_rounds)}


def format_ratio(found: dict[str, float]) -> str:
    """'1.24 (1.20–1.31)', '1.24' where rounds do not differ or there is one; with a ? where they differ
    too widely to be believed, and a bound where no more is known."""
    ratio, least, most = found["ratio"], found["min"], found["max"]
    bound = f"{found['bound']} " if "bound" in found else ""
    range_ = f" ({least:.2f}–{most:.2f})" if f"{least:.2f}" != f"{most:.2f}" else ""
    return f"{bound}{ratio:.2f}{range_}{'?' if most - least > SPREAD_DOUBTFUL * ratio else ''}"
