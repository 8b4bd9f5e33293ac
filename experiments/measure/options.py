"""Options that several commands have."""

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from experiments.devices import emulated
from experiments.devices.emulated import Spec
from experiments.measure.sizes import SIZE
from experiments.workloads.csmqgraph import CsmqGraph


class OutFile(click.Path):
    """To write to: a path that cannot be written is refused before hours of measuring."""

    def __init__(self):
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value, param, ctx):
        path = super().convert(value, param, ctx)
        if not path.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
            self.fail(f"{path}: {path.parent} is no directory that one may write in", param, ctx)
        return path


OUT_FILE = OutFile()
POSITIVE = click.FloatRange(0, min_open=True)
DEVICE_OPTIONS = [
    click.option("--kind", type=click.Choice(["ssd", "hdd", "flash"]), default="ssd",
                 show_default=True, help="ssd, hdd, or flash: an ssd that costs little CPU time per read."),
    click.option("--count", type=click.IntRange(1, 64), default=4, show_default=True),
    click.option("--size", type=SIZE, default="3G", show_default=True, help="Size of each device."),
    click.option("--bandwidth", type=SIZE,
                 help="Bytes a second of each device, before dilation. "
                      "[500MB (ssd), 210MB (hdd), 140MB (flash)]"),
    click.option("--iops", type=click.IntRange(1),
                 help="I/Os a second of each ssd or flash device, before dilation. "
                      "[90000 (ssd), 14000 (flash)]"),
    click.option("--seek", nargs=3, type=float, default=(0.4, 4, 7.5), show_default=True,
                 help="Milliseconds of an hdd's shortest, average and longest seek."),
    click.option("--rpm", type=POSITIVE, default=10_000, show_default=True, help="Rotations of an hdd per minute."),
    click.option("--stroke", type=SIZE, default="100GB", show_default=True,
                 help="Bytes of the whole hdd, of which the device is the first part. They decide "
                      "how far its seeks go."),
    click.option("--dilate", "dilation", type=POSITIVE, default=1, show_default=True,
                 help="Slow everything down by this factor."),
    click.option("--filesystem", type=click.Choice(list(emulated.MKFS)), default="ext4",
                 show_default=True),
    click.option("--backing", type=click.Choice(["memory", "disk"]), default="memory",
                 show_default=True, help="Where the bytes are stored: in a tmpfs, or on the disk of DIR."),
]


def device_options(function):
    for option in reversed(DEVICE_OPTIONS):
        function = option(function)
    return function


def spec_of(options: dict) -> Spec:
    """Takes the options that describe devices out of all those given."""
    low, mean, high = (ms / 1000 for ms in options.pop("seek"))
    names = set(Spec.__dataclass_fields__) & set(options)
    return replace(Spec(), seek_min=low, seek_avg=mean, seek_max=high,
                   **{name: options.pop(name) for name in names})


AT = click.option("--at", type=click.Path(file_okay=False, path_type=Path),
                  help="Use the devices that `devices up --at DIR` made. Without it, make devices "
                       "for this run.")


def run_options(function):
    """For commands that measure: on new devices, or on those of `devices up`."""
    for option in [
            AT, click.option("--rounds", type=click.IntRange(1), default=5, show_default=True),
            click.option("--out", type=OUT_FILE, help="Keep the samples as JSON.")]:
        function = option(function)
    return device_options(function)


@contextmanager
def chosen_devices(at: Path | None, options: dict):
    spec = spec_of(options)
    with emulated.existing(at) if at else emulated.fresh(spec) as found:
        yield found


def jobs_timeout_option(default: str):
    return click.option("--jobs-timeout", type=click.FloatRange(0, min_open=True),
                        help="Seconds for several jobs. Jobs that have not ended then are ended, and "
                             f"count as having taken at least as long. [{default}]")


def measuring_options(function):
    """For commands that run workloads beside each other."""
    for option in [
            click.option("--memory", type=SIZE,
                         help="The memory of the program, the daemons and the page cache together."),
            click.option("--ceiling-seconds", type=click.FloatRange(0.5), default=5,
                         show_default=True, help="Seconds of each sample of the ceiling.")]:
        function = option(function)
    return function


