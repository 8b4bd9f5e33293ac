"""python -m graphlane: the package's own commands; every other word goes to the `graphlane` command."""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from graphlane import _build, _command, _core
from graphlane._graph import Graph
from graphlane._open import open_graph

USAGE = """\
usage: python -m graphlane COMMAND …

  show GRAPH                     what a stored graph is, whatever its format
  to-graphar IN OUT              a stored graph or an edge list as GraphAr
  from-graphar IN OUT            GraphAr as a stored graph
  from-parquet IN OUT            columns of Parquet as a stored graph
  compare-results ONE OTHER      whether two runs of an algorithm gave the same values
  spark ALGORITHM GRAPHAR        PageRank, components or shortest paths by Spark's GraphX
  program                        the path of the command in this package

Each has its --help. Every other command goes to `graphlane`: convert, algo, create, import, mount and the rest;
`python -m graphlane commands` lists them."""


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"python -m graphlane {name}", description=description)
    parser.add_argument("input", metavar="IN")
    if name != "show":
        parser.add_argument("output", metavar="OUT")
        parser.add_argument("--memory", default="1GiB", metavar="SIZE", help="use no more than this (1GiB)")
        parser.add_argument("-f", "--overwrite", action="store_true", help="replace what is there")
        parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")
    if name.startswith("from-"):
        parser.add_argument("--to", choices=_build.FORMATS, default="lists", help="what OUT is (lists)")
        parser.add_argument("--codec", choices=("raw", "varint", "simd", "reference"))
        parser.add_argument("--weight", metavar="NAME", help="the property or column of weights")
    return parser


def _common(given: argparse.Namespace) -> dict[str, Any]:
    return {"memory": given.memory, "overwrite": given.overwrite, "progress": False if given.quiet else True}


def show(words: list[str]) -> None:
    print(repr(open_graph(_parser("show", "What a stored graph is.").parse_args(words).input)))


def to_graphar(words: list[str]) -> None:
    from graphlane import graphar

    parser = _parser("to-graphar", "A stored graph, or an edge list of any kind that `graphlane convert` reads, as GraphAr.")
    parser.add_argument("-w", "--weighted", action="store_true", help="of an edge list: its edges have weights")
    parser.add_argument("--threads", type=int, metavar="N")
    given = parser.parse_args(words)
    folder = Path(given.output).resolve().parent
    if not folder.is_dir():
        raise _core.Error(f"{folder}: there is no such directory")
    with tempfile.TemporaryDirectory(prefix=".graphlane-", dir=folder) as scratch:
        graph = _open_or_store(given, Path(scratch) / "lists")
        graphar.to_graphar(graph, given.output, threads=given.threads, **_common(given))
    _tell(given, graph)


def _open_or_store(given: argparse.Namespace, copy: Path) -> Graph:
    if Path(given.input).is_dir():
        return open_graph(given.input)
    weights = ["--weights", "float64"] if given.weighted else []
    _command.run("convert", "--to", "lists", "--memory", _command.size(given.memory), *weights, given.input, copy)
    return open_graph(copy)


def from_graphar(words: list[str]) -> None:
    from graphlane import graphar

    parser = _parser("from-graphar", "One type of edges of a GraphAr graph as a stored graph.")
    parser.add_argument("--edge", metavar="SOURCE_EDGE_TARGET", help="which, where there are several")
    given = parser.parse_args(words)
    _tell(given, graphar.from_graphar(given.input, given.output, edge=given.edge, weight=given.weight, format=given.to,
                                      codec=given.codec, **_common(given)))


def from_parquet(words: list[str]) -> None:
    from graphlane import graphar

    parser = _parser("from-parquet", "Columns of a Parquet file, or of a folder of them, as a stored graph.")
    parser.add_argument("--columns", metavar="S,T", default="", help="the columns of both ends (the first two)")
    parser.add_argument("--undirected", action="store_true", help="every edge both ways")
    given = parser.parse_args(words)
    source, _, target = given.columns.partition(",")
    _tell(given, graphar.from_parquet(given.input, given.output, source=source or None, to=target or None,
                                      weight=given.weight, format=given.to, codec=given.codec,
                                      directed=not given.undirected, **_common(given)))


def _tell(given: argparse.Namespace, graph: Graph) -> None:
    if not given.quiet:
        print(f"{given.output}: {graph.num_vertices} vertices, {graph.num_arcs} arcs")


def compare_results(words: list[str]) -> None:
    """Ends with status 0 (equal), 1 (different) or 2 (cannot compare), as cmp(1)."""
    from graphlane import _compare

    parser = argparse.ArgumentParser("python -m graphlane compare-results",
                                     description="Whether two runs gave the same values; status 0: yes, 1: no, 2: cannot compare.")
    parser.add_argument("one", metavar="ONE", help=".npy, .csv or .txt of `graphlane algo --out`, or Parquet (vertex, value)")
    parser.add_argument("other", metavar="OTHER")
    parser.add_argument("--tolerance", type=float, default=_compare.TOLERANCE, metavar="T",
                        help=f"difference over the larger of both values ({_compare.TOLERANCE:g})")
    parser.add_argument("--partition", action="store_true", help="values are names of groups: equal where the groups are")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(words)
    try:
        found = {name: _compare.compare_groups(one, other) if given.partition else _compare.compare(one, other, given.tolerance)
                 for name, one, other in _compare.pairs(given.one, given.other)}
    except (_core.Error, ImportError) as error:
        print(f"graphlane: {error}", file=sys.stderr)
        sys.exit(2)
    if given.json:
        print(json.dumps({name: each.as_json() for name, each in found.items()}))
    else:
        for name, each in found.items():
            print(_compare.line(name, each, given.partition))
    sys.exit(1 if any(each.different for each in found.values()) else 0)


def spark(words: list[str]) -> None:
    from graphlane import spark as own

    sys.exit(own.main(words))


OWN = {"show": show, "to-graphar": to_graphar, "from-graphar": from_graphar, "from-parquet": from_parquet,
       "compare-results": compare_results, "spark": spark}


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if word in ("-h", "--help"):
        print(USAGE)
    elif word == "--version":
        print(_core.__version__)
    elif word == "program":
        print(_command.PROGRAM)
    elif word in OWN:
        OWN[word](sys.argv[2:])
    else:
        if word == "commands":
            sys.argv[1:] = ["--help"]
        _command.main()


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (_core.Error, OSError, ImportError, ValueError) as error:
        sys.exit(f"graphlane: {error}")
    except MemoryError:
        sys.exit("graphlane: out of memory")
    except KeyboardInterrupt:
        sys.exit("graphlane: interrupted")
