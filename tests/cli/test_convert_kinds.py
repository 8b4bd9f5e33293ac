"""Inputs of graphlane convert that others write: each is read right, or refused by what it is."""

import gzip
import io
import pickle
import resource
import signal
import struct
import subprocess
import tarfile

import numpy as np
import pytest

from test_convert_inputs import edges_of  # noqa: F401, a fixture

TEXT = "0 1\n1 2\n2 3\n3 0\n"
BANNER = "%%MatrixMarket matrix coordinate "


def old_tar() -> bytes:
    """A tar archive as Unix version 7 wrote it: without a magic."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("list.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"0 1\n"))
    head = bytearray(file.getvalue())
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
]


@pytest.mark.parametrize("name, content, words, edges", READ, ids=[row[0] for row in READ])
def test_is_read(edges_of, tmp_path, name, content, words, edges):  # noqa: F811
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert edges_of(tmp_path / name, *words.split()) == edges


REFUSED = [
    ("head.txt", "4 4\n" + TEXT, "", "its first line counts what follows (4 lines): --header skips it"),
    ("head-from-1.txt", "4 3\n1 2\n2 3\n4 1\n", "", "its first line counts what follows (3 lines)"),
    ("head.csv", "5,4\n" + TEXT.replace(" ", ","), "", "its first line counts what follows (4 lines)"),
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
    refused("convert", *words.split(), tmp_path / name, tmp_path / "out", naming=said)


@pytest.mark.parametrize("name, content, note", [
    ("out.short", "% sym unweighted\n% 5 3 3\n1 2\n", "1 edges, but the head of the file says 5"),
    ("halves.mtx", BANNER + "pattern symmetric\n3 3 2\n2 1\n1 2\n", "entries below and above its diagonal"),
])
def test_a_doubt_is_noted(graphlane, tmp_path, name, content, note):
    (tmp_path / name).write_text(content)
    assert note in graphlane("convert", "--to", "snap", tmp_path / name, "-").stderr


# A degree for each of 2,000,000,001 vertices takes a minute to write; here it may not be written.
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
