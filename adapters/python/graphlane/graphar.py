"""GraphAr and Parquet: a stored graph as chunks of Parquet with offsets, and back. Needs pyarrow; reading GraphAr, PyYAML.

    OUT/NAME.graph.yml, vertex.vertex.yml, vertex_edge_vertex.edge.yml
    OUT/vertex/vertex/id/chunkI                     the vertices
    OUT/edge/vertex_edge_vertex/ordered_by_source/  CSR; ordered_by_dest/: CSC
        offset/chunkI, adj_list/partI/chunkJ, weight/partI/chunkJ, edge_countI

Vertices are cut into parts, and the edges of each part into chunks. Memory holds some chunks, whatever the graph's size."""

import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphlane import _command
from graphlane._build import VERTEX_MAX, Arrays, EdgeError, arrow_arrays, from_edges
from graphlane._core import Error
from graphlane._graph import Graph, offsets_of

VERTEX, EDGE = "vertex", "edge"
TRIPLE = f"{VERTEX}_{EDGE}_{VERTEX}"
VERTEX_CHUNK = 1 << 18
EDGE_CHUNK_MAX = 1 << 20
# Bytes of an edge while it is written: lists, both columns, the encoded chunk, in every thread.
EDGE_BYTES = 256
TYPES = {"float32": "float", "float64": "double", "int64": "int64"}
SIDES = {"out": ("src", "ordered_by_source"), "in": ("dst", "ordered_by_dest")}


def to_graphar(graph: Graph, path: str | os.PathLike[str], *, memory: int | str = "1GiB", threads: int | None = None,
               overwrite: bool = False, progress: bool | None = None) -> Path:
    """Writes the graph as GraphAr. Killed and called again, it goes on behind the last part that is complete: what is done
    stands in `.NAME.partial` beside the result, which is renamed at the end."""
    target = Path(path)
    if threads is not None and index(threads) < 1:
        raise ValueError(f"threads={threads}: at least one")
    if target.exists() and not overwrite:
        raise Error(f"{target}: is there already")
    if target.exists() and not any(target.glob("*.graph.yml")):
        raise Error(f"{target}: is not GraphAr, and is not replaced")
    writer = _Writer(graph, target, _command.size_bytes(memory), threads or os.cpu_count() or 1,
                     _command._shows_progress(progress))
    try:
        writer.write()
        if target.exists():
            shutil.rmtree(target)
        os.rename(writer.folder, target)
    finally:
        writer.close()
    return target


