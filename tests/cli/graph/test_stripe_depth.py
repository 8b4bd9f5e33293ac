"""--stripe-depth auto, and graphlane advise, which explains it."""

import json

import numpy as np
import pytest

import graphs
from harness import are_ssds, run, snapshot

PARTITIONS = 3
UNIT_MIN = 64 << 10


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """4 MB of edges, most of them in the first blocks."""
    edges = graphs.random_edges(3000, 500_000, seed=5)
    return graphs.write_grid(tmp_path_factory.mktemp("graph") / "grid", edges, 3000, PARTITIONS)


@pytest.fixture
def auto(graphlane, tmp_path):
    """A volume that chooses a depth at each import."""
    devices = [tmp_path / f"device{n}" for n in range(3)]
    for device in devices:
        device.mkdir()
    return graphlane.create_on(tmp_path / "auto", devices, depth="auto", stripe=["column", "row"])


def depth_of(graphlane, path) -> int:
    return json.loads(graphlane("info", "--json", path).stdout)["stripe_depth"]


def advice(graphlane, path, *words) -> dict:
    return json.loads(graphlane("advise", "--json", *words, path).stdout)


def default_of(graphlane, made) -> int:
    """The expected depth on devices as this machine has: 3M on disks, 512K on SSDs."""
    default = advice(graphlane, made.path)["stripe_depth_default"]
    assert default in [3 << 20, 512 << 10]
    return default


def test_an_import_uses_the_advised_depth(graphlane, volume, grid):
    made = volume(depth="16K", stripe=["column", "row"])
    told = advice(graphlane, grid, "--devices", 4)
    graphlane("import", "--stripe-depth", "auto", grid, made.path)
    for sweep in told["sweeps"]:
        requests = sweep["requests"]
        assert requests["mean"] <= requests["max"] <= 24 << 20
        assert sweep["reason"] in ["balance", "requests", "threads"]
        depth = depth_of(graphlane, made.path / "grid" / sweep["name"])
        assert depth == sweep["stripe_depth_auto"]
        assert depth % 4096 == 0 and UNIT_MIN <= depth <= requests["max"]
    # The volume's own depth holds for files without an advice.
    graphlane("import", grid, made.path / "again")
    assert depth_of(graphlane, made.path / "again/column") == 16384
    graphlane("check", made.path)


def test_an_auto_volume_chooses_at_import(graphlane, auto, grid, tmp_path):
    info = json.loads(graphlane("info", "--json", auto.path).stdout)
    assert info["stripe_depth_auto"] is True
    assert info["stripe_depth"] == default_of(graphlane, auto), "for programs of before, and for new files"
    assert "auto" in graphlane("info", auto.path).stdout
    graphlane("import", grid, auto.path)
    told = advice(graphlane, grid, "--devices", 3)["sweeps"]
    assert [depth_of(graphlane, auto.path / "grid" / sweep["name"]) for sweep in told] == [
        sweep["stripe_depth_auto"] for sweep in told]
    graphlane("import", "--stripe-depth", "128K", grid, auto.path / "explicit")
    assert depth_of(graphlane, auto.path / "explicit/column") == 128 << 10
    graphlane("export", auto.path / "grid", tmp_path / "back")
    assert [*snapshot(tmp_path / "back").values()] == [*snapshot(grid).values()]


def test_an_auto_volume_chooses_for_a_generated_graph(graphlane, auto, tmp_path):
    edges = graphs.write_bin(tmp_path / "edges.bin", graphs.random_edges(3000, 500_000, seed=5))
    graphlane("convert", "-p", 4, edges, auto.path / "grid")
    told = advice(graphlane, auto.path / "grid")
    assert told["devices"] == 3
    for sweep in told["sweeps"]:
        assert sweep["stripe_depth"] == sweep["stripe_depth_auto"] != told["stripe_depth_default"]


def test_on_ssds_stripes_are_finer(graphlane, disks, tmp_path):
    devices = [word for disk in disks for word in ("--device", disk)]

    def made(name: str, *words) -> dict:
        graphlane("create", tmp_path / name, *words, *devices)
        return json.loads(graphlane("info", "--json", tmp_path / name).stdout)

    graph = graphs.write_grid(tmp_path / "grid", graphs.random_edges(3000, 2_000_000, seed=5), 3000, 2)
    assert made("on_disks")["stripe_depth"] == 3 << 20
    deep = advice(graphlane, graph, "--devices", 2)
    assert "ssds" not in [sweep["reason"] for sweep in deep["sweeps"]]
    are_ssds(disks)
    assert made("on_ssds")["stripe_depth"] == 512 << 10
    assert made("said", "--stripe-depth", "2M")["stripe_depth"] == 2 << 20
    assert made("auto", "--stripe-depth", "auto", "--stripe", "column")["stripe_depth"] == 512 << 10
    graphlane("import", graph, tmp_path / "auto")
    (fine,) = [sweep for sweep in advice(graphlane, tmp_path / "auto/grid")["sweeps"]
               if sweep["name"] == "column"]
    assert fine["stripe_depth"] == fine["stripe_depth_auto"] == 512 << 10
    assert fine["reason"] == "ssds"
    assert advice(graphlane, graph, "--ssds", "--devices", 2)["stripe_depth_default"] == 512 << 10
    assert "SSDs" in graphlane("advise", tmp_path / "auto/grid").stdout


def test_new_files_in_a_mount_get_the_chosen_depth(graphlane, auto, mount):
    with mount(auto) as mnt:
        (mnt / "column").write_bytes(b"x" * 10_000)
    assert depth_of(graphlane, auto.path / "column") == default_of(graphlane, auto)


