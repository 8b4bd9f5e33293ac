"""How long jobs of the kit wait in its calls: share_times.c, which they are given, says it."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

from experiments.devices.journal import command
from experiments.paths import ROOT

SOURCE = Path(__file__).with_name("share_times.c")


@contextmanager
def library():
    """To be preloaded into jobs."""
    with tempfile.TemporaryDirectory(prefix="graphlane-share-times-") as directory:
        path = Path(directory) / "share_times.so"
        command("gcc", "-O2", "-shared", "-fPIC", "-I", ROOT, SOURCE, "-o", path)
        yield path


def read(place: Path) -> dict:
    """The times that the job left in the directory; empty if adapters/share is linked statically."""
    left = place / "share-times"
    return json.loads(left.read_text()) if left.exists() else {}
