"""How much of the devices does each way of using them give a program?

One workload runs on the OS striped volume (btrfs raid0), on Graphlane's mount, and with
Graphlane preloaded, over the same devices and taking turns; each round also asks fio for
the devices' own ceiling. Caches are dropped before each sample. What counts are ratios of
medians; the range of the rounds' own ratios stands beside, with a ? where it is wide.
"""

import statistics
from contextlib import contextmanager
from pathlib import Path

import click
from rich.table import Table

from experiments import fio, samples
from experiments.cgroup import Group, memory_group
from experiments.devices import Devices, since
from experiments.journal import command, retry
from experiments.options import chosen_devices, run_options
from experiments.sizes import SIZE
from experiments.striped import btrfs_raid0
from experiments.workloads import GRAPHLANE, Grid, Read
from experiments.workspace import StepFailed

STRIPED = "OS striped volume"
MOUNTED = "mounted"
PRELOADED = "preloaded"
CEILING = "ceiling"
DEVICE_SHARE = 0.9  # of a device's half: filesystems need some for themselves


class Comparison:
    """The same files on the OS striped volume and on a volume of Graphlane's."""

    def __init__(self, devices: Devices, striped: Path, group: Group, workload, depth: str):
        self.devices = devices
        self.journal = devices.journal
        self.striped = striped
        self.group = group
        self.workload = workload
        self.depth = depth
        self.volume = devices.devices[0].directory / "volume"

    def prepare(self) -> None:
        """Undone with the section that the caller is in."""
        lanes = []
        for device in self.devices:
            lanes.append(device.directory / "lane")
            self.journal.note("tree", path=str(lanes[-1]))
            lanes[-1].mkdir()
        self.journal.note("tree", path=str(self.volume))
        with self.devices.unlimited():
            self.workload.prepare(self.striped)
            command(GRAPHLANE, "create", self.volume, "--stripe-depth", self.depth,
                    *(word for lane in lanes for word in ("--device", lane)),
                    *(word for glob in self.workload.stripe for word in ("--stripe", glob)))
            for path in sorted(self.striped.iterdir()):
                # A file that is named itself would be striped, whatever the policy says.
                large = not self.workload.stripe or path.name in self.workload.stripe
                copy = [GRAPHLANE, "import"] if large else ["cp", "-a"]
                command(*copy, path, self.volume / path.name)
        self.names = {path.name for path in self.striped.iterdir()}

    @contextmanager
    def way(self, name: str):
        """Where the files are, and what goes before the command."""
        enter = self.group.enter()
        if name == STRIPED:
            yield self.striped, enter
        elif name == PRELOADED:
            yield self.volume, [*enter, GRAPHLANE, "run", "--"]
        else:
            with self.journal.section():
                mounted = self.journal.directory / "mounted"
                self.journal.make_mount(mounted, *enter, GRAPHLANE, "mount", self.volume)
                yield mounted, enter
        retry(self.all_ended)

    def all_ended(self) -> None:
        if not self.group.is_empty():
            raise StepFailed("a daemon of the last sample does not end")

    def sample(self, name: str) -> dict:
        self.devices.drop_caches()
        self.group.forget_most()
        with self.way(name) as (directory, prefix):
            before = self.devices.counters()
            got = self.workload.run(directory, prefix)
            self.devices.sync()  # what the engine wrote counts too
            got["device_counters"] = since(before, self.devices.counters())
        got["memory_bytes_most"] = self.group.most_bytes()
        self.remove_results(self.striped if name == STRIPED else self.volume)
        return got

    def remove_results(self, directory: Path) -> None:
        """So that each run makes its vertex files anew."""
        for path in directory.iterdir():
            if path.name not in self.names and path.is_file():
                path.unlink()


def ceiling(devices: Devices, seconds: float) -> dict:
    devices.drop_caches()
    before = devices.counters()
    got = fio.ceiling([device.node for device in devices], seconds)
    return {**got, "device_counters": since(before, devices.counters())}


def measure(comparison: Comparison, rounds: int, seconds: float) -> list[dict]:
    found = []
    for number in range(rounds):
        for way in [STRIPED, MOUNTED, PRELOADED]:
            found.append({"round": number, "way": way, **comparison.sample(way)})
        found.append({"round": number, "way": CEILING, **ceiling(comparison.devices, seconds)})
    return found


def of_devices(sample: dict, what: str) -> int:
    return sum(counters[what] for counters in sample["device_counters"])


def bandwidth(found: list[dict], way: str) -> list[float]:
    """What reached the devices, bytes a second. The ceiling's is what fio says: its ramp
    reads too."""
    return [sample["bytes_per_second"] if way == CEILING
            else of_devices(sample, "bytes_read") / sample["seconds"]
            for sample in found if sample["way"] == way]


