"""Replays one recorded trace of delta-PageRank's gets on every store: Graphlane's, LMDB, RocksDB, a flat CSR file.

The CSR file is mapped. Each store has the same memory: that of the replay itself, and a share of the lists.
The program is built by `make kv_replay`, with each peer if its library is installed (Debian: liblmdb-dev, librocksdb-dev).
"""

import json
import statistics
import subprocess
from pathlib import Path

import click

from experiments.devices import cgroup
from experiments.paths import BUILD, GRAPHLANE
from experiments.workspace import StepFailed

PROGRAM = BUILD / "experiments/kv_replay"
STORES = ("pages", "lmdb", "csr", "rocksdb")
SLACK = 8 << 20  # what a program takes beside its cache, the same for all
PORTIONS = ("1", "0.1", "0.01")


def call(*words) -> dict:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise StepFailed(done.stderr.strip().splitlines()[-1] if done.stderr else f"{words[0]}: ended with {done.returncode}")
    return json.loads(done.stdout) if done.stdout.startswith("{") else {}


class Limited:
    """Runs of the replay in a control group of their own."""

    def __init__(self):
        self.group = cgroup.named("graphlane-kv-replay")

    def replay(self, store, directory, trace, cache, threads, limit) -> tuple[dict, int]:
        self.group.limit_bytes = limit
        self.group.begin()
        try:
            told = call(*self.group.enter(), PROGRAM, "store", store, directory, trace, cache, threads)
            return told, self.group.max_bytes()
        finally:
            self.group.remove()


def drop_caches() -> None:
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("1")


@click.command()
@click.argument("graph", type=click.Path(exists=True, path_type=Path))
@click.option("--at", required=True, type=click.Path(file_okay=False, path_type=Path), help="The directory for stores and traces.")
@click.option("--portion", "portions", multiple=True, default=PORTIONS, help="The share of the state table in a round; may be given several times.")
@click.option("--share", default=0.1, help="Memory for the store, as a share of the lists.")
@click.option("--rounds", default=20, help="The most rounds of a trace; small portions have more.")
@click.option("--samples", default=3)
@click.option("--threads", "thread_counts", multiple=True, type=int, default=(1, 2))
@click.option("--values", "kinds", multiple=True, default=("raw", "encoded"))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="All numbers, as JSON.")
def main(graph, at, portions, share, rounds, samples, thread_counts, kinds, out):
    """GRAPH, an edge list, as lists by key: one trace replayed on every store."""
    if not PROGRAM.exists():
        raise click.UsageError(f"{PROGRAM}: is not there: run `make kv_replay`")
    at.mkdir(parents=True, exist_ok=True)
    pages = at / "graph.pages"
    call(GRAPHLANE, "-q", "convert", "-f", "--to", "pages", graph, pages)
    found = []
    limited = Limited()
    stores = {}
    for values in kinds:
        for store in STORES:
            directory = at / f"{store}.{values}"
            subprocess.run(["rm", "-rf", str(directory)], check=True)
            try:
                loaded = call(PROGRAM, "load", store, pages, directory, values)
            except StepFailed as failed:
                click.echo(f"{store}: {failed}", err=True)
                continue
            stores[store, values] = directory
            click.echo(f"load {store} {values}: {loaded['seconds']} s")
    for portion in portions:
        trace = at / f"trace.{portion}"
        recorded = call(PROGRAM, "record", pages, trace, portion, int(rounds / float(portion) ** 0.5))
        drop_caches()  # pages of the trace that are there already would not count
        _, base = limited.replay("none", at, trace, 0, 1, None)
        for (store, values), directory in stores.items():
            lists = sum(path.stat().st_size for path in stores["pages", values].iterdir())
            cache = int(share * lists)
            for threads in thread_counts:
                seconds, sums = [], set()
                for _ in range(samples):
                    drop_caches()
                    # The page cache of LMDB and CSR, and the caches of the others, have the same room.
                    told, most = limited.replay(store, directory, trace, cache, threads, base + cache + SLACK)
                    seconds.append(told["seconds"])
                    sums.add(told["sum"])
                one = {"portion": portion, "store": store, "values": values, "threads": threads, "gets": recorded["gets"],
                       "seconds": statistics.median(seconds), "min": min(seconds), "max": max(seconds), "sum": sums.pop(),
                       "cache": cache, "limit": base + cache + SLACK, "used": most}
                found.append(one)
                click.echo(f"portion {portion:>5}  {values:>8}  {store:>8}  {threads} threads  {one['seconds']:8.3f} s "
                           f"({one['min']:.3f} to {one['max']:.3f}), {recorded['gets'] / one['seconds'] / 1e6:.2f} M gets/s")
    different = {(one["portion"], one["values"]): set() for one in found}
    for one in found:
        different[one["portion"], one["values"]].add(one["sum"])
    if any(len(sums) > 1 for sums in different.values()):
        raise StepFailed("the stores gave different values")
    if out is not None:
        out.write_text(json.dumps(found, indent=1))
