"""Control groups, version 1: what a device may do, and what memory a workload has."""

import os
from contextlib import contextmanager
from pathlib import Path

from experiments.journal import Journal
from experiments.workspace import StepFailed

ENTER = 'echo $$ > "$0" && exec "$@"'  # for sh: become the command, inside the group


def hierarchy(controller: str) -> Path | None:
    """Where it is mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and controller in options.split(","):
            return Path(where)
    return None


def needed(controller: str) -> Path:
    found = hierarchy(controller)
    if found is None:
        raise StepFailed(f"cgroup v1's {controller} controller is not mounted here")
    return found


def own(controller: str) -> Path:
    """The group that this process is in."""
    root = needed(controller)
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return root / path.lstrip("/")
    return root


class Group:
    """A memory group, for a workload and the daemons that work for it."""

    def __init__(self, path: Path):
        self.path = path

    def enter(self) -> list[str]:
        """What goes before a command that is to run inside."""
        return ["sh", "-c", ENTER, str(self.path / "cgroup.procs")]

    def is_empty(self) -> bool:
        return not (self.path / "cgroup.procs").read_text()

    def most_bytes(self) -> int:
        """The most that was used at a time, page cache included."""
        return int((self.path / "memory.max_usage_in_bytes").read_text())

    def forget_most(self) -> None:
        (self.path / "memory.max_usage_in_bytes").write_text("0")


@contextmanager
def memory_group(journal: Journal, limit_bytes: int | None):
    """With a limit that counts the page cache too, or without. What still runs
    inside at the end is killed."""
    path = needed("memory") / f"graphlane-experiment-{os.getpid()}"
    with journal.section():
        journal.note("cgroup", path=str(path))
        path.mkdir()
        if limit_bytes is not None:
            (path / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield Group(path)
