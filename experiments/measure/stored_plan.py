"""Measurements of engines on stored graphs.

Plan is the graph, peers and machine of a measurement. algo_case() is one algorithm on one stored form of
the graph, in the variants that can compute it.
"""

from dataclasses import dataclass

from experiments.measure.comparison import Case
from experiments.workloads.stored.graph import Source, Stored
from experiments.workloads.stored.peers import Peer, Request
from experiments.workloads.stored.workload import Algo
from experiments.workloads.variants import BASELINE, IN_MEMORY, VOLUME

OURS = (VOLUME, IN_MEMORY, BASELINE)


@dataclass(frozen=True)
class Plan:
    """Made from the Plan of plan.py."""

    source: Source
    max_devices: int
    depth: str
    iterations: int  # of PageRank
    threads: int
    memory: int | None
    peers: tuple[Peer, ...]
    root: int = 0


def peer_variants(plan: Plan, *names: str) -> tuple:
    return tuple(peer.variant for peer in plan.peers if peer.variant in names)


def algo_case(plan: Plan, algorithm: str, stored: Stored, all_stored: tuple[Stored, ...], *, words=(),
              variation="", variants=(VOLUME,), threads: int | None = None,
              with_peers: bool = True) -> Case:
    """Ways of peers that do not have the algorithm are left out. with_peers: whether files are made
    for peers; all cases that take turns say the same."""
    request = Request(algorithm, plan.root, plan.iterations, threads or plan.threads, plan.memory)
    workload = Algo(request, plan.source, stored, all_stored, peers=plan.peers if with_peers else (),
                    words=words, variation=variation)
    able = {peer.variant for peer in plan.peers if algorithm in peer.algorithms}
    return Case(workload, plan.max_devices, plan.depth,
                tuple(variant for variant in variants if variant in OURS or variant in able))
