"""PageRank, components and shortest paths by Spark's GraphX, for graphs that outgrow one machine.

    python -m graphlane.spark pagerank livejournal-gar --master spark://head:7077 --out hdfs:///ranks

    chunks of GraphAr ─▶ DataFrame ─▶ RDD of GraphX's Edge ─▶ GraphX's algorithm ─▶ Parquet: vertex, value

The driver is this process. The workers are JVMs and need no Python. A path is one of Hadoop's (file, hdfs, s3a, …), and
all workers must see it. Needs pyspark 4, which brings GraphX, and Java 17.

GraphX is Scala. py4j calls it, and an encoder of Spark SQL turns rows into edges, so that no edge passes through Python.
Only weighted shortest paths need functions of ours (PREGEL)."""

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphlane._core import Error
from graphlane.graphar import Description

ALGORITHMS = ("pagerank", "wcc", "sssp")
ITERATIONS = 30  # as `graphlane algo`
TOP = 10
CHECKPOINT_INTERVAL = 25  # rounds
JAVA_MIN = 17

# A vertex keeps its least distance; an arc offers the distance over it. Spark's own compiler of Java (janino) makes
# classes of this in the driver, so no JDK is needed; the executors fetch them as a jar.
PREGEL = """
package graphlane.spark;

import org.apache.spark.graphx.EdgeTriplet;
import scala.Tuple2;
import scala.collection.Iterator$;

public class Nearest extends scala.runtime.AbstractFunction3 implements java.io.Serializable {
  public Object apply(Object vertex, Object distance, Object offered) {
    return Double.valueOf(Math.min(((Double) distance).doubleValue(), ((Double) offered).doubleValue()));
  }
}

public class Offer extends scala.runtime.AbstractFunction1 implements java.io.Serializable {
  public Object apply(Object arc) {
    EdgeTriplet triplet = (EdgeTriplet) arc;
    double offered = ((Double) triplet.srcAttr()).doubleValue() + ((Double) triplet.attr()).doubleValue();
    if (!(offered < ((Double) triplet.dstAttr()).doubleValue())) return Iterator$.MODULE$.empty();
    return Iterator$.MODULE$.single(new Tuple2(Long.valueOf(triplet.dstId()), Double.valueOf(offered)));
  }
}

public class Lesser extends scala.runtime.AbstractFunction2 implements java.io.Serializable {
  public Object apply(Object one, Object other) {
    return Double.valueOf(Math.min(((Double) one).doubleValue(), ((Double) other).doubleValue()));
  }
}
"""


class HadoopFiles:
    """Reads files for Description, on each of Hadoop's filesystems."""

    def __init__(self, spark: Any) -> None:
        self._jvm, self._configuration = spark._jvm, spark._jsc.hadoopConfiguration()

    def _find(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._configuration), place

    def exists(self, path: str) -> bool:
        filesystem, place = self._find(path)
        return bool(filesystem.exists(place))

    def names(self, path: str) -> list[str] | None:
        filesystem, place = self._find(path)
        if not filesystem.exists(place):
            raise Error(f"{path}: there is no such file or folder")
        if not filesystem.getFileStatus(place).isDirectory():
            return None
        return sorted(status.getPath().getName() for status in filesystem.listStatus(place))

    def read(self, path: str) -> bytes:
        filesystem, place = self._find(path)
        if not filesystem.exists(place):
            raise Error(f"{path}: there is no such file")
        stream = filesystem.open(place)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()


