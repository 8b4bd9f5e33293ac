"""The examples of adapters/python/examples, run as they stand."""

import json
import os
import sys

import numpy as np

import graphs
from harness import BUILD, ROOT, run
from package import SITE

import graphlane as package

EXAMPLES = ROOT / "adapters/python/examples"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SITE)}


def test_random_rows_of_striped_features(graphlane, fuse, volume, tmp_path):
    features = np.random.default_rng(2).random((20_000, 100)).astype(np.float32)
    np.save(tmp_path / "features.npy", features)
    made = volume()
    graphlane("import", tmp_path / "features.npy", made.path)
    assert (made.path / "features.npy").stat().st_size == 4096  # striped
    with graphlane.mounted(made, tmp_path / "mnt") as mount:
        told = run(sys.executable, EXAMPLES / "features.py", mount / "features.npy").stdout
        assert told == "1000 rows of 20000, equal both ways: True\n"
        sys.path.insert(0, str(EXAMPLES))
        import features as example

        ids = np.random.default_rng(3).permutation(20_000)[:500]
        np.testing.assert_array_equal(example.rows_by_direct_reads(str(mount / "features.npy"), ids), features[ids])


def test_sampled_neighbours_are_neighbours(tmp_path):
    edges = np.unique(graphs.random_edges(2000, 20_000, 6), axis=0)
    g = package.from_edges(edges, tmp_path / "g", num_vertices=2000)
    assert run(sys.executable, EXAMPLES / "sampling.py", tmp_path / "g", env=ENVIRONMENT).stdout.count("batch") == 3
    sys.path.insert(0, str(EXAMPLES))
    import sampling

    arcs = set(map(tuple, edges.tolist()))
    seeds = np.arange(0, 2000, 7)
    first, second = sampling.sample(g, seeds, [4, 2], np.random.default_rng(1))
    for layer, fanout, frontier in ((first, 4, seeds), (second, 2, np.unique(first.sources))):
        pairs = list(zip(layer.sources.tolist(), layer.targets.tolist()))
        assert len(set(pairs)) == len(pairs) and arcs.issuperset(pairs)
        counts = np.bincount(layer.targets, minlength=2000)
        np.testing.assert_array_equal(counts[frontier], np.minimum(g.degrees("in")[frontier], fanout))
        assert counts.sum() == counts[frontier].sum()


def test_the_notebook_runs(tmp_path):
    """Cell by cell in one interpreter, as a kernel has them."""
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text())["cells"]
    script = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    run(sys.executable, "-c", script, env=ENVIRONMENT, cwd=tmp_path)


def blocks_of(section):
    """The blocks of a section of the README: Python, and lines for a shell."""
    text = (ROOT / "adapters/python/README.md").read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    python = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    shell = [line[4:] for line in text.splitlines() if line.startswith("    ") and not line.startswith("    pip ")]
    return python, "\n".join(shell)


def test_the_readme_works_as_pasted(tmp_path):
    """In this order, in one folder. Spark's lines are those of test_spark.py."""
    for name, program in (("python", sys.executable), ("graphlane", BUILD / "bin/graphlane")):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "GRAPHLANE_PYTHON": sys.executable}
    for section in ("Use", "NetworkX", "GraphAr and Parquet"):
        python, shell = blocks_of(section)
        assert bool(python) == (section != "GraphAr and Parquet")
        for block in python:
            run(sys.executable, "-c", block, env=environment, cwd=tmp_path)
        if not python:
            run("sh", "-e", "-c", shell, env=environment, cwd=tmp_path)
    assert package.open(tmp_path / "calls.weighted").to_edges()[2].tolist() == [0.5, 2.0]
    assert package.open(tmp_path / "back").num_arcs == 300_000
