"""Helpers of the tests of `python -m experiments`."""

import os
import subprocess
import sys
import time
from pathlib import Path

from harness import BUILD, ROOT, processes, run

COMMAND = [sys.executable, "-m", "experiments"]


def environment() -> dict[str, str]:
    return os.environ | {"GRAPHLANE_BUILD": str(BUILD)}


def experiments(*words, **options):
    return run(*COMMAND, *words, cwd=ROOT, env=environment(), **options)


def start(*words) -> subprocess.Popen:
    return subprocess.Popen([*COMMAND, *map(str, words)], cwd=ROOT, env=environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_steps(process: subprocess.Popen, at: Path, condition) -> None:
    """Waits until the journal satisfies the condition or the process ends."""
    journal = at / "undo.jsonl"
    while process.poll() is None:
        if journal.exists() and condition(journal.read_text()):
            return


def traces(directory: Path) -> list[str]:
    """Traces of the devices that are left on the machine."""
    left = [line for line in Path("/proc/self/mounts").read_text().splitlines()
            if str(directory) in line]
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            left += [str(path)] if str(directory) in path.read_text() else []
        except OSError:
            continue  # detached meanwhile
    left += [words.decode() for _, words in processes("cmdline") if str(directory).encode() in words]
    return left + [str(path) for path in directory.rglob("*")]


def wait_gone(directory: Path) -> None:
    """A FUSE daemon ends a moment after its unmount."""
    deadline = time.monotonic() + 10
    while traces(directory) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert traces(directory) == []