@dataclass(frozen=True)
class Engines:
    """The user's own builds; what is None, a stand-in takes the place of, or nothing."""

    gridgraph: Path | None = None
    graphchi: Path | None = None
    csmqgraph: tuple[CsmqGraph, ...] = ()
    gridgraph_kit: Path | None = None  # GridGraph's programs, compiled against adapters/gridgraph
    graphchi_kit: Path | None = None  # GraphChi's, against adapters/graphchi
    blaze: Path | None = None  # compute on stored graphs, as `graphlane algo` does
    gap: Path | None = None
    lumos: Path | None = None


def program_in(programs: str):
    """Refuses a directory without the program that has to be there."""
    def check(ctx, param, directory):
        if directory is not None and not (directory / programs).is_file():
            raise click.BadParameter(f"{directory}/{programs} is not there: build it first")
        return directory and directory.resolve()
    return check


def directory_option(name: str, variable: str, program: str, help: str):
    return click.option(name, envvar=variable, callback=program_in(program), help=help,
                        type=click.Path(exists=True, file_okay=False, path_type=Path))


def gridgraph_options(function):
    return directory_option("--gridgraph-bin", "GRIDGRAPH_BIN", "pagerank",
                            "Where GridGraph's programs are, to be run in place of the "
                            "stand-in.")(function)


def gridgraph_kit_options(function):
    return directory_option("--gridgraph-kit-bin", "GRIDGRAPH_KIT_BIN", "pagerank",
                            "Where GridGraph's programs are that were compiled against "
                            "adapters/gridgraph: one more variant.")(function)


def graphchi_options(function):
    return directory_option("--graphchi-root", "GRAPHCHI_ROOT",
                            "bin/example_apps/connectedcomponents",
                            "GraphChi's directory, to be run in place of the stand-in.")(function)


def graphchi_kit_options(function):
    return directory_option("--graphchi-kit-bin", "GRAPHCHI_KIT_BIN", "connectedcomponents",
                            "Where GraphChi's programs are that were compiled against "
                            "adapters/graphchi: one more variant.")(function)


def csmqgraph_options(function):
    for option in [
            directory_option("--csmqgraph-bin", "CSMQGRAPH_BIN", "pagerank",
                             "Where CSMqGraph's programs are: one more variant, from "
                             "files that it stripes itself."),
            click.option("--csmqgraph-workers", type=click.IntRange(1), multiple=True,
                         default=[1, 3], show_default=True,
                         help="Its I/O threads per device; may be given several times.")]:
        function = option(function)
    return function


def blaze_options(function):
    return directory_option("--blaze-bin", "BLAZE_BIN", "pagerank",
                            "Where Blaze's programs are, to stand beside `graphlane algo`.")(function)


def gap_options(function):
    return directory_option("--gap-bin", "GAP_BIN", "pr_spmv",
                            "Where the programs of the GAP benchmark suite are, to stand beside "
                            "`graphlane algo`.")(function)


def lumos_options(function):
    return directory_option("--lumos-bin", "LUMOS_BIN", "pagerank",
                            "Where Lumos's programs are, to stand beside `graphlane algo`.")(function)


def engine_options(function):
    for options in [lumos_options, gap_options, blaze_options, csmqgraph_options, graphchi_kit_options, graphchi_options,
                    gridgraph_kit_options, gridgraph_options]:
        function = options(function)
    return function


def engines_of(options: dict) -> Engines:
    """Takes the options that say where engines are out of all those given."""
    programs = options.pop("csmqgraph_bin", None)
    workers = options.pop("csmqgraph_workers", ())
    return Engines(options.pop("gridgraph_bin", None), options.pop("graphchi_root", None),
                   tuple(CsmqGraph(programs, count) for count in workers) if programs else (),
                   options.pop("gridgraph_kit_bin", None), options.pop("graphchi_kit_bin", None),
                   options.pop("blaze_bin", None), options.pop("gap_bin", None), options.pop("lumos_bin", None))