class _Writer:
    def __init__(self, graph: Graph, target: Path, memory: int, threads: int, shown: bool) -> None:
        self.graph, self.name, self.threads, self.shown = graph, target.name, threads, shown
        self.folder = target.parent / f".{target.name}.partial"
        self.edge_chunk = int(max(1024, min(EDGE_CHUNK_MAX, memory // EDGE_BYTES // threads)))
        self.block_bytes = min(memory // 4, 64 << 20)
        self.started, self.done, self.told = time.monotonic(), 0, time.monotonic()
        self._begin()

    def _begin(self) -> None:
        """A partial result of the same graph and the same chunks is gone on with."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise Error(f"{self.folder}: cannot be made: {os.strerror(error.errno or 0)}") from None
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._clear()
        except BaseException as error:
            self.close()
            if isinstance(error, BlockingIOError):
                raise Error(f"{self.folder}: another export writes it now") from None
            raise

    def close(self) -> None:
        os.close(self._lock)

    def _clear(self) -> None:
        """Removes what was left by an export of another graph, or with other chunks."""
        state = {"graph": str(self.graph.path.resolve()), "vertices": self.graph.num_vertices, "arcs": self.graph.num_arcs,
                 "changed": self.graph.path.stat().st_mtime_ns, "edge_chunk": self.edge_chunk}
        note = self.folder / "state.json"
        if not note.exists() and any(self.folder.iterdir()):
            raise Error(f"{self.folder}: is no export that was left, and is in the way")
        if not note.exists() or note.read_text() != json.dumps(state):
            for left in self.folder.iterdir():
                if left.is_dir():
                    shutil.rmtree(left)
            for left in self.folder.iterdir():  # without the note, the rest would be in the way
                if left != note:
                    left.unlink()
            note.write_text(json.dumps(state))

    def write(self) -> None:
        self._vertices()
        with ThreadPoolExecutor(self.threads) as pool:
            for side in ("out", "in"):
                self._side(side, pool)
        self._descriptions()
        (self.folder / "state.json").unlink()

    def _tell(self, arcs: int) -> None:
        self.done += arcs
        now = time.monotonic()
        if self.shown and now - self.told > 2:
            self.told = now
            total = 2 * self.graph.num_arcs
            print(f"graphar: {self.done} of {total} ({100 * self.done // max(total, 1)}%), "
                  f"{int(self.done / (now - self.started))}/s", file=sys.stderr, flush=True)

    def _vertices(self) -> None:
        folder = self.folder / "vertex" / VERTEX
        for chunk, first in enumerate(range(0, self.graph.num_vertices, VERTEX_CHUNK)):
            ids = np.arange(first, min(first + VERTEX_CHUNK, self.graph.num_vertices), dtype=np.int64)
            _write_table(folder / "id" / f"chunk{chunk}", {"_graphArVertexIndex": ids, "id": ids})
        folder.mkdir(parents=True, exist_ok=True)
        _write_count(folder / "vertex_count", self.graph.num_vertices)

    def _side(self, side: str, pool: ThreadPoolExecutor) -> None:
        folder = self.folder / "edge" / TRIPLE / SIDES[side][1]
        folder.mkdir(parents=True, exist_ok=True)
        for part, first in enumerate(range(0, self.graph.num_vertices, VERTEX_CHUNK)):
            count = folder / f"edge_count{part}"
            if count.exists():  # it is written last
                self._tell(_read_count(count))
                continue
            end = min(first + VERTEX_CHUNK, self.graph.num_vertices)
            _write_count(count, self._part(folder, side, part, first, end, pool))
        _write_count(folder / "vertex_count", self.graph.num_vertices)

    def _part(self, folder: Path, side: Any, part: int, first: int, end: int, pool: ThreadPoolExecutor) -> int:
        """Writes the edges of the vertices [first, end), and returns how many there are."""
        for name in ("adj_list", "weight"):
            shutil.rmtree(folder / name / f"part{part}", ignore_errors=True)
        degrees, chunk, writing = [], 0, []
        for columns, lengths in self._chunks(side, first, end):
            degrees.extend(lengths)
            if columns is None:
                continue
            writing.append(pool.submit(self._chunk, folder, part, chunk, columns))
            chunk += 1
            while len(writing) > self.threads:  # no more in memory
                writing.pop(0).result()
        _finish(writing)
        offsets = offsets_of(np.concatenate(degrees)).astype(np.int64)
        _write_table(folder / "offset" / f"chunk{part}", {"_graphArOffset": offsets})
        return int(offsets[-1])

    def _chunks(self, side: Any, first: int, end: int) -> Iterator[tuple[dict[str, NDArray[Any]] | None, list[NDArray[Any]]]]:
        """Columns of edge_chunk edges each, and the degrees of the vertices that were read on the way."""
        own, other = ("_graphArSrcIndex", "_graphArDstIndex") if side == "out" else ("_graphArDstIndex", "_graphArSrcIndex")
        left: dict[str, NDArray[Any]] = {}
        for block in self.graph.blocks(self.block_bytes, side=side, first=first, end=end):
            fresh = {own: block.sources().astype(np.int64), other: block.ids.astype(np.int64)}
            if block.weights is not None:
                fresh["weight"] = block.weights.astype(self.graph.weight_type)
            left = {name: np.concatenate([left[name], values]) if left else values for name, values in fresh.items()}
            yield None, [np.diff(block.offsets)]
            while len(left[own]) >= self.edge_chunk:
                yield {name: values[:self.edge_chunk] for name, values in left.items()}, []
                left = {name: values[self.edge_chunk:] for name, values in left.items()}
        if left and len(left[own]):
            yield left, []

    def _chunk(self, folder: Path, part: int, chunk: int, columns: dict[str, NDArray[Any]]) -> None:
        ends = {name: columns[name] for name in ("_graphArSrcIndex", "_graphArDstIndex")}
        _write_table(folder / "adj_list" / f"part{part}" / f"chunk{chunk}", ends)
        if "weight" in columns:
            _write_table(folder / "weight" / f"part{part}" / f"chunk{chunk}", {"weight": columns["weight"]})
        self._tell(len(ends["_graphArSrcIndex"]))

    def _descriptions(self) -> None:
        texts = {f"{self.name}.graph.yml": GRAPH_YML.format(name=self.name), f"{VERTEX}.vertex.yml": VERTEX_YML,
                 f"{TRIPLE}.edge.yml": EDGE_YML.format(chunk=self.edge_chunk, directed=str(self.graph.directed).lower())}
        if self.graph.weighted:
            texts[f"{TRIPLE}.edge.yml"] += WEIGHT_YML.format(type=TYPES[self.graph.weight_type])
        for name, text in texts.items():
            (self.folder / name).write_text(text + "version: gar/v1\n")


GRAPH_YML = f"""\
name: {{name}}
vertices:
  - {VERTEX}.vertex.yml
edges:
  - {TRIPLE}.edge.yml
"""
VERTEX_YML = f"""\
type: {VERTEX}
chunk_size: {VERTEX_CHUNK}
prefix: vertex/{VERTEX}/
property_groups:
  - properties:
      - name: id
        data_type: int64
        is_primary: true
    prefix: id/
    file_type: parquet
"""
EDGE_YML = f"""\
src_type: {VERTEX}
edge_type: {EDGE}
dst_type: {VERTEX}
chunk_size: {{chunk}}
src_chunk_size: {VERTEX_CHUNK}
dst_chunk_size: {VERTEX_CHUNK}
directed: {{directed}}
prefix: edge/{TRIPLE}/
adj_lists:
  - ordered: true
    aligned_by: src
    prefix: ordered_by_source/
    file_type: parquet
  - ordered: true
    aligned_by: dst
    prefix: ordered_by_dest/
    file_type: parquet
"""
WEIGHT_YML = """\
property_groups:
  - properties:
      - name: weight
        data_type: {type}
        is_primary: false
    prefix: weight/
    file_type: parquet
"""


def _finish(writing: list[Future[Any]]) -> None:
    for future in writing:
        future.result()


def _write_count(path: Path, count: int) -> None:
    path.write_bytes(count.to_bytes(8, "little"))


def _read_count(path: Path) -> int:
    return _as_count(path, path.read_bytes())


def _as_count(path: str | os.PathLike[str], data: bytes) -> int:
    if len(data) != 8:
        raise Error(f"{path}: is not a count of 8 bytes")
    return int.from_bytes(data, "little", signed=True)


def _write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    whole = [name for name, values in columns.items() if values.dtype.kind == "i"]
    pa.parquet.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False,
                           column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED") or None)


# ---- Reading

def from_graphar(path: str | os.PathLike[str], target: str | os.PathLike[str] | None = None, *, edge: str | None = None,
                 weight: str | None = None, **options: Any) -> Graph:
    """Stores one type of edges of a GraphAr graph. `path`: NAME.graph.yml or its folder. `edge`: SOURCE_EDGE_TARGET, where there
    are several. `weight`: the property, by default the one of that name. Options as from_edges. graphlane.Error: the files
    are damaged, or of another kind."""
    description = Description(path, edge)
    return _stored(path, description.pieces(weight), target, num_vertices=description.vertex_count(),
                   directed=description.directed, **options)


def from_parquet(path: str | os.PathLike[str], target: str | os.PathLike[str] | None = None, *, source: str | None = None,
                 to: str | None = None, weight: str | None = None, **options: Any) -> Graph:
    """Stores the edges of a Parquet file or a folder of them, streamed. `source`, `to`: columns, by default the first two of
    the files. `weight`: a column; without it there are no weights. The names of folders (name=value) are columns, too.
    Decimals become the nearest float64. Options as from_edges. graphlane.Error: the files are damaged, or hold no edges."""
    import pyarrow.dataset

    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    try:
        dataset = pyarrow.dataset.dataset(os.fspath(path), format="parquet", partitioning="hive")
    except (OSError, ValueError, TypeError) as error:
        raise Error(f"{path}: {_first_line(error)}") from None
    if not dataset.files:
        raise Error(f"{path}: holds no files")
    names = dataset.schema.names
    own = next(dataset.get_fragments()).physical_schema.names
    if (source is None or to is None) and len(own) < 2:
        raise Error(f"{path}: its files have {len(own)} column, so the two of the edges must be named, of {', '.join(names)}")
    columns = [source or own[0], to or own[1], *([weight] if weight else [])]
    for name in columns:
        if name not in names:
            raise Error(f"{path}: has no column {name!r}, but {', '.join(names)}")
    return _stored(path, _dataset_pieces(dataset, columns), target, **options)


def _dataset_pieces(dataset: Any, columns: list[str]) -> Iterator[Arrays]:
    for batch in dataset.to_batches(columns=list(dict.fromkeys(columns))):
        yield arrow_arrays(columns, [batch.column(name) for name in columns])


def _stored(path: str | os.PathLike[str], pieces: Iterator[Arrays], target: str | os.PathLike[str] | None, **options: Any) -> Graph:
    """Stores the pieces. A fault of the files becomes an Error that names them."""
    failed: list[Exception] = []

    def noted() -> Iterator[Arrays]:
        try:
            yield from pieces
        except (OSError, ValueError, TypeError, NotImplementedError) as error:  # Arrow's are of these
            failed.append(error)
            raise

    try:
        return from_edges(noted(), target, **options)
    except EdgeError as error:
        raise Error(f"{path}: {_first_line(error)}") from None
    except (OSError, ValueError, TypeError, NotImplementedError) as error:
        if error in failed:
            raise Error(f"{path}: {_first_line(error)}") from None
        raise


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


class LocalFiles:
    """Reads files for Description. spark.py has a second class of this kind, for Hadoop's filesystems."""

    def names(self, path: str) -> list[str] | None:
        """Lists a folder. None: the path is a file."""
        return sorted(os.listdir(path)) if os.path.isdir(path) else None

    def read(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise Error(f"{path}: {os.strerror(error.errno or 0)}") from None


class Description:
    """One type of edges, as the YAML files describe it. Paths are text, since they may be URLs."""

    def __init__(self, path: str | os.PathLike[str], edge: str | None, files: Any = None) -> None:
        self.files = files or LocalFiles()
        self.path = os.fspath(path)
        names = self.files.names(self.path)
        if names is not None:
            found = [name for name in names if name.endswith(".graph.yml")]
            if len(found) != 1:
                raise Error(f"{path}: holds {len(found)} files NAME.graph.yml, not one")
            self.path = f"{self.path.rstrip('/')}/{found[0]}"
        graph = self._yaml(self.path)
        folder = self.path.rpartition("/")[0] or "."
        self.root = _joined(folder, graph.get("prefix", ""))
        edges = {f"{each['src_type']}_{each['edge_type']}_{each['dst_type']}": each
                 for each in (self._yaml(f"{folder}/{name}") for name in graph.each("edges"))}
        if not edges:
            raise Error(f"{self.path}: describes no edges")
        if edge is None and len(edges) != 1:
            raise Error(f"{path}: has these edges, of which one must be chosen: {', '.join(edges)}")
        if edge is not None and edge not in edges:
            raise Error(f"{path}: has no edges {edge!r}, but {', '.join(edges)}")
        self.edge = edges[edge or next(iter(edges))]
        if self.edge["src_type"] != self.edge["dst_type"]:
            raise Error(f"{path}: these edges join two types of vertices, and a stored graph has one")
        vertices = [self._yaml(f"{folder}/{name}") for name in graph.each("vertices")]
        vertex = next((each for each in vertices if each["type"] == self.edge["src_type"]), None)
        if vertex is None:
            raise Error(f"{path}: does not describe the vertices {self.edge['src_type']!r}")
        self.vertex: Fields = vertex
        self.directed = bool(self.edge.get("directed", False))
        self.lists = self._adjacency()

    def _yaml(self, path: str) -> "Fields":
        return _parse_yaml(path, self.files.read(path))

    def _adjacency(self) -> "Fields":
        parquet = [each for each in self.edge.each("adj_lists") if each["file_type"] == "parquet"]
        if not parquet:
            raise Error(f"{self.path}: has no lists in Parquet")
        found: Fields = next((each for each in parquet if each["ordered"] and each["aligned_by"] == "src"), parquet[0])
        return found

    def vertex_count(self) -> int:
        path = _joined(self.root, self.vertex["prefix"], "vertex_count")
        found = self.count(path)
        if not 0 < found <= VERTEX_MAX + 1:
            raise Error(f"{path}: is a count of {found}: a stored graph has 1 to {VERTEX_MAX + 1} vertices")
        return found

    def count(self, path: str) -> int:
        found = _as_count(path, self.files.read(path))
        if found < 0:
            raise Error(f"{path}: is a count of {found}")
        return found

    def part_count(self) -> int:
        size = self.edge.number("src_chunk_size" if self.lists["aligned_by"] == "src" else "dst_chunk_size")
        return -(-self.vertex_count() // size)

    def edge_count(self, part: int) -> int:
        return self.count(f"{self.folder()}/edge_count{part}")

    def folder(self) -> str:
        aligned = "source" if self.lists["aligned_by"] == "src" else "dest"
        default = f"{'ordered' if self.lists['ordered'] else 'unordered'}_by_{aligned}/"
        return _joined(self.root, self.edge["prefix"], self.lists.get("prefix", default))

    def weights(self, weight: str | None) -> tuple[str, str] | None:
        """(the property, the folder of its files)."""
        wanted = weight or "weight"
        for group in self.edge.each("property_groups"):
            names = [each["name"] for each in group.each("properties")]
            if wanted in names:
                if group["file_type"] != "parquet":
                    raise Error(f"{self.path}: {wanted!r} is not in Parquet")
                return wanted, _joined(self.folder(), group.get("prefix", "_".join(names) + "/"))
        if weight is not None:
            raise Error(f"{self.path}: edges have no property {weight!r}")
        return None

    def pieces(self, weight: str | None) -> Iterator[Arrays]:
        import pyarrow.parquet as parquet

        folder, group = Path(self.folder()), self.weights(weight)
        upper = lower = 0
        for part in range(self.part_count()):
            expected, got = self.edge_count(part), 0
            lists = folder / "adj_list" / f"part{part}"
            for chunk in range(-(-expected // self.edge.number("chunk_size"))):
                columns = _arrays_of(parquet, lists / f"chunk{chunk}", ["_graphArSrcIndex", "_graphArDstIndex"], "iu")
                if group:
                    columns += _arrays_of(parquet, Path(group[1]) / f"part{part}" / f"chunk{chunk}", [group[0]], "iuf")
                    if len(columns[2]) != len(columns[0]):
                        raise Error(f"{lists / f'chunk{chunk}'}: has {len(columns[0])} edges, but {len(columns[2])} weights")
                got += len(columns[0])
                if not self.directed:
                    upper, lower = upper + _sum(columns, 0, 1), lower + _sum(columns, 1, 0)
                yield self._once(*columns)
            if got != expected:
                raise Error(f"{lists}: has {got} edges, but edge_count{part} says {expected}")
        if upper % 2**64 != lower % 2**64:
            raise Error(f"{self.path}: its edges are undirected, but its lists do not have each of them both ways")

    def _once(self, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None = None) -> Arrays:
        """Keeps one of the two arcs of each undirected edge."""
        if self.directed:
            return sources, targets, weights
        kept = sources <= targets
        return sources[kept], targets[kept], None if weights is None else weights[kept]


def _sum(columns: list[NDArray[Any]], one: int, other: int) -> int:
    """A checksum of the arcs with columns[one] < columns[other], in any order. Each arc adds a number that is made of its
    ends and its weight. Both directions have the same sum, unless an arc lacks its opposite."""
    chosen = columns[one] < columns[other]
    ends = [columns[end][chosen].astype(np.uint64) for end in (one, other)]
    mixed = _mixed(ends[0] * np.uint64(2**32) + ends[1])
    if len(columns) == 3:
        mixed = _mixed(mixed + columns[2][chosen].astype(np.float64).view(np.uint64))
    return int(mixed.sum(dtype=np.uint64))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The last step of MurmurHash3: each bit depends on all."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(33))


class Fields(dict[str, Any]):
    """A description, or a part of one. Error: what is asked for is not in it."""

    def __init__(self, path: str, found: dict[str, Any]) -> None:
        super().__init__({name: _fields(path, value) for name, value in found.items()})
        self.path = path

    def __missing__(self, name: str) -> Any:
        raise Error(f"{self.path}: is not a description of GraphAr: lacks {name!r}")

    def number(self, name: str) -> int:
        if not isinstance(self[name], int) or self[name] < 1:
            raise Error(f"{self.path}: {name} is {self[name]!r}, not a number from 1 on")
        return int(self[name])

    def each(self, name: str) -> Any:
        """Empty where there is none."""
        found = self.get(name) or []
        if not isinstance(found, list):
            raise Error(f"{self.path}: {name} is {found!r}, not a list")
        return found


def _fields(path: str, value: Any) -> Any:
    if isinstance(value, dict):
        return Fields(path, value)
    return [_fields(path, each) for each in value] if isinstance(value, list) else value


def _arrays_of(parquet: Any, path: Path, names: list[str], kinds: str) -> list[NDArray[Any]]:
    """`kinds`: of numpy's types, those that the columns may have."""
    if not path.exists():
        raise Error(f"{path}: there is no such file")
    try:
        table = parquet.ParquetFile(path).read(columns=names)
    except (OSError, ValueError) as error:
        raise Error(f"{path}: {_first_line(error)}") from None
    if table.num_columns != len(names):
        raise Error(f"{path}: lacks a column of {', '.join(names)}")
    if any(column.null_count for column in table.columns):
        raise Error(f"{path}: has nulls: an edge has both ends, and its weight")
    arrays = [column.to_numpy() for column in table.columns]
    for name, array in zip(names, arrays, strict=True):
        if array.dtype.kind not in kinds:
            raise Error(f"{path}: the column {name!r} is no column of numbers that an edge may have")
    return arrays


def _joined(*names: str) -> str:
    below = [name.strip("/") for name in names[1:]]
    return "/".join([names[0].rstrip("/"), *(name for name in below if name)])


def _parse_yaml(path: str, text: bytes) -> Fields:
    try:
        import yaml
    except ImportError:
        raise ImportError("reading GraphAr needs the package PyYAML: pip install 'graphlane[arrow]'") from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Error(f"{path}: {_first_line(error)}") from None
    if not isinstance(found, dict):
        raise Error(f"{path}: is not a description of GraphAr")
    return Fields(path, found)
