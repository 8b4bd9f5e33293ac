"""Comparisons: workloads take turns on the same files, on the OS striped volume and on a Graphlane volume
over the same devices.

    devices    the first n of all
      files    made once, on both volumes
        round    every case of these files, in all its variants; then the ceiling
"""

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.devices.btrfs import btrfs_raid0
from experiments.devices.cgroup import Group, workload_group
from experiments.devices.emulated import Devices, since
from experiments.devices.journal import command, retry
from experiments.measure.checkpoint import Checkpoint
from experiments.measure.sizes import SIZE
from experiments.measure.timeline import timeline
from experiments.paths import GRAPHLANE
from experiments.workloads import fio
from experiments.workloads.csmqgraph import NAME as CSMQGRAPH
from experiments.workloads.csmqgraph import CsmqGraph, Layout
from experiments.workloads.variants import (
    BASELINE,
    CEILING,
    COMPUTE_ONLY,
    IN_MEMORY,
    IN_TURN,
    KIT_UNSCHEDULED,
    KIT_VARIANTS,
    MAPPED,
    MOUNTED,
    SHARED,
    VARIANTS,
    VOLUME,
    disabled_parts,
    is_ours,
    is_preloaded,
)
from experiments.workspace import StepFailed

DEPTHS = {"hdd": "3M", "ssd": "512K", "flash": "512K"}  # what `graphlane create` takes
DEPTHS_HELP = ", ".join(f"{depth} ({kind})" for kind, depth in DEPTHS.items())
DEPTH = DEPTHS["hdd"]
DEVICE_SHARE = 0.9  # of a device's half: filesystems need some for themselves


def bytes_of(depth: str) -> int:
    return SIZE.convert(depth, None, None)


@dataclass(frozen=True)
class Case:
    """One workload on a number of devices, in each of these variants."""

    workload: Any  # of workloads/
    device_count: int
    depth: str = DEPTH
    variants: tuple = VARIANTS
    rivals: tuple[CsmqGraph, ...] = ()
    in_memory: bool = False  # read before, and written to devices without limit
    more_bytes: int = 0  # that it may have, beside the memory that all have

    def all_variants(self) -> list[str]:
        return [*self.variants, *(rival.variant for rival in self.rivals)]

    def labels(self) -> dict:
        """The labels that distinguish its samples from others."""
        labels = self.workload.labels()
        if self.in_memory:
            labels["algorithm"] += ", in memory"
        return {**labels, "device_count": self.device_count, "stripe_depth": self.depth}


