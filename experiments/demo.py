"""`make demo`: unmodified engines compute on a graph that lies striped over
several devices, and get what they get on plain files.

Each engine runs in three variants: on plain files; on the volume with Graphlane's
library preloaded; on the volume mounted as a filesystem. The results are
compared, and the devices' I/Os counted. One run each, on files that are in
memory: this shows that it works, not how fast it is.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from experiments.paths import BUILD, GRAPHLANE
from experiments.workspace import (
    Runner,
    StepFailed,
    is_mounted,
    signals_held,
    size,
    stop_on_signals,
    workspace,
)

EDGES_PER_VERTEX = 16
EDGE_BYTES = 8
PARTITIONS = 4
SHARDS = 4
CAP_SYS_ADMIN = 21  # linux/capability.h
STRIPE_DEPTH = "1M"
STRIPED_GLOBS = ["column", "row", "*.adj"]


@dataclass
class Engine:
    """A program that computes on the files of a directory."""

    title: str
    plain: Path  # the directory
    command: Callable[[Path], list]  # … for the directory where the files are
    result: Callable[[Path], np.ndarray]
    tolerance: float = 0  # of results that are not the same bits from run to run
    environment: dict[str, str] | None = None


@dataclass
class Run:
    """One run of an engine in one variant."""

    variant: str
    seconds: float
    result: np.ndarray
    devices: list[dict]  # path, ios, bytes_read; none on plain files


class Demo:
    def __init__(self, console: Console, work: Path, undo: ExitStack):
        self.console = console
        self.work = work
        self.undo = undo
        self.run = Runner(console, work, BUILD)
        self.volume = work / "volume"
        self.mount = work / "mount"

    # --- the graph ---

    def edges(self, graph: Path | None, scale: int) -> tuple[str, Path]:
        """The graph's format and file."""
        if graph is not None:
            return "snap", graph.resolve()
        path = self.work / "rmat.bin"
        self.run(GRAPHLANE, "gen", "rmat", "--scale", scale, "--edges",
                 EDGES_PER_VERTEX << scale, "--seed", 1, path)
        return "bin", path

    def pagerank(self, edges: tuple[str, Path], iterations: int,
                 gridgraph: Path | None) -> Engine:
        form, path = edges
        grid = self.work / "grid"
        self.run(GRAPHLANE, "convert", "--from", form, "--to", "grid",
                 "--partitions", PARTITIONS, path, grid)
        _, vertices, edge_count, partitions = (grid / "meta").read_text().split()
        self.console.print(f"{vertices} vertices, {edge_count} edges in {partitions} × "
                           f"{partitions} blocks: {size(int(edge_count) * EDGE_BYTES)} a sweep")
        if gridgraph is not None:
            return Engine(
                "PageRank by GridGraph", grid,
                lambda directory: [gridgraph / "pagerank", directory, iterations, 8],
                lambda directory: np.fromfile(directory / "pagerank", "<f4")[:int(vertices)],
                # Its threads add float32 up in any order.
                tolerance=1e-4)
        out = self.work / "ranks"
        return Engine(
            "PageRank by grid_engine, a stand-in for GridGraph", grid,
            lambda directory: [BUILD / "engines/grid_engine", "pagerank", directory,
                               "--iterations", iterations, "--out", out],
            lambda _: np.fromfile(out))

    def components(self, grid: Path, graphchi: Path | None) -> Engine:
        shards = self.work / "shards"
        shards.mkdir()
        base = shards / "graph"
        # The grid's columns hold every edge once, whatever the graph came as.
        edges = grid / "column"
        if graphchi is not None:
            with open(base, "w") as text:
                text.writelines(f"{source} {target}\n" for source, target
                                in np.fromfile(edges, "<i4").reshape(-1, 2).tolist())
            engine = Engine(
                "components by GraphChi", shards,
                lambda directory: [graphchi / "bin/example_apps/connectedcomponents",
                                   f"--file={directory / base.name}", "--filetype=edgelist",
                                   f"--nshards={SHARDS}", "--edgedatatype=uint"],
                lambda directory: np.fromfile(directory / "graph.4B.vout", "<u4"),
                environment={"GRAPHCHI_ROOT": str(graphchi)})
            # The first run makes the shards.
            self.run(*engine.command(shards), talkative=True, environment=engine.environment)
            return engine
        self.run(BUILD / "engines/shard_engine", "shard", edges, base, "--shards", SHARDS)
        out = self.work / "labels"
        return Engine(
            "components by shard_engine, a stand-in for GraphChi", shards,
            lambda directory: [BUILD / "engines/shard_engine", "wcc", directory / base.name,
                               "--shards", SHARDS, "--out", out],
            lambda _: np.fromfile(out, "<i4"))

    # --- the volume ---

    def make_volume(self, devices: list[Path], engines: list[Engine]) -> None:
        if not devices:
            devices = [self.work / f"device{i}" for i in range(4)]
            for device in devices:
                device.mkdir()
        words = [word for device in devices for word in ("--device", device)]
        words += [word for glob in STRIPED_GLOBS for word in ("--stripe", glob)]
        self.undo.callback(self.clear, devices)
        self.run(GRAPHLANE, "create", self.volume, "--stripe-depth", STRIPE_DEPTH, *words)
        for engine in engines:
            self.run(GRAPHLANE, "import", "--min-size", "64K", engine.plain,
                     self.volume / engine.plain.name)

    def clear(self, devices: list[Path]) -> None:
        """Removes the volume from the devices, and keeps all other files of the user's devices."""
        description = self.volume / ".graphlane/volume.json"
        if description.exists():
            uuid = json.loads(description.read_text())["uuid"]
            for device in devices:
                shutil.rmtree(device / f"graphlane-{uuid}", ignore_errors=True)

    # --- the variants ---

    def time(self, variant: str, engine: Engine, directory: Path, *prefix, environment=None) -> Run:
        start = time.monotonic()
        self.run(*prefix, *engine.command(directory), talkative=True,
                 environment=(engine.environment or {}) | (environment or {}))
        seconds = time.monotonic() - start
        return Run(variant, seconds, engine.result(directory), [])

    def native(self, engine: Engine) -> Run:
        return self.time("plain files", engine, engine.plain)

    def preloaded(self, engine: Engine, mountable: bool) -> Run:
        report = self.work / "report.json"
        report.unlink(missing_ok=True)
        prefix = [GRAPHLANE, "run", *([] if mountable else ["--no-mount"]), "--"]
        run = self.time("preloaded" if mountable else "preloaded, no mount", engine,
                        self.volume / engine.plain.name, *prefix,
                        environment={"GRAPHLANE_REPORT": str(report)})
        if report.exists():  # one line a process; the engine is the one that read most
            processes = [json.loads(line) for line in report.read_text().splitlines()]
            run.devices = max((process["devices"] for process in processes),
                              key=lambda devices: sum(d["bytes_read"] for d in devices))
        return run

    def mounted(self, engine: Engine) -> Run:
        self.mount.mkdir(exist_ok=True)
        self.undo.callback(self.unmount)
        with signals_held():
            self.run(GRAPHLANE, "mount", self.volume, self.mount)
        run = self.time("mounted", engine, self.mount / engine.plain.name)
        # The counters began with the mount.
        run.devices = json.loads(
            self.run(GRAPHLANE, "stat", self.volume, "--json", show=False))["devices"]
        self.unmount()
        return run

    def unmount(self) -> None:
        with signals_held():
            if is_mounted(self.mount):
                self.run(GRAPHLANE, "umount", self.mount)

    def all_variants(self, engine: Engine, no_fuse: str | None) -> list[Run]:
        runs = [self.native(engine), self.preloaded(engine, mountable=no_fuse is None)]
        if no_fuse is None:
            runs.append(self.mounted(engine))
        return runs


