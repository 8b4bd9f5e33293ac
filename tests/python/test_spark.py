"""graphlane.spark on a standalone cluster of this machine: a master and two workers on loopback, which the tests start and end."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from algo import reference
from algo.stored_graphs import StoredGraph, rmat_pairs, weighted
from package import SITE

import graphlane
from graphlane import _compare, graphar

PYSPARK = importlib.util.find_spec("pyspark")
PYSPARK_HOME = Path(PYSPARK.origin).parent if PYSPARK else Path()
pytestmark = [pytest.mark.skipif(PYSPARK is None, reason="not applicable: there is no pyspark"),
              pytest.mark.skipif(shutil.which("java") is None, reason="not applicable: there is no Java")]
if PYSPARK:
    from graphlane import spark

WAIT_SECONDS_MAX = 300  # the JVM starts slowly on a busy machine
RMAT = rmat_pairs(8, 1500, 5)
# It has 40 isolated vertices, sinks, loops and duplicates.
GRAPH = weighted(StoredGraph("spark", 296, RMAT), 5)
UNDIRECTED = StoredGraph("spark-undirected", 296, RMAT, directed=False)
# Settings with which several JVMs start soon and fit beside each other.
SMALL = ["--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m",
         "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1", "--partitions", "4",
         "--conf", "spark.sql.shuffle.partitions=4"]
ENVIRONMENT = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(PYSPARK_HOME),
                            "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
                            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # they start in half the time


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen] = {}
        self._start("master", "master.Master")
        self.url = self._told("master", r"(spark://127\.0\.0\.1:\d+)")
        for name in ("one", "two"):
            self.start_worker(name)

    def start_worker(self, name: str) -> None:
        self._start(name, "worker.Worker", "--cores", "1", "--memory", "600m", "--work-dir", str(self.folder / f"work-{name}"), self.url)
        self._told(name, "(Successfully registered)")

    def _start(self, name: str, kind: str, *words: str) -> None:
        command = [ENVIRONMENT["SPARK_HOME"] + "/bin/spark-class", f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1",
                   "--port", "0", "--webui-port", "0", *words]
        with open(self.folder / name, "w") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT, start_new_session=True)

    def _told(self, name: str, pattern: str) -> str:
        def found():
            assert self.processes[name].poll() is None, (self.folder / name).read_text()
            return re.search(pattern, (self.folder / name).read_text())

        return waited(found)[1]

    def executor_log(self, name: str) -> str:
        """The output of the worker's executors."""
        return "".join(path.read_text() for path in (self.folder / f"work-{name}").glob("*/*/stderr"))

    def kill(self, name: str) -> None:
        """The worker and its executors, which are in its session."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes.pop(name).wait()

    def end(self) -> None:
        for name in list(self.processes):
            self.kill(name)


def waited(found):
    ends = time.monotonic() + WAIT_SECONDS_MAX
    while not (result := found()):
        assert time.monotonic() < ends
        time.sleep(0.1)
    return result


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = None
    try:
        made = Cluster(tmp_path_factory.mktemp("cluster"))
        yield made
    finally:
        if made is not None:
            made.end()


def exported(folder: Path, graph: StoredGraph) -> Path:
    """As GraphAr of several parts and chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphar, "EDGE_CHUNK_MAX", 1024)
        patch.setattr(graphar, "VERTEX_CHUNK", 128)
        for name in ("VERTEX_YML", "EDGE_YML"):
            patch.setattr(graphar, name, getattr(graphar, name).replace(str(1 << 18), "128"))
        stored = graphlane.from_edges(graph.edges, weights=graph.weights, directed=graph.directed, num_vertices=graph.vertex_count)
        return graphar.to_graphar(stored, folder / f"{graph.name}-gar")


@pytest.fixture(scope="module")
def directed(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("graphs"), GRAPH)


@pytest.fixture(scope="module")
def undirected(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("graphs"), UNDIRECTED)