def table(workload, found: list[dict]) -> Table:
    shown = samples.new_table("way", "seconds", "speed-up", "MB/s", "of the ceiling",
                              "reads/device", "MB/device", "MB written", title=workload.name)
    device_count = len(found[0]["device_counters"])
    for way in [STRIPED, MOUNTED, PRELOADED]:
        ours = [sample for sample in found if sample["way"] == way]
        seconds = samples.series(found, "seconds", way=way)
        faster = samples.ratio(samples.series(found, "seconds", way=STRIPED), seconds)
        speed = bandwidth(found, way)
        share = samples.ratio(speed, bandwidth(found, CEILING))

        def middle(what):
            return statistics.median(of_devices(sample, what) for sample in ours)

        shown.add_row(way, f"{statistics.median(seconds):.2f}",
                      "" if way == STRIPED else samples.shown(faster),
                      f"{statistics.median(speed) / 1e6:.1f}", samples.shown(share),
                      f"{middle('reads') / device_count:.0f}",
                      f"{middle('bytes_read') / device_count / 1e6:.1f}",
                      f"{middle('bytes_written') / 1e6:.1f}")
    limit = bandwidth(found, CEILING)
    shown.add_row(CEILING, "", "", f"{statistics.median(limit) / 1e6:.1f}", "", "", "", "")
    shown.caption = "ratio of medians (least–most of the rounds); ?: the rounds differ widely"
    return shown


def check_room(devices: Devices, workload) -> None:
    room = sum(device.size() // 2 for device in devices) * DEVICE_SHARE
    if workload.need_bytes() > room:
        raise StepFailed(f"{workload.name}: about {workload.need_bytes() >> 20} MiB of data on "
                         f"devices with room for {int(room) >> 20}: give a larger --size")


def compare(workload, at, rounds, out, memory, depth, ceiling_seconds, **options) -> None:
    with chosen_devices(at, options) as devices:
        check_room(devices, workload)
        if len(devices.devices) < 2:
            raise StepFailed("nothing to stripe over: give --count 2 or more")
        with btrfs_raid0(devices) as striped, memory_group(devices.journal, memory) as group:
            comparison = Comparison(devices, striped, group, workload, depth)
            comparison.prepare()
            found = measure(comparison, rounds, ceiling_seconds)
        if out:
            samples.save(out, devices, found, workload=workload.name, memory_bytes=memory,
                         stripe_depth=depth)
    samples.show(table(workload, found))


def compare_options(function):
    for option in [
            click.option("--memory", type=SIZE,
                         help="What the program, the daemons and the page cache have together."),
            click.option("--depth", default="12M", show_default=True, help="Stripe depth."),
            click.option("--ceiling-seconds", type=click.FloatRange(0.5), default=5,
                         show_default=True, help="Of each sample of the ceiling.")]:
        function = option(function)
    return run_options(function)


@click.group(help=__doc__)
def main():
    pass


@main.command()
@compare_options
@click.option("--file", "file_size", type=SIZE, default="960M", show_default=True,
              help="Size of the file.")
@click.option("--threads", type=click.IntRange(1, 8), default=4, show_default=True)
@click.option("--direct", is_flag=True, help="Open it with O_DIRECT.")
def read(file_size, threads, direct, **options):
    """fio reads a large file with preads of 24 MiB, in the order of engines."""
    compare(Read(file_size, threads, direct), **options)


@main.command()
@click.argument("algorithm", type=click.Choice(["pagerank", "wcc", "bfs"]))
@compare_options
@click.option("--gridgraph-bin", "programs", envvar="GRIDGRAPH_BIN",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Where GridGraph's programs are, to be run in place of the stand-in.")
@click.option("--graph", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="A grid made by `graphlane convert` or GridGraph's preprocess. Without: "
                   "an R-MAT graph.")
@click.option("--scale", type=click.IntRange(8, 27), default=20, show_default=True,
              help="The R-MAT graph has 2^SCALE vertices and 16 edges for each.")
@click.option("--iterations", type=click.IntRange(1), default=5, show_default=True,
              help="Of PageRank.")
@click.option("--budget", type=SIZE, help="The engine's own idea of the memory that it has.")
def gridgraph(algorithm, programs, graph, scale, iterations, budget, **options):
    """GridGraph, or the stand-in of the tests, computes on a grid."""
    workload = Grid(algorithm, programs and programs.resolve(), graph and graph.resolve(),
                    scale, iterations, budget)
    compare(workload, **options)
