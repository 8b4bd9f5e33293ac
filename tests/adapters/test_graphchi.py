"""Programs written to GraphChi's interface, and GraphChi's own (GRAPHCHI_SOURCE), compute on
shared shards. Their results agree with igraph, and with GraphChi's own headers."""

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

import graphs
from harness import BUILD, ROOT, run

COORDINATOR = BUILD / "bin/graphlane-share-coordinator"
PROGRAM = BUILD / "bin/shard_program"
VERTEX_COUNT = 30_000
SHARDS = 3

# Its threads are OpenMP's. ThreadSanitizer does not know their barriers.
pytestmark = pytest.mark.skipif(BUILD.name == "tsan", reason="not applicable: OpenMP under tsan")


@pytest.fixture(scope="module")
def truth() -> graphs.Truth:
    edges = graphs.random_edges(VERTEX_COUNT, 25_000, seed=7)
    edges = edges[edges[:, 0] != edges[:, 1]]
    # One vertex in each shard has more edges than a byte counts.
    hub = [(7, target) for target in range(10, VERTEX_COUNT, 10)]
    edges = np.concatenate([edges, hub, [(0, VERTEX_COUNT - 1)]])
    return graphs.Truth(np.unique(edges, axis=0).astype(np.int32))


@pytest.fixture
def shards(truth, tmp_path) -> Path:
    # With an index so dense that a shard has several pieces.
    return graphs.write_shards(tmp_path / "graph/g", truth.edges, VERTEX_COUNT, SHARDS, index_edges=3000)


def adjacency_bytes(base: Path) -> int:
    return sum(file.stat().st_size for file in base.parent.glob("*.adj"))


def words(what, base, *more, threads=2, shard_count=SHARDS):
    return [str(word) for word in [PROGRAM, what, base, shard_count, threads, *more]]


def values(base: Path) -> np.ndarray:
    return np.fromfile(f"{base}.4B.vout", "<u4")


def said(line: str) -> list[int]:
    return [int(number) for number in re.fullmatch(r"(\d+) loaded (\d+) shared (\d+)\n", line).groups()]


@pytest.mark.parametrize("threads, subintervals", [(1, 1), (2, 1), (4, 1), (2, 4)])
def test_components_by_edge_values(shards, truth, threads, subintervals):
    run(*words("components", shards, subintervals, threads=threads))
    assert (values(shards) == truth.labels()).all()


@pytest.mark.parametrize("shard_count", [1, 2, 7])
def test_any_number_of_shards(truth, tmp_path, shard_count):
    base = graphs.write_shards(tmp_path / "g", truth.edges, VERTEX_COUNT, shard_count)
    run(*words("components", base, shard_count=shard_count))
    assert (values(base) == truth.labels()).all()


# The graph has more files than a job can show to the kit.
def test_more_shards_than_the_kit_accepts(truth, tmp_path):
    base = graphs.write_shards(tmp_path / "g", truth.edges, VERTEX_COUNT, 70)
    run(*words("degrees", base, shard_count=70))
    source, target = (np.bincount(ends, minlength=VERTEX_COUNT) for ends in truth.edges.T)
    assert (values(base) == (target << 16 | source)).all()


@pytest.mark.parametrize("subintervals", [1, 3])
def test_degrees_by_structure_alone(shards, truth, subintervals):
    line = run(*words("degrees", shards, subintervals)).stdout
    source, target = (np.bincount(ends, minlength=VERTEX_COUNT) for ends in truth.edges.T)
    assert (values(shards) == (target << 16 | source)).all()
    assert said(line)[1] == adjacency_bytes(shards)


def test_jobs_in_one_directory_share_only_the_structure(shards, truth):
    jobs = [subprocess.Popen(words("components", shards), stdout=subprocess.PIPE, text=True)
            for _ in range(4)]
    lines = [job.communicate(timeout=100)[0] for job in jobs]
    loaded, shared = (max(said(line)[i] for line in lines) for i in [1, 2])
    assert loaded == adjacency_bytes(shards)
    assert shared > 4 * loaded
    # The first job's results are in the usual place; those of the others are gone with them.
    assert (values(shards) == truth.labels()).all()
    assert not list(shards.parent.glob("*.job-*"))


