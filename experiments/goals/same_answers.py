"""Answers of several engines on one stored graph: Graphlane, networkit, igraph, scipy, DuckDB's SQL and Spark.

How far are PageRank, components and weighted distances of each engine from those of `graphlane algo`? A difference is
relative to the larger of both values. Times are told, not compared: they have reading the stored graph in them, but not the
start of Spark's JVM. Engines that are not installed are left out, in one line.
"""

import importlib.util
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from experiments.paths import BUILD
from experiments.workspace import StepFailed

SITE = BUILD / "python/site"
TOLERANCE = 1e-6
DAMPING = 0.85
ALGORITHMS = ("pagerank", "wcc", "sssp")
SOURCE = 0


@dataclass
class Case:
    graph: Any  # graphlane.Graph
    graphar: Path
    scratch: Path


# Each takes a case and the algorithm's name, and gives an array with a value for each vertex.

def by_graphlane(engine: str):
    def compute(case: Case, name: str):
        import graphlane

        graph = case.graph if engine == "semiext" else graphlane.open(case.scratch / engine)
        more = {"tolerance": 1e-12} if name == "pagerank" else {"sources": [SOURCE]} if name == "sssp" else {}
        return graphlane.algo.run(name, graph, progress=False, **more).values

    return compute


def by_networkit(case: Case, name: str):
    import networkit
    import numpy as np

    networkit.setNumberOfThreads(1)  # threads of OpenMP spin, which a busy machine pays for
    graph = case.graph.to_networkit()
    if name == "pagerank":
        graph = networkit.graphtools.toUnweighted(graph)
        found = networkit.centrality.PageRank(graph, DAMPING, 1e-12, False, networkit.centrality.SinkHandling.DistributeSinks)
        found.norm = networkit.centrality.Norm.L1_NORM
        return np.array(found.run().scores())
    if name == "wcc":
        found = networkit.components.WeaklyConnectedComponents(graph)
        found.run()
        return np.array([found.componentOfNode(vertex) for vertex in range(graph.numberOfNodes())])
    found = networkit.distance.Dijkstra(graph, SOURCE, False)
    distances = np.array(found.run().getDistances(True))
    return np.where(distances > 1e300, np.inf, distances)


def by_igraph(case: Case, name: str):
    import numpy as np

    graph = case.graph.to_igraph()
    if name == "pagerank":
        return np.array(graph.pagerank(damping=DAMPING, implementation="prpack"))
    if name == "wcc":
        return np.array(graph.connected_components(mode="weak").membership)
    return np.array(graph.distances(source=SOURCE, weights="weight", mode="out")[0])


def by_scipy(case: Case, name: str):
    import numpy as np
    from scipy.sparse import csgraph, diags_array

    matrix = case.graph.to_scipy()
    if name == "wcc":
        return csgraph.connected_components(matrix, connection="weak")[1]
    if name == "sssp":
        return csgraph.dijkstra(matrix, indices=SOURCE)
    n = matrix.shape[0]
    degree = np.diff(matrix.indptr)
    shares = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    matrix.data[:] = 1
    pull = (diags_array(shares) @ matrix).T.tocsr()
    rank, change = np.full(n, 1 / n), 1.0
    while change > 1e-13:
        fresh = (1 - DAMPING) / n + DAMPING * (pull @ rank + rank[degree == 0].sum() / n)
        rank, change = fresh, np.abs(fresh - rank).sum()
    return rank


# "recurring" is what USING KEY has found so far; the name of the table alone is what the last round changed.
SQL = {
    "pagerank": """
        with recursive rank(round, vertex, value) as (
          select 0, vertex, 1.0::double / n from vertices, size
          union all
          select any_value(last.round) + 1, v.vertex,
                 (1 - {damping}) / any_value(n) + {damping} * (coalesce(sum(r.value / v2.degree), 0) + any_value(last.lost) / any_value(n))
          from vertices v, size, (select max(round) as round, coalesce(sum(rank.value) filter (d.degree = 0), 0) as lost
                                  from rank join vertices d using (vertex)) last
               left join arcs on arcs.target = v.vertex left join rank r on r.vertex = arcs.source left join vertices v2 on v2.vertex = arcs.source
          where last.round < {rounds} group by v.vertex)
        select value from rank where round = {rounds} order by vertex""",
    "wcc": """
        with recursive label(vertex, value) using key (vertex) as (
          select vertex, vertex from vertices
          union
          select e.target, min(l.value) from label l join edges e on e.source = l.vertex join recurring.label known on known.vertex = e.target
          where l.value < known.value group by e.target)
        select value from label order by vertex""",
    "sssp": """
        with recursive distance(vertex, value) using key (vertex) as (
          select vertex, case when vertex = {source} then 0.0::double else 'infinity'::double end from vertices
          union
          select a.target, min(d.value + a.weight) from distance d join arcs a on a.source = d.vertex
                 join recurring.distance known on known.vertex = a.target
          where d.value + a.weight < known.value group by a.target)
        select value from distance order by vertex""",
}