def why_no_fuse() -> str | None:
    """The reason why this user cannot mount here; None if mounting is possible."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or not open to this user"
    status = dict(line.split(":\t", 1) for line in
                  Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    if os.geteuid() == 0:
        may_mount = int(status["CapEff"], 16) >> CAP_SYS_ADMIN & 1
        return None if may_mount else "this root lacks CAP_SYS_ADMIN, as in most containers"
    if shutil.which("fusermount3") is None:
        return "fusermount3 is missing"
    if status.get("NoNewPrivs") == "1":
        return "fusermount3 cannot become root here (no_new_privs)"
    return None


def agrees(engine: Engine, run: Run, native: Run) -> bool:
    if run.result.shape != native.result.shape:
        return False
    if engine.tolerance == 0:
        return run.result.tobytes() == native.result.tobytes()
    return np.allclose(run.result, native.result, rtol=engine.tolerance)


def show(console: Console, engine: Engine, runs: list[Run]) -> bool:
    """The table of one engine; whether all its results agree."""
    native = runs[0]
    table = Table(box=box.SIMPLE)
    table.add_column("variant", no_wrap=True)
    table.add_column("seconds", justify="right")
    table.add_column("result")
    table.add_column("I/Os a device")
    table.add_column("MiB a device")
    all_agree = True
    for run in runs:
        same = agrees(engine, run, native)
        all_agree &= same
        equal = "equal" if engine.tolerance == 0 else f"equal ±{engine.tolerance:.0e}"
        verdict = "" if run is native else equal if same else "[red]DIFFERENT[/red]"
        table.add_row(run.variant, f"{run.seconds:.2f}", verdict,
                      " ".join(str(device["ios"]) for device in run.devices),
                      " ".join(f"{device['bytes_read'] / 2**20:.1f}" for device in run.devices))
    console.print(table)
    return all_agree


def graph_bytes_estimate(graph: Path | None, scale: int) -> int:
    """Bytes of the edges as pairs of int32, roughly; a line of text is longer."""
    if graph is None:
        return EDGE_BYTES * EDGES_PER_VERTEX << scale
    return graph.stat().st_size * (4 if graph.suffix == ".gz" else 1)


class Directory(click.Path):
    """A directory; several in one environment variable are separated by blanks."""

    envvar_list_splitter = None

    def __init__(self, **options):
        super().__init__(exists=True, file_okay=False, path_type=Path, **options)


@click.command(help=__doc__)
@click.option("--graph", envvar="GRAPH", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A graph as SNAP text, possibly gzipped. Default: an R-MAT graph.")
@click.option("--device", "devices", envvar="DEVICES", multiple=True,
              type=Directory(writable=True),
              help="A directory on a device of its own; may be given several times. Default: four directories.")
@click.option("--gridgraph-bin", "gridgraph", envvar="GRIDGRAPH_BIN",
              type=Directory(),
              help="The directory of GridGraph's programs, instead of the stand-in.")
@click.option("--graphchi-root", "graphchi", envvar="GRAPHCHI_ROOT",
              type=Directory(),
              help="GraphChi's directory, instead of the stand-in.")
@click.option("--scale", default=18, show_default=True, type=click.IntRange(8, 27),
              help="The R-MAT graph has 2^SCALE vertices and 16 edges for each.")
@click.option("--iterations", default=10, show_default=True, type=click.IntRange(1),
              help="Iterations of PageRank.")
def main(graph, devices, gridgraph, graphchi, scale, iterations):
    console = Console(highlight=False)
    stop_on_signals()
    try:
        # Edges, the grid's three copies of them, the shards, and all on the volume.
        need_bytes = 10 * graph_bytes_estimate(graph, scale) + (64 << 20)
        with workspace(console, need_bytes) as (work, undo):
            ok = demonstrate(Demo(console, work, undo), graph, [d.resolve() for d in devices],
                             gridgraph and gridgraph.resolve(), graphchi and graphchi.resolve(),
                             scale, iterations)
    except StepFailed as failure:
        console.print(f"demo: {failure}", style="red", markup=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("demo: interrupted; everything was removed", style="red")
        sys.exit(130)
    sys.exit(0 if ok else 1)


def demonstrate(demo: Demo, graph, devices, gridgraph, graphchi, scale, iterations) -> bool:
    console = demo.console
    console.rule("A graph, and a volume on " + (f"{len(devices)} devices" if devices else "four directories"))
    if graphchi is not None and not (graphchi / "bin/example_apps/connectedcomponents").exists():
        console.print(f"GraphChi is left out: {graphchi}/bin/example_apps/connectedcomponents is not built")
        graphchi = None
    pagerank = demo.pagerank(demo.edges(graph, scale), iterations, gridgraph)
    engines = [pagerank, demo.components(pagerank.plain, graphchi)]
    demo.make_volume(devices, engines)

    no_fuse = why_no_fuse()
    agreed = True
    for engine in engines:
        console.rule(engine.title)
        agreed &= show(console, engine, demo.all_variants(engine, no_fuse))
    if no_fuse is None:
        console.print("Mounted, the kernel keeps what it has read: the devices are asked once.",
                      style="dim")
    else:
        console.print(f"left out: mounted, because {no_fuse}", soft_wrap=True)
    console.print("All results agree." if agreed else "RESULTS DIFFER.",
                  style="green" if agreed else "red")
    return agreed


if __name__ == "__main__":
    main(prog_name="make demo")
