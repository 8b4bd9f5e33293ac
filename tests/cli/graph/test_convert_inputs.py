"""The inputs of graphlane convert, written by each format's own writer where there is one."""

import bz2
import gzip
import hashlib
import lzma
import shutil
import struct
import subprocess

import numpy as np
import pytest

from graphs import random_edges, write_bin, write_snap

EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [2, 2]], dtype=np.int32)
TEXT = "0 1\n1 2\n2 3\n3 0\n2 2\n"
ONE_BASED = "1 2\n2 3\n3 4\n4 1\n3 3\n"


@pytest.fixture
def edges_of(graphlane):
    """edges_of(path, "-w", …): the edges that convert reads, as (source, target) or (source,
    target, weight text)."""

    def read(path, *words, stdin=None):
        said = subprocess.run([graphlane.program, "convert", "--to", "snap", *map(str, words), str(path), "-"],
                              input=stdin, capture_output=True)
        assert said.returncode == 0, said.stderr.decode()
        read.stderr = said.stderr.decode()
        rows = [line.split("\t") for line in said.stdout.decode().splitlines()]
        return [(int(row[0]), int(row[1]), *row[2:]) for row in rows]

    return read


def pairs(edges):
    return [tuple(edge) for edge in np.asarray(edges).tolist()]


