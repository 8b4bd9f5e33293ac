"""The messages, results and refusals of `graphlane algo`."""

import json
import os

import numpy as np
import pytest

from algo import stored_graphs as graphs
from algo.interrupted import check_interrupt_leaves_nothing
from harness import snapshot

GRAPH = graphs.StoredGraph("rmat", 1 << 13, graphs.rmat_pairs(13, 150_000, 11))


@pytest.fixture(scope="module")
def stored(graphlane, tmp_path_factory):
    """stored("varint"): the path of the graph; not to be changed."""
    directory = tmp_path_factory.mktemp("graph")
    return lambda codec="varint": GRAPH.store(graphlane, directory, codec)


@pytest.fixture
def damaged(graphlane, tmp_path):
    """A copy of the graph that a test may damage."""
    return GRAPH.store(graphlane, tmp_path, "varint")


@pytest.fixture
def refused(graphlane, tmp_path):
    """Fails with one line that names the culprit, and writes nothing."""

    def check(*words, naming, status=1):
        before = snapshot(tmp_path)
        result = graphlane("algo", *words, "--out", tmp_path / "out.npy", check=False)
        assert result.returncode == status, result.stdout + result.stderr
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("graphlane: ") and str(naming) in lines[0], result.stderr
        assert snapshot(tmp_path) == before
        return lines[0]

    return check


def flip(path, byte):
    content = bytearray(path.read_bytes())
    content[byte] ^= 0x10
    path.write_bytes(content)


def test_pagerank_delta_needs_no_more_iterations_than_pagerank(graphlane, stored, tmp_path):
    """It went on until no vertex had more than a share of the tolerance to take. A hub alone has more than that for
    dozens of iterations after all together have less than the tolerance. (80 iterations on this graph.)"""
    told = {}
    for algorithm, tolerance in [("pagerank", "1e-12"), ("pagerank-delta", "1e-3")]:
        out = tmp_path / f"{algorithm}.npy"
        said = graphlane("algo", algorithm, "--tolerance", tolerance, "--json", "--out", out, stored())
        told[algorithm] = json.loads(said.stdout)["summary"]["iterations"], np.load(out)
    assert told["pagerank-delta"][0] <= 12
    assert abs(told["pagerank"][1] - told["pagerank-delta"][1]).sum() <= 1e-3


@pytest.mark.parametrize("where", [0, 0.5, 1])
@pytest.mark.parametrize("options", [[], ["--in-memory"]])
def test_a_flipped_bit_in_lists(refused, damaged, where, options):
    lists = damaged / "in.lists"
    flip(lists, int(where * (lists.stat().st_size - 1)))
    assert "checksum" in refused("pagerank", damaged, *options, naming=lists)


def test_every_flipped_byte_of_header_and_index_is_detected(refused, graphlane, tmp_path):
    small = graphs.StoredGraph("small", 300, graphs.random_pairs(300, 900, 5)).store(graphlane, tmp_path, "varint")
    for name in ["graph", "out.index"]:
        path = small / name
        sound = path.read_bytes()
        for byte in range(0, len(sound), 37):
            flip(path, byte)
            refused("wcc", small, naming=small)
            path.write_bytes(sound)


@pytest.mark.parametrize("name", ["out.lists", "out.index", "graph"])
def test_a_file_cut_short_or_missing(refused, damaged, name):
    path = damaged / name
    os.truncate(path, path.stat().st_size - 1)
    refused("wcc", damaged, naming=path)
    path.unlink()
    refused("wcc", damaged, naming=path)


def test_an_index_of_another_graph(refused, damaged, graphlane, tmp_path):
    other = graphs.StoredGraph("other", 1 << 13, graphs.rmat_pairs(13, 150_000, 12)).store(graphlane, tmp_path, "varint")
    (damaged / "out.index").write_bytes((other / "out.index").read_bytes())
    refused("wcc", damaged, naming=damaged / "out.index")


def test_an_invalid_graph_or_vertex_is_refused(refused, stored, tmp_path):
    refused("bfs", tmp_path, naming=tmp_path)
    refused("bfs", tmp_path / "none", naming="none")
    refused("bfs", stored(), "--source", str(1 << 13), naming="has no vertex 8192")
    refused("bfs", stored(), "--source", "x", naming="x: not a vertex number")


