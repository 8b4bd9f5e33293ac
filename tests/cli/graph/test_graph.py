"""graphlane convert and gen."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from harness import PRELOADED, Job, snapshot


@pytest.fixture
def edges(graphlane, tmp_path):
    path = tmp_path / "edges.bin"
    graphlane("gen", "rmat", "--scale", 14, "--edges", "256K", "--seed", 7, path)
    return path


def test_gen_makes_the_same_graph_again(graphlane, edges, tmp_path):
    assert edges.stat().st_size == 256 * 1024 * 8
    graphlane("gen", "rmat", "--scale", 14, "--edges", 262144, "--seed", 7, "--threads", 1,
              tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == edges.read_bytes()
    graphlane("gen", "rmat", "--scale", 14, "--edges", 262144, "--seed", 8, tmp_path / "other.bin")
    assert (tmp_path / "other.bin").read_bytes() != edges.read_bytes()


def test_lists_convert_into_each_other(graphlane, edges, tmp_path):
    graphlane("convert", "--from", "bin", "--to", "snap", edges, tmp_path / "edges.txt")
    text = np.loadtxt(tmp_path / "edges.txt", dtype=np.int32, comments="#")
    assert (text == np.fromfile(edges, dtype=np.int32).reshape(-1, 2)).all()
    with gzip.open(tmp_path / "edges.txt.gz", "wb") as file:
        file.write((tmp_path / "edges.txt").read_bytes())
    graphlane("convert", "--to", "bin", tmp_path / "edges.txt.gz", tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == edges.read_bytes()


def test_a_grid_in_a_volume_is_the_grid_outside(graphlane, volume, edges, tmp_path):
    made = volume(depth="64K", stripe=["column", "row"])
    graphlane("convert", "-p", 4, edges, tmp_path / "grid")
    graphlane("convert", "-p", 4, edges, made.path / "grid")
    assert json.loads(graphlane("info", "--json", made.path / "grid/column").stdout)["striped"]
    graphlane("export", made.path / "grid", tmp_path / "back")
    assert ({k.replace("/back", "/grid"): v for k, v in snapshot(tmp_path / "back").items()}
            == snapshot(tmp_path / "grid"))
    assert not any((made.path / ".graphlane/tmp").iterdir())
    graphlane("check", made.path)


def test_a_list_generated_into_a_volume_is_striped(graphlane, volume, edges, tmp_path):
    made = volume(depth="64K")
    graphlane("gen", "rmat", "--scale", 14, "--edges", "256K", "--seed", 7, made.path / "e.bin")
    graphlane("export", made.path / "e.bin", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == edges.read_bytes()
    assert json.loads(graphlane("info", "--json", made.path / "e.bin").stdout)["striped"]


def test_an_existing_output_is_replaced_only_on_request(graphlane, refused, volume, edges, tmp_path):
    made = volume(depth="64K")
    graphlane("convert", "-p", 8, edges, made.path / "grid")
    refused("convert", "-p", 4, edges, made.path / "grid", naming=made.path / "grid")
    graphlane("convert", "-f", "-p", 4, edges, made.path / "grid")
    assert not (made.path / "grid/block-7-7").exists(), "of the old grid"
    graphlane("check", made.path)
    assert sorted(path.name for path in made.path.iterdir()) == [".graphlane", "grid"]


# The file was once replaced: -f compared it with the file at the end, not at the beginning.
def test_a_file_created_during_a_conversion_stays(graphlane, volume, tmp_path):
    made = volume(depth="64K")
    os.mkfifo(tmp_path / "edges.txt")
    job = Job(graphlane.program, "convert", "-p", 2, tmp_path / "edges.txt", made.path / "grid")
    with open(tmp_path / "edges.txt", "w") as edges:  # opening it shows that it is being read
        (made.path / "grid").mkdir()
        (made.path / "grid/letter").write_text("dear all")
        before = snapshot(made.path / "grid")
        edges.write("0 1\n1 2\n")
    said = job.process.communicate(timeout=60)[1]
    assert job.process.returncode == 1
    assert said == f"graphlane: {made.path}/grid: exists already (--overwrite replaces it)\n"
    assert snapshot(made.path / "grid") == before
    assert sorted(path.name for path in made.path.iterdir()) == [".graphlane", "grid"]
    assert not any((made.path / ".graphlane/tmp").iterdir())


# The directory was once removed with all its files.
@pytest.mark.parametrize("words,said", [
    (["-p", 2], "not a grid, so it is not overwritten"),
    (["--to", "bin"], "exists and is not a regular file")])
def test_a_directory_created_during_a_conversion_with_f_stays(graphlane, tmp_path, words, said):
    os.mkfifo(tmp_path / "edges.txt")
    out = tmp_path / "out"
    job = Job(graphlane.program, "convert", "-f", *words, tmp_path / "edges.txt", out)
    with open(tmp_path / "edges.txt", "w") as edges:  # opening it shows that it is being read
        out.mkdir()
        (out / "letter").write_text("dear all")
        edges.write("0 1\n1 2\n")
    told = job.process.communicate(timeout=60)[1]
    assert job.process.returncode == 1
    assert told == f"graphlane: {out}: {said}\n"
    assert (out / "letter").read_text() == "dear all"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.txt", "out"]


def test_a_grid_is_not_made_over_its_own_list(graphlane, refused, edges, tmp_path):
    grid = tmp_path / "grid"
    graphlane("convert", "-p", 4, edges, grid)
    shutil.copy(edges, grid / edges.name)
    refused("convert", "-f", "-p", 2, grid / edges.name, grid, naming=grid / edges.name)
    assert (grid / edges.name).read_bytes() == edges.read_bytes()


# The old graph, half removed, was once left beside the new one, and a check took it for a graph.
def test_check_finds_leftovers_of_a_killed_replacement(graphlane, volume, edges):
    made = volume(depth="64K")
    grid = made.path / "grid"
    graphlane("convert", "-p", 4, edges, grid)
    parts = lambda: sum(1 for device in made.devices for _ in device.glob("*/parts/*/" + 32 * "?"))  # noqa: E731
    part_count = parts()
    for _ in range(10):
        old = grid.stat().st_ino
        job = Job(graphlane.program, "convert", "-f", "-p", 4, edges, grid)
        while grid.stat().st_ino == old and job.process.poll() is None:
            time.sleep(0.001)
        job.stop(signal.SIGKILL)
        graphlane("check", "--repair", made.path, check=False)
        graphlane("check", "--delete-orphans", "--yes", made.path, check=False)
        graphlane("check", made.path)
        assert {path.name for path in made.path.iterdir()} - {"lost+found"} == {".graphlane", "grid"}
        assert parts() == part_count


@pytest.mark.parametrize("words", [["convert", "-p", 4], ["convert", "--to", "snap"], ["gen", "rmat"]])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_graph_replaces_only_its_own_format(graphlane, refused, volume, edges, words, slash):
    made = volume(depth="64K")
    (made.path / "graphs").mkdir()
    graphlane("convert", "-p", 4, edges, made.path / "graphs/grid")
    before = snapshot(made.path / "graphs")
    source = [edges] if words[0] == "convert" else []
    refused(*words, "-f", *source, f"{made.path}/graphs{slash}", naming=made.path / "graphs")
    assert snapshot(made.path / "graphs") == before
    graphlane("check", made.path)


def test_a_grid_does_not_replace_a_file(refused, volume, edges):
    made = volume()
    (made.path / "letter").write_text("dear all")
    refused("convert", "-f", "-p", 4, edges, made.path / "letter", naming="not a directory")
    assert (made.path / "letter").read_text() == "dear all"


@pytest.mark.parametrize("to", ["bin", "snap"])
def test_only_edges_go_to_stdout(graphlane, tmp_path, to):
    rmat = ["gen", "rmat", "--scale", 4, "--to", to]
    graphlane(*rmat, tmp_path / "list")
    piped = subprocess.run([graphlane.program, *map(str, rmat), "/dev/stdout"],
                           capture_output=True, check=True)
    assert piped.stdout == (tmp_path / "list").read_bytes()
    assert piped.stderr == b"/dev/stdout: 16 vertices, 256 edges\n"


BAD_LISTS = {
    "truncated": (b"1 2\n3", "line 2"),
    "empty": (b"", "no edge"),
    "comments only": (b"# nothing\n", "no edge"),
    "not a number": (b"1 2\nabc 3\n", "line 2: 'abc'"),
    "negative": (b"1 2\n3 -4\n", "line 2: '-4'"),
    "too large": (b"1 2\n2147483647 3\n", "line 2: '2147483647' is above 2147483646, the largest vertex number of this"),
    "far too large": (b"1 99999999999999999999\n", "line 1"),
}


@pytest.mark.parametrize("case", BAD_LISTS)
@pytest.mark.parametrize("in_volume", [False, True])
def test_a_bad_list_is_reported_by_file_line_and_reason(refused, volume, tmp_path, case, in_volume):
    content, reason = BAD_LISTS[case]
    source = tmp_path / "bad.txt"
    source.write_bytes(content)
    target = volume().path / "grid" if in_volume else tmp_path / "grid"
    line = refused("convert", source, target, naming=reason)
    assert str(source) in line


def test_a_truncated_binary_list(refused, edges, tmp_path):
    os.truncate(edges, 1003)
    refused("convert", edges, tmp_path / "grid", naming=f"{edges}: byte 1000")


def test_a_stub_given_as_a_list_is_recognized(graphlane, refused, fuse, volume, edges, tmp_path):
    made = volume(depth="64K")
    graphlane("import", edges, made.path)
    for words in ([], ["--from", "snap"]):
        refused("convert", *words, "-p", 2, made.path / "edges.bin", tmp_path / "grid",
                naming=f"{made.path}/edges.bin: is a striped file")
    # Follows the message's advice.
    graphlane("run", "--", graphlane.program, "convert", "-p", 2, made.path / "edges.bin",
              tmp_path / "grid", env=os.environ | PRELOADED)
    graphlane("convert", "-p", 2, edges, tmp_path / "same")
    assert (tmp_path / "grid/column").read_bytes() == (tmp_path / "same/column").read_bytes()


@pytest.mark.parametrize("words,naming", [
    (["--from", "tgf"], "tgf"), (["--to", "tgf"], "tgf"), (["-p", 100000], "100000"),
    (["-p", 0], "partitions"), (["--columns", "2"], "columns"), (["--delimiter", "ab"], "delimiter"),
    (["--weights", "int32"], "float64"), (["--to", "bin", "-p", 4], "-p"), (["--header"], "text"), (["--to", "csr", "--no-blocks"], "grids"),
    (["--vertices", 2**31], "4294967295"), (["--to", "snap", "--vertices", 2**32], "4294967295")])
def test_a_wrong_command_line_is_a_usage_error(refused, edges, tmp_path, words, naming):
    line = refused("convert", *words, edges, tmp_path / "out", naming=naming, status=2)
    assert line.endswith("(see graphlane convert --help)")


def test_targets_in_no_directory_or_the_volume_itself(refused, volume, edges, tmp_path):
    made = volume()
    refused("convert", edges, made.path, naming=made.path)
    refused("convert", edges, made.path / "no/grid", naming=made.path / "no")
    refused("gen", "rmat", "--scale", 31, tmp_path / "x", naming="scale", status=2)


def test_an_interrupted_conversion_leaves_nothing(graphlane, volume, tmp_path):
    made = volume()
    graphlane("gen", "rmat", "--scale", 18, "--edges", "16M", tmp_path / "large.bin")
    for target in [tmp_path / "out/grid", made.path / "grid"]:
        target.parent.mkdir(exist_ok=True)
        staging = target.parent if target.parent.name == "out" else made.path / ".graphlane/tmp"
        job = Job(graphlane.program, "convert", "-p", 16, tmp_path / "large.bin", target)
        job.wait_until(lambda: any(staging.iterdir()))  # noqa: B023
        said = job.stop(signal.SIGINT)
        assert job.process.returncode == -signal.SIGINT
        assert said == "graphlane: interrupted\n"
        assert not target.exists()
    assert list((tmp_path / "out").iterdir()) == []
    assert not any((made.path / ".graphlane/tmp").iterdir())