def packed(text: bytes, how: str) -> bytes:
    if how in ("zstd", "lz4"):
        tool = shutil.which(how)
        if tool is None:
            pytest.skip(f"not applicable: no {how}(1) here")
        return subprocess.run([tool, "-c"], input=text, capture_output=True, check=True).stdout
    return {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress,
            "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE)}[how](text)


CODECS = ["gzip", "bzip2", "xz", "lzma", "zstd", "lz4"]


@pytest.mark.parametrize("how", CODECS)
def test_compressions_are_detected_by_magic(edges_of, tmp_path, how):
    text = "".join(f"{source} {target}\n" for source, target in random_edges(1000, 50000, 1).tolist())
    (tmp_path / "list").write_bytes(packed(text.encode(), how))
    assert edges_of(tmp_path / "list") == pairs(random_edges(1000, 50000, 1))


@pytest.mark.parametrize("how", ["gzip", "bzip2", "xz", "zstd", "lz4"])
def test_all_members_are_read_and_trailing_zeros_are_ignored(edges_of, tmp_path, how):
    (tmp_path / "list").write_bytes(packed(b"0 1\n1 ", how) + packed(b"2\n", how) + packed(b"3 4\n", how) + bytes(1000))
    assert edges_of(tmp_path / "list") == [(0, 1), (1, 2), (3, 4)]


# zlib's gzread() takes unknown bytes for the end: convert once read half the edges, with exit
# status 0.
@pytest.mark.parametrize("how", ["gzip", "bzip2", "xz", "zstd", "lz4"])
@pytest.mark.parametrize("behind", [b"5 6\n", b"\0\0\0" + b"5 6\n", b"\x1f", "damaged magic"])
def test_garbage_after_a_member_is_an_error(refused, tmp_path, how, behind):
    first, second = packed(TEXT.encode(), how), packed(TEXT.encode(), how)
    if behind == "damaged magic":
        behind = bytes([second[0] ^ 0x40]) + second[1:]
    (tmp_path / "list").write_bytes(first + behind)
    byte = len(first) + len(behind) - len(behind.lstrip(b"\0"))
    refused("convert", tmp_path / "list", tmp_path / "grid", naming=f"list: byte {byte}: ")


def test_zeros_may_stand_between_xz_streams(edges_of, refused, tmp_path):
    first, second = lzma.compress(b"0 1\n"), lzma.compress(b"1 2\n")
    (tmp_path / "list").write_bytes(first + bytes(8) + second + bytes(4))
    assert edges_of(tmp_path / "list") == [(0, 1), (1, 2)]
    (tmp_path / "list").write_bytes(first + bytes(6) + second)
    refused("convert", tmp_path / "list", tmp_path / "grid", naming="neither xz data nor zeros")


@pytest.mark.parametrize("how", ["zstd", "lz4"])
def test_frames_that_are_to_be_skipped(edges_of, tmp_path, how):
    skipped = struct.pack("<II", 0x184D2A5F, 3) + b"abc"
    first, second = packed(b"0 1\n", how), packed(b"1 2\n", how)
    (tmp_path / "list").write_bytes(skipped * 2 + first + skipped + second + skipped)
    assert edges_of(tmp_path / "list") == [(0, 1), (1, 2)]


def test_a_wide_window_of_zstd_names_the_program_that_reads_it(refused, tmp_path):
    if shutil.which("zstd") is None:
        pytest.skip("not applicable: no zstd(1) here")
    made = subprocess.run(["zstd", "-c", "--long=31"], input=TEXT.encode(), capture_output=True, check=True)
    (tmp_path / "list").write_bytes(made.stdout)
    refused("convert", tmp_path / "list", tmp_path / "grid", naming="`zstd -dc --long=31 FILE | graphlane convert - OUT`")


@pytest.mark.parametrize("how", CODECS)
def test_each_truncation_and_each_damaged_byte_is_noticed(graphlane, tmp_path, how):
    """Every cut, and every damaged byte: an error, or the right edges."""
    words = {"lz4": ["--content-size"], "zstd": ["--check"]}.get(how, [])
    text = "".join(f"{i} {i * 7919 % 10007}\n" for i in range(30)).encode()
    data = subprocess.run([how, "-c", *words], input=text, capture_output=True, check=True).stdout if words and shutil.which(how) \
        else packed(text, how)
    variants = [data[:kept] for kept in range(8, len(data), 5)]
    if how != "lzma":  # it has no checksum
        variants += [data[:at] + bytes([data[at] ^ 0x11]) + data[at + 1:] for at in range(0, len(data), 5)]
    right = text.replace(b" ", b"\t")
    for variant in variants:
        said = subprocess.run([graphlane.program, "convert", "--from", "snap", "--to", "snap", "-", "-"], input=variant,
                              capture_output=True, timeout=60)
        assert said.returncode == 1 or said.stdout == right, (len(variant), said.stderr)
        assert said.returncode == 0 or said.stderr.startswith(b"graphlane: standard input: "), said.stderr


@pytest.mark.parametrize("how", CODECS)
def test_a_truncated_input_is_an_error(refused, tmp_path, how):
    whole = packed("".join(f"{i} {i * 7919 % 10007}\n" for i in range(20000)).encode(), how)
    for kept in (len(whole) - 1, len(whole) // 2, 40):
        (tmp_path / "list").write_bytes(whole[:kept])
        # lzma's magic is the whole header, so it is recognized all the same.
        refused("convert", tmp_path / "list", tmp_path / "grid", naming=f"truncated {how} data")


@pytest.mark.parametrize("how", ["gzip", "bzip2", "xz", "zstd"])
def test_a_flipped_bit_is_an_error(refused, tmp_path, how):
    data = bytearray(packed("".join(f"{i} {i * 7919 % 10007}\n" for i in range(20000)).encode(), how))
    data[len(data) // 2] ^= 4
    (tmp_path / "list").write_bytes(data)
    said = refused("convert", tmp_path / "list", tmp_path / "grid", naming="list: ")
    assert how in said


def test_binary_lists_may_be_compressed(edges_of, tmp_path):
    (tmp_path / "list.u32.gz").write_bytes(gzip.compress(EDGES.astype("<u4").tobytes()))
    assert edges_of(tmp_path / "list.u32.gz") == pairs(EDGES)


@pytest.mark.parametrize("name,content,words", [
    ("bom.txt", "\ufeff" + TEXT, []),
    ("snap.txt", "# SNAP\n" + TEXT, []),
    ("list.csv", TEXT.replace(" ", ","), []),
    ("list.txt", TEXT.replace(" ", ","), []),
    ("list.txt", TEXT.replace(" ", ", "), []),
    ("semicolons.csv", TEXT.replace(" ", ";"), []),
    ("list.tsv", TEXT.replace(" ", "\t"), []),
    ("header.csv", "from,to\r\n" + TEXT.replace(" ", ",").replace("\n", "\r\n"), ["--header"]),
    ("quoted.csv", "".join(f'"{line.split()[0]}", "{line.split()[1]}"\n' for line in TEXT.splitlines()), []),
    ("columns.csv", "".join(f'"a ""b"", c",{line.replace(" ", ",")},x\n' for line in TEXT.splitlines()),
     ["--columns", "2,3"]),
    ("swapped.txt", "".join(" ".join(reversed(line.split())) + " 7 8\n" for line in TEXT.splitlines()),
     ["--columns", "2,1"]),
    ("bars", TEXT.replace(" ", "|"), ["--delimiter", "|"]),
    ("tabs", TEXT.replace(" ", "\t"), ["--delimiter", "tab"]),
    ("spaces", TEXT.replace(" ", "   "), ["--delimiter", "space"]),
    ("matrix.mtx", "%%MatrixMarket matrix coordinate pattern general\n%\n4 4 5\n" + ONE_BASED, []),
    ("matrix", "%%MatrixMarket MATRIX Coordinate Pattern General\n4 4 5\n" + ONE_BASED, []),
    ("real.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 5\n" + ONE_BASED.replace("\n", " -1.5e3\n"), []),
    ("complex.mtx", "%%MatrixMarket matrix coordinate complex general\n4 4 5\n" + ONE_BASED.replace("\n", " 1 2\n"), []),
    ("out.konect", "% asym unweighted\n% 5 4 4\n" + ONE_BASED, []),
    ("times.tsv", "% asym positive\n" + ONE_BASED.replace("\n", " 1 1082008561\n"), []),
    ("road.gr", "c by hand\nc\np sp 4 5\n" + "".join(f"a {line} 9\nc\n" for line in ONE_BASED.splitlines()), []),
    ("colours.col", "p edge 4 5\n" + "".join(f"e {line}\n" for line in ONE_BASED.splitlines()), []),
    ("list.u64", EDGES.astype("<u8").tobytes(), []),
    ("list.bin", EDGES.astype("<i4").tobytes(), []),
    ("given", EDGES.astype("<u8").tobytes(), ["--from", "u64"]),
])
def test_each_input_format_is_read(edges_of, tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert edges_of(tmp_path / name, *words) == pairs(EDGES)
    assert edges_of("-", *words, *(["--from", "u64"] if name == "list.u64" else
                                   ["--from", "bin"] if name == "list.bin" else
                                   ["--from", "csv"] if name.endswith(".csv") else []),
                    stdin=(tmp_path / name).read_bytes()) == pairs(EDGES)


@pytest.mark.parametrize("name,content,words", [
    ("list.txt", "0 1 0.5\n1 2 -1e3\n", ["-w"]),
    ("list.csv", "0,1,0.5\n1,2,-1000\n", ["-w"]),
    ("matrix.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n2 3 -1e3\n", ["-w"]),
    ("out.konect", "% asym signed\n1 2 0.5 17\n2 3 -1000 18\n", ["-w"]),
    ("columns.txt", "0.5 0 1\n-1000 1 2\n", ["--columns", "2,3,1"]),
    ("list.bin", struct.pack("<IIfIIf", 0, 1, 0.5, 1, 2, -1000), ["-w"]),
    ("list.u32", struct.pack("<IIdIId", 0, 1, 0.5, 1, 2, -1000), ["--weights", "float64"]),
    ("list.u64", struct.pack("<QQdQQd", 0, 1, 0.5, 1, 2, -1000), ["-w"]),
    ("list.u64", struct.pack("<QQfQQf", 0, 1, 0.5, 1, 2, -1000), ["--weights", "float32"]),
])
def test_weights(edges_of, tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert edges_of(tmp_path / name, *words) == [(0, 1, "0.5"), (1, 2, "-1000")]


# float32 has 24 bits, so large timestamps changed.
def test_timestamps_are_converted_exactly(graphlane, refused, edges_of, tmp_path):
    times = [1217567877, 2**53 + 1, 2**63 - 1]
    (tmp_path / "t.txt").write_text("".join(f"0 {i} {time}\n" for i, time in enumerate(times)))
    refused("convert", "-w", tmp_path / "t.txt", tmp_path / "grid", naming="line 1: '1217567877' is not a weight of type float32")
    refused("convert", "-w", "--to", "u64", tmp_path / "t.txt", tmp_path / "x", naming="line 2: '9007199254740993'")
    for to in ("u32", "u64", "csv", "tsv"):
        graphlane("convert", "--weights", "int64", "--to", to, tmp_path / "t.txt", tmp_path / f"t.{to}")
        assert edges_of(tmp_path / f"t.{to}", "--weights", "int64") == [(0, i, str(t)) for i, t in enumerate(times)]
    graphlane("convert", "-w", "--round", "-p", 1, tmp_path / "t.txt", tmp_path / "grid")
    assert np.fromfile(tmp_path / "grid/row", dtype="<f4")[2] == np.float32(1217567877)


def test_a_float64_is_kept_or_refused(graphlane, refused, edges_of, tmp_path):
    (tmp_path / "d.u32").write_bytes(struct.pack("<IId", 0, 1, 0.1) + struct.pack("<IId", 1, 2, 0.5))
    assert edges_of(tmp_path / "d.u32", "--weights", "float64") == [(0, 1, "0.1"), (1, 2, "0.5")]
    refused("convert", "--weights", "float64", tmp_path / "d.u32", tmp_path / "grid", naming="byte 8: '0.1' is not a weight")
    graphlane("convert", "--weights", "float64", "--round", tmp_path / "d.u32", tmp_path / "grid")


def test_digits_beyond_float32_are_reported(graphlane, tmp_path):
    (tmp_path / "d.txt").write_text("0 1 0.1\n1 2 0.1234567891\n")
    assert "1 weights have more digits" in graphlane("convert", "-w", tmp_path / "d.txt", tmp_path / "grid").stderr


def test_a_symmetric_matrix_gives_edges_in_both_directions(edges_of, tmp_path):
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 5\n3 3 6\n3 2 7\n")
    expected = [(1, 0, "5"), (0, 1, "5"), (2, 2, "6"), (2, 1, "7"), (1, 2, "7")]
    assert edges_of(tmp_path / "a.mtx", "-w") == expected
    assert edges_of(tmp_path / "a.mtx", "-w", "--undirected") == expected
    (tmp_path / "b.mtx").write_text("%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 1\n2 1 5\n")
    assert edges_of(tmp_path / "b.mtx", "-w") == [(1, 0, "5"), (0, 1, "-5")]


def test_a_bipartite_graph_has_two_sets_of_vertices(edges_of, tmp_path):
    (tmp_path / "out.b").write_text("% bip unweighted\n% 3 2 3\n1 1\n1 3\n2 2\n")
    assert edges_of(tmp_path / "out.b") == [(0, 2), (0, 4), (1, 3)]


METIS = "% by hand\n4 4 {}\n{}"


@pytest.mark.parametrize("head,lines,words,weights", [
    ("", "2 4\n1 3\n2 4\n1 3\n", [], None),
    ("0", "2 4\n1 3\n% in between\n2 4\n1 3", [], None),
    ("1", "2 9 4 8\n1 9 3 7\n2 7 4 6\n1 8 3 6\n", [], None),
    ("1", "2 9 4 8\n1 9 3 7\n2 7 4 6\n1 8 3 6\n", ["-w"], ["9", "8", "9", "7", "7", "6", "8", "6"]),
    ("011 2", "5 5 2 9 4 8\n5 5 1 9 3 7\n5 5 2 7 4 6\n5 5 1 8 3 6\n", ["-w"], ["9", "8", "9", "7", "7", "6", "8", "6"]),
])
def test_metis(edges_of, tmp_path, head, lines, words, weights):
    (tmp_path / "a.metis").write_text(METIS.format(head, lines))
    expected = [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]
    if weights:
        expected = [(*edge, weight) for edge, weight in zip(expected, weights)]
    assert edges_of(tmp_path / "a.metis", *words) == expected


# A hub's line is longer than any piece that is read at a time. Vertices without neighbours have
# empty lines.
def test_metis_with_a_star_and_isolated_vertices(graphlane, edges_of, tmp_path):
    count = 600_000
    with open(tmp_path / "star.graph", "w") as file:
        file.write(f"{count + 2} {count - 1}\n" + " ".join(map(str, range(2, count + 1))) + "\n" + "1\n" * (count - 1) + "\n\n")
    said = graphlane("convert", "--to", "u32", tmp_path / "star.graph", tmp_path / "star.u32")
    assert f"{count + 2} vertices, {2 * count - 2} edges" in said.stdout
    read = np.fromfile(tmp_path / "star.u32", dtype="<u4").reshape(-1, 2)
    assert (read[:count - 1, 1] == np.arange(1, count)).all() and (read[count - 1:, 0] == np.arange(1, count)).all()


def test_undirected_and_simple(edges_of, tmp_path):
    (tmp_path / "a.txt").write_text("3 1 5\n1 1 6\n3 1 7\n1 3 8\n0 2 9\n")
    assert edges_of(tmp_path / "a.txt", "-w", "--undirected") == [
        (3, 1, "5"), (1, 3, "5"), (1, 1, "6"), (3, 1, "7"), (1, 3, "7"), (1, 3, "8"), (3, 1, "8"), (0, 2, "9"), (2, 0, "9")]
    assert edges_of(tmp_path / "a.txt", "-w", "--simple") == [(0, 2, "9"), (1, 3, "8"), (3, 1, "5")]
    assert edges_of(tmp_path / "a.txt", "-w", "--simple", "--undirected") == [
        (0, 2, "9"), (1, 3, "5"), (2, 0, "9"), (3, 1, "5")]


@pytest.mark.parametrize("memory", ["1M", "1G"])
@pytest.mark.parametrize("weighted", [False, True])
def test_simple_gives_the_same_result_when_it_spills(graphlane, tmp_path, memory, weighted):
    edges = random_edges(3000, 400_000, 5)
    table = np.column_stack([edges, np.arange(len(edges))]) if weighted else edges
    np.savetxt(tmp_path / "a.txt", table, fmt="%d")
    graphlane("convert", "--simple", "--memory", memory, "--to", "u32", *(["--weights", "float32"] if weighted else []),
              tmp_path / "a.txt", tmp_path / "a.u32")
    kept = edges[:, 0] != edges[:, 1]
    unique, first = np.unique(edges[kept], axis=0, return_index=True)
    read = np.fromfile(tmp_path / "a.u32", dtype="<u4").reshape(-1, 3 if weighted else 2)
    assert (read[:, :2] == unique).all()
    if weighted:
        assert (read[:, 2].copy().view("<f4") == np.arange(len(edges))[kept][first]).all()


@pytest.mark.parametrize("memory", ["1M", "1G"])
@pytest.mark.parametrize("weighted", [False, True])
def test_renumber_writes_a_map_back(graphlane, tmp_path, memory, weighted):
    random = np.random.default_rng(3)
    names = random.permutation(np.concatenate([random.integers(-2**63, 2**63, 40_000), np.arange(20_000) * 1000003]))
    edges = names[random.integers(0, len(names), (100_000, 2))]
    with open(tmp_path / "a.txt", "w") as file:
        for index, (source, target) in enumerate(edges.tolist()):
            file.write(f"{source} {target}" + (f" {index}\n" if weighted else "\n"))
    graphlane("convert", "--renumber", tmp_path / "map", "--memory", memory, "--to", "u32",
              *(["--weights", "int64"] if weighted else []), tmp_path / "a.txt", tmp_path / "a.u32")
    rows = [line.split("\t") for line in (tmp_path / "map").read_text().splitlines()]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    values = [int(row[1]) for row in rows]
    assert values == sorted(set(edges.ravel().tolist()))
    read = np.fromfile(tmp_path / "a.u32", dtype="<u4").reshape(-1, 4 if weighted else 2)
    assert (np.array(values, dtype=np.int64)[read[:, :2]] == edges).all(), "in the order of the input"
    if weighted:
        assert (read[:, 2:].copy().view("<i8").ravel() == np.arange(len(edges))).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "a.u32", "map"]


@pytest.mark.parametrize("name,content,words,edges,vertices", [
    ("words.csv", 'from,to\n"Doe, J.",alice\nalice,"a ""b"""\n', ["--header"], [(2, 1), (1, 0)], ['a "b"', "alice", "Doe, J."]),
    ("mixed.txt", "10 9\n9 x\n-3 010\n", [], [(2, 1), (1, 4), (0, 3)], ["-3", "9", "10", "010", "x"]),
    ("a.u64", struct.pack("<4Q", 2**64 - 1, 5, 5, 2**40), [], [(2, 0), (0, 1)], ["5", "1099511627776", "18446744073709551615"]),
    ("b.bin", struct.pack("<4i", -7, 5, 5, 2**31 - 1), [], [(0, 1), (1, 2)], ["-7", "5", "2147483647"]),
    ("c.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n9 9 1\n9 2\n", [], [(1, 0), (0, 1)], ["2", "9"]),
    ("d.gr", "p sp 9 1\na 9 2 1\n", [], [(1, 0)], ["2", "9"]),
    ("e.metis", "3 1\n\n3\n2\n", [], [(0, 1), (1, 0)], ["2", "3"]),
    ("f.txt", "0 2000000000\n5 7\n", [], [(0, 3), (1, 2)], ["0", "5", "7", "2000000000"]),
])
def test_any_names_are_renumbered(edges_of, tmp_path, name, content, words, edges, vertices):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    read = edges_of(tmp_path / name, *words, "--renumber", tmp_path / "map")
    names = [line.split("\t", 1)[1] for line in (tmp_path / "map").read_text().splitlines()]
    assert sorted(names) == sorted(vertices)
    expected = [tuple(vertices[end] for end in edge) for edge in edges]
    assert [tuple(names[end] for end in edge) for edge in read] == expected
    if name != "words.csv":
        assert names == vertices


def test_many_vertices_without_edges_are_reported(edges_of, tmp_path):
    (tmp_path / "gaps.txt").write_text("0 2000000000\n5 7\n")
    edges_of(tmp_path / "gaps.txt")
    assert "--renumber MAP" in edges_of.stderr
    (tmp_path / "dense.txt").write_text("0 9000\n" + "1 2\n" * 1000)
    edges_of(tmp_path / "dense.txt")
    assert "--renumber" not in edges_of.stderr
    assert edges_of(tmp_path / "gaps.txt", "--vertices", 2**31) and "--renumber" not in edges_of.stderr


def test_a_list_may_have_vertices_that_a_grid_may_not(refused, edges_of, tmp_path):
    (tmp_path / "a.txt").write_text(f"{2**32 - 2} 0\n{2**31 - 1} 1\n")
    assert edges_of(tmp_path / "a.txt") == [(2**32 - 2, 0), (2**31 - 1, 1)]
    for to in ("grid", "shards", "bin"):
        refused("convert", "--to", to, tmp_path / "a.txt", tmp_path / "x", naming="line 1: '4294967294' is above 2147483646")


def test_declared_isolated_vertices_are_kept(graphlane, tmp_path):
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n9 9 1\n1 2\n")
    graphlane("convert", "-p", 1, tmp_path / "a.mtx", tmp_path / "grid")
    assert (tmp_path / "grid/meta").read_text() == "0 9 1 1"


def test_standard_input_and_output(graphlane, tmp_path):
    gen = subprocess.run([graphlane.program, "gen", "rmat", "--scale", "6", "--to", "bin", "-"], capture_output=True, check=True)
    assert gen.stderr.startswith(b"standard output: ") and gen.stderr.endswith(b" vertices, 1024 edges\n")
    for to in ("u64", "snap", "csv"):
        there = subprocess.run([graphlane.program, "-q", "convert", "--from", "bin", "--to", to, "-", "-"],
                               input=gen.stdout, capture_output=True, check=True)
        back = subprocess.run([graphlane.program, "-q", "convert", "--from", to, "--to", "bin", "-", "-"],
                              input=there.stdout, capture_output=True, check=True)
        assert back.stdout == gen.stdout and back.stderr == b""
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([graphlane.program, "convert", "--from", "bin", "--to", "snap", "-", "-"], input=gen.stdout,
                       stdout=out, check=True, stderr=subprocess.DEVNULL)
    assert len((tmp_path / "out").read_text().splitlines()) == 1024


def test_the_output_name_decides_the_format_without_to(graphlane, refused, edges_of, tmp_path):
    (tmp_path / "a.txt").write_text("0 1 2\n1 2 3\n")
    firsts = {"b.csv": b"0,1,2\n", "b.tsv": b"0\t1\t2\n", "b.txt": b"0\t1\t2\n", "b.edges": b"0\t1\t2\n",
              "b.mtx": b"%%MatrixMarket matrix coordinate real general\n3 3 2 ", "b.gr": b"p sp 3 2 ",
              "b.konect": b"% asym multiweighted\n1 2 2\n", "b.u32": bytes([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 64])}
    for name, first in firsts.items():
        graphlane("convert", "-w", tmp_path / "a.txt", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(first), name
    for name, inside in [("c", "meta"), ("c.v1", "meta"), ("c.grid", "meta"), ("c.csr", "indptr.npy")]:
        graphlane("convert", "-w", tmp_path / "a.txt", tmp_path / name)
        assert (tmp_path / name / inside).exists(), name
    refused("convert", tmp_path / "a.txt", tmp_path / "d.csv.gz", status=2,
            naming="d.csv.gz: convert does not compress: --to csv - | gzip does")


def test_graphs_that_dimacs_cannot_hold_are_refused(refused, tmp_path):
    (tmp_path / "a.txt").write_text("0 1\n")
    refused("convert", tmp_path / "a.txt", tmp_path / "b.gr", status=2, naming="--to dimacs: its arcs have weights: -w")
    for to, words in (("mtx", []), ("dimacs", ["-w"])):
        refused("convert", *words, "--to", to, tmp_path / "a.txt", "-", status=2, naming="cannot go to standard output")
        refused("convert", *words, "--to", to, tmp_path / "a.txt", "/dev/stdout", naming="not to a pipe")


def test_a_matrix_agrees_with_scipy(graphlane, tmp_path):
    mmread = pytest.importorskip("scipy.io", reason="not applicable: no scipy").mmread
    (tmp_path / "a.txt").write_text("0 1 2.5\n1 2 -3\n4 0 1e-3\n")
    graphlane("convert", "-w", tmp_path / "a.txt", tmp_path / "b.mtx")
    matrix = mmread(tmp_path / "b.mtx")
    assert matrix.shape == (5, 5)
    assert sorted(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)) == [
        (0, 1, 2.5), (1, 2, -3.0), (4, 0, 0.001)]


# Ten of thousands of random lists, converted to each output format and back.
BACK = ["snap", "csv", "tsv", "mtx", "konect", "dimacs", "bin", "u32", "u64", "grid", "csr", "shards", "lists"]


@pytest.mark.parametrize("to", BACK)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [11, 12])
def test_a_round_trip_keeps_the_edges(graphlane, tmp_path, to, weighted, seed):
    if to == "dimacs" and not weighted:
        pytest.skip("not applicable: arcs of dimacs have weights (test_graphs_that_dimacs_cannot_hold_are_refused)")
    random = np.random.default_rng(seed)
    vertices, count = (40, 300) if seed == 11 else (5000, 60_000)
    edges = random_edges(vertices, count, seed).astype("<u4")
    if to == "shards":
        edges = edges[edges[:, 0] != edges[:, 1]]
    columns = [edges]
    if weighted:
        columns.append(random.normal(size=len(edges)).astype("<f4").view("<u4"))
    table = np.column_stack(columns)
    table.tofile(tmp_path / "a.u32")
    words = ["-w"] if weighted else []
    out = tmp_path / "out"
    parts = ["-p", 3] if to in ("grid", "shards") else []
    graphlane("convert", *words, *parts, "--to", to, tmp_path / "a.u32", out)
    graphlane("convert", *words, *([] if out.is_dir() else ["--from", to]),
              *(["--weights", "float32"] if weighted and to == "csr" else []),
              *(["--weights", "float64"] if weighted and to == "u64" else []), "--to", "u32", "--round", out, tmp_path / "b.u32")
    back = np.fromfile(tmp_path / "b.u32", dtype="<u4")
    if weighted and to == "u64":
        raw = back.view(np.dtype([("ends", "<u4", 2), ("weight", "<f8")]))
        back = np.column_stack([raw["ends"], raw["weight"].astype("<f4").view("<u4")])
    back = back.reshape(-1, table.shape[1])
    if to in ("grid", "csr", "shards", "lists"):
        table, back = (rows[np.lexsort(rows.T[::-1])] for rows in (table, back))
    assert back.shape == table.shape and (back == table).all()


@pytest.mark.parametrize("weights", [None, "float32", "float64", "int64"])
@pytest.mark.parametrize("memory", ["1M", "1G"])
def test_a_csr_agrees_with_scipy(graphlane, tmp_path, weights, memory):
    sparse = pytest.importorskip("scipy.sparse")
    edges = np.unique(random_edges(2000, 200_000, 8), axis=0)
    values = np.random.default_rng(1).integers(1, 1000, len(edges))
    order = np.random.default_rng(2).permutation(len(edges))
    table = np.column_stack([edges, values])[order] if weights else edges[order]
    np.savetxt(tmp_path / "a.txt", table, fmt="%d")
    graphlane("convert", "--to", "csr", "--vertices", 2500, "--memory", memory, *(["--weights", weights] if weights else []),
              tmp_path / "a.txt", tmp_path / "csr")
    indptr, indices = (np.load(tmp_path / f"csr/{name}.npy") for name in ("indptr", "indices"))
    assert indptr.dtype == indices.dtype == np.int32
    data = np.load(tmp_path / "csr/data.npy") if weights else np.ones(len(edges))
    if weights:
        assert data.dtype == np.dtype(weights)
    else:
        assert not (tmp_path / "csr/data.npy").exists()
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(2500, 2500))
    matrix.check_format()
    expected = sparse.csr_matrix((values if weights else np.ones(len(edges)), edges.T), shape=(2500, 2500))
    assert (matrix != expected).nnz == 0 and matrix.has_canonical_format


def test_no_blocks_writes_holes_instead_of_blocks(graphlane, tmp_path):
    write_bin(tmp_path / "a.bin", random_edges(1000, 100_000, 4))
    graphlane("convert", "-p", 3, tmp_path / "a.bin", tmp_path / "whole")
    graphlane("convert", "-p", 3, "--no-blocks", tmp_path / "a.bin", tmp_path / "grid")
    for path in (tmp_path / "whole").iterdir():
        made = tmp_path / "grid" / path.name
        if path.name.startswith("block-"):
            assert made.stat().st_size == path.stat().st_size and made.stat().st_blocks == 0
        else:
            assert made.read_bytes() == path.read_bytes()
    graphlane("convert", "--to", "bin", tmp_path / "grid", tmp_path / "b.bin")
    assert sorted(pairs(np.fromfile(tmp_path / "b.bin", dtype="<i4").reshape(-1, 2))) == \
        sorted(pairs(np.fromfile(tmp_path / "a.bin", dtype="<i4").reshape(-1, 2)))


def test_a_directory_is_replaced_only_by_its_own_format(graphlane, refused, tmp_path):
    write_snap(tmp_path / "a.txt", EDGES)
    for to in ("csr", "shards", "grid"):
        graphlane("convert", "-f", "--to", to, tmp_path / "a.txt", tmp_path / to)
        graphlane("convert", "-f", "--to", to, tmp_path / "a.txt", tmp_path / to)
    refused("convert", "-f", "--to", "csr", tmp_path / "a.txt", tmp_path / "grid", naming="not a CSR")
    refused("convert", "-f", "--to", "grid", tmp_path / "a.txt", tmp_path / "csr", naming="not a grid")
    refused("convert", "-f", "--to", "shards", tmp_path / "a.txt", tmp_path / "csr", naming="not GraphChi's shards")


# SHA-256 over names and contents of the output of GraphChi's own sharder (6461c89, edgedatatype
# float, nshards 3) for these lists.
@pytest.mark.parametrize("weighted,digest", [
    (False, "464eeb2d8e104956a554d0a5c67ad99b8d51fa78d276ea39659c3602bb060d5e"),
    (True, "f33ad8091ee47e39c9574ca20923eba06d08f3e2893dabd2eed567c2a6b7ef27")])
@pytest.mark.parametrize("memory", ["1M", "1G"])
def test_shards_are_byte_for_byte_graphchis(graphlane, tmp_path, weighted, digest, memory):
    graphlane("gen", "rmat", "--scale", 12, "--edges", "60K", "--seed", 5, tmp_path / "a.txt")
    if weighted:
        rows = np.loadtxt(tmp_path / "a.txt", dtype=np.int64)
        with open(tmp_path / "a.txt", "w") as file:
            file.writelines(f"{s}\t{t}\t{(s * 7 + t) % 1000 / 8:.6g}\n" for s, t in rows.tolist())
    said = graphlane("convert", *(["-w"] if weighted else []), "--memory", memory, "--to", "shards", "-p", 3,
                     tmp_path / "a.txt", tmp_path / "web")
    assert said.stdout.endswith(f"61254 edges in 3 shards; GraphChi's programs take it as: file {tmp_path}/web/web\n")
    assert "186 self-loops are left out" in said.stderr
    whole = hashlib.sha256()
    for path in sorted(path for path in (tmp_path / "web").rglob("*") if path.is_file()):
        name = str(path.relative_to(tmp_path / "web"))
        assert name.startswith("web")
        whole.update(name[len("web"):].encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    assert whole.hexdigest() == digest


# The index has a line for about every 2^20 edges. The count of a long list takes four bytes.
def test_large_shards_are_read_by_a_stand_in_of_graphchi(graphlane, edges_of, tmp_path):
    star = np.column_stack([np.full(300, 9), np.arange(10, 310)])
    edges = np.concatenate([random_edges(30_000, 2_500_000, 6), star]).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    write_bin(tmp_path / "a.bin", edges)
    graphlane("convert", "--to", "shards", "-p", 2, tmp_path / "a.bin", tmp_path / "web")
    for shard in range(2):
        index = np.fromfile(tmp_path / f"web/web.edata_azv.{shard}_2.adjidx",
                            dtype=np.dtype([("vertex", "<u4"), ("zero", "<u4"), ("position", "<u8"), ("edges", "<u8")]))
        adjacency = (tmp_path / f"web/web.edata_azv.{shard}_2.adj").read_bytes()
        assert len(index) == 1 and index["edges"][0] >= 2**20
        last = int((tmp_path / "web/web.2.intervals").read_text().split()[0])
        in_shard = (edges[:, 1] <= last) == (shard == 0)
        sources = np.sort(edges[in_shard, 0])
        vertex, position, before = (int(index[name][0]) for name in ("vertex", "position", "edges"))
        assert (sources < vertex).sum() == before
        count = adjacency[position]
        if count == 255:
            count = struct.unpack_from("<I", adjacency, position + 1)[0]
        assert count == (sources == vertex).sum()
    graphlane("convert", "--to", "bin", tmp_path / "web", tmp_path / "b.bin")
    back = np.fromfile(tmp_path / "b.bin", dtype="<i4").reshape(-1, 2)
    assert (back[np.lexsort(back.T)] == edges[np.lexsort(edges.T)]).all()


def test_more_shards_than_can_be_cut_are_refused(refused, tmp_path):
    (tmp_path / "star.txt").write_text("".join(f"{i} 0\n" for i in range(1, 100)))
    refused("convert", "--to", "shards", "-p", 3, tmp_path / "star.txt", tmp_path / "web", naming="-p 1 or fewer")
