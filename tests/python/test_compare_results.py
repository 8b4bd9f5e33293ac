"""compare-results: results of all kinds, equal and different, and results that cannot be compared."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from harness import BUILD, run
from package import SITE

from graphlane import Error, _compare

RANKS = np.array([0.5, 0.25, 1e-7, np.inf])


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """Runs the command on files in the temporary folder: (status, output)."""
    monkeypatch.setenv("GRAPHLANE_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(SITE))

    def compare(*words):
        told = run(BUILD / "bin/graphlane", "compare-results", *words, check=False, cwd=tmp_path)
        return told.returncode, told.stdout + told.stderr

    return compare


def test_the_same_values_are_equal_in_every_kind_of_file(tmp_path, compared):
    np.save(tmp_path / "a.npy", RANKS)
    (tmp_path / "a.csv").write_text("vertex,pagerank\n" + "".join(f"{v},{RANKS[v]}\n" for v in (2, 0, 1, 3)))
    (tmp_path / "a.txt").write_text("".join(f"{v} {value}\n" for v, value in enumerate(RANKS)).replace("inf", "infinity"))
    (tmp_path / "a.parquet").mkdir()
    for part in ([3, 1], [0, 2]):
        pa.parquet.write_table(pa.table({"vertex": part, "rank": RANKS[part]}), tmp_path / f"a.parquet/part-{part[0]}")
    for kind in ("a.csv", "a.txt", "a.parquet"):
        for one, other in (("a.npy", kind), (kind, "a.npy")):
            assert _compare.pairs(tmp_path / one, tmp_path / other)[0][1].tolist() == RANKS.tolist()
    assert compared("a.npy", "a.parquet") == (0, "rank: equal: 4 vertices, largest difference 0\n")


@pytest.mark.parametrize("change, differs", [
    ([0, 0.5 + 1e-9], False), ([0, 0.5 + 1e-5], True), ([2, 1.001e-7], True), ([3, 1e300], True), ([1, np.nan], True)])
def test_differences_are_relative(change, differs):
    other = RANKS.copy()
    other[change[0]] = change[1]
    found = _compare.compare(RANKS, other)
    assert (found.different, found.first) == ((1, change[0]) if differs else (0, None))
    assert found.worst == change[0]


def test_whole_numbers_are_exact_and_rounding_of_zeros_is_none():
    assert _compare.compare(np.array([2**60]), np.array([2**60 + 1], np.uint64)).different == 1
    assert _compare.compare(np.array([0.0, -0.0]), np.array([1e-17, 0.0])).different == 0
    assert _compare.compare(np.array([np.nan]), np.array([np.nan])).different == 0


def test_groups_may_have_other_names(tmp_path, compared):
    np.save(tmp_path / "a.npy", np.array([0, 0, 2, 2, 4]))
    np.save(tmp_path / "b.npy", np.array([7, 7, 5, 5, 9]))
    np.save(tmp_path / "c.npy", np.array([7, 7, 5, 9, 9]))
    assert compared("a.npy", "b.npy", "--partition")[0] == 0
    status, told = compared("a.npy", "c.npy", "--partition", "--json")
    found = json.loads(told)["value"]
    assert (status, found["different"], found["first"], found["values"]) == (1, 2, 3, ["2", "9"])
    assert compared("a.npy", "b.npy") == (1, "value: different: 5 of 5 vertices; the first is 0: 0 and 7\n")


def test_several_columns_are_compared_by_name(tmp_path):
    rows = np.array([(0, 0), (1, 0), (-1, -1)], dtype=[("level", "<i4"), ("parent", "<i8")])
    np.save(tmp_path / "bfs.npy", rows)
    (tmp_path / "bfs.csv").write_text("vertex,level,parent\n0,0,0\n1,1,0\n2,-1,-1\n")
    (tmp_path / "bfs.txt").write_text(f"0 0\n1 1\n2 {2**63 - 1}\n")
    assert [name for name, _, _ in _compare.pairs(tmp_path / "bfs.npy", tmp_path / "bfs.csv")] == ["level", "parent"]
    name, one, other = _compare.pairs(tmp_path / "bfs.npy", tmp_path / "bfs.txt")[0]
    assert _compare.compare(one, other).different == 0


def test_incomparable_results_are_one_line(tmp_path, compared):
    np.save(tmp_path / "a.npy", RANKS)
    np.save(tmp_path / "short.npy", RANKS[:3])
    (tmp_path / "twice.csv").write_text("vertex,value\n0,1\n0,2\n")
    (tmp_path / "words.txt").write_text("0 one\n")
    (tmp_path / "half").mkdir()
    (tmp_path / "half/_temporary").mkdir()
    pa.parquet.write_table(pa.table({"vertex": pa.array([0, None]), "value": [1, 2]}), tmp_path / "nulls.parquet")
    for other, reason in {"short.npy": "has 4 vertices", "twice.csv": "each once", "words.txt": "words.txt", "none": "no such",
                          "half": "half written", "nulls.parquet": "nulls"}.items():
        status, told = compared("a.npy", other)
        assert status == 2 and reason in told and told.count("\n") == 1, told
    assert compared("a.npy")[0] == 2
    with pytest.raises(Error):
        _compare.load(tmp_path / "words.txt")