def test_restriping_an_auto_volume(graphlane, refused, auto, grid):
    graphlane("import", grid, auto.path)
    refused("restripe", auto.path, naming="--stripe-depth")
    graphlane("restripe", "--stripe-depth", "12M", auto.path)
    info = json.loads(graphlane("info", "--json", auto.path).stdout)
    assert info["stripe_depth_auto"] is False
    assert info["stripe_depth"] == depth_of(graphlane, auto.path / "grid/column") == 12 << 20
    assert "0 left" in graphlane("restripe", auto.path).stdout


@pytest.mark.parametrize(("file", "content", "reason"), [
    ("column_offset", b"\0" * 72, "byte 72: 72 bytes, expected 80"),
    ("row_offset", b"<html>" * 20, "byte 80: 120 bytes, expected 80 at most"),
    ("row_offset", b"<html>" * 13 + b"<>", "byte 0: offset"),
    ("meta", b"<html>", "byte 0: not GridGraph's four numbers"),
    ("column", b"", "byte 0: 0 bytes, expected 4000000")],
    ids=["short table", "long table", "foreign table", "foreign meta", "no edges"])
def test_a_damaged_grid_is_refused_by_file_offset_and_reason(
        graphlane, refused, auto, grid, tmp_path, file, content, reason):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for path in grid.iterdir():
        (damaged / path.name).write_bytes(content if path.name == file else path.read_bytes())
    line = refused("advise", damaged, naming=damaged / file)
    assert reason in line
    assert reason in refused("import", damaged, auto.path, naming=damaged / file)
    # An explicit depth needs no table.
    graphlane("import", "--stripe-depth", "64K", damaged, auto.path / "all the same")


def test_advice_for_a_striped_and_a_plain_graph_agrees(graphlane, volume, grid, mount, tmp_path):
    made = volume(depth="8K", stripe=["*"])
    graphlane("import", "--min-size", "1", grid, made.path)
    plain = advice(graphlane, grid, "--devices", 4)
    assert all("stripe_depth" not in sweep for sweep in plain["sweeps"])
    striped = advice(graphlane, made.path / "grid")
    with mount(made) as mnt:
        mounted = advice(graphlane, mnt / "grid", "--devices", 4)
    for told in [striped, mounted]:
        for sweep in told["sweeps"]:
            assert sweep.pop("stripe_depth", 8192) == 8192
        for key in ["format", "edges", "partitions", "devices", "swept", "stripe", "sweeps"]:
            assert told[key] == plain[key]


def test_the_advice_assumes_the_engines_request_size(graphlane, auto, engines, grid, tmp_path):
    graphlane("import", grid, auto.path)
    graphlane("run", "--no-mount", f"--report={tmp_path / 'report'}", "--",
              engines / "grid_engine", "pagerank", auto.path / "grid", "--iterations", 3,
              "--out", tmp_path / "ranks")
    files = {file["path"].rsplit("/", 1)[1]: file
             for line in (tmp_path / "report").read_text().splitlines()
             for file in json.loads(line)["files"]}
    told = {sweep["name"]: sweep["requests"] for sweep in advice(graphlane, grid)["sweeps"]}
    assert files["row"]["reads"] == told["row"]["count"], "the degrees, once"
    assert files["column"]["reads"] == 3 * told["column"]["count"]


def test_the_depth_of_shards_follows_their_pieces(graphlane, volume, engines, tmp_path):
    edges = graphs.write_bin(tmp_path / "edges.bin", graphs.random_edges(3000, 1_500_000, seed=1))
    (tmp_path / "shards").mkdir()
    run(engines / "shard_engine", "shard", edges, tmp_path / "shards/g", "--shards", 2)
    told = advice(graphlane, tmp_path / "shards", "--devices", 2)
    assert told["format"] == "shards" and told["stripe"] == ["*.adj"]
    by_name = {sweep["name"]: sweep for sweep in told["sweeps"]}
    assert len(by_name) == 4
    assert by_name["g.0_2.adj"]["requests"]["max"] <= 16 << 20
    blocks = by_name["g.edata.0_2_blockdir_1048576/*"]
    assert blocks["requests"]["max"] == 1 << 20 and blocks["rewritten"]
    made = volume(device_count=2, stripe=["*.adj"])
    graphlane("import", "--stripe-depth", "auto", tmp_path / "shards", made.path)
    assert depth_of(graphlane, made.path / "shards/g.1_2.adj") == (
        by_name["g.1_2.adj"]["stripe_depth_auto"])


def test_advice_for_a_file_that_is_no_graph(graphlane, refused, auto, tmp_path):
    assert advice(graphlane, tmp_path)["format"] == "unknown"
    assert "none that is known" in graphlane("advise", tmp_path).stdout
    refused("advise", tmp_path / "none", naming=tmp_path / "none")
    (tmp_path / "file").write_bytes(np.arange(1 << 20, dtype="<i4").tobytes())
    refused("advise", tmp_path / "file", naming="not a directory")
    refused("advise", "--devices", 1, tmp_path, naming="--devices", status=2)
    # Spread over all devices, with the default depth at most.
    graphlane("import", tmp_path / "file", auto.path)
    assert depth_of(graphlane, auto.path / "file") == (4 << 20) // 12 // 4096 * 4096


def test_advise_says_whether_the_graph_fits(graphlane, grid):
    told = advice(graphlane, grid)
    assert told["swept"] == 8_000_000 and told["fits_memory"] is (told["memory"] >= 8_000_000)
    text = graphlane("advise", grid).stdout
    assert "3 x 3 partitions" in text and "--stripe 'column' --stripe 'row'" in text