class GraphX:
    """GraphX's classes, as py4j reaches them."""

    def __init__(self, spark: Any) -> None:
        self.spark, self.jvm = spark, spark._jvm
        self.package, self.lib = self.jvm.org.apache.spark.graphx, self.jvm.org.apache.spark.graphx.lib
        self.double = self.jvm.scala.reflect.ClassTag.Double()
        self.none = self.jvm.scala.Option.empty()
        self._edge = self._edge_encoder()

    def _class(self, name: str) -> Any:
        return self.jvm.java.lang.Class.forName(name, True, self.jvm.java.lang.Thread.currentThread().getContextClassLoader())

    def _module(self, name: str) -> Any:
        """A Scala object."""
        return self._class(name + "$").getField("MODULE$").get(None)

    def _edge_encoder(self) -> Any:
        """Makes Edge of rows (srcId, dstId, attr). Encoders.product would do, but takes a type of Scala's compiler."""
        encoders = "org.apache.spark.sql.catalyst.encoders.AgnosticEncoders$"
        package = self.jvm.org.apache.spark.sql
        field, product = (getattr(package.catalyst.encoders, f"AgnosticEncoders${name}") for name in ("EncoderField", "ProductEncoder"))
        fields = self.jvm.java.util.ArrayList()
        for name, kind in (("srcId", "PrimitiveLongEncoder"), ("dstId", "PrimitiveLongEncoder"), ("attr", "BoxedDoubleEncoder")):
            fields.add(field(name, self._module(encoders + kind), False, package.types.Metadata.empty(), self.none, self.none))
        sequence = self.jvm.scala.jdk.javaapi.CollectionConverters.asScala(fields).toSeq()
        return product(self.jvm.scala.reflect.ClassTag.apply(self._class("org.apache.spark.graphx.Edge")), sequence, self.none)

    def _pair(self, value: str) -> Any:
        encoders = self.jvm.org.apache.spark.sql.Encoders
        return encoders.tuple(encoders.LONG(), getattr(encoders, value)())

    def graph(self, vertices: Any, arcs: Any) -> Any:
        """`vertices`: a DataFrame (id, number). `arcs`: (source, target, number)."""
        level = self.jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK()
        vertex_rdd = getattr(vertices.toDF("_1", "_2")._jdf, "as")(self._pair("DOUBLE")).rdd()
        edge_rdd = getattr(arcs.toDF("srcId", "dstId", "attr")._jdf, "as")(self._edge).rdd()
        return self.package.Graph.apply(vertex_rdd, edge_rdd, 0.0, level, level, self.double, self.double)

    def values(self, graph: Any, name: str, kind: str = "DOUBLE") -> Any:
        """The vertices' values as a DataFrame (vertex, `name`)."""
        from pyspark.sql import DataFrame

        rows = self.spark._jsparkSession.createDataset(graph.vertices(), self._pair(kind))
        return DataFrame(rows.toDF(), self.spark).toDF("vertex", name)

    def pregel_functions(self, folder: str) -> tuple[Any, Any, Any]:
        """PREGEL, compiled. `folder`: for the jar, while Spark runs."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(self.jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(PREGEL)
        jar = Path(folder) / f"{Path(folder).name}.jar"  # Spark takes each name once
        with zipfile.ZipFile(jar, "w") as archive:
            for name, code in dict(compiler.getBytecodes()).items():
                archive.writestr(name.replace(".", "/") + ".class", bytes(code))
        self.spark._jsc.addJar(str(jar))
        none = self.spark.sparkContext._gateway.new_array(self.jvm.java.lang.Object, 0)
        no_types = self.spark.sparkContext._gateway.new_array(self.jvm.java.lang.Class, 0)
        loader = compiler.getClassLoader()
        made = [loader.loadClass(f"graphlane.spark.{name}").getDeclaredConstructor(no_types).newInstance(none)
                for name in ("Nearest", "Offer", "Lesser")]
        return made[0], made[1], made[2]


class StoredGraph:
    """The vertices and arcs of GraphAr files as DataFrames, checked by the counts that the files have of themselves."""

    def __init__(self, spark: Any, path: str, edge: str | None, partitions: int | None) -> None:
        self.spark, self.path, self.partitions = spark, path, partitions
        self.description = Description(path, edge, HadoopFiles(spark))
        self.vertex_count = self.description.vertex_count()
        self.arc_count = self._arc_count()

    def vertices(self) -> Any:
        """(id)."""
        return self.spark.range(0, self.vertex_count, 1, self.partitions)

    def arcs(self) -> Any:
        """(source, target)."""
        from pyspark.sql.functions import col

        if self.arc_count == 0:  # no folder of chunks
            return self.spark.createDataFrame([], "source long, target long")
        return self._spread(self._chunks("adj_list").select(col("_graphArSrcIndex").alias("source"),
                                                            col("_graphArDstIndex").alias("target")))

    def weighted_arcs(self, weight: str | None) -> Any:
        """(source, target, weight); 1 where the graph has none. Weights are in files of their own: a weight belongs to the
        arc of the same part, chunk and row."""
        from pyspark.sql.functions import col, lit, regexp_extract

        found = self.description.weights(weight)
        if found is None or self.arc_count == 0:
            return self.arcs().withColumn("weight", lit(1.0))
        name, folder = found
        place = [regexp_extract("_metadata.file_path", r"(part\d+/chunk\d+)$", 1).alias("chunk"),
                 col("_metadata.row_index").alias("row")]
        ends = self._chunks("adj_list").select(*place, col("_graphArSrcIndex").alias("source"),
                                               col("_graphArDstIndex").alias("target"))
        numbers = self._read(folder).select(*place, col(name).cast("double").alias("weight"))
        return self._spread(ends.join(numbers, ["chunk", "row"]).select("source", "target", "weight"))

    def _spread(self, frame: Any) -> Any:
        return frame if self.partitions is None else frame.repartition(self.partitions)

    def _chunks(self, name: str) -> Any:
        return self._read(f"{self.description.folder()}/{name}")

    def _read(self, folder: str) -> Any:
        return self.spark.read.option("recursiveFileLookup", "true").parquet(folder)

    def _arc_count(self) -> int:
        """As the files edge_countI say, all together."""
        rows = self.spark.read.format("binaryFile").load(f"{self.description.folder()}/edge_count*").select("content").collect()
        if len(rows) != self.description.part_count():
            raise Error(f"{self.description.folder()}: has {len(rows)} files edge_count, not {self.description.part_count()}")
        return sum(int.from_bytes(row.content, "little", signed=True) for row in rows)

    def check(self, arcs: Any) -> None:
        """A chunk that is missing, cut short or of another graph is an error."""
        from pyspark.sql.functions import col, count, greatest, least
        from pyspark.sql.functions import max as largest
        from pyspark.sql.functions import min as lowest
        from pyspark.sql.functions import sum as total

        broken = col("source").isNull() | col("target").isNull()
        asked = [count("*").alias("arcs"), lowest(least("source", "target")).alias("low"),
                 largest(greatest("source", "target")).alias("high"), total(broken.cast("long")).alias("broken")]
        if "weight" in arcs.columns:
            wrong = col("weight").isNull() | col("weight").isNaN() | (col("weight") < 0)
            asked.append(total(wrong.cast("long")).alias("wrong"))
        told = arcs.agg(*asked).first()
        if told.arcs != self.arc_count:
            raise Error(f"{self.path}: its chunks have {told.arcs} arcs, but its edge_count files say {self.arc_count}")
        if told.arcs and (told.broken or told.low < 0 or told.high >= self.vertex_count):
            raise Error(f"{self.path}: has arcs of vertices that are not there")
        if told.arcs and told["wrong" if "weight" in arcs.columns else "broken"]:
            raise Error(f"{self.path}: has weights that are negative or no numbers")


class Run:
    """An algorithm on a stored graph. Each method returns a DataFrame (vertex, the algorithm's name)."""

    def __init__(self, spark: Any, graph: StoredGraph, scratch: str) -> None:
        self.spark, self.graph, self.scratch = spark, graph, scratch
        self.graphx = GraphX(spark)

    def pagerank(self, iterations: int, tolerance: float | None, damping: float, dangling: str) -> Any:
        from pyspark.sql.functions import col, lit

        arcs = self.graph.arcs()
        self.graph.check(arcs)
        degrees = arcs.groupBy("source").count()
        shares = arcs.join(degrees, "source").select("source", "target", lit(1.0) / col("count"))
        # Each rank is kept times the number of vertices, as GraphX has it.
        ranks = self.graphx.graph(self.graph.vertices().select("id", lit(1.0)), shares)
        self._rebuild = lambda values: self.graphx.graph(values, shares)
        sinks = self.graph.vertices().join(degrees, col("id") == col("source"), "left_anti").select(col("id").alias("vertex")).cache()
        has_sinks = not sinks.isEmpty()
        scale = 1.0 / max(self.graph.vertex_count, 1)
        if tolerance is not None:
            # GraphX scales the sum to 1, and that is the fixpoint in which sinks give their rank to all.
            if dangling == "none" and has_sinks:
                raise Error("--dangling none goes with --iterations: with --tolerance GraphX gives the ranks of sinks to all")
            ranks = self.graphx.lib.PageRank.runUntilConvergence(ranks, tolerance, 1 - damping, self.graphx.double, self.graphx.double)
        elif dangling == "none" or not has_sinks:
            ranks = self._iterate(ranks, iterations, 1 - damping)
        else:
            ranks, scale = self._iterate_with_sinks(ranks, sinks, iterations, damping, scale)
        found = self.graphx.values(ranks, "pagerank")
        return found.select("vertex", (col("pagerank") * scale).alias("pagerank"))

    def _iterate(self, ranks: Any, iterations: int, reset: float) -> Any:
        while iterations > 0:
            now = min(iterations, CHECKPOINT_INTERVAL)
            ranks = self.graphx.lib.PageRank.runWithOptionsWithPreviousPageRank(
                ranks, now, reset, self.graphx.none, False, ranks, self.graphx.double, self.graphx.double)
            iterations -= now
            if iterations > 0:
                ranks = self._cut(ranks)
        return ranks

    def _iterate_with_sinks(self, ranks: Any, sinks: Any, iterations: int, damping: float, scale: float) -> tuple[Any, float]:
        """GraphX's step is w' = r + (1 - r) P w; ours is y' = c + d P y, where c has the rank that the sinks of y give to all.
        With y = s w, an r of its own for each step makes them the same: c = s' r and d s = s' (1 - r)."""
        count, s = self.graph.vertex_count, 1.0
        for step in range(iterations):
            of_sinks = self.graphx.values(ranks, "rank").join(sinks, "vertex", "left_semi").agg({"rank": "sum"}).first()[0]
            c = 1 - damping + damping * s * of_sinks / count
            s_next = c + damping * s
            ranks = self._iterate(ranks, 1, c / s_next)
            s = s_next
            if step % CHECKPOINT_INTERVAL == CHECKPOINT_INTERVAL - 1:
                ranks = self._cut(ranks)
        return ranks, scale * s

    def _cut(self, ranks: Any) -> Any:
        """Writes the ranks to files and reads them back. A lost worker's part is then computed from here on, and the driver
        forgets the rounds before. Without a folder for checkpoints nothing changes."""
        if self.spark.sparkContext._jsc.sc().getCheckpointDir().isEmpty():
            return ranks
        values: Any = self.graphx.values(ranks, "rank").checkpoint()
        return self._rebuild(values)

    def wcc(self) -> Any:
        from pyspark.sql.functions import lit

        arcs = self.graph.arcs()
        self.graph.check(arcs)
        graph = self.graphx.graph(self.graph.vertices().select("id", lit(0.0)), arcs.withColumn("weight", lit(1.0)))
        found = self.graphx.lib.ConnectedComponents.run(graph, self.graphx.double, self.graphx.double)
        return self.graphx.values(found, "wcc", "LONG")

    def sssp(self, source: int, weight: str | None) -> Any:
        from pyspark.sql.functions import col, lit, when

        if not 0 <= source < self.graph.vertex_count:
            raise Error(f"--source: {self.graph.path} has no vertex {source}: its {self.graph.vertex_count} vertices begin with 0")
        arcs = self.graph.weighted_arcs(weight)
        self.graph.check(arcs)
        infinity = float("inf")
        begin = self.graph.vertices().select("id", when(col("id") == source, lit(0.0)).otherwise(lit(infinity)))
        keep, send, merge = self.graphx.pregel_functions(self.scratch)
        double, package = self.graphx.double, self.graphx.package
        rounds_max = self.graphx.jvm.java.lang.Integer.MAX_VALUE
        found = package.Pregel.apply(self.graphx.graph(begin, arcs), infinity, rounds_max, package.EdgeDirection.Out(),
                                     keep, send, merge, double, double, double)
        return self.graphx.values(found, "sssp")


def summary(name: str, values: Any) -> dict[str, Any]:
    """As `graphlane algo` has it."""
    from pyspark.sql.functions import col

    if name == "pagerank":
        top = values.orderBy(col(name).desc(), "vertex").limit(TOP).collect()
        return {"sum": values.agg({name: "sum"}).first()[0], "top": [{"vertex": row.vertex, "value": row[name]} for row in top]}
    if name == "wcc":
        sizes = values.groupBy(name).count()
        return {"components": sizes.count(), "largest": sizes.agg({"count": "max"}).first()[0] or 0}
    reached = values.filter(col(name) != float("inf"))
    return {"reached": reached.count(), "farthest": reached.agg({name: "max"}).first()[0]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m graphlane.spark", description="An algorithm of Spark's GraphX on GraphAr files.",
                                     epilog="GRAPHAR, --out and --checkpoint are paths or URLs of Hadoop that all workers see.")
    parser.add_argument("algorithm", choices=ALGORITHMS)
    parser.add_argument("graph", metavar="GRAPHAR", help="NAME.graph.yml or its folder")
    parser.add_argument("--master", metavar="URL", help="local[*], spark://HOST:PORT, yarn, k8s://… (what Spark is configured for)")
    parser.add_argument("--out", metavar="DIR", help="Parquet with the columns vertex and ALGORITHM, ascending")
    parser.add_argument("-f", "--overwrite", action="store_true", help="replace what is at --out")
    parser.add_argument("--edge", metavar="SOURCE_EDGE_TARGET", help="which edges, where there are several kinds")
    parser.add_argument("--source", type=int, default=0, metavar="V", help="of sssp (0)")
    parser.add_argument("--weight", metavar="NAME", help="of sssp: the property (weight; without one each arc is 1)")
    parser.add_argument("--iterations", type=int, metavar="N", help=f"of pagerank ({ITERATIONS})")
    parser.add_argument("--tolerance", type=float, metavar="T", help="of pagerank: until no rank changes by T of the mean rank")
    parser.add_argument("--damping", type=float, default=0.85, metavar="D", help="of pagerank (0.85)")
    parser.add_argument("--dangling", choices=("uniform", "none"), default="uniform", help="where ranks of sinks go (uniform: to all)")
    parser.add_argument("--partitions", type=int, metavar="N", help="of vertices and arcs (what Spark takes)")
    parser.add_argument("--checkpoint", metavar="DIR", help=f"write the state every {CHECKPOINT_INTERVAL} rounds; long runs need it (local: a temporary folder)")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="of Spark, as spark-submit takes it")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _checked(parser: argparse.ArgumentParser, words: list[str] | None) -> argparse.Namespace:
    given = parser.parse_args(words)
    if given.iterations is not None and given.tolerance is not None:
        parser.error("--iterations and --tolerance: one of them")
    if given.iterations is not None and given.iterations < 0:
        parser.error("--iterations: is negative")
    if given.tolerance is not None and not given.tolerance > 0:
        parser.error("--tolerance: is not positive")
    if not 0 <= given.damping < 1:
        parser.error("--damping: is not within 0 and 1")
    if given.partitions is not None and given.partitions < 1:
        parser.error("--partitions: is not positive")
    for pair in given.conf:
        if "=" not in pair:
            parser.error(f"--conf: {pair}: is not KEY=VALUE")
    return given


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (os.access(Path(home) / "bin/java", os.X_OK) if home else shutil.which("java")):
        raise Error(f"Spark needs Java {JAVA_MIN} or newer (Debian: openjdk-17-jre-headless); JAVA_HOME or PATH names none")


