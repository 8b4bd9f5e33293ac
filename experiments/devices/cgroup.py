"""Control groups: the memory that a workload has, and the CPU time that it used.

    version 1    a hierarchy of groups for each controller
    version 2    one for all of them; a group has the controllers that the one above it gives
"""

import os
from contextlib import contextmanager
from pathlib import Path

from experiments.devices.journal import Journal, retry
from experiments.workspace import StepFailed

ENTER = 'echo $$ > "$1" && shift'  # for sh: into a group
MOUNTS = Path("/proc/self/mounts")


class Group:
    """For a workload and the daemons that work for it: their memory, page cache included, and their
    CPU time. It is there from begin() on."""

    MOST: str

    def __init__(self, limit_bytes: int | None, memory: Path, *others: Path):
        self.limit_bytes = limit_bytes
        self.memory = memory
        self.paths = [memory, *others]

    def begin(self, more_bytes: int = 0) -> None:
        """Makes an empty group with its counters at zero. (Version 2 before Linux 6.12 can reset its
        maximum only by removing the group.) `more_bytes` is added to the limit, if there is one."""
        retry(self.remove)
        for path in self.paths:
            path.mkdir()
        if self.limit_bytes is not None:
            self.limit(self.limit_bytes + more_bytes)

    def remove(self) -> None:
        for path in filter(Path.exists, self.paths):
            path.rmdir()

    def limit(self, limit_bytes: int) -> None:
        raise NotImplementedError

    def enter(self) -> list[str]:
        """The words that start a command inside the group."""
        groups = [str(path / "cgroup.procs") for path in self.paths]
        return ["sh", "-c", " && ".join([*[ENTER] * len(groups), 'exec "$@"']), "sh", *groups]

    def is_empty(self) -> bool:
        return not (self.memory / "cgroup.procs").read_text()

    def max_bytes(self) -> int:
        """The most that was used at a time."""
        return int((self.memory / self.MOST).read_text())

    def cpu_seconds(self) -> float | None:
        """Used so far."""
        raise NotImplementedError


class Version1(Group):
    """CPU time is another hierarchy's, where that is mounted."""

    MOST = "memory.max_usage_in_bytes"

    def limit(self, limit_bytes: int) -> None:
        names = ["memory.limit_in_bytes"]
        with_swap = self.memory / "memory.memsw.limit_in_bytes"
        if with_swap.exists():  # else the kernel counts none
            with_swap.write_text("-1")  # it is never the lower one
            names.append(with_swap.name)
        for name in names:
            (self.memory / name).write_text(str(limit_bytes))

    def cpu_seconds(self) -> float | None:
        used = [int((cpu / "cpuacct.usage").read_text()) / 1e9 for cpu in self.paths[1:]]
        return used[0] if used else None


class Version2(Group):
    MOST = "memory.peak"  # from Linux 5.19 on

    def begin(self, more_bytes: int = 0) -> None:
        above = self.memory.parent
        try:
            (above / "cgroup.subtree_control").write_text("+memory")
        except OSError as error:  # in a container: read-only, or with processes of its own
            raise StepFailed(f"{above}: gives no group its memory controller: "
                             f"{error.strerror}") from None
        super().begin(more_bytes)

    def limit(self, limit_bytes: int) -> None:
        (self.memory / "memory.max").write_text(str(limit_bytes))
        swap = self.memory / "memory.swap.max"
        if swap.exists():  # else the kernel counts none
            swap.write_text("0")

    def cpu_seconds(self) -> float:
        lines = (self.memory / "cpu.stat").read_text().splitlines()
        return int(dict(map(str.split, lines))["usage_usec"]) / 1e6


def hierarchies() -> tuple[dict[str, Path], list[Path]]:
    """Where each controller of version 1 is mounted, by its name; and version 2."""
    version1, version2 = {}, []
    for line in MOUNTS.read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            version1 |= dict.fromkeys(options.split(","), Path(where))
        elif kind == "cgroup2":
            version2.append(Path(where))
    return version1, version2


def named(name: str, limit_bytes: int | None = None) -> Group:
    """A group of the version that has the memory controller here."""
    version1, version2 = hierarchies()
    if "memory" in version1:
        return Version1(limit_bytes, *(version1[controller] / name for controller
                                       in ["memory", "cpuacct"] if controller in version1))
    for root in version2:
        if "memory" in (root / "cgroup.controllers").read_text().split():
            return Version2(limit_bytes, root / name)
    raise StepFailed("no control groups with the memory controller are mounted here")


def blkio_group() -> Path:
    """The group of the blkio controller that this process is in. Limits of version 1 hold for the
    processes of one group together, not for those of groups below it."""
    mounted = hierarchies()[0].get("blkio")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if mounted is not None and "blkio" in controllers.split(","):
            return mounted / path.lstrip("/")
    raise StepFailed("flash devices need the blkio controller of control groups version 1, which "
                     "is not mounted here")


@contextmanager
def workload_group(journal: Journal, limit_bytes: int | None):
    """With a limit that counts the page cache too, or without. What still runs
    inside at the end is killed."""
    group = named(f"graphlane-experiment-{os.getpid()}", limit_bytes)
    with journal.section():
        for path in group.paths:
            journal.note("cgroup", path=str(path))
        group.begin()
        yield group