def test_what_is_no_stored_graph_is_refused_with_the_remedy(refused, graphlane, tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    (tmp_path / "empty").mkdir()
    graphlane("convert", tmp_path / "edges.txt", tmp_path / "grid")
    for name, what in [("edges.txt", "a file"), ("empty", "a directory"), ("grid", "a grid")]:
        said = refused("pagerank", tmp_path / name, naming=tmp_path / name)
        assert f"{what}, not a stored graph" in said and "convert --to lists" in said


def test_weights_below_zero(refused, graphlane, tmp_path):
    negative = graphs.StoredGraph("negative", 3, np.array([[0, 1], [1, 2]]), weights=np.array([1, -1], dtype=np.float32))
    path = negative.store(graphlane, tmp_path, "raw")
    refused("sssp", path, naming="the arc from 1 to 2 has the weight -1")


@pytest.mark.parametrize("words", [["walk"], ["bfs", "--engine", "steam"], ["pagerank", "--damping", "2"],
                                   ["pagerank", "--tolerance", "-1"], ["bfs", "--cache", "much"]])
def test_a_wrong_command_line(graphlane, stored, words):
    assert graphlane("algo", *words, stored(), check=False).returncode == 2


def test_a_result_name_must_have_a_known_suffix(graphlane, stored, tmp_path):
    result = graphlane("algo", "bfs", stored(), "--out", tmp_path / "out.png", check=False)
    assert result.returncode == 1 and "out.png" in result.stderr and not list(tmp_path.iterdir())


def test_results_as_numpy_csv_and_text(graphlane, stored, tmp_path):
    for kind in ["npy", "csv", "txt"]:
        graphlane("algo", "bfs", "--source", GRAPH.source, "--out", tmp_path / f"out.{kind}", stored())
    array = np.load(tmp_path / "out.npy")
    table = np.genfromtxt(tmp_path / "out.csv", delimiter=",", names=True, dtype=np.int64)
    assert (table["vertex"] == np.arange(GRAPH.vertex_count)).all()
    assert (table["level"] == array["level"]).all() and (table["parent"] == array["parent"]).all()
    text = [line.split(" ") for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert [int(v) for v, _ in text] == list(range(GRAPH.vertex_count))
    levels = np.array([int(level) for _, level in text])
    unreached = array["level"] < 0
    assert unreached.any() and (levels[unreached] == 2**63 - 1).all()
    assert (levels[~unreached] == array["level"][~unreached]).all()
    graphlane("algo", "sssp", "--source", GRAPH.source, "--out", tmp_path / "out.txt", stored())
    assert {line.split(" ")[1] for line in (tmp_path / "out.txt").read_text().splitlines()} >= {"infinity", "0"}


def test_summaries(graphlane, stored):
    told = json.loads(graphlane("algo", "bfs", "--source", GRAPH.source, "--json", stored()).stdout)
    assert (told["algorithm"], told["engine"]) == ("bfs", "semiext")
    assert set(told["summary"]) == {"reached", "depth", "arcs"} and told["summary"]["reached"] > 1
    assert told["stats"]["device_bytes"] > 0
    top = json.loads(graphlane("algo", "pagerank", "--json", stored()).stdout)["summary"]["top"]
    assert len(top) == 10 and top == sorted(top, key=lambda entry: -entry["value"])
    lines = graphlane("-q", "algo", "wcc", stored()).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["components", "largest"]


def test_the_cache_serves_repeated_reads(graphlane, stored):
    def read(cache):
        told = graphlane("algo", "pagerank", "--iterations", "10", "--cache", cache, "--json", stored("raw")).stdout
        return json.loads(told)["stats"]["device_bytes"]

    size = (stored("raw") / "in.lists").stat().st_size
    assert size <= read("64M") < 1.1 * size


@pytest.mark.parametrize("words", [["--merge", "none"], ["--merge", "pages"], ["--page-size", "64K"],
                                   ["--order", "random"]])
def test_variants_for_experiments_do_not_change_results(graphlane, stored, words):
    def summary(*more):
        said = json.loads(graphlane("algo", "bfs", "--cache", "4M", *more, "--json", stored()).stdout)
        return said["summary"], said["stats"]

    plain, plain_stats = summary()
    variant, stats = summary(*words)
    assert variant == plain
    assert stats["ranges"] > plain_stats["ranges"] or stats["device_bytes"] > plain_stats["device_bytes"]


@pytest.mark.parametrize("form", ["lists", "dual"])
def test_gaps_that_are_read_take_fewer_reads(graphlane, tmp_path, form):
    """The lists of the second level's 32 vertices are 16 KiB apart."""
    rest = np.arange(1, 1 << 17)
    arcs = np.concatenate([np.stack([0 * rest[::4096], rest[::4096]], axis=1), np.stack([rest, 0 * rest + 2], axis=1)])
    graph = graphs.StoredGraph("star", 1 << 17, arcs)
    path = graph.store(graphlane, tmp_path, "raw", form)

    def run(gap):
        words = ["--model", "push"] if form == "dual" else []
        told = json.loads(graphlane("algo", "bfs", "--cache", "4M", "--source", "0", "--gap", gap, *words, "--json", path).stdout)
        return told["summary"], told["stats"]

    (skipped, without), (read, through) = run("0"), run("256K")
    assert read == skipped and skipped["reached"] == 34
    assert through["device_reads"] + 25 < without["device_reads"]
    assert through["device_bytes"] > without["device_bytes"]


@pytest.mark.parametrize("words", [["--model", "push"], ["--explain"], ["--portion", "0.1"]])
def test_an_option_of_another_engine_is_refused(refused, stored, words):
    assert "and this is semiext" in refused("pagerank", stored(), *words, naming=words[0])


def test_an_engine_without_the_algorithm_lists_its_own(graphlane, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("0 1\n1 2\n")
    graphlane("convert", "--to", "pages", pairs, tmp_path / "pages")
    said = graphlane("algo", "bfs", tmp_path / "pages", check=False)
    assert said.returncode == 1 and "it has pagerank-delta, " in said.stderr


def test_a_page_size_is_a_power_of_two(refused, stored):
    refused("bfs", stored(), "--page-size", "12K", naming="--page-size")


def test_a_graph_in_a_volume(graphlane, stored, volume, tmp_path):
    striped = volume(depth="64K", stripe=["*.lists"])
    graphlane("import", stored("raw"), f"{striped.path}/rmat")
    for path in [stored("raw"), f"{striped.path}/rmat"]:
        graphlane("algo", "pagerank", "--iterations", "3", "--out", tmp_path / "out.npy", path)
        (tmp_path / "out.npy").rename(tmp_path / f"{len(list(tmp_path.glob('*.npy')))}.npy")
    results = [np.load(path) for path in tmp_path.glob("*.npy")]
    assert len(results) == 2 and (results[0] == results[1]).all()


def test_an_interrupt_ends_it_and_leaves_nothing(stored, tmp_path):
    check_interrupt_leaves_nothing(stored(), tmp_path)