def _need_address(master: str | None) -> None:
    """Spark does not start where the machine's own name has no address, as in a container. On one machine, loopback does."""
    if not _has_address("localhost"):
        raise Error("the name localhost has no address, which Spark needs: /etc/hosts lacks the line 127.0.0.1 localhost")
    if not _has_address(socket.gethostname()):
        if "SPARK_LOCAL_IP" in os.environ:
            return
        if master is not None and not master.startswith("local"):
            raise Error(f"this machine's name, {socket.gethostname()}, has no address: put it into /etc/hosts, or set SPARK_LOCAL_IP")
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def _has_address(name: str) -> bool:
    try:
        socket.gethostbyname(name)
    except OSError:
        return False
    return True


@contextmanager
def session(given: argparse.Namespace, scratch: str) -> Iterator[Any]:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ImportError("needs the package pyspark: pip install 'pyspark>=4'") from None
    _need_java()
    _need_address(given.master)
    builder = SparkSession.builder.appName(f"graphlane {given.algorithm}").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", str(not given.quiet and sys.stderr.isatty()).lower())
    if given.master:
        builder = builder.master(given.master)
    builder = builder.config("spark.graphx.pregel.checkpointInterval", str(CHECKPOINT_INTERVAL))  # if there is a folder
    for pair in given.conf:
        builder = builder.config(*pair.split("=", 1))
    spark = builder.getOrCreate()
    try:
        folder = given.checkpoint or (scratch if str(spark.sparkContext.master).startswith("local") else None)
        if folder:
            spark.sparkContext.setCheckpointDir(folder)
        yield spark
    finally:
        spark.stop()


