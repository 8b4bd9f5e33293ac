"""The source folders that the user has built."""

import os
from pathlib import Path

from tests.conformance.bench import BenchError, run


def require(program: Path) -> None:
    if not os.access(program, os.X_OK):
        raise BenchError(f"{program}: not there: build the suite first, by its own README")


def version_of(folder: Path) -> str:
    """The commit's date, or the folder's name where there is no git."""
    said = run("git", "-C", folder, "log", "-1", "--format=%cs %h", seconds_max=60)
    return said.output.strip() if said.status == 0 else folder.name
