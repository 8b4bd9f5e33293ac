"""Inputs of graphlane convert that others write: each is read right, or refused by what it is."""

import gzip
import lzma
import pickle
import resource
import signal
import struct
import subprocess
import zlib

import numpy as np
import pytest

from test_convert_inputs import edges_of  # noqa: F401, a fixture
from test_convert_refusals import tarred

TEXT = "0 1\n1 2\n2 3\n3 0\n"
BANNER = "%%MatrixMarket matrix coordinate "


def old_tar() -> bytes:
    """A tar archive as Unix version 7 wrote it: without a magic."""
    head = bytearray(tarred())
    head[257:265] = bytes(8)
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head[:512])
    return bytes(head)


READ = [
    ("two-marks.txt", "\ufeff\ufeff0 1\n", "", [(0, 1)]),
    ("mark.graph", "\ufeff2 1\n2\n1\n", "", [(0, 1), (1, 0)]),
    ("mark.mtx", "\ufeff\n" + BANNER + "pattern general\n3 3 1\n1 2\n", "", [(0, 1)]),
    ("unsigned.mtx", BANNER + "unsigned-integer general\n3 3 1\n1 2 5\n", "-w", [(0, 1, "5")]),
    ("empty-members.gz", gzip.compress(b"") * 3 + gzip.compress(b"0 1\n"), "", [(0, 1)]),
    ("skipped-head.txt", "4 4\n" + TEXT, "--header", [(0, 1), (1, 2), (2, 3), (3, 0)]),
    ("an-edge.txt", "4 4\n" + TEXT, "--as-given", [(4, 4), (0, 1), (1, 2), (2, 3), (3, 0)]),
    ("one-way.graph", "3 1\n2\n\n1\n", "--as-given", [(0, 1), (2, 0)]),
    ("capitals.mtx", (BANNER + "pattern general\n3 3 1\n1 2\n").upper(), "", [(0, 1)]),
    ("small.mtx", (BANNER + "pattern general\n3 3 1\n1 2\n").lower(), "", [(0, 1)]),
    ("accents.txt", "# gr\u00f6\u00dfe\n0 1\n", "", [(0, 1)]),
    ("rounded.txt", "0 1 0.75\n", "-w --weights int64 --round", [(0, 1, "1")]),
    ("words.csv", "source,target\nann,bob\nbob,eve\n", "--header --renumber {map}", [(0, 1), (1, 2)]),
    ("words-mixed.txt", "ann 1\n1 2\n", "--renumber {map}", [(2, 0), (0, 1)]),
    ("vertex-10.u32", np.array([[10, 1], [1, 2]], dtype="<u4").tobytes(), "", [(10, 1), (1, 2)]),
    ("large.u32", np.random.default_rng(1).integers(0, 2**31, (200, 2)).astype("<u4").tobytes(), "",
     [tuple(e) for e in np.random.default_rng(1).integers(0, 2**31, (200, 2)).tolist()]),
    ("many.u32", np.random.default_rng(1).integers(0, 900, (600, 2)).astype("<u4").tobytes(), "",
     [tuple(e) for e in np.random.default_rng(1).integers(0, 900, (600, 2)).tolist()]),
    # Edges that count the others by chance.
    ("cycle.txt", "0 3\n1 2\n2 3\n0 1\n", "", [(0, 3), (1, 2), (2, 3), (0, 1)]),
    ("far.txt", "10 4\n20 5\n30 6\n40 7\n50 8\n", "", [(10, 4), (20, 5), (30, 6), (40, 7), (50, 8)]),
    ("star.txt", "4 0\n4 1\n4 2\n4 3\n", "", [(4, 0), (4, 1), (4, 2), (4, 3)]),
]


@pytest.mark.parametrize("name, content, words, edges", READ, ids=[row[0] for row in READ])
def test_is_read(edges_of, tmp_path, name, content, words, edges):  # noqa: F811
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert edges_of(tmp_path / name, *words.format(map=tmp_path / "map").split()) == edges