class Comparison:
    def __init__(self, devices: Devices, striped: Path, group: Group):
        self.devices = devices
        self.journal = devices.journal
        self.grid = striped / "files"
        self.group = group
        # Files that are not striped stay beside the engine's, on a volume of all devices.
        self.volume = striped / "volume"
        self.csmqgraph: Layout | None = None
        self.depth: str | None = None

    def prepare(self, case: Case) -> None:
        """Makes the files. The caller's section undoes it."""
        workload = case.workload
        lanes = []
        for device in self.devices:
            lanes.append(device.directory / "lane")
            self.journal.note("tree", path=str(lanes[-1]))
            lanes[-1].mkdir()
        for path in [self.volume, self.grid]:
            self.journal.note("tree", path=str(path))
        self.grid.mkdir()
        with self.devices.unlimited():
            workload.prepare(self.grid, lanes)
            if any(map(is_ours, case.variants)):
                self.make_volume(workload, lanes, case.depth)
            if case.rivals:
                self.csmqgraph = Layout(self.journal, self.grid, self.grid.parent / "csmqgraph",
                                        lanes)
                self.csmqgraph.stripe(bytes_of(case.depth))
        self.depth = case.depth
        self.names = {path.name for path in self.grid.iterdir()}

    def make_volume(self, workload, lanes: list[Path], depth: str) -> None:
        command(GRAPHLANE, "create", self.volume, "--stripe-depth", depth,
                *(word for lane in lanes for word in ("--device", lane)),
                *(word for glob in workload.stripe for word in ("--stripe", glob)))
        is_in_volume = getattr(workload, "is_in_volume", lambda name: True)
        for path in sorted(self.grid.iterdir()):
            if not is_in_volume(path.name):
                continue
            # A file that is named itself would be striped, whatever the policy is.
            large = not workload.stripe or any(fnmatch(path.name, glob)
                                               for glob in workload.stripe)
            copy = [GRAPHLANE, "import"] if large else ["cp", "-a", "--reflink=never"]
            command(*copy, path, self.volume / path.name)

    def set_depth(self, depth: str) -> None:
        """Changes the depth of the existing files, so that depths can take turns."""
        if depth == self.depth:
            return
        with self.devices.unlimited():
            command(GRAPHLANE, "restripe", "--stripe-depth", depth, self.volume)
            if self.csmqgraph:
                self.csmqgraph.stripe(bytes_of(depth))
        self.depth = depth

    @contextmanager
    def variant(self, name: str):
        """The directory of the files, and the words before the command."""
        enter = self.group.enter()
        if name in (BASELINE, IN_TURN):
            yield self.grid, enter
        elif is_preloaded(name):
            without = f"GRAPHLANE_DISABLE={disabled_parts(name)}"
            yield self.volume, [*enter, "env", without, GRAPHLANE, "run", "--"]
        elif name in (MOUNTED, SHARED, MAPPED, *KIT_VARIANTS):
            with self.journal.section():
                mounted = self.journal.directory / "mounted"
                self.journal.make_mount(mounted, *enter, GRAPHLANE, "mount", self.volume)
                more: dict[str, list] = {SHARED: [GRAPHLANE, "run", "--"],
                        MAPPED: [GRAPHLANE, "run", "--share=map", "--"],
                        KIT_UNSCHEDULED: ["env", "GRAPHLANE_SHARE_ORDER=graph"]}
                yield mounted, [*enter, *more.get(name, [])]
        elif name in (VOLUME, IN_MEMORY):
            yield self.volume, enter
        elif name.startswith(CSMQGRAPH):
            yield self.csmqgraph.directory, enter
        else:  # a peer of a stored graph
            yield self.grid, enter
        retry(self.all_ended)

    def all_ended(self) -> None:
        if not self.group.is_empty():
            raise StepFailed("a daemon of the last sample does not end")

    def sample(self, case: Case, name: str) -> dict:
        self.set_depth(case.depth)
        self.devices.drop_caches()
        self.group.begin(case.more_bytes)
        unlimited = self.devices.unlimited() if case.in_memory else nullcontext()
        with unlimited, self.variant(name) as (directory, prefix):
            if case.in_memory:
                self.run(case, name, directory, prefix)  # which brings it there
                self.remove_results(self.volume if is_ours(name) else directory)
            cpu = self.group.cpu_seconds()
            before = self.devices.counters()
            with timeline(self.devices) as rows:
                got = self.run(case, name, directory, prefix)
                self.devices.sync()  # what the engine wrote counts too
            got["device_counters"] = since(before, self.devices.counters())
        if cpu is not None:
            got["cpu_seconds"] = self.group.cpu_seconds() - cpu
        got["timeline"] = rows
        got["memory_bytes_max"] = self.group.max_bytes()
        self.remove_results(self.volume if is_ours(name) else directory)
        return got

    def run(self, case: Case, name: str, directory: Path, prefix) -> dict:
        for rival in case.rivals:
            if rival.variant == name:
                return rival.run(case.workload, directory, prefix, case.device_count,
                                 bytes_of(case.depth))
        if name == IN_TURN:
            return case.workload.run_in_turn(directory, prefix)
        if name in KIT_VARIANTS:
            return case.workload.run_with_kit(directory, prefix)
        run_as = getattr(case.workload, "run_as", None)
        return run_as(name, directory, prefix) if run_as else case.workload.run(directory, prefix)

    def compute_only(self, case: Case) -> dict:
        """The time of computation alone: the second run, from memory."""
        with self.devices.unlimited():
            for _ in range(2):
                got = case.workload.run(self.grid, [])
                self.remove_results(self.grid)
        return got

    def remove_results(self, directory: Path) -> None:
        """Removes the program's files, so that each run makes its vertex files anew."""
        for path in directory.iterdir():
            if path.name not in self.names and path.is_file() and not path.is_symlink():
                path.unlink()

    def ceiling(self, seconds: float) -> dict:
        self.devices.drop_caches()
        before = self.devices.counters()
        got = fio.ceiling([device.node for device in self.devices], seconds)
        return {**got, "device_counters": since(before, self.devices.counters())}


