"""The common parts of the three engines' figures.

    Plan          the graph, peers and machine of a measurement
    algo_case()   one algorithm on one stored form of the graph, by the ways that can compute it
    of_paper()    makes the figures of a paper
"""

from dataclasses import dataclass

from experiments import drawing, summary
from experiments.comparison import IN_MEMORY, STRIPED, VOLUME, Case
from experiments.stored.graph import Source, Stored
from experiments.stored.peers import Peer, Request
from experiments.stored.workload import Algo, compute_seconds
from experiments.summary import spread

OURS = (VOLUME, IN_MEMORY, STRIPED)


@dataclass(frozen=True)
class Plan:
    """Made from the Plan of plan.py."""

    source: Source
    most: int  # devices
    depth: str
    iterations: int  # of PageRank
    threads: int
    memory: int | None
    peers: tuple[Peer, ...]
    root: int = 0


def peer_ways(plan: Plan, *names: str) -> tuple:
    return tuple(peer.way for peer in plan.peers if peer.way in names)


def algo_case(plan: Plan, algorithm: str, stored: Stored, all_stored: tuple[Stored, ...], *, words=(),
              variation="", ways=(VOLUME,), threads: int | None = None,
              with_peers: bool = True) -> Case:
    """Ways of peers that do not have the algorithm are left out. with_peers: whether files are made
    for peers; all cases that take turns say the same."""
    request = Request(algorithm, plan.root, plan.iterations, threads or plan.threads, plan.memory)
    workload = Algo(request, plan.source, stored, all_stored, peers=plan.peers if with_peers else (),
                    words=words, variation=variation)
    able = {peer.way for peer in plan.peers if algorithm in peer.algorithms}
    return Case(workload, plan.most, plan.depth,
                tuple(way for way in ways if way in OURS or way in able))


def of_paper(figure, paper: str):
    """`figure`: the class of figures.py. Returns a function that makes a figure of this paper, with cases
    from a Plan of this module."""
    def one(number, title, published, cases, draw):
        return figure(number, title, published, lambda plan: cases(plan.stored()), draw, paper)

    return one


# --- what is drawn of samples ---

def ratio(of: list[dict], to: list[dict]) -> tuple | None:
    """The ratio of computing times, as drawing.bars() takes it."""
    return summary.of_ratio(summary.ratio(of, to, compute_seconds)) if of and to else None


def variation_of(one: dict) -> str:
    """The variation of its algorithm that a case measures."""
    return one["algorithm"].partition(", ")[2]


def variations(found: list[dict]) -> dict[str, list[dict]]:
    """The cases of each algorithm, in the order of what is tried."""
    by_algorithm = {}
    for one in summary.cases(found):
        by_algorithm.setdefault(one["algorithm"].split(", ")[0], []).append(one)
    return by_algorithm


def bars_by_way(axes, found: list[dict], value, label: str) -> None:
    """A group for each algorithm, a bar for each way; value(sample) on a logarithmic axis."""
    cases = summary.cases(found)
    drawing.bars(axes, [one["algorithm"] for one in cases], {
        way: [spread([value(sample) for sample in summary.only(found, way=way, **one)])
              for one in cases] for way in summary.ways(found)})
    axes.set(ylabel=label, yscale="log")


def draw_by_way(found: list[dict], value, label: str):
    figure, (axes,) = drawing.panels(1)
    bars_by_way(axes, found, value, label)
    drawing.legend(axes)
    return figure