REFUSED = [
    ("head.txt", "4 4\n" + TEXT, "", "its first line counts what follows (4 lines): --header skips it"),
    ("head-from-1.txt", "4 3\n1 2\n2 3\n4 1\n", "", "its first line counts what follows (3 lines)"),
    ("head.csv", "5,4\n" + TEXT.replace(" ", ","), "", "its first line counts what follows (4 lines)"),
    ("renumbered.txt", "3 3\n10 20\n20 30\n30 10\n", "--renumber {map}", "its first line counts what follows (3 lines)"),
    ("words.txt", "4 3\nann bob\nbob eve\neve dan\n", "--renumber {map}", "its first line counts what follows (3 lines)"),
    ("far-apart.txt", "3 3\n10 20\n20 30\n30 10\n", "", "its first line counts what follows (3 lines)"),
    ("both-ways.txt", "4 3\n" + "".join(f"{i} {i + 1}\n{i + 1} {i}\n" for i in range(3)), "", "its first line counts what follows (6 lines)"),
    ("edges-first.txt", "3 4\n0 1\n1 2\n2 3\n", "", "its first line counts what follows (3 lines)"),
    ("long.txt", "70 2000\n" + "".join(f"{i} {i * 7919 % 90000}\n" for i in range(2000)), "", "its first line counts what follows (2000 lines)"),
    ("accents.bin", "# gr\u00f6\u00dfe\n0 1\n1 2\n..".encode(), "", "is text"),
    ("latin-1.bin", "# gr\u00f6sser\n0 1\n1 2\n..".encode("latin-1"), "", "is text"),
    ("zeros.u32", bytes(4096), "", "holds zeros alone"),
    ("zeros.txt", bytes(4096), "", "holds zeros alone"),
    ("zero-tail.txt", b"0 1\n1 2\n" + bytes(100), "", "byte 8: a zero byte in text: is it complete?"),
    ("twice.gz", gzip.compress(gzip.compress(TEXT.encode())), "", "is gzip data within gzip data: `gzip -dc FILE | "),
    ("xz-in.gz", gzip.compress(lzma.compress(TEXT.encode())), "", "is xz data within gzip data: `gzip -dc FILE | "),
    ("list.zz", zlib.compress(TEXT.encode()), "", "is zlib data"),
    ("a.pgp", "-----BEGIN PGP MESSAGE-----\n", "", "is a PGP message"),
    ("a.cpio", "070701" + "0" * 104, "", "is a cpio archive"),
    ("a.rds", b"X\n\0\0\0\2", "", "is data of R"),
    ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(30), "", "is an Office document"),
    ("a.sql", "INSERT INTO e VALUES (0,1);\n", "", "is SQL"),
    ("a.gdf", "nodedef>name VARCHAR\n0\n", "", "is a GDF file"),
    ("a.sh", "#!/bin/sh\necho 0 1\n", "", "is a script"),
    ("utf-32le.txt", TEXT.encode("utf-32-le"), "", "is UTF-32 text, which is not read: `iconv -f UTF-32LE"),
    ("utf-32be.txt", TEXT.encode("utf-32-be"), "", "is UTF-32 text, which is not read: `iconv -f UTF-32BE"),
    ("usual-names.csv", "Source,Target\nann,bob\nbob,eve\n", "--renumber {map}", "looks like a header"),
    ("nodes.txt", "nodes 4\n" + TEXT, "--renumber {map}", "looks like a header"),
    ("fraction.txt", "0 1 0.5\n", "-w --weights int64 --to u32",
     "'0.5' is not a weight of type int64 (--round takes the nearest; a list with --weights float64 holds it)"),
    ("beyond.txt", "0 1 123456789012345678901234567890\n", "-w --weights float64",
     "is not a weight of type float32 (--round takes the nearest)"),
    ("numbers-16.bin", np.random.default_rng(1).integers(0, 900, (200, 2)).astype("<u2").tobytes(), "", "looks like numbers of 16 bits"),
    ("int32-weights.bin", b"".join(struct.pack("<IIi", i * 7 % 90, i * 11 % 90, 1) for i in range(30)), "",
     "looks like pairs of 32-bit numbers with int32 weights"),
    ("int32-weights-vary.bin", b"".join(struct.pack("<IIi", i * 7 % 90, i * 11 % 90, i % 6) for i in range(90)), "",
     "looks like pairs of 32-bit numbers with int32 weights"),
    ("int32-as-float.bin", b"".join(struct.pack("<IIi", i, i + 1, 7 + i) for i in range(5)), "-w", "its weights are no likely float32 numbers"),
    ("big-endian-weights.bin", b"".join(struct.pack(">IIf", i, i + 1, 1.5 + i) for i in range(5)), "-w",
     "its weights are no likely float32 numbers"),
    ("few-int64-weights.bin", b"".join(struct.pack("<IIq", i, i + 1, 7 + i) for i in range(5)), "", "with int64 weights"),
    ("wide-head.u32", struct.pack("<QQ", 4, 4) + np.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype="<u4").tobytes(), "",
     "begins with counts of 64 bits"),
    ("wide-count.u32", struct.pack("<Q", 4) + np.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype="<u4").tobytes(), "",
     "begins with counts of 64 bits"),
    ("head.u32", np.array([[4, 4], [0, 1], [1, 2], [2, 3], [3, 0]], dtype="<u4").tobytes(), "", "its first record counts what follows (4 records): `tail -c +9 FILE | "),
    ("head.u64", np.array([[4, 4], [0, 1], [1, 2], [2, 3], [3, 0]], dtype="<u8").tobytes(), "--renumber {map}", "its first record counts what follows (4 records): `tail -c +17 FILE | "),
    ("matrix.txt", "4 4 4\n1 2 9\n2 3 9\n3 4 9\n4 1 9\n", "-w", "its first line counts what follows (4 lines)"),
    ("mac.txt", TEXT.replace("\n", "\r"), "", "a carriage return alone: `tr '\\r' '\\n' < "),
    ("mixed.txt", "0 1\n1 2\r2 3\n", "", "a carriage return alone"),
    ("utf-16.txt", TEXT.encode("utf-16-le"), "", "is UTF-16 text"),
    ("utf-16-be.txt", TEXT.encode("utf-16-be"), "", "is UTF-16 text"),
    ("utf-32.txt", TEXT.encode("utf-32"), "", "is UTF-32 text"),
    ("joined.txt", "0 1\n\ufeff1 2\n", "", "line 2: a byte order mark before '1'"),
    ("bytes.txt", b"0\xa01\n", "", r"'0\xa01' is not a vertex number"),
    ("floats.txt", "0.0 1.0\n", "", "'0.0' is not a vertex number: digits alone are"),
    ("exponent.txt", "0 1\n1 1e5\n", "", "line 2: '1e5' is not a vertex number: digits alone are"),
    ("plus.txt", "+1 2\n", "", "digits alone are"),
    ("thousands.csv", '"1,000",2\n', "", "'1,000' is not a vertex number"),
    ("empty.csv", "0,\n", "", "an empty column"),
    ("slashes.txt", "// c\n0 1\n", "", "grep -v '^/'"),
    ("stars.txt", "* c\n0 1\n", "", "grep -v '^*'"),
    ("wide.txt", "0 1 1e39\n", "-w", "'1e39' is not a weight of type float32 (a list with --weights float64 holds it)"),
    ("nan.txt", "0 1 nan\n", "-w", "'nan' is not a weight"),
    ("empty.zip", b"PK\5\6" + bytes(18), "", "is an empty zip archive"),
    ("old.tar", old_tar(), "", "is a tar archive"),
    ("a.pkl", pickle.dumps([(0, 1)]), "", "is a pickle of Python"),
    ("a.feather", b"FEA1" + bytes(20), "", "is a Feather file"),
    ("user-block.h5", bytes(512) + b"\x89HDF\r\n\x1a\n", "", "is an HDF5 file"),
    ("a.gml", "# c\ngraph\n[\n  node [ id 0 ]\n]\n", "", "is a GML file"),
    ("a.dot", "/* c */ graph G {\n0 -- 1\n}\n", "", "is a graph of Graphviz"),
    ("a.gexf", "<!-- c -->\n<gexf/>\n", "", "is a GEXF file"),
    ("a.graphml", "\ufeff<graphml/>\n", "", "is a GraphML file"),
    ("a.html", "\n<HTML><body>\n", "", "is a web page"),
    ("a.net", "% c\n*Vertices 2\n*Arcs\n1 2\n", "", "is a Pajek file"),
    ("a.dl", "DL N=3\n", "", "is a UCINET file"),
    ("a.ttl", "@prefix a: <b> .\n", "", "is RDF"),
    ("a.ini", "[graph]\ntype=1\n", "", "is X-Stream's"),
    ("one-way.graph", "3 1\n2\n\n1\n", "", "one of its ends only"),
    ("floats.u32", np.arange(16, dtype="<f4").tobytes(), "", "looks like floating-point numbers"),
    ("floats.u64", np.arange(16, dtype="<f8").tobytes(), "", "looks like floating-point numbers"),
    ("big-endian.u64", np.arange(16, dtype=">u8").tobytes(), "", "looks like big-endian numbers"),
    ("times.bin", b"".join(struct.pack("<IIq", i, i + 1, 1082008561 + i) for i in range(20)), "",
     "looks like pairs of 32-bit numbers with int64 weights: --from u32 -w --weights int64 reads it"),
]