def check(devices: Devices, cases: list[Case]) -> None:
    """Fails for impossible cases, before anything is done."""
    for case in cases:
        workload = case.workload
        used = devices.devices[:case.device_count]
        if len(used) < case.device_count:
            raise StepFailed(f"{case.device_count} devices are to be compared, and there are "
                             f"{len(used)}: give --count {case.device_count}")
        if len(used) < 2 and any(map(is_ours, case.variants)):
            raise StepFailed("nothing to stripe over: give --count 2 or more")
        if case.rivals and bytes_of(case.depth) % workload.edge_bytes:
            raise StepFailed(f"CSMqGraph: a stripe of {case.depth} ends inside of an edge of "
                             f"{workload.edge_bytes} bytes: give --depth 12M")
        plain = workload.plain_bytes() if any(map(is_ours, case.variants)) else 0
        need = workload.need_bytes() + plain  # which the volume's directory has, too
        room = int(sum(device.size() // 2 for device in used) * DEVICE_SHARE)
        if need > room:
            raise StepFailed(f"{workload.name}: about {need >> 20} MiB of data on {len(used)} "
                             f"devices with room for {room >> 20}: give a larger --size")


def first(devices: Devices, count: int) -> Devices:
    """The first `count` devices."""
    return Devices(devices.journal, replace(devices.spec, count=count), devices.devices[:count])


def turns(cases: list[Case], rounds: int):
    """The turns on one set of files, each with the labels of its sample; without a case it is the
    ceiling's turn."""
    for number in range(rounds):
        for case in cases:
            for variant in case.all_variants():
                yield case, {"round": number, "variant": variant, **case.labels()}
        yield None, {"round": number, "variant": CEILING, "device_count": cases[0].device_count,
                     "graph": cases[0].labels()["graph"]}


def turns_key(case: Case) -> tuple:
    """Equal for cases that take turns on one set of files."""
    return case.device_count, case.workload.files


def with_all_files(cases: list[Case]) -> list[Case]:
    """Files are made once for all cases that take turns: each workload that can is told of the others' files."""
    alike: dict[tuple, list] = {}
    for case in cases:
        alike.setdefault(turns_key(case), []).append(case.workload)
    return [replace(case, workload=case.workload.with_files_of(alike[turns_key(case)]))
            if hasattr(case.workload, "with_files_of") else case for case in cases]


def measure(devices: Devices, cases: list[Case], rounds: int, seconds: float,
            memory_bytes: int | None, checkpoint: Checkpoint | None = None) -> list[dict]:
    """Measures the cases, except those that were measured before an interruption."""
    cases = with_all_files(cases)
    check(devices, cases)
    # A different set of devices has no earlier samples.
    checkpoint = (checkpoint or Checkpoint()).part(vars(devices.spec))
    console = Console(stderr=True)

    def measured(comparison, case, labels):
        """The sample of one turn."""
        if case is None:
            return comparison.ceiling(seconds)
        what = " ".join(str(value) for value in case.labels().values())
        console.print(f"round {labels['round'] + 1} of {rounds}: {what}: {labels['variant']}",
                      style="dim", markup=False, highlight=False, soft_wrap=True)
        variant = labels["variant"]
        return comparison.compute_only(case) if variant == COMPUTE_ONLY else comparison.sample(case, variant)

    found = []
    for (count, _), group in groupby(sorted(cases, key=turns_key), turns_key):
        ours = list(group)
        comparison = None
        with ExitStack() as undo:
            for case, labels in turns(ours, rounds):
                if comparison is None and not checkpoint.has(labels):
                    used = first(devices, count)
                    striped = undo.enter_context(btrfs_raid0(used))
                    limit = undo.enter_context(workload_group(devices.journal, memory_bytes))
                    comparison = Comparison(used, striped, limit)
                    comparison.prepare(ours[0])
                sample = checkpoint.sample(labels, lambda: measured(comparison, case, labels))
                found.append({**labels, **sample})
    return found