@pytest.mark.parametrize("homes", [[None, None], ["first", "second"]])
def test_a_late_job_shares_the_structure(shards, truth, tmp_path, homes):
    """The second job runs to its end while the first one is between two iterations."""
    go = tmp_path / "go"
    environments = [os.environ | ({"GRAPHLANE_JOB_DIR": str(tmp_path / home)} if home else {}) for home in homes]
    for home in filter(None, homes):
        (tmp_path / home).mkdir()
    first = subprocess.Popen(words("components", shards, 1, go), stdout=subprocess.PIPE, text=True,
                             env=environments[0])
    started = Path(f"{shards if homes[0] is None else tmp_path / 'first/g'}.4B.vout")
    while not started.exists():
        assert first.poll() is None
    line = run(*words("components", shards), env=environments[1]).stdout
    assert first.poll() is None
    go.touch()
    assert said(first.communicate(timeout=100)[0])[1] == adjacency_bytes(shards) == said(line)[1]
    for home in homes:
        base = shards if home is None else tmp_path / home / "g"
        assert (values(base) == truth.labels()).all()
    assert homes[0] is None or not Path(f"{shards}.4B.vout").exists()


def test_a_jobs_directory_serves_one_job(shards, tmp_path):
    environment = os.environ | {"GRAPHLANE_JOB_DIR": str(tmp_path)}
    go = tmp_path / "go"
    first = subprocess.Popen(words("components", shards, 1, go), env=environment, stdout=subprocess.PIPE)
    while not list(tmp_path.glob("g.edata*/0")):
        assert first.poll() is None
    second = run(*words("components", shards), env=environment, check=False)
    go.touch()
    first.communicate(timeout=100)
    assert (second.returncode, second.stderr) == (1, f"{tmp_path}: another job has its values here\n")
    assert first.returncode == 0


def damaged(base: Path, suffix: str, change) -> str:
    file = Path(f"{base}{suffix}")
    file.write_bytes(change(file.read_bytes()))
    result = run(*words("components", base), check=False)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    return result.stderr.replace(str(base), "g")


def test_damage_is_reported_in_one_line(shards):
    shard = ".edata_azv.1_3.adj"
    assert re.fullmatch(r"g\.edata_azv\.1_3\.adj: byte \d+: damaged: a vertex has more edges than there are\n",
                        damaged(shards, shard, lambda data: data[:-3]))


def test_a_damaged_index_is_reported(shards):
    assert damaged(shards, ".edata_azv.1_3.adjidx", lambda data: data[24:48] + data[:24]).endswith(
        "adjidx: byte 24: damaged: does not go with the shard\n")


def test_missing_edge_values_are_reported(shards):
    Path(f"{shards}.edata..Z.e4B.0_3.size").write_text("4096")
    assert re.search(r"\.adj: byte \d+: damaged: more edges than values\n", damaged(
        shards, ".edata..Z.e4B.0_3_blockdir_1048576/0", lambda data: zlib.compress(bytes(4096))))


def test_a_damaged_block_is_reported(shards):
    assert damaged(shards, ".edata..Z.e4B.2_3_blockdir_1048576/0", lambda data: data[:-9]).endswith(
        "blockdir_1048576/0: damaged: no zlib stream of "
        + Path(f"{shards}.edata..Z.e4B.2_3.size").read_text() + " bytes\n")


def test_a_missing_shard_is_reported(shards):
    Path(f"{shards}.edata_azv.2_3.adj").unlink()
    result = run(*words("components", shards), check=False)
    assert (result.returncode, result.stderr) == (
        1, f"{shards}.edata_azv.2_3.adj: cannot open: No such file or directory\n")


