"""`labels` measures the seconds and bytes of labels, for given graphs and generated ones."""

import json
import lzma

import pytest
from commands import experiments

from experiments.costs import labels


def test_labels_of_a_graph_that_is_given_and_of_one_that_is_made(tmp_path):
    pairs = b"".join(number.to_bytes(4, "little") for number in [0, 1, 1, 2, 2, 0, 3, 3])
    (tmp_path / "mine.u32.xz").write_bytes(lzma.compress(pairs))
    out = tmp_path / "labels.json"
    said = experiments("labels", "--data", tmp_path, "--scale", "8", "--rounds", "2", "--out", out)
    found = json.loads(out.read_text())["samples"]
    assert [(sample["graph"], sample["round"]) for sample in found] == [
        ("rmat-8", 0), ("rmat-8", 1), ("mine", 0), ("mine", 1)]
    mine = found[-1]
    assert (mine["vertex_count"], mine["edge_bytes"]) == (4, 32)
    assert all(sample["label_bytes"] > 0 and sample["labelling_seconds"] > 0 and
               "preprocess_seconds" not in sample for sample in found)
    assert "mine" in said.stdout
    experiments("report", out, "--out", tmp_path / "report.html")
    assert "sweep that labels" in (tmp_path / "report.html").read_text()


def test_a_missing_graph_is_named(tmp_path):
    failed = experiments("labels", "--data", tmp_path, "--graph", "mine", check=False)
    assert failed.returncode == 1
    assert failed.stderr == "Error: --graph mine: there are rmat-18, rmat-20\n"


@pytest.mark.parametrize("words", [["labels"], ["limits"], ["check"], ["mount-reads"]])
def test_an_unwritable_place_is_reported_at_once(tmp_path, words):
    failed = experiments(*words, "--out", tmp_path / "nowhere/x.json", check=False, timeout=30)
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1] == (
        f"Error: Invalid value for '--out': {tmp_path}/nowhere/x.json: {tmp_path}/nowhere is no "
        "directory that one may write in")


def test_labels_are_a_share_of_the_edges_and_of_the_seconds():
    found = [{"round": number, "graph": "x", "vertex_count": 9, "edge_bytes": 10_000_000,
              "label_bytes": 1_500_000, "convert_seconds": 4, "preprocess_seconds": 5,
              "labelling_seconds": 2.96 + number / 25, "sweep_seconds": 2} for number in range(3)]
    (row,) = labels.table(found).rows
    assert row[:5] == ["x", "9", "10.0", "1.5", "15.0%"]
    assert row[5:] == ["5.00", "4.00", "3.00", "2.00", "0.25 (0.24–0.26)"]