@pytest.mark.parametrize("name, content, words, said", REFUSED, ids=[row[0] for row in REFUSED])
def test_is_refused_by_name(refused, tmp_path, name, content, words, said):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused("convert", *words.format(map=tmp_path / "map").split(), tmp_path / name, tmp_path / "out", naming=said)


@pytest.mark.parametrize("name, content, note", [
    ("out.short", "% sym unweighted\n% 5 3 3\n1 2\n", "1 edge, but the head of the file says 5"),
    ("cut-off.txt", "5 100\n0 1\n1 2\n2 3\n3 4\n", "its first line, '5 100', may count what follows"),
    ("short.txt", "3 2\n0 1\n1 2\n", "its first line, '3 2', may count what follows"),
    ("halves.mtx", BANNER + "pattern symmetric\n3 3 2\n2 1\n1 2\n", "entries below and above its diagonal"),
])
def test_a_doubt_is_noted(graphlane, tmp_path, name, content, note):
    (tmp_path / name).write_text(content)
    assert note in graphlane("convert", "--to", "snap", tmp_path / name, "-").stderr


# Two edges among 2,000,000,001 vertices.
def test_gaps_are_noted_and_make_no_millions_of_blocks(graphlane, tmp_path):
    (tmp_path / "gaps.txt").write_text("0 2000000000\n5 7\n")
    said = graphlane("convert", tmp_path / "gaps.txt", tmp_path / "grid")
    assert "--renumber MAP" in said.stderr
    assert said.stdout.startswith(f"{tmp_path}/grid: 2000000001 vertices, 2 edges in 32 x 32 blocks")
    assert graphlane("convert", "--to", "snap", tmp_path / "grid", "-").stdout == "5\t7\n0\t2000000000\n"


def test_gaps_are_noted_before_the_grid_is_written(graphlane, tmp_path):
    (tmp_path / "gaps.txt").write_text("0 2000000000\n5 7\n")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # below the table of blocks

    said = subprocess.run([graphlane.program, "convert", "-p", "40", tmp_path / "gaps.txt", tmp_path / "grid"],
                          preexec_fn=limit, capture_output=True, text=True)
    assert said.returncode == 1 and "--renumber MAP" in said.stderr and "File too large" in said.stderr


@pytest.mark.parametrize("map_is", ["input", "output", "a link to the input"])
def test_a_map_replaces_neither_input_nor_output(graphlane, tmp_path, map_is):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "link").hardlink_to(tmp_path / "a.txt")
    path = {"input": "a.txt", "output": "out.u32"}.get(map_is, "link")
    said = graphlane("convert", "-f", "--renumber", tmp_path / path, tmp_path / "a.txt", tmp_path / "out.u32", check=False)
    assert said.returncode == 2 and "the map would replace" in said.stderr
    assert (tmp_path / "a.txt").read_text() == TEXT