def by_duckdb(case: Case, name: str):
    import duckdb
    import numpy as np

    lists = case.graphar / "edge/vertex_edge_vertex/ordered_by_source"
    with duckdb.connect() as database:
        # The rows of both folders have the same order.
        database.execute(f"""
            create table arcs as select a._graphArSrcIndex as source, a._graphArDstIndex as target, w.weight
              from read_parquet('{lists}/adj_list/*/*') a positional join read_parquet('{lists}/weight/*/*') w;
            create table vertices as select v.id as vertex, (select count(*) from arcs where source = v.id) as degree
              from read_parquet('{case.graphar}/vertex/vertex/id/*') v;
            create table edges as select source, target from arcs union select target, source from arcs;
            create table size as select count(*) as n from vertices""")
        rows = database.execute(SQL[name].format(damping=DAMPING, rounds=150, source=SOURCE)).fetchnumpy()
    return np.asarray(rows["value"])


def by_spark(case: Case, name: str):
    from graphlane import _compare

    out = case.scratch / f"spark-{name}"
    more = {"pagerank": ["--iterations", "100"], "wcc": [], "sssp": ["--source", str(SOURCE)]}[name]
    words = [sys.executable, "-m", "graphlane.spark", name, str(case.graphar), "--out", str(out), "--json", "--quiet", "--master", "local[2]",
             "--partitions", "2", "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2", *more]
    told = run(words)
    return next(iter(_compare.load(out).values())), json.loads(told)["seconds"]


def run(words: list[str]) -> str:
    import os
    import subprocess

    path = os.pathsep.join([str(SITE), *(part for part in sys.path if part)])
    ended = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    if ended.returncode != 0:
        raise StepFailed(ended.stderr.strip().splitlines()[-1])
    return ended.stdout


# The name, how it reads the graph, the module that it needs.
ENGINES: list[tuple[str, str, str, Callable]] = [
    ("Graphlane semiext", "`lists`, the reference", "numpy", by_graphlane("semiext")),
    ("Graphlane hybrid", "`dual`", "numpy", by_graphlane("dual")),
    ("networkit", "`to_networkit()`", "networkit", by_networkit),
    ("igraph", "`to_igraph()`", "igraph", by_igraph),
    ("scipy", "`to_scipy()`", "scipy", by_scipy),
    ("DuckDB", "recursive SQL on the Parquet of GraphAr", "duckdb", by_duckdb),
    ("Spark GraphX", "`python -m graphlane.spark` on GraphAr", "pyspark", by_spark),
]


def missing(module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return f"no package {module}"
    return "no Java" if module == "pyspark" and shutil.which("java") is None else None


def difference(name: str, reference, values):
    """(vertices that differ, the largest difference)."""
    from graphlane import _compare

    found = _compare.compare_groups(reference, values) if name == "wcc" else _compare.compare(reference, values, TOLERANCE)
    return found.different, found.largest


def make_case(scratch: Path, scale: int) -> Case:
    """A Kronecker-like graph with weights; some vertices have no out-arcs, some no arcs at all."""
    import numpy as np

    import graphlane
    from graphlane import graphar

    random = np.random.default_rng(43)
    count = 16 << scale
    ends = np.zeros((count, 2), np.int64)
    for _ in range(scale):
        quarter = random.choice(4, count, p=[0.57, 0.19, 0.19, 0.05])
        ends = ends * 2 + np.stack([quarter >> 1, quarter & 1], axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    weights = random.random(len(ends)) + 0.01
    graph = graphlane.from_edges(ends, scratch / "lists", weights=weights, num_vertices=1 << scale, progress=False)
    graphlane.from_edges(ends, scratch / "dual", weights=weights, num_vertices=1 << scale, format="dual", progress=False)
    return Case(graph, graphar.to_graphar(graph, scratch / "graphar", progress=False), scratch)


def table(case: Case) -> tuple[list[str], int]:
    """The lines of the table, and how many answers differ."""
    graph = case.graph
    lines = [f"R-MAT, {graph.num_vertices} vertices, {graph.num_arcs} weighted arcs.", "",
             "| engine | reads | " + " | ".join(f"{name}: s; difference" for name in ALGORITHMS) + " |", "|---" * (2 + len(ALGORITHMS)) + "|"]
    references, wrong = {}, 0
    for engine, variant, module, compute in ENGINES:
        if reason := missing(module):
            click.echo(f"{engine}: left out: {reason}", err=True)
            continue
        cells = []
        for name in ALGORITHMS:
            started = time.monotonic()
            found = compute(case, name)
            values, seconds = found if isinstance(found, tuple) else (found, time.monotonic() - started)
            reference = references.setdefault(name, values)
            different, largest = difference(name, reference, values)
            wrong += different > 0
            told = f"**{different} vertices**" if different else "none" if largest == 0 else f"{largest:.0e}"
            cells.append(f"{seconds:.2f}; {told}")
            click.echo(f"{engine}, {name}: {cells[-1]}", err=True)
        lines.append(f"| {engine} | {variant} | " + " | ".join(cells) + " |")
    return lines, wrong


@click.command(help=__doc__)
@click.option("--scale", type=click.IntRange(4, 20), default=12, show_default=True, help="2^SCALE vertices, 16 arcs for each.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Writes the table there, too.")
def main(scale: int, out: Path | None) -> None:
    if not (SITE / "graphlane").is_dir():
        raise StepFailed(f"{SITE}: is not there: run make wheel first")
    sys.path.insert(0, str(SITE))
    with tempfile.TemporaryDirectory(prefix="graphlane-answers-") as scratch:
        lines, wrong = table(make_case(Path(scratch), scale))
    text = "\n".join(lines) + "\n"
    click.echo(text, nl=False)
    if out:
        out.write_text(text)
    if wrong:
        raise StepFailed(f"{wrong} answers differ by more than {TOLERANCE:g}")
