"""The messages of graphlane convert for refused inputs. graphfmt/input/README.md has the same
table."""

import bz2
import gzip
import io
import lzma
import re
import resource
import signal
import struct
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[3] / "graphfmt/input/README.md"


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("list.txt", "0 1\n")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("list.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"0 1\n"))
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[0, 1], [1, 2]]))
    return file.getvalue()


# Name, bytes, options, and the message after the path.
WRONG = [
    ("a.txt", b"0 1\n1 2 7\n", "", "line 2: 3 columns where 2 are expected: '1 2 7' (-w reads the third as weights, --columns 1,2 leaves it out)"),
    ("a.txt", b"0 1 1 1082008561\n", "", "line 1: 4 columns where 2 are expected: '0 1 1 1082008561' (--columns 1,2 takes the first two)"),
    ("a.txt", b"0 1\n", "-w", "line 1: 2 columns where 3 are expected: '0 1' (without -w, edges have no weights)"),
    ("a.txt", b"0 1\n1 -2\n", "", "line 2: '-2' is negative, and vertices count from 0"),
    ("a.txt", b"0 1\nab 2\n", "", "line 2: 'ab' is not a vertex number"),
    ("a.txt", b"0 2147483647\n", "", "line 1: '2147483647' is above 2147483646, the largest vertex number of this output (--renumber MAP numbers vertices 0 to n-1)"),
    ("a.txt", b"0 1 heavy\n", "-w", "line 1: 'heavy' is not a weight"),
    ("a.txt", b"0 1 1217567877\n", "-w", "line 1: '1217567877' is not a weight of type float32 (--round takes the nearest; a list with --weights int64 holds it)"),
    ("a.txt", b"# nothing\n", "", "no edges in it"),
    ("a.csv", b"from,to\n0,1\n", "", "line 1: 'from' is not a vertex number (--header skips a first line of names, --renumber MAP takes words for vertices)"),
    ("a.csv", b"from,to\n0,1\n", "--renumber {map}", "line 1: looks like a header: --header skips it (--as-given believes that it is an edge)"),
    ("a.csv", b"0,1,2\n", "", "line 1: 3 columns where 2 are expected: '0,1,2' (--columns says which are read)"),
    ("a.csv", b'"0","1\n"\n', "", "line 1: a quoted column that does not end on its line: '\"0\",\"1'"),
    ("a.txt", b"0,1\n", "--from snap", "line 1: '0,1' is not a vertex number (--from csv reads columns with commas)"),
    ("a.csv", b"0 1\n", "", "line 1: 1 column where 2 are expected: '0 1' (--delimiter says what is between columns)"),
    ("a.bin", b"0 1\n1 2\n", "", "is text: --from snap, csv or another format of text reads it (--as-given believes that it is binary)"),
    ("a.txt", b"0 1\n1 2\n", "--from bin", "is text: --from snap, csv or another format of text reads it (--as-given believes that it is binary)"),
    ("a.bin", struct.pack("<8Q", 0, 1, 1, 2, 2, 3, 3, 0), "", "looks like pairs of 64-bit numbers: --from u64 reads it (--as-given believes that it is pairs of 32-bit numbers)"),
    ("a.bin", struct.pack("<IIfIIf", 0, 1, 1, 1, 2, 1), "", "looks like pairs of 32-bit numbers with float32 weights: -w reads it (--as-given believes that it is pairs of 32-bit numbers)"),
    ("a.bin", struct.pack("<12I", *[0, 1, 1, 2, 2, 3] * 2), "-w", "looks like pairs of 32-bit numbers, without weights: leave -w out (--as-given believes that it is pairs of 32-bit numbers with float32 weights)"),
    ("a.u64", struct.pack("<8I", *[0, 1, 1, 2, 2, 3, 3, 4]), "", "looks like pairs of 32-bit numbers: --from u32 reads it (--as-given believes that it is pairs of 64-bit numbers)"),
    ("a.u32", struct.pack(">8I", 0, 1, 1, 2, 2, 3, 3, 0), "", "looks like big-endian numbers: numpy.fromfile(…, '>u4').astype('<u4').tofile(…) turns them (--as-given believes that it is pairs of 32-bit numbers)"),
    ("a.bin", struct.pack("<3I", 0, 1, 2), "", "byte 8: truncated record: 4 of 8 bytes"),
    ("a.bin", struct.pack("<2i", 0, -1), "", "byte 4: '-1' is negative, and vertices count from 0"),
    ("a.dat", struct.pack("<8Q", 0, 1, 1, 2, 2, 3, 3, 0), "", "is not text: --from u64 fits its first bytes"),
    ("a.dat", struct.pack("<4I", 0, 1, 1, 2), "", "is not text: --from bin, u32 or u64 says what it is"),
    ("a.mtx", b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "", "line 1: is a dense matrix ('array'), not a sparse one: write it with scipy.io.mmwrite(…, scipy.sparse.coo_array(…))"),
    ("a.mtx", b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1 0\n", "-w", "line 1: complex values are no weights: without -w they are left out"),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", "-w", "line 1: a pattern matrix has no weights: leave -w out"),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 3\n", "", "line 2: a matrix of 2 x 3: rows and columns are different things, and no graph's vertices"),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n", "", "line 4: 1 edge, but the head of the file says 2: is it complete?"),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n0 2\n", "", "line 3: '0' is no vertex, and vertices count from 1 here"),
    ("a.txt", b"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", "--from snap", "is a Matrix Market file: --from mtx reads it"),
    ("a.gr", b"p max 3 1\na 1 2 1\n", "", "line 1: a DIMACS problem of kind 'max', which is not read: 'sp', 'edge' or 'col' is"),
    ("a.metis", b"3 2\n2\n1 3\n", "", "line 4: lines of 2 vertices, but the head says 3: is it complete?"),
    ("a.metis", b"2 1\n2\n3\n", "", "line 3: '3' is none of the vertices 1 to 2"),
    ("a.gz", gzip.compress(b"0 1\n") + b"1 2\n", "", "byte 24: what follows the end of the gzip data is no gzip data (`gzip -t` tells more)"),
    ("a.xz", lzma.compress(b"0 1\n")[:-4], "", "byte 56: truncated xz data"),
    ("a.bz2", bz2.compress(b"0 1\n")[:10] + b"xxxx" + bz2.compress(b"0 1\n")[14:], "", "byte 0: corrupt bzip2 data (incorrect data check)"),
    ("a.parquet", b"PAR1\x15\0PAR1", "", "is a Parquet file, which is not read: `duckdb -c \"COPY (SELECT * FROM 'FILE') TO 'list.csv'\"` makes CSV of it"),
    ("a.zip", zipped(), "", "is a zip archive, which is not read: `unzip -p FILE MEMBER | graphlane convert - OUT` reads a file of it"),
    ("a.tar.gz", gzip.compress(tarred()), "", "is a tar archive, which is not read: `tar -xOf FILE MEMBER | graphlane convert - OUT` reads a file of it"),
    ("a.npy", npy(), "", "is an array of numpy, which is not read: `python3 -c \"import numpy; numpy.load('FILE').astype('<u8').tofile('list.u64')\"` makes pairs of it"),
    ("web.properties", b"#BVGraph properties\nnodes=3\n", "", "is the properties of a WebGraph, which is not read: `java it.unimi.dsi.webgraph.ArcListASCIIGraph BASENAME list.txt` makes an edge list of the graph"),
    ("a.json", b'{"edges": [[0, 1]]}\n', "", "is JSON, which is not read: write its edges as CSV, with jq -r '… | @csv'"),
    ("a.txt", "0 1\n".encode("utf-16"), "", "is UTF-16 text, which is not read: `iconv -f UTF-16 -t UTF-8 FILE | graphlane convert - OUT` reads it"),
    ("a.html", b"<!DOCTYPE html>\n<p>404\n", "", "is a web page, perhaps of a download that failed, which is not read: fetch the file itself"),
    ("a.net", b"*Vertices 3\n*Arcs\n1 2\n", "", "is a Pajek file, which is not read: write it as an edge list with networkx or igraph"),
]


