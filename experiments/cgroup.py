"""Control groups, version 1: what a device may do, what memory a workload has, and what CPU time
it used."""

import os
from contextlib import contextmanager
from pathlib import Path

from experiments.journal import Journal
from experiments.workspace import StepFailed

ENTER = 'echo $$ > "$1" && shift'  # for sh: into a group


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


class Group:
    """For a workload and the daemons that work for it: its memory, and, where that is mounted,
    its CPU time."""

    def __init__(self, memory: Path, cpu: Path | None, limit_bytes: int | None):
        self.memory = memory
        self.cpu = cpu
        self.limit_bytes = limit_bytes
        self.allow_more(0)

    def allow_more(self, more_bytes: int) -> None:
        """Than the limit, if there is one; the next call says it anew. Nobody is inside."""
        if self.limit_bytes is not None:
            limit = self.memory / "memory.limit_in_bytes"
            limit.write_text(str(self.limit_bytes + more_bytes))

    def enter(self) -> list[str]:
        """What goes before a command that is to run inside."""
        groups = [str(path / "cgroup.procs") for path in [self.memory, self.cpu] if path]
        return ["sh", "-c", " && ".join([*[ENTER] * len(groups), 'exec "$@"']), "sh", *groups]

    def is_empty(self) -> bool:
        return not (self.memory / "cgroup.procs").read_text()

    def most_bytes(self) -> int:
        """The most that was used at a time, page cache included."""
        return int((self.memory / "memory.max_usage_in_bytes").read_text())

    def forget_most(self) -> None:
        (self.memory / "memory.max_usage_in_bytes").write_text("0")

    def cpu_seconds(self) -> float | None:
        """Used so far, by the program and the daemons."""
        return int((self.cpu / "cpuacct.usage").read_text()) / 1e9 if self.cpu else None


@contextmanager
def workload_group(journal: Journal, limit_bytes: int | None):
    """With a limit that counts the page cache too, or without. What still runs
    inside at the end is killed."""
    name = f"graphlane-experiment-{os.getpid()}"
    memory = needed("memory") / name
    accounting = hierarchy("cpuacct")
    cpu = accounting and accounting / name
    with journal.section():
        for path in filter(None, [memory, cpu]):
            journal.note("cgroup", path=str(path))
            path.mkdir()
        yield Group(memory, cpu, limit_bytes)