# --- GraphChi's own programs --------------------------------------------------

OPTIONS = ["nshards", 3, "filetype", "edgelist", "execthreads", 1, "loadthreads", 1, "niothreads", 1]
# The files that each example leaves. As far as known they do not differ from run to run.
EXAMPLES = {
    "connectedcomponents": [],
    "connectedcomponents-selective": ["scheduler", 1],
    "connectedcomponents-cached": ["cachesize_mb", 100],
    "connectedcomponents-mapped": ["mmap", 1],
    "pagerank": ["niters", 5],
    "pagerank-edges": ["niters", 5, "membudget_mb", 1],
    "pagerank_functional": ["mode", "semisync"],
    "pagerank_functional-bulk": ["mode", "sync"],
    "communitydetection": [],
    "trianglecounting": [],
    "stronglyconnectedcomponents": [],
    "unionfind_connectedcomps": [],
    "inmemconncomps": [],
    "convert_to_adjacency": [],
    "minimumspanningforest": [],
    "randomwalks": [],
}


@pytest.fixture(scope="module")
def source() -> Path:
    if "GRAPHCHI_SOURCE" not in os.environ:
        pytest.skip("not applicable: GRAPHCHI_SOURCE is not set")
    return Path(os.environ["GRAPHCHI_SOURCE"])


@pytest.fixture(scope="module")
def examples(source, tmp_path_factory):
    """Compiles an unmodified example of GraphChi: examples("pagerank", shared=True)."""
    built = tmp_path_factory.mktemp("examples")

    def example(name: str, shared: bool) -> Path:
        program = built / f"{name}-{shared}"
        ours = ["-I", ROOT / "adapters/graphchi", "-I", ROOT / "adapters/share/client"] if shared else []
        library = [ROOT / "build/plain/lib/libgraphlane-share.a", "-lfmt"] if shared else []
        if not program.exists():
            # The flags of GraphChi's Makefile. Its C++ standard still has std::random_shuffle.
            run("g++", "-std=gnu++11", "-O1", "-w", "-fopenmp", *ours, "-I", source / "src",
                source / f"example_apps/{name}.cpp", "-o", program, *library, "-lz")
        return program

    return example


@pytest.fixture(scope="module")
def same_random(tmp_path_factory) -> Path:
    """GraphChi's I/O draws from random() too, so the example's draws would differ."""
    library = tmp_path_factory.mktemp("random") / "librandom.so"
    library.with_suffix(".c").write_text("long random(void) { return 123457; }\n")
    run("cc", "-shared", "-fPIC", library.with_suffix(".c"), "-o", library)
    return library


def environment(source: Path, **more) -> dict:
    return os.environ | {"GRAPHCHI_ROOT": str(source), "GRAPHLANE_SHARE_COORDINATOR": str(COORDINATOR)} | more


def write_text(path: Path, edges: np.ndarray, weight: bool = False) -> None:
    path.write_text("".join(f"{a}\t{b}" + f"\t{(a * 31 + b) % 1000 + 1}" * weight + "\n"
                            for a, b in edges.tolist()))


def results(directory: Path) -> dict[str, bytes]:
    """All files except three kinds: metrics; the index, with undefined bytes between its
    entries; and blocks of dynamic values, where GraphChi writes uninitialized memory."""
    return {str(file.relative_to(directory)): file.read_bytes() for file in sorted(directory.rglob("*"))
            if file.is_file() and "metrics" not in file.name and ".dynamic." not in str(file)
            and file.suffix != ".adjidx"}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_example_leaves_the_same_files(examples, source, same_random, truth, tmp_path, kind):
    name = kind.split("-")[0]
    found = []
    for shared in [False, True]:
        directory = tmp_path / str(shared)
        directory.mkdir()
        # Enough vertices that pagerank does not keep all ranks in memory.
        edges = np.concatenate([truth.edges, [[1, 299_999]]]) if kind == "pagerank-edges" else truth.edges
        write_text(directory / "g", edges, weight=name == "minimumspanningforest")
        run(examples(name, shared), "file", "g", *OPTIONS, *EXAMPLES[kind], cwd=directory,
            env=environment(source, LD_PRELOAD=str(same_random)))
        found.append(results(directory))
    native, ours = found
    assert list(native) == list(ours)
    assert [file for file in native if native[file] != ours[file]] == []