@pytest.fixture
def computed(cluster, tmp_path, capsys):
    """Runs an algorithm on the cluster; the values, by vertex."""

    def compute(*words):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in ENVIRONMENT.items():
                patch.setenv(name, value)
            assert spark.main([*map(str, words), "--master", cluster.url, "--out", str(tmp_path / "out"), "-f", "--json", *SMALL]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["vertices"] == 296
        return next(iter(_compare.load(tmp_path / "out").values()))

    return compute


def test_ranks_agree_with_the_reference(computed, directed, tmp_path):
    np.testing.assert_allclose(computed("pagerank", directed, "--iterations", 4), reference.pagerank(GRAPH, 4), rtol=1e-9)
    np.testing.assert_allclose(computed("pagerank", directed, "--iterations", 5, "--dangling", "none"),
                               reference.pagerank(GRAPH, 5, dangling="none"), rtol=1e-9)
    got = computed("pagerank", directed, "--tolerance", 1e-6, "--checkpoint", tmp_path / "checkpoint")
    np.testing.assert_allclose(got, reference.pagerank_limit(GRAPH), rtol=1e-4)


def test_components_and_distances_agree_with_the_reference(computed, directed, undirected):
    np.testing.assert_array_equal(computed("wcc", directed), reference.components(GRAPH))
    source = GRAPH.source
    np.testing.assert_array_equal(computed("sssp", directed, "--source", source), reference.distances(GRAPH, source))
    np.testing.assert_array_equal(computed("sssp", undirected, "--source", source), reference.distances(UNDIRECTED, source))


def test_a_killed_worker_costs_only_time(cluster, directed, tmp_path):
    cluster.start_worker("victim")
    words = ["pagerank", str(directed), "--iterations", "40", "--dangling", "none", "--master", cluster.url,
             "--checkpoint", str(tmp_path / "checkpoint"),
             "--out", str(tmp_path / "out"), "--conf", "spark.eventLog.enabled=true",
             "--conf", "spark.eventLog.compress=false", "--conf", f"spark.eventLog.dir=file://{tmp_path}", *SMALL]
    with subprocess.Popen([sys.executable, "-m", "graphlane.spark", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=ENVIRONMENT | {"PYTHONPATH": f"{SITE}:{PYSPARK_HOME.parent}"}) as job:
        waited(lambda: job.poll() is not None or re.search(r"in stage [2-9]\d\.", cluster.executor_log("victim")))
        assert job.poll() is None
        cluster.kill("victim")
        assert job.wait(WAIT_SECONDS_MAX) == 0, job.stderr.read()
    events = "".join(path.read_text() for path in tmp_path.rglob("*app-*") if path.is_file())
    assert "SparkListenerExecutorRemoved" in events
    np.testing.assert_allclose(_compare.load(tmp_path / "out")["pagerank"], reference.pagerank(GRAPH, 40, dangling="none"), rtol=1e-9)


def test_a_machine_whose_name_has_no_address(monkeypatch):
    monkeypatch.setattr(spark.socket, "gethostname", lambda: "nowhere.invalid")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with pytest.raises(graphlane.Error, match="nowhere.invalid, has no address"):
        spark._need_address("spark://head:7077")
    assert "SPARK_LOCAL_IP" not in os.environ
    for master in (None, "local[2]"):
        monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
        spark._need_address(master)
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    spark._need_address("spark://head:7077")
    monkeypatch.setattr(spark, "_has_address", lambda name: name != "localhost")
    with pytest.raises(graphlane.Error, match="localhost has no address"):
        spark._need_address(None)


def test_an_error_is_one_line_in_spark(directed, tmp_path, capsys):
    local = ["--master", "local[1]", *SMALL]

    def told(*words):
        assert spark.main([*map(str, words), *local]) == 1
        said = capsys.readouterr().err.strip().splitlines()
        return said[-1]

    copy = tmp_path / "copy"
    shutil.copytree(directed, copy)
    lists = copy / "edge/vertex_edge_vertex/ordered_by_source"
    (lists / "adj_list/part0/chunk1").unlink()
    assert "its chunks have" in told("wcc", copy)
    assert "its chunks have" in told("sssp", copy)
    assert "has no vertex 296" in told("sssp", directed, "--source", 296)
    assert "there is no such file" in told("wcc", tmp_path / "none")
    assert "no property 'cost'" in told("sssp", directed, "--weight", "cost")
    assert "is there already" in told("wcc", directed, "--out", copy)
    shutil.rmtree(lists / "adj_list")
    assert told("wcc", copy).startswith("graphlane: Spark: ")
    with pytest.raises(SystemExit):
        spark.main(["pagerank", "x", "--iterations", "1", "--tolerance", "1"])
