"""Measures the cost of the labels of adapters/share for a graph, in seconds and bytes (GraphM's table 3, and
the storage overhead beside it).

Each graph becomes a grid; then a job goes through it that has it labelled, and one that finds the
labels there: what the former takes longer is their price. GraphM goes through the graph once
more for it. All of it is in memory. Graphs: R-MAT, and NAME.u32.xz of --data.
"""

import lzma
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console

from experiments.devices.journal import command
from experiments.measure import options, samples
from experiments.measure.plan import JOB_PARTITIONS
from experiments.measure.tables import Table
from experiments.paths import GRAPHLANE
from experiments.workloads import share_sweep
from experiments.workloads.engines import rmat
from experiments.workspace import StepFailed

SCALES = (18, 20)
CAPTION = ("GraphM: 4% more seconds in memory, 16.1% out of core; labels are 5.5 to 19.2% of the "
           "edges (§5.2, table 3). Medians; of ratios the range of the rounds beside")


def unpack(source: Path, edges: Path) -> None:
    with lzma.open(source) as packed, edges.open("wb") as target:
        shutil.copyfileobj(packed, target)


def graphs(data: Path | None, scales: tuple[int, ...]) -> dict:
    """Name -> what writes its edges to a file."""
    made = {f"rmat-{scale}": lambda path, scale=scale: rmat(scale, path) for scale in scales}
    packed = sorted(data.glob("*.u32.xz")) if data else []
    return made | {source.name.removesuffix(".u32.xz"):
                   lambda path, source=source: unpack(source, path) for source in packed}


def seconds(action, *words) -> float:
    begin = time.monotonic()
    action(*words)
    return time.monotonic() - begin


def convert(edges: Path, grid: Path) -> None:
    command(GRAPHLANE, "convert", "--from", "bin", "--to", "grid", "--overwrite",
            "--partitions", JOB_PARTITIONS, edges, grid)


def preprocess(program: Path, edges: Path, grid: Path, vertex_count: int) -> None:
    """Makes the grid by GridGraph's own program."""
    command(program, "-i", edges, "-o", grid, "-v", vertex_count, "-p", JOB_PARTITIONS, "-t", 0)


def sample(directory: Path, program: Path | None) -> dict:
    """A sample for the edges in the directory."""
    edges, grid = directory / "edges", directory / "grid"
    got = {"convert_seconds": seconds(convert, edges, grid)}
    vertex_count = int((grid / "meta").read_text().split()[1])
    if program:
        theirs = directory / "theirs"
        got["preprocess_seconds"] = seconds(preprocess, program, edges, theirs, vertex_count)
        shutil.rmtree(theirs)
    got["labelling_seconds"] = seconds(share_sweep.sweep, grid)
    got["sweep_seconds"] = seconds(share_sweep.sweep, grid)
    return {**got, "vertex_count": vertex_count,
            "edge_bytes": (grid / share_sweep.EDGES).stat().st_size,
            "label_bytes": (grid / share_sweep.LABELS).stat().st_size}


def measure(of: dict, program: Path | None, rounds: int) -> list[dict]:
    console = Console(stderr=True)
    found = []
    for name, write in of.items():
        with tempfile.TemporaryDirectory(prefix="graphlane-labels-") as directory:
            write(Path(directory) / "edges")
            for number in range(rounds):
                console.print(f"round {number + 1} of {rounds}: {name}", style="dim",
                              highlight=False)
                found.append({"round": number, "graph": name,
                              **sample(Path(directory), program)})
    return found


def table(found: list[dict]) -> Table:
    theirs = "preprocess_seconds" in found[0]
    shown = Table(["graph", "vertices", "MB of edges", "MB of labels", "of the edges",
                   *(["GridGraph's preprocess, s"] if theirs else []), "convert, s",
                   "sweep that labels, s", "sweep, s", "labels by convert"], caption=CAPTION)
    for graph in dict.fromkeys(sample["graph"] for sample in found):
        ours = [sample for sample in found if sample["graph"] == graph]

        def of(what):
            return samples.series(ours, what)

        def middle(what):
            return f"{statistics.median(of(what)):.2f}"
        more = [with_labels - without for with_labels, without
                in zip(of("labelling_seconds"), of("sweep_seconds"))]
        edge_bytes, label_bytes = ours[0]["edge_bytes"], ours[0]["label_bytes"]
        shown.add(graph, str(ours[0]["vertex_count"]), f"{edge_bytes / 1e6:.1f}",
                  f"{label_bytes / 1e6:.1f}", f"{label_bytes / edge_bytes:.1%}",
                  *([middle("preprocess_seconds")] if theirs else []), middle("convert_seconds"),
                  middle("labelling_seconds"), middle("sweep_seconds"),
                  samples.format_ratio(samples.ratio(more, of("convert_seconds"))))
    return shown


@click.command(help=__doc__)
@click.option("--data", envvar="GRAPHLANE_TEST_DATA",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="The directory of NAME.u32.xz: little-endian uint32 pairs, compressed.")
@click.option("--graph", "names", multiple=True, metavar="NAME", help="Only this graph; may be given several times.")
@click.option("--scale", "scales", type=click.IntRange(8, 27), multiple=True, default=SCALES,
              show_default=True, help="R-MAT graphs of 2^SCALE vertices; may be given several times.")
@options.directory_option("--gridgraph-bin", "GRIDGRAPH_BIN", "preprocess",
                          "Where GridGraph's preprocess is, to stand beside ours.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--out", type=options.OUT_FILE, help="Keep the samples as JSON.")
def main(data, names, scales, gridgraph_bin, rounds, out):
    of = graphs(data, scales)
    for name in names:
        if name not in of:
            raise StepFailed(f"--graph {name}: there are {', '.join(of)}")
    found = measure({name: of[name] for name in names or of},
                    gridgraph_bin and gridgraph_bin / "preprocess", rounds)
    if out:
        samples.write(out, samples.record("labels", None, found))
    table(found).show()