def test_graphchi_streams_edges_into_a_graph(examples, source, truth, tmp_path):
    """A thread of its own adds the edges, at different times in each run."""
    write_text(tmp_path / "g", truth.edges)
    write_text(tmp_path / "more", graphs.random_edges(VERTEX_COUNT, 1000, seed=3))
    output = run(examples("streaming_pagerank", True), "file", "g", *OPTIONS, "streaming_graph_file", "more",
                 "edges_per_sec", 1_000_000_000, cwd=tmp_path, env=environment(source)).stdout
    assert "Print top 20" in output
    assert (values(tmp_path / "g").view("<f4") > 0).all()


def test_graphchi_components_agree_with_igraph(examples, source, truth, tmp_path):
    write_text(tmp_path / "g", truth.edges)
    run(examples("connectedcomponents", True), "file", "g", "nshards", 3, "filetype", "edgelist", cwd=tmp_path,
        env=environment(source))
    assert (values(tmp_path / "g") == truth.labels()).all()


def loaded_and_jobs(output: str) -> tuple[float, int]:
    return (float(re.search(r"graphlane.loaded_bytes:\s+(\S+)", output)[1]),
            int(re.search(r"graphlane.jobs:\s+(\d+)", output)[1]))


def test_graphchi_jobs_share_a_directory(examples, source, truth, tmp_path):
    """Each adjacency byte is loaded once for all of them, including late jobs."""
    graph = tmp_path / "graph"
    graph.mkdir()
    write_text(graph / "g", truth.edges)
    kinds = ["connectedcomponents", "pagerank", "communitydetection", "connectedcomponents"]
    expected = {}
    # Makes the shards for each size of values, and returns the right results.
    for name in kinds[:3]:
        expected[name] = run(examples(name, False), "file", graph / "g", *OPTIONS, cwd=tmp_path,
                             env=environment(source)).stdout
    jobs = []
    for i, name in enumerate(2 * kinds):
        home = tmp_path / str(i)
        home.mkdir()
        jobs.append((name, subprocess.Popen(
            [str(word) for word in [examples(name, True), "file", graph / "g", *OPTIONS]], cwd=home,
            stdout=subprocess.PIPE, text=True, env=environment(source))))
    answer = re.compile(r"(?m)^(\d+\. .*)$")
    for name, job in jobs:
        output = job.communicate(timeout=100)[0]
        assert job.returncode == 0
        assert answer.findall(output) == answer.findall(expected[name]) != []
        loaded, _ = loaded_and_jobs(output)
        # The metrics print it with six digits.
        assert loaded == pytest.approx(adjacency_bytes(graph / "g"), rel=1e-5)
    assert not list(graph.glob("*.job-*"))


def test_graphchi_graphs_may_be_links(examples, source, truth, tmp_path):
    """A job's own directory has links to the structure, and copies of the values."""
    write_text(tmp_path / "g", truth.edges)
    run(examples("connectedcomponents", False), "file", "g", *OPTIONS, cwd=tmp_path, env=environment(source))
    own = tmp_path / "own"
    own.mkdir()
    for file in tmp_path.glob("g*"):
        if ".adj" in file.name or file.name == "g":
            (own / file.name).symlink_to(file)
        elif file.is_dir():
            shutil.copytree(file, own / file.name)
        else:
            shutil.copy(file, own / file.name)
    run(examples("connectedcomponents", True), "file", "g", *OPTIONS, cwd=own, env=environment(source))
    assert (values(own / "g") == truth.labels()).all()