def compute(spark: Any, given: argparse.Namespace, scratch: str) -> dict[str, Any]:
    started = time.monotonic()
    if given.out and not given.overwrite and HadoopFiles(spark).exists(given.out):
        raise Error(f"{given.out}: is there already")
    graph = StoredGraph(spark, given.graph, given.edge, given.partitions)
    run = Run(spark, graph, scratch)
    if given.algorithm == "pagerank":
        iterations = ITERATIONS if given.iterations is None else given.iterations
        values = run.pagerank(iterations, given.tolerance, given.damping, given.dangling)
    elif given.algorithm == "wcc":
        values = run.wcc()
    else:
        values = run.sssp(given.source, given.weight)
    values = values.cache()
    got = values.count()
    if got != graph.vertex_count:
        raise Error(f"{given.graph}: Spark gave values of {got} vertices, not of {graph.vertex_count}")
    if given.out:
        values.orderBy("vertex").write.mode("overwrite" if given.overwrite else "error").parquet(given.out)
    return {"algorithm": given.algorithm, "vertices": graph.vertex_count, "arcs": graph.arc_count,
            "summary": summary(given.algorithm, values), "seconds": round(time.monotonic() - started, 3)}


def _print(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(told))
        return
    print(f"{told['algorithm']}: {told['vertices']} vertices, {told['arcs']} arcs, {told['seconds']:.1f} s")
    for name, value in told["summary"].items():
        if name == "top":
            for row in value:
                print(f"  {row['vertex']:>12}  {row['value']:.6g}")
        else:
            print(f"  {name}: {value}")


def _reason(error: BaseException) -> str:
    """The cause of a failure in the JVM, in one line."""
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    text = str(error) if java is None else f"{java.getMessage() or java.toString()}"
    return (text.strip().splitlines() or [type(error).__name__])[0]


def main(words: list[str] | None = None) -> int:
    given = _checked(_parser(), words)
    try:
        with tempfile.TemporaryDirectory(prefix="graphlane-spark-") as scratch, session(given, scratch) as spark:
            told = compute(spark, given, scratch)
    except (Error, OSError, ImportError) as error:
        print(f"graphlane: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("graphlane: interrupted", file=sys.stderr)
        return 130
    except Exception as error:  # py4j's and Spark's have no class in common
        if not type(error).__module__.startswith(("py4j", "pyspark")):
            raise
        print(f"graphlane: Spark: {_reason(error)}", file=sys.stderr)
        return 1
    _print(told, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
