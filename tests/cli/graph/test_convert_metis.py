"""convert --to metis: undirected graphs, and what METIS cannot hold is refused by name."""

import random

import pytest

TRIANGLE = "0 1 7\n1 0 7\n1 2 9007199254740991\n2 1 9007199254740991\n4 0 1\n0 4 1\n"


def convert(graphlane, tmp_path, text, *options, check=True):
    (tmp_path / "in.txt").write_text(text)
    return graphlane("convert", "-f", *options, tmp_path / "in.txt", tmp_path / "out.graph", check=check)


def test_a_line_for_each_vertex(graphlane, tmp_path):
    convert(graphlane, tmp_path, TRIANGLE, "-w")
    assert (tmp_path / "out.graph").read_text() == (
        "5 3 001\n2 7 5 1\n1 7 3 9007199254740991\n2 9007199254740991\n\n1 1\n")
    convert(graphlane, tmp_path, TRIANGLE, "--columns", "1,2", "--vertices", "7")
    assert (tmp_path / "out.graph").read_text() == "7 3\n2 5\n1 3\n2\n\n1\n\n\n"


@pytest.mark.parametrize("memory", ["1M", "1G"])
@pytest.mark.parametrize("weighted", [[], ["-w"]])
def test_there_and_back(graphlane, tmp_path, weighted, memory):
    """Some 160000 edges, more than fit into 1 MiB."""
    numbers = random.Random(5)
    edges = {}
    for _ in range(80_000):
        source, target = numbers.randrange(50_000), numbers.randrange(50_000)
        if source != target:
            edges[min(source, target), max(source, target)] = numbers.randrange(1, 1 << 40)
    edges[0, 49_999] = 5
    arcs = sorted((s, t, w) for (a, b), w in edges.items() for s, t in ((a, b), (b, a)))
    lines = ["\t".join(map(str, arc[:3 if weighted else 2])) for arc in arcs]
    shuffled = lines[:]
    numbers.shuffle(shuffled)
    convert(graphlane, tmp_path, "\n".join(shuffled), *weighted, "--memory", memory)
    graphlane("convert", *weighted, tmp_path / "out.graph", tmp_path / "back.tsv")
    assert (tmp_path / "back.tsv").read_text().splitlines() == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back.tsv", "in.txt", "out.graph"]


@pytest.mark.parametrize("text,options,reason", [
    ("0 1\n1 0\n1 2\n", [], "the edge 1 2 has no edge back, and METIS holds undirected graphs (--undirected adds them)"),
    ("2 1\n0 1\n1 0\n", [], "the edge 2 1 has no edge back"),
    ("0 1\n1 0\n2 2\n", [], "the edge 2 2 is a self-loop, which METIS does not hold (--simple leaves them out)"),
    ("0 1\n1 0\n0 1\n1 0\n", [], "the edge 0 1 is there twice"),
    ("0 1 0\n1 0 0\n", ["-w"], "the edge 0 1 weighs 0, and METIS holds whole numbers from 1"),
    ("0 1 -3\n1 0 -3\n", ["-w"], "the edge 0 1 weighs -3"),
    ("0 1 3\n1 0 4\n", ["-w"], "the edge 0 1 weighs 3, and 4 the other way: METIS holds one weight"),
    ("0 1 2.5\n1 0 2.5\n", ["-w"], "the edge 0 1 weighs 2.5, and METIS holds whole numbers from 1"),
    ("0 1 9007199254740993\n1 0 9007199254740993\n", ["-w"], "9007199254740993"),
])
def test_what_metis_cannot_hold_is_refused(graphlane, tmp_path, text, options, reason):
    result = convert(graphlane, tmp_path, text, *options, check=False)
    assert result.returncode == 1
    assert reason in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out.graph").exists()


def test_options_make_any_graph_one_that_fits(graphlane, tmp_path):
    convert(graphlane, tmp_path, "0 1\n1 0\n1 2\n2 2\n", "--undirected", "--simple")
    assert (tmp_path / "out.graph").read_text() == "3 2\n2\n1 3\n2\n"
    convert(graphlane, tmp_path, "0 1 2.5\n1 0 2.5\n", "-w", "--round")
    assert (tmp_path / "out.graph").read_text() == "2 1 001\n2 2\n1 2\n"
    (tmp_path / "in.txt").write_text("0 1\n1 2\n")
    result = graphlane("convert", "--to", "metis", "--undirected", "--simple", tmp_path / "in.txt", "-")
    assert result.stdout == "3 2\n2\n1 3\n2\n"
