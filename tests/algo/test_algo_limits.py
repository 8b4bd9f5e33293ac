"""The bounds of the engine semiext: memory, bytes read, and what ends a run in the middle."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from algo import stored_graphs as graphs
from harness import BUILD, SANITIZED, limited_to, wait_until

PAGE = 4096
MIB = 1 << 20
GRAPH = graphs.StoredGraph("hubs", 1 << 16, graphs.rmat_pairs(16, 2_000_000, 3))

without_sanitizer = pytest.mark.skipif(SANITIZED, reason="not applicable: a sanitizer has memory of its own")


@pytest.fixture(scope="module")
def stored(graphlane, tmp_path_factory):
    directory = tmp_path_factory.mktemp("graph")
    return lambda codec: GRAPH.store(graphlane, directory, codec)


def stats(graphlane, path, *words):
    return json.loads(graphlane("algo", *words, "--threads", "1", "--json", path).stdout)["stats"]


# Starts a command of a small process: the most memory of a child includes that of the process that forked it.
MOST = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); " \
       "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"

# Bytes of state for each vertex, including those of the summary.
STATE = {"bfs": 9, "pagerank": 16, "wcc": 8, "cdlp": 12, "kcore": 8, "sssp": 8, "betweenness": 40, "triangles": 5, "scan": 16}
# These keep many lists of hubs at once.
NEIGHBOURHOODS = ("triangles", "scan")


@without_sanitizer
@pytest.mark.parametrize("algorithm", STATE)
def test_memory_is_state_index_cache_and_64_mib_a_thread(stored, algorithm):
    """The bound is 64 MiB a thread; on a graph of this size 24 are enough for most programs."""
    path = stored("varint")
    index = sum(file.stat().st_size for file in path.glob("*.index"))
    more = ["--iterations", "2"] if algorithm in ("pagerank", "cdlp") else []
    command = [BUILD / "bin/graphlane", "-q", "algo", algorithm, "--threads", "1", "--cache", "8M", *more, path]
    most = int(subprocess.run([sys.executable, "-S", "-c", MOST, *map(str, command)], capture_output=True, text=True,
                              check=True).stdout) * 1024
    thread = 64 * MIB if algorithm in NEIGHBOURHOODS else 24 * MIB
    assert most <= STATE[algorithm] * GRAPH.vertex_count + index + 8 * MIB + thread


def pages(vertices, degree):
    """How many distinct pages the raw lists of these vertices lie on."""
    end = np.cumsum(degree) * 4
    vertices = vertices[degree[vertices] > 0]
    first = (end[vertices] - 4 * degree[vertices]) // PAGE
    last = (end[vertices] - 1) // PAGE
    marks = np.zeros(int(end[-1]) // PAGE + 2, dtype=np.int64)
    np.add.at(marks, first, 1)
    np.add.at(marks, last + 1, -1)
    return int((np.cumsum(marks) > 0).sum())


def test_bytes_of_a_bfs_are_those_of_its_levels_pages(graphlane, stored):
    """Levels push or pull as bfs.cc chooses; each level needs some distinct pages. The cache may spare some."""
    out_degree = np.bincount(GRAPH.arcs[:, 0], minlength=GRAPH.vertex_count)
    in_degree = np.bincount(GRAPH.arcs[:, 1], minlength=GRAPH.vertex_count)
    reached = np.zeros(GRAPH.vertex_count, dtype=bool)
    reached[GRAPH.source] = True
    frontier = np.array([GRAPH.source])
    left = len(GRAPH.arcs) - in_degree[GRAPH.source]
    needed = 0
    while len(frontier) > 0:
        if out_degree[frontier].sum() > left:
            needed += pages(np.flatnonzero(~reached), in_degree)
        else:
            needed += pages(frontier, out_degree)
        targets = np.unique(GRAPH.arcs[np.isin(GRAPH.arcs[:, 0], frontier), 1])
        frontier = targets[~reached[targets]]
        reached[frontier] = True
        left -= min(left, in_degree[frontier].sum())
    read = stats(graphlane, stored("raw"), "bfs", "--source", str(GRAPH.source), "--cache", "4M", "--gap", "0")["device_bytes"]
    assert read <= 1.02 * needed * PAGE


@pytest.mark.parametrize("name", ["hubs", "gowalla"])
def test_a_bfs_reads_little_more_than_its_distinct_pages(graphlane, stored, tmp_path, name):
    """With a cache for all of them each page is read once."""
    graph = GRAPH if name == "hubs" else graphs.real("gowalla")
    if graph is None:
        pytest.skip("not applicable: GRAPHLANE_TEST_DATA has no gowalla")
    path = stored("raw") if graph is GRAPH else graph.store(graphlane, tmp_path, "raw")
    few, all_of_it = (stats(graphlane, path, "bfs", "--source", str(graph.source), "--cache", cache, "--gap", "0")["device_bytes"]
                      for cache in ("4M", "1G"))
    assert few <= 1.5 * all_of_it


def refused(words, tmp_path, **options):
    result = subprocess.run([BUILD / "bin/graphlane", "-q", "algo", *words, "--out", tmp_path / "out.npy"], capture_output=True,
                            text=True, check=False, **options)
    assert result.returncode == 1 and result.stdout == "", result.stdout + result.stderr
    assert len(result.stderr.splitlines()) == 1 and not list(tmp_path.glob("out*")), result.stderr
    return result.stderr


@without_sanitizer
def test_no_memory_for_the_vertex_state(graphlane, tmp_path):
    """30 million vertices with an index of 38 MB a direction, in 250 MiB."""
    few = graphs.StoredGraph("few", 30_000_000, np.array([[0, 1], [29_999_999, 5]]))
    path = few.store(graphlane, tmp_path, "raw")
    for algorithm in ("bfs", "pagerank", "kcore"):
        told = refused([algorithm, "--threads", "1", "--cache", "4M", path], tmp_path, preexec_fn=limited_to(250 << 20))
        assert "no memory" in told and str(path) in told


@without_sanitizer
@pytest.mark.parametrize("algorithm", ["triangles", "kcore"])
def test_memory_that_ends_in_the_middle(stored, tmp_path, algorithm):
    """There was no memory either for the line that says so, in a function that must not throw: the process was aborted."""
    ended = set()
    for mib in range(50, 151, 10):
        result = subprocess.run([BUILD / "bin/graphlane", "-q", "algo", algorithm, "--threads", "2", "--cache", "8M", "--out",
                                 tmp_path / "out.npy", stored("varint")], capture_output=True, text=True, preexec_fn=limited_to(mib << 20),
                                check=False, timeout=120)
        lines = result.stderr.splitlines()
        assert result.returncode == 0 or (result.returncode == 1 and len(lines) == 1 and str(stored("varint")) in lines[0]), (mib, lines)
        assert (tmp_path / "out.npy").exists() == (result.returncode == 0)
        (tmp_path / "out.npy").unlink(missing_ok=True)
        ended.add(result.returncode)
    assert 1 in ended


def bytes_from_devices(process: int) -> int:
    with open(f"/proc/{process}/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("read_bytes:"))


def test_a_device_that_fails_in_the_middle(graphlane, disks, tmp_path):
    """The device ends before the lists do, while PageRank runs for ever."""
    path = GRAPH.store(graphlane, disks[0], "raw")
    os.sync()
    job = subprocess.Popen([BUILD / "bin/graphlane", "-q", "algo", "pagerank", "--iterations", "1000000", "--threads", "2",
                            "--cache", "4M", "--out", tmp_path / "out.npy", path],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: bytes_from_devices(job.pid) > 64 * MIB)  # several times its lists
    os.truncate(tmp_path / "image0", 8 * MIB)
    try:
        out, error = job.communicate(timeout=60)
    finally:
        job.kill()
    assert job.returncode == 1 and out == "", error
    assert len(error.splitlines()) == 1 and f"{path}/in.lists: cannot read byte" in error, error
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("where", [0, 0.5, 1])
def test_a_flipped_bit_in_weights(graphlane, tmp_path, where):
    graph = graphs.StoredGraph("weighted", 3000, graphs.random_pairs(3000, 20_000, 9),
                               weights=np.random.default_rng(9).random(20_000, dtype=np.float32))
    path = graph.store(graphlane, tmp_path, "varint")
    weights = next(path.glob("out.weights*"))
    content = bytearray(weights.read_bytes())
    content[int(where * (len(content) - 1))] ^= 0x04
    weights.write_bytes(content)
    told = refused(["sssp", "--source", str(graph.source), path], tmp_path)
    assert str(weights) in told and "checksum" in told
