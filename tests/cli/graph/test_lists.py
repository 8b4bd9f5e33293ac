"""graphlane convert --to lists; check and info of the result."""

import json
import random
import signal
import time

import numpy as np
import pytest

from harness import Job, snapshot


@pytest.fixture
def edges(graphlane, tmp_path):
    path = tmp_path / "edges.u32"
    graphlane("gen", "rmat", "--scale", 12, "--edges", "64K", "--seed", 7, "--to", "u32", path)
    return path


def pairs(path):
    return np.fromfile(path, dtype=np.uint32).reshape(-1, 2)


def in_order(rows):
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


@pytest.mark.parametrize("codec", ["raw", "varint", "simd"])
def test_lists_hold_the_edges_of_the_list(graphlane, edges, tmp_path, codec):
    graph = tmp_path / "graph"
    graphlane("convert", "--to", "lists", "--codec", codec, edges, graph)
    graphlane("check", graph)
    about = json.loads(graphlane("info", "--json", graph).stdout)
    assert (about["format"], about["codec"], about["edges"], about["directed"]) == ("lists", codec, 65536, True)
    assert codec in graphlane("info", graph).stdout
    graphlane("convert", "--to", "u32", graph, tmp_path / "back.u32")
    assert (pairs(tmp_path / "back.u32") == in_order(pairs(edges))).all()


def test_an_undirected_simple_graph_has_each_edge_once(graphlane, edges, tmp_path):
    graph = tmp_path / "graph"
    graphlane("convert", "--to", "lists", "--undirected", "--simple", edges, graph)
    graphlane("check", graph)
    graphlane("convert", "--to", "u32", graph, tmp_path / "back.u32")
    rows = pairs(edges)
    rows = np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1)
    expected = np.unique(rows, axis=0)
    assert (pairs(tmp_path / "back.u32") == expected).all()
    about = json.loads(graphlane("info", "--json", graph).stdout)
    assert (about["edges"], about["arcs"], about["directed"]) == (len(expected), 2 * len(expected), False)
    assert not (graph / "in.lists").exists()


@pytest.mark.parametrize("weights,values", [("float32", "0.5 -1.25 3"), ("float64", "0.1 1e300 3"),
                                            ("int64", "9007199254740993 -4 3")])
def test_weights_come_back(graphlane, tmp_path, weights, values):
    a, b, c = values.split()
    text = f"0\t1\t{a}\n0\t2\t{b}\n3\t0\t{c}\n"
    (tmp_path / "edges.txt").write_text(text)
    graphlane("convert", "--weights", weights, "--to", "lists", tmp_path / "edges.txt", tmp_path / "graph")
    graphlane("check", tmp_path / "graph")
    assert json.loads(graphlane("info", "--json", tmp_path / "graph").stdout)["weights"] == weights
    graphlane("convert", "-w", "--to", "snap", tmp_path / "graph", tmp_path / "back.txt")
    back = [line.split() for line in (tmp_path / "back.txt").read_text().splitlines()]
    number = int if weights == "int64" else float
    assert [(s, t, number(w)) for s, t, w in back] == [
        (s, t, number(w)) for s, t, w in (line.split() for line in text.splitlines())]


def test_lists_in_a_volume_are_striped_and_the_same(graphlane, volume, edges, tmp_path):
    made = volume(depth="64K", stripe=["*.lists"])
    graphlane("convert", "--to", "lists", edges, tmp_path / "graph")
    graphlane("convert", "--to", "lists", edges, made.path / "graph")
    graphlane("export", made.path / "graph", tmp_path / "back")
    assert ({k.replace("/back", "/graph"): v for k, v in snapshot(tmp_path / "back").items()}
            == snapshot(tmp_path / "graph"))
    graphlane("check", made.path / "graph")
    graphlane("check", made.path)
    graphlane("convert", "--to", "u32", made.path / "graph", tmp_path / "back.u32")
    assert (pairs(tmp_path / "back.u32") == in_order(pairs(edges))).all()
    assert not any((made.path / ".graphlane/tmp").iterdir())


def test_a_flipped_bit_is_reported_with_file_and_byte(graphlane, refused, edges, tmp_path):
    graph = tmp_path / "graph"
    graphlane("convert", "--to", "lists", edges, graph)
    content = bytearray((graph / "in.lists").read_bytes())
    content[5000] ^= 4
    (graph / "in.lists").write_bytes(content)
    refused("check", graph, naming="in.lists: byte 4096", status=4)


def test_a_killed_conversion_leaves_nothing_under_the_name(graphlane, edges, tmp_path):
    graph = tmp_path / "graph"
    for attempt in range(20):
        job = Job(graphlane.program, "convert", "-f", "--to", "lists", edges, graph)
        time.sleep(random.Random(attempt).uniform(0, 0.2))
        job.stop(signal.SIGKILL)
        if graph.exists():
            graphlane("check", graph)
    graphlane("convert", "-f", "--to", "lists", edges, graph)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.u32", "graph"]


def test_only_a_stored_graph_is_replaced(graphlane, refused, edges, tmp_path):
    graph = tmp_path / "graph"
    graph.mkdir()
    (graph / "letter").write_text("dear all")
    refused("convert", "-f", "--to", "lists", edges, graph, naming="not a stored graph")
    assert (graph / "letter").read_text() == "dear all"


def test_options_of_lists_are_refused_for_other_formats(graphlane, edges, tmp_path):
    assert graphlane("convert", "--codec", "raw", "--to", "grid", edges, tmp_path / "out", check=False).returncode == 2
    assert graphlane("convert", "--to", "lists", "--codec", "zip", edges, tmp_path / "out", check=False).returncode == 2
    refused = graphlane("convert", "--to", "lists", "--codec", "reference", edges, tmp_path / "out", check=False)
    assert refused.returncode == 2 and "--codec reference is for dual" in refused.stderr