@pytest.mark.parametrize("row", range(len(WRONG)), ids=lambda row: f"{row}-{WRONG[row][0]}")
def test_a_wrong_input_gives_one_line_with_a_remedy(refused, tmp_path, row):
    name, content, words, said = WRONG[row]
    path = tmp_path / name
    path.write_bytes(content)
    line = refused("convert", *words.format(map=tmp_path / "map").split(), path, tmp_path / "out", naming=path)
    assert line.replace(str(path), "FILE") == "graphlane: FILE: " + said


def test_a_webgraph_is_recognized_by_its_properties(refused, tmp_path):
    (tmp_path / "web.graph").write_bytes(bytes(range(256)))
    (tmp_path / "web.properties").write_text("#BVGraph properties\n")
    refused("convert", tmp_path / "web.graph", tmp_path / "out", naming="ArcListASCIIGraph " + str(tmp_path / "web"))


def test_as_given_accepts_a_suspicious_list(graphlane, tmp_path):
    star = np.array([[5, 0], [7, 0], [9, 0], [11, 0]], dtype="<u4")  # looks like pairs of 64 bits
    star.tofile(tmp_path / "a.u32")
    graphlane("convert", "--as-given", "--to", "bin", tmp_path / "a.u32", tmp_path / "b.bin")
    assert (tmp_path / "b.bin").read_bytes() == star.tobytes()


