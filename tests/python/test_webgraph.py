"""from_webgraph: BVGraphs that an encoder of the tests wrote, with references, blocks and intervals, and damaged ones."""

import random
from pathlib import Path

import numpy as np
import pytest

import package  # noqa: F401  (import graphlane finds the package by it)

import graphlane


class Bits:
    """A file of bits, the highest of each byte first, and the codes of BVGraph."""

    def __init__(self):
        self.text = []

    def fixed(self, value, width):
        self.text.append(format(value, f"0{width}b") if width else "")

    def unary(self, value):
        self.text.append("0" * value + "1")

    def gamma(self, value):
        width = (value + 1).bit_length() - 1
        self.unary(width)
        self.fixed(value + 1 - (1 << width), width)

    def delta(self, value):
        width = (value + 1).bit_length() - 1
        self.gamma(width)
        self.fixed(value + 1 - (1 << width), width)

    def zeta(self, value, k=3):
        h = ((value + 1).bit_length() - 1) // k
        self.unary(h)
        low = 1 << (h * k)
        size, rest = (low << k) - low, value + 1 - low
        width = (size - 1).bit_length()
        short = (1 << width) - size
        self.fixed(*((rest, width - 1) if rest < short else (rest + short, width)))

    def to_bytes(self):
        text = "".join(self.text)
        text += "0" * (-len(text) % 8)
        return int("1" + text, 2).to_bytes(len(text) // 8 + 1, "big")[1:] if text else b""


def natural(value):
    return 2 * value if value >= 0 else -2 * value - 1


def blocks_of(reference, own):
    """Lengths of the blocks of the list `reference` that are copied, skipped, copied …; the last is left out."""
    kept = [target in own for target in reference]
    lengths, copies, at = [], True, 0
    while at < len(kept):
        end = at
        while end < len(kept) and kept[end] == copies:
            end += 1
        lengths.append(end - at)
        copies, at = not copies, end
    return lengths[:-1]


def intervals_of(targets, least):
    """(first, length) of the runs of consecutive numbers of this length, and the other numbers."""
    runs, rest, at = [], [], 0
    while at < len(targets):
        end = at + 1
        while end < len(targets) and targets[end] == targets[end - 1] + 1:
            end += 1
        if least and end - at >= least:
            runs.append((targets[at], end - at))
        else:
            rest += targets[at:end]
        at = end
    return runs, rest


def write(base: Path, lists, window=7, least=4, flags="", residual="zeta"):
    """References are random, so the lists need not resemble each other."""
    random.seed(5)
    bits = Bits()
    for vertex, targets in enumerate(lists):
        bits.gamma(len(targets))
        if not targets:
            continue
        left = targets
        if window:
            reference = random.randint(0, min(window, vertex))
            bits.unary(reference)
            if reference:
                blocks = blocks_of(lists[vertex - reference], set(targets))
                bits.gamma(len(blocks))
                for i, length in enumerate(blocks):
                    bits.gamma(length - (i > 0))
                left = [target for target in targets if target not in lists[vertex - reference]]
        if not left:
            continue
        runs, rest = intervals_of(left, least)
        if least:
            bits.gamma(len(runs))
            end = None
            for first, length in runs:
                bits.gamma(natural(first - vertex) if end is None else first - end - 1)
                bits.gamma(length - least)
                end = first + length
        for i, target in enumerate(rest):
            getattr(bits, residual)(natural(target - vertex) if i == 0 else target - rest[i - 1] - 1)
    base.with_suffix(".graph").write_bytes(bits.to_bytes())
    base.with_suffix(".properties").write_text(
        f"#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\nnodes={len(lists)}\narcs={sum(map(len, lists))}\n"
        f"windowsize={window}\nminintervallength={least}\nzetak=3\ncompressionflags={flags}\n")
    return base


def lists_of(seed):
    """Runs, gaps, lists like the one before, and empty ones."""
    rng = np.random.default_rng(seed)
    lists = []
    for vertex in range(300):
        first = int(rng.integers(0, 290))
        targets = set(range(first, min(first + int(rng.integers(0, 12)), 300))) | set(rng.integers(0, 300, rng.integers(0, 8)).tolist())
        if vertex % 3 and lists:
            targets |= set(lists[-1][::2])
        lists.append(sorted(targets) if vertex % 11 else [])
    return lists


@pytest.mark.parametrize("options", [
    {}, {"window": 0}, {"least": 0}, {"window": 1, "least": 2}, {"flags": "RESIDUALS_GAMMA", "residual": "gamma"},
    {"flags": "OFFSETS_DELTA | RESIDUALS_DELTA", "residual": "delta"}], ids=str)
def test_a_bvgraph_comes_in(tmp_path, options):
    lists = lists_of(3)
    g = graphlane.from_webgraph(write(tmp_path / "web", lists, **options), tmp_path / "g")
    assert g.num_vertices == 300 and g.directed
    for vertex, targets in enumerate(lists):
        assert g.neighbors(vertex).tolist() == targets


def test_a_damaged_one_is_told_and_leaves_nothing(tmp_path):
    base = write(tmp_path / "web", lists_of(4))
    graph, properties = base.with_suffix(".graph"), base.with_suffix(".properties")
    whole, text = graph.read_bytes(), properties.read_text()
    refused = 0
    for place in range(0, len(whole), 37):  # a changed bit is noticed or gives other arcs, but never ends the interpreter
        graph.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1:])
        try:
            graphlane.from_webgraph(base).close()
        except graphlane.Error as error:
            refused += str(error).startswith(str(graph))
    assert refused
    graph.write_bytes(whole[:-100])
    with pytest.raises(graphlane.Error, match="is damaged at byte"):
        graphlane.from_webgraph(base, tmp_path / "g")
    assert not (tmp_path / "g").exists()
    graph.write_bytes(whole)
    for wrong, reason in {"arcs=": "arcs=1", "nodes=": "nodes=x", "webgraph.BVGraph": "webgraph.EFGraph",
                          "compressionflags=": "compressionflags=RESIDUALS_GOLOMB", "zetak=": "zetak=0 #"}.items():
        properties.write_text(text.replace(wrong, reason))
        with pytest.raises(graphlane.Error, match="web."):
            graphlane.from_webgraph(base)
    properties.unlink()
    with pytest.raises(graphlane.Error, match="No such file"):
        graphlane.from_webgraph(base)
