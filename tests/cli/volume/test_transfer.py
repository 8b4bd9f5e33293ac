"""graphlane import, export, ls, info, rm."""

import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import Graphlane, Job, Volume, run, snapshot


@pytest.fixture
def data(tmp_path):
    """A file of several stripes with an odd end."""
    path = tmp_path / "data"
    path.write_bytes(random.Random(1).randbytes(3_000_017))
    return path


def parts(made: Volume) -> list[Path]:
    return [path for device in made.devices for path in device.glob("*/parts/*/" + 32 * "?")]


def test_a_round_trip_keeps_the_file(graphlane, volume, data, tmp_path):
    made = volume(depth="64K")
    graphlane("import", data, made.path)
    assert (made.path / "data").stat().st_size == 4096
    graphlane("export", made.path / "data", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data.read_bytes()


def test_every_device_holds_its_share(graphlane, volume, data):
    made = volume(depth="64K")
    graphlane("import", data, made.path)
    info = json.loads(graphlane("info", "--json", made.path / "data").stdout)
    assert info["size"] == 3_000_017
    assert info["striped"] and info["state"] == "closed"
    sizes = [part["size"] for part in info["parts"]]
    assert sum(sizes) == 3_000_017
    assert max(sizes) - min(sizes) <= 65536


def test_ls_shows_true_sizes_and_layouts(graphlane, volume, data, tmp_path):
    made = volume(depth="64K")
    (tmp_path / "tree/sub").mkdir(parents=True)
    shutil.copy(data, tmp_path / "tree/sub/big")
    (tmp_path / "tree/small").write_text("small")
    graphlane("import", tmp_path / "tree", made.path)
    lines = graphlane("ls", made.path / "tree").stdout.splitlines()
    assert [line.split() for line in lines] == [["5", "plain", "small"], ["-", "directory", "sub/"]]
    line, = graphlane("ls", made.path / "tree/sub").stdout.splitlines()
    assert line.split()[:7] == ["2.86", "MiB", "64K", "x", "4", "from", line.split()[6]]
    _, *parts = graphlane("ls", "--devices", made.path / "tree/sub").stdout.splitlines()
    assert [part.split()[-1] for part in parts] == [str(device) for device in made.devices]
    assert sorted(part.split()[0] for part in parts) == ["704K", "704K", "754", "768K"]
    assert "sub/big" in graphlane("ls", "-R", made.path / "tree").stdout
    assert ".graphlane" not in graphlane("ls", "-R", made.path).stdout


def test_the_policy_and_its_options_choose_striped_files(graphlane, volume, data, tmp_path):
    made = volume(stripe=["column"])
    (tmp_path / "tree").mkdir()
    for name in ["column", "row", "shard.adj"]:
        shutil.copy(data, tmp_path / "tree" / name)
    (tmp_path / "tree/tiny.adj").write_bytes(b"x" * 5000)
    striped = lambda name: (made.path / name).stat().st_size == 4096  # noqa: E731
    graphlane("import", tmp_path / "tree", made.path)
    assert striped("tree/column")
    assert not striped("tree/row")
    graphlane("import", "--stripe", "*.adj", "--min-size", "5000", tmp_path / "tree",
              made.path / "again")
    assert striped("again/shard.adj") and striped("again/tiny.adj")
    assert not striped("again/column")


def test_nothing_is_overwritten_unasked(graphlane, refused, volume, data):
    made = volume()
    graphlane("import", data, made.path)
    refused("import", data, made.path, naming=made.path / "data")
    before = parts(made)
    graphlane("import", "--overwrite", data, made.path)
    assert len(parts(made)) == len(before)
    assert not set(parts(made)) & set(before)


def test_export_of_the_contents_of_all_and_of_a_directory(graphlane, volume, data, tmp_path):
    """SOURCE/. as for cp -r: into the target, even if that exists."""
    made = volume()
    (tmp_path / "tree/sub").mkdir(parents=True)
    shutil.copy(data, tmp_path / "tree/sub/big")
    graphlane("import", tmp_path / "tree", made.path / "tree")
    back = tmp_path / "back"
    for source, name in ((made.path, "tree/sub/big"), (made.path / "tree", "sub/big")):
        for _ in range(2):
            graphlane("export", "-f", f"{source}/.", back)
            files = [path for path in back.rglob("*") if path.is_file()]
            assert files == [back / name]
            assert files[0].read_bytes() == data.read_bytes()
        shutil.rmtree(back)


# The copies were once made beside the target, from where they could not be renamed.
def test_export_into_a_directory_that_is_a_filesystem(graphlane, volume, data, small_filesystem, tmp_path):
    made = volume(depth="64K")
    graphlane("import", data, made.path)
    there = small_filesystem(tmp_path / "there", "8M")
    graphlane("export", f"{made.path}/.", there)
    assert (there / "data").read_bytes() == data.read_bytes()
    assert [path.name for path in there.iterdir()] == ["data"]


def test_the_next_export_removes_leftovers_of_a_killed_one(graphlane, volume, data, tmp_path):
    made = volume(depth="64K")
    large = tmp_path / "large"
    large.write_bytes(random.Random(2).randbytes(64 << 20))
    for path in (large, data):
        graphlane("import", path, made.path)
    out = tmp_path / "out"
    out.mkdir()
    staged = lambda: list(out.glob(".graphlane-export-*"))  # noqa: E731
    job = Job(graphlane.program, "export", made.path / "large", out / "first")
    job.wait_until(lambda: any(list(stage.iterdir()) for stage in staged()))  # so that it is locked, too
    job.process.send_signal(signal.SIGSTOP)
    before = staged()
    graphlane("export", made.path / "data", out / "second")
    assert staged() == before, "of one that goes on"
    job.stop(signal.SIGKILL)
    graphlane("export", made.path / "data", out / "third")
    assert sorted(path.name for path in out.iterdir()) == ["second", "third"]


def test_export_replaces_only_regular_files(graphlane, refused, volume, data, tmp_path):
    """It once replaced /dev/stdout, which is a link to a device."""
    made = volume()
    graphlane("import", data, made.path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "dangling").symlink_to("nothing")
    refused("export", "-f", made.path / "data", tmp_path / "link", naming="not a regular file")
    assert (tmp_path / "link").is_symlink()
    graphlane("export", "-f", made.path / "data", tmp_path / "dangling")
    assert (tmp_path / "dangling").read_bytes() == data.read_bytes()


def test_export_does_not_overwrite_unasked(graphlane, refused, volume, data, tmp_path):
    made = volume()
    graphlane("import", data, made.path)
    (tmp_path / "there").write_text("mine")
    refused("export", made.path / "data", tmp_path / "there", naming=tmp_path / "there")
    graphlane("export", "-f", made.path / "data", tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == data.read_bytes()


@pytest.mark.parametrize(("depth", "reason"), [
    ("0", "stripe depth 0"), ("5000", "not a multiple"), ("4M", "less than one stripe")])
def test_impossible_depths(refused, volume, data, depth, reason):
    made = volume()
    refused("import", "--stripe-depth", depth, data, made.path, naming=reason)


def test_a_depth_larger_than_one_file_of_a_tree_names_it(refused, volume, data, tmp_path):
    made = volume()
    (tmp_path / "tree").mkdir()
    shutil.copy(data, tmp_path / "tree/large")
    (tmp_path / "tree/less").write_bytes(b"x" * 2_000_000)
    refused("import", "--stripe-depth", "2M", tmp_path / "tree", made.path,
            naming=tmp_path / "tree/less")


def test_paths_that_leave_the_volume(refused, volume, data, tmp_path):
    made = volume()
    (made.path / "out").symlink_to(tmp_path)
    refused("import", data, f"{made.path}/../x", naming=f"{made.path}/../x")
    refused("import", data, made.path / "out/x", naming=made.path / "out/x")
    refused("export", made.path / "../data", tmp_path / "x", naming="not in a Graphlane volume")
    refused("rm", made.path / "out/data", naming=made.path / "out/data")
    assert data.exists()


def test_a_link_is_removed_not_followed(graphlane, volume, data, tmp_path):
    made = volume()
    (made.path / "out").symlink_to(data)
    graphlane("rm", made.path / "out")
    assert not (made.path / "out").is_symlink()
    assert data.exists()


def test_missing_sources_and_targets(refused, volume, data, tmp_path):
    made = volume()
    refused("import", tmp_path / "none", made.path, naming=tmp_path / "none")
    refused("import", data, made.path / "no/such/dir", naming=made.path / "no")
    refused("import", data, tmp_path / "novolume", naming=tmp_path / "novolume")
    refused("export", made.path / "none", tmp_path / "x", naming=made.path / "none")
    refused("rm", made.path / "none", naming=made.path / "none")
    refused("ls", made.path / "none", naming=made.path / "none")
    refused("info", made.path / "none", naming=made.path / "none")


@pytest.mark.parametrize("command", ["ls", "rm"])
def test_a_missing_source_does_not_stop_the_others(graphlane, volume, command):
    made = volume()
    there = [made.path / name for name in ["a", "b"]]
    for path in there:
        path.write_text("x")
    none = made.path / "none"
    result = graphlane(command, there[0], none, there[1], check=False)
    assert result.returncode == 1
    complaint, = result.stderr.splitlines()
    assert str(none) in complaint
    if command == "ls":
        assert [line.split()[-1] for line in result.stdout.splitlines() if " plain " in line] == ["a", "b"]
    else:
        assert not any(path.exists() for path in there)


def test_control_characters_in_names_are_escaped_on_a_terminal(graphlane, volume, data):
    """A program gets the name unchanged."""
    made = volume()
    name = "\x1b]0;title\a\x7f"
    graphlane("import", data, made.path / name)
    assert graphlane("ls", made.path).stdout.endswith(f"  {name}\n")
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        with os.fdopen(theirs, "wb") as stdout:
            subprocess.run([graphlane.program, "ls", made.path], stdout=stdout, check=True, timeout=60)
        assert terminal.read(4096).endswith(b"  ?]0;title??\r\n")


def test_a_path_after_dashes_is_not_an_option(graphlane, volume):
    made = volume()
    for name in ["a", "b", "-c"]:
        (made.path / name).write_text(name)
    failed = graphlane("rm", made.path / "a", "--", made.path / "b", check=False)
    assert failed.returncode == 2 and str(made.path / "b") in failed.stderr
    graphlane("rm", "--", "-c", cwd=made.path)
    assert sorted(path.name for path in made.path.iterdir()) == [".graphlane", "a", "b"]


def test_devices_that_are_missing_or_swapped(graphlane, refused, volume, data):
    made = volume()
    graphlane("import", data, made.path)
    away = made.devices[2].rename(made.devices[2].with_name("away"))
    for words in [("ls", made.path), ("check", made.path), ("import", data, made.path / "x"),
                  ("export", made.path / "data", made.path.parent / "x"),
                  ("rm", made.path / "data"), ("mount", made.path)]:
        refused(*words, naming=f"{made.devices[2]}: missing", status=8 if words[0] == "check" else 1)
    made.devices[1].rename(made.devices[2])
    away.rename(made.devices[1])
    refused("ls", made.path, naming=f"{made.devices[1]}: holds device 2")


def test_a_short_part_is_named(graphlane, refused, volume, data, tmp_path):
    made = volume()
    graphlane("import", data, made.path)
    part = max(parts(made), key=lambda part: part.stat().st_size)  # short files leave some empty
    os.truncate(part, part.stat().st_size - 1)
    refused("export", made.path / "data", tmp_path / "x", naming=part)


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign"])
def test_a_damaged_stub_is_named(graphlane, refused, volume, data, tmp_path, damage):
    made = volume()
    graphlane("import", data, made.path)
    stub = made.path / "data"
    if damage == "cut":
        os.truncate(stub, 1000)
    elif damage == "flipped":
        content = bytearray(stub.read_bytes())
        content[50] ^= 1
        stub.write_bytes(content)
    else:
        other = volume()
        graphlane("import", data, other.path)
        shutil.copy(other.path / "data", stub)
    refused("export", stub, tmp_path / "x", naming=stub)
    refused("info", stub, naming=stub)
    refused("rm", stub, naming=stub)
    refused("import", stub, volume().path, naming=stub)


def test_an_unreadable_source_leaves_nothing(volume, graphlane, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("not applicable: root reads everything")
    made = volume()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a").write_bytes(b"a" * 2_000_000)
    (tmp_path / "tree/b").touch(mode=0)
    before = snapshot(made.path, *made.devices)
    result = graphlane("import", tmp_path / "tree", made.path, check=False)
    assert result.returncode == 1 and str(tmp_path / "tree/b") in result.stderr
    assert snapshot(made.path, *made.devices) == before


def test_a_full_device_is_named_and_nothing_stays(graphlane, refused, data, small_filesystem, tmp_path):
    devices = [tmp_path / "d0", tmp_path / "d1", small_filesystem(tmp_path / "small", "512K")]
    for device in devices[:2]:
        device.mkdir()
    graphlane("create", tmp_path / "vol", *(f"--device={d}" for d in devices),
              "--stripe-depth", "64K")
    line = refused("import", data, tmp_path / "vol", naming=devices[2])
    assert "No space left on device" in line
    # Holes are not reserved, so the device fills up while data is written.
    with open(tmp_path / "holes", "wb") as file:
        file.truncate(20 << 20)
        file.write(data.read_bytes())
    line = refused("import", tmp_path / "holes", tmp_path / "vol", naming=devices[2])
    assert "No space left on device" in line


def test_a_file_of_an_ordinary_user(graphlane, root, data):
    """An ordinary user's volume, import and export, end to end, and what other users may read."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing")
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        home.chmod(0o755)
        mine = home / "mine"
        mine.mkdir()
        shutil.chown(mine, 65534, 65534)
        nobody = lambda *words, **kw: subprocess.run(  # noqa: E731
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
             *map(str, words)], capture_output=True, text=True, cwd=mine, **kw)
        if nobody(graphlane.program, "--version").returncode != 0:
            pytest.skip("not applicable: nobody cannot execute the build")
        shutil.copy(data, home / "data")
        (home / "data").chmod(0o644)
        for d in range(2):
            (mine / f"d{d}").mkdir()
            shutil.chown(mine / f"d{d}", 65534, 65534)
        for words in [("create", "vol", "-d", "d0", "-d", "d1", "--stripe-depth", "64K"),
                      ("import", home / "data", "vol"), ("check", "vol"),
                      ("export", "vol/data", "back")]:
            result = nobody(graphlane.program, *words)
            assert result.returncode == 0, result.stderr
        assert (mine / "back").read_bytes() == data.read_bytes()
        # In root's volume the user reads only permitted files, and changes nothing.
        for d in range(2):
            (home / f"r{d}").mkdir()
        graphlane("create", home / "rv", "-d", home / "r0", "-d", home / "r1",
                  "--stripe-depth", "64K")
        graphlane("import", home / "data", home / "rv/open")
        (home / "data").chmod(0o600)
        graphlane("import", home / "data", home / "rv/secret")
        assert nobody(graphlane.program, "export", home / "rv/open", "open").returncode == 0
        for words in [("export", home / "rv/secret", "secret"), ("rm", home / "rv/open"),
                      ("import", home / "rv/../r0/nothing", home / "rv/x"),
                      ("import", mine / "back", home / "rv/x")]:
            result = nobody(graphlane.program, *words)
            assert result.returncode == 1, words
            assert len(result.stderr.splitlines()) == 1
        assert not (mine / "secret").exists()
        for part in [p for d in range(2) for p in (home / f"r{d}").glob("*/parts/*/" + 32 * "?")]:
            readable = nobody("test", "-r", part).returncode == 0
            assert readable == bool(part.stat().st_mode & 0o004)
        graphlane("check", home / "rv")


def test_quiet_is_quiet(graphlane, volume, data):
    made = volume()
    result = graphlane("--quiet", "import", data, made.path)
    assert result.stdout == "" and result.stderr == ""


def test_names_with_anything_in_them(graphlane, volume, data, tmp_path):
    made = volume()
    for name in ["two words", "new\nline", "\udcff", "-f", "ünïcödé", "'quote\""]:
        source = tmp_path / name
        shutil.copy(data, source)
        graphlane("import", source, made.path)
        graphlane("export", made.path / name, tmp_path / "back", "--overwrite")
        assert (tmp_path / "back").read_bytes() == data.read_bytes()
        result = graphlane("import", source, made.path, check=False, errors="surrogateescape")
        assert len(result.stderr.splitlines()) == 1
    graphlane("check", made.path)


def test_run_from_within_the_volume(graphlane: Graphlane, volume, data):
    made = volume()
    graphlane("import", data, ".", cwd=made.path)
    assert "data" in graphlane("ls", ".", cwd=made.path).stdout
    graphlane("import", data, "copy", cwd=made.path)
    graphlane("rm", "data", "copy", cwd=made.path)
    assert parts(made) == []


def test_names_of_imported_files_are_durable(graphlane, volume, tmp_path):
    """That includes new files, which replace nothing."""
    made = volume()
    (tmp_path / "data").write_bytes(b"x" * 100_000)
    log = tmp_path / "calls"
    run("strace", "-f", "-o", log, "-e", "trace=renameat2,syncfs", graphlane.program, "import",
        tmp_path / "data", made.path, env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})  # cannot be traced
    calls = re.findall(r"(renameat2|syncfs)\(", log.read_text())
    assert calls.index("renameat2") < len(calls) - 1 and calls[-1] == "syncfs"