def test_lists_of_large_numbers_are_accepted(graphlane, tmp_path):
    random = np.random.default_rng(9)
    for count in (2, 3, 6, 12, 3000):
        for top in (2**20, 2**31 - 1):
            edges = random.integers(0, top, (count, 2)).astype("<u4")
            edges.tofile(tmp_path / "a.u32")
            graphlane("convert", "-f", "--to", "u32", tmp_path / "a.u32", tmp_path / "b.u32")
            assert (tmp_path / "b.u32").read_bytes() == edges.tobytes()


def test_the_documented_table_agrees_with_the_messages():
    table = re.sub(r"\s+", " ", README.read_text())
    for name, _, words, said in WRONG:
        shown = said.replace("|", "\\|")
        assert f"| {shown} |" in table, f"graphfmt/input/README.md lacks: {name} {words}: {said}"


# The message once named the temporary place: ".grid.partial-4711", ".graphlane/tmp/…".
@pytest.mark.parametrize("to", ["grid", "csr", "shards", "bin"])
@pytest.mark.parametrize("in_volume", [False, True])
def test_a_write_error_names_the_users_output(graphlane, volume, tmp_path, to, in_volume):
    np.random.default_rng(1).integers(0, 1000, (100_000, 2)).astype("<u4").tofile(tmp_path / "a.u32")
    where = volume().path if in_volume else tmp_path

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    said = subprocess.run([graphlane.program, "convert", "--to", to, tmp_path / "a.u32", "out"], cwd=where, preexec_fn=limit,
                          capture_output=True, text=True)
    assert said.returncode == 1
    assert re.fullmatch(r"graphlane: out(/\S+)?: cannot (write|create): File too large\n", said.stderr), said.stderr
    assert not (where / "out").exists()


def test_an_existing_output_is_named_by_the_users_path(graphlane, tmp_path):
    (tmp_path / "a.txt").write_text("0 1\n")
    (tmp_path / "out").mkdir()
    for to in ("grid", "csr", "shards", "bin"):
        said = subprocess.run([graphlane.program, "convert", "--to", to, "a.txt", "out"], cwd=tmp_path, capture_output=True, text=True)
        assert said.stderr == "graphlane: out: exists already (--overwrite replaces it)\n"
