"""graphlane restripe on a volume without a mount."""

import json
import os
import random
import shutil
import signal
import stat

import pytest

from harness import Job, run, snapshot
from test_check import large  # noqa: F401, a fixture


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(random.Random(1).randbytes(3_000_017))
    return path


@pytest.fixture
def filled(graphlane, volume, data, tmp_path):
    """A volume with striped and plain files in directories, and their expected content."""
    made = volume(depth="64K")
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (tree / name).write_bytes(name.encode() + data.read_bytes())
    (tree / "plain").write_text("plain")
    graphlane("import", tree, made.path)
    return made, tree


def depths(graphlane, at) -> dict[str, str]:
    lines = graphlane("ls", "-R", at).stdout.splitlines()
    return {line.split()[-1]: line.split(" x ")[0].split()[-1] for line in lines if " x " in line}


def all_paths(made) -> set[str]:
    """Directories may come and go meanwhile."""
    return {os.path.join(at, name) for top in (made.path, *made.devices)
            for at, directories, files in os.walk(top) for name in directories + files}


def check_content(graphlane, made, tree, tmp_path) -> None:
    back = tmp_path / "back"
    graphlane("export", "-f", f"{made.path}/tree/.", back)
    for path in tree.rglob("*"):
        if path.is_file():
            assert (back / path.relative_to(tree)).read_bytes() == path.read_bytes()
    assert "no problems" in graphlane("check", made.path).stdout


def test_a_volume_gets_another_depth(graphlane, filled, tmp_path):
    made, tree = filled
    for depth in ("4K", "1M", "20K"):
        result = graphlane("restripe", "--stripe-depth", depth, made.path)
        assert result.stdout.count("restriped: ") == 4
        assert depths(graphlane, made.path) == dict.fromkeys(
            ("tree/a", "tree/b", "tree/sub/c"), depth)
        check_content(graphlane, made, tree, tmp_path)
    # New files get the depth too.
    graphlane("import", tree / "a", made.path)
    assert depths(graphlane, made.path / "a") == {"a": "20K"}


def test_a_directory_leaves_the_others_and_the_default(graphlane, filled, tmp_path):
    made, tree = filled
    graphlane("restripe", "--stripe-depth", "4K", made.path / "tree/sub", made.path / "tree/a")
    assert depths(graphlane, made.path) == {"tree/a": "4K", "tree/b": "64K", "tree/sub/c": "4K"}
    assert json.loads(graphlane("info", "--json", made.path).stdout)["stripe_depth"] == 65536
    check_content(graphlane, made, tree, tmp_path)
    # Back to the volume's default.
    assert "2 files" in graphlane("restripe", made.path).stdout
    assert set(depths(graphlane, made.path).values()) == {"64K"}


def test_restripe_to_the_same_depth_does_nothing(graphlane, filled, tmp_path):
    made, _ = filled
    before = snapshot(made.path, *made.devices)
    result = graphlane("restripe", made.path)
    assert result.stdout == "restriped: 0 files (0), 3 as they were to be, 0 left\n"
    assert snapshot(made.path, *made.devices) == before


def test_a_dry_run_prints_and_changes_nothing(graphlane, filled, tmp_path):
    made, _ = filled
    before = snapshot(made.path, *made.devices)
    report = json.loads(
        graphlane("restripe", "-n", "--json", "--stripe-depth", "4K", made.path).stdout)
    assert [file["path"] for file in report["changed"]] == [
        str(made.path / "tree" / name) for name in ("a", "b", "sub/c")]
    assert report["changed"][0] == {"path": str(made.path / "tree/a"), "size": 3_000_018,
                                    "stripe_depth_before": 65536, "stripe_depth": 4096}
    assert report["left"] == []
    assert snapshot(made.path, *made.devices) == before


def test_links_owner_mode_times_and_attributes_stay(graphlane, filled, tmp_path, root):
    made, tree = filled
    file = made.path / "tree/a"
    os.link(file, made.path / "link")
    os.chown(file, 1234, 4321)
    os.chmod(file, 0o640)
    os.utime(file, ns=(1_000_000_001, 2_000_000_002))
    os.setxattr(file, "user.note", b"mine")
    for device in made.devices:  # as the mount does
        for path in [*device.glob("*/parts/*/*"), *device.glob("*/sums/*/*")]:
            os.chown(path, 1234, 4321)
    os.chown(made.path / "tree/b", 1234, 4321)
    os.chown(made.path / "tree/sub/c", 1234, 4321)
    before = file.stat()
    assert graphlane("restripe", "--stripe-depth", "4K", made.path).stdout.count("->") == 3
    after = file.stat()
    for name in ("st_ino", "st_nlink", "st_uid", "st_gid", "st_mode", "st_mtime_ns"):
        assert getattr(after, name) == getattr(before, name), name
    assert os.getxattr(file, "user.note") == b"mine"
    for part in json.loads(graphlane("info", "--json", file).stdout)["parts"]:
        info = os.stat(part["path"])
        assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (1234, 4321, 0o640)


def test_a_full_device_leaves_that_file_and_the_others_go_on(
        graphlane, small_filesystem, data, tmp_path):
    devices = [tmp_path / "d0", tmp_path / "d1", small_filesystem(tmp_path / "small", "2M")]
    for device in devices[:2]:
        device.mkdir()
    made = graphlane.create_on(tmp_path / "vol", devices, depth="64K")
    (tmp_path / "little").write_bytes(b"l" * 1_100_000)
    graphlane("import", data, made.path / "much")  # 1 MB a device: no room for a second copy
    graphlane("import", tmp_path / "little", made.path / "zlittle")
    before = snapshot(made.path / "much")
    result = graphlane("restripe", "--stripe-depth", "4K", made.path, check=False)
    assert result.returncode == 1
    (left,) = [line for line in result.stdout.splitlines() if line.startswith("left: ")]
    assert str(made.path / "much") in left and str(devices[2]) in left
    assert "No space left on device" in left
    assert snapshot(made.path / "much") == before
    assert depths(graphlane, made.path) == {"much": "64K", "zlittle": "4K"}
    assert "no problems" in graphlane("check", made.path).stdout
    graphlane("export", made.path / "much", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data.read_bytes()


def test_a_missing_device_stops_it(filled, refused):
    made, _ = filled
    made.devices[2].rename(made.devices[2].with_name("elsewhere"))
    refused("restripe", "--stripe-depth", "4K", made.path, naming=made.devices[2])


def test_an_impossible_depth_is_refused(filled, refused):
    made, _ = filled
    refused("restripe", "--stripe-depth", "5000", made.path, naming="4096")
    refused("restripe", "--stripe-depth", "x", made.path, naming="x", status=2)


def test_a_missing_path_or_no_volume_is_refused(filled, refused, tmp_path):
    made, tree = filled
    refused("restripe", made.path / "none", naming="none")
    refused("restripe", tree, naming=tree)


def test_restripe_without_write_permission_changes_nothing(graphlane, filled, open_tmp, root):
    made, tree = filled
    before = snapshot(made.path, *made.devices)
    for path in (made.path, made.path / "tree/a"):
        result = run(graphlane.program, "restripe", "--stripe-depth", "4K", path, check=False,
                     user=65534, group=65534)
        assert result.returncode == 1
        assert "Permission denied" in result.stdout + result.stderr
    # Nor does a user that may write, but cannot give the parts to the owner.
    (made.path / "tree/a").chmod(0o666)
    before = snapshot(made.path, *made.devices)
    result = run(graphlane.program, "restripe", "--stripe-depth", "4K", made.path / "tree/a",
                 check=False, user=65534, group=65534)
    assert result.returncode == 1
    assert "owner" in result.stdout
    assert snapshot(made.path, *made.devices) == before


def test_an_ordinary_user_restripes_its_own_volume(graphlane, data, open_tmp, root):
    home = open_tmp / "home"
    home.mkdir()
    shutil.copy(data, home / "f")
    for device in ("d0", "d1"):
        (home / device).mkdir()
    for path in (home, *home.iterdir()):
        os.chown(path, 65534, 65534)
    user = {"user": 65534, "group": 65534}
    run(graphlane.program, "create", home / "vol", "-d", home / "d0", "-d", home / "d1", **user)
    run(graphlane.program, "import", home / "f", home / "vol", **user)
    run(graphlane.program, "restripe", "--stripe-depth", "4K", home / "vol", **user)
    assert depths(graphlane, home / "vol") == {"f": "4K"}
    graphlane("export", home / "vol/f", open_tmp / "back")
    assert (open_tmp / "back").read_bytes() == data.read_bytes()
    # A change by root keeps the owner.
    graphlane("restripe", "--stripe-depth", "8K", home / "vol")
    run(graphlane.program, "restripe", "--stripe-depth", "16K", home / "vol", **user)
    assert {path.stat().st_uid for path in home.rglob("*")} == {65534}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_undoes_the_file_at_hand(graphlane, volume, large, number):
    made = volume()
    graphlane("import", large, made.path / "f")
    before = all_paths(made)
    job = Job(graphlane.program, "restripe", "--stripe-depth", "64K", made.path / "f")
    job.wait_until(lambda: all_paths(made) - before)
    assert job.stop(number) == "graphlane: interrupted\n"
    assert job.process.returncode == -number
    assert all_paths(made) == before
    assert "no problems" in graphlane("check", made.path).stdout


def test_an_interrupted_restripe_prints_its_progress(graphlane, volume, large, tmp_path):
    made = volume()
    (tmp_path / "small").write_bytes(bytes(100_000))
    graphlane("import", tmp_path / "small", made.path / "a")
    graphlane("import", large, made.path / "b")
    before = all_paths(made)
    job = Job(graphlane.program, "restripe", "--stripe-depth", "64K", made.path / "a", made.path / "b")
    job.wait_until(lambda: sum(map(os.path.isfile, all_paths(made) - before)) > len(made.devices))
    job.process.send_signal(signal.SIGINT)
    said, told = job.process.communicate(timeout=60)
    assert told == "graphlane: interrupted\n"
    assert said.startswith(f"restriped: {made.path}/a: ")


def test_check_and_restripe_wait_for_each_other(graphlane, volume, large):
    """Parts under construction are not orphans."""
    made = volume()
    graphlane("import", large, made.path / "f")
    before = all_paths(made)
    job = Job(graphlane.program, "restripe", "--stripe-depth", "64K", made.path)
    job.wait_until(lambda: all_paths(made) - before)
    os.kill(job.process.pid, signal.SIGSTOP)
    try:
        result = graphlane("check", "--repair", made.path, check=False)
    finally:
        os.kill(job.process.pid, signal.SIGCONT)
    assert result.returncode == 8 and "busy" in result.stderr
    assert job.process.wait(60) == 0
    graphlane("check", made.path)


def test_a_file_that_is_being_restriped_can_be_exported(graphlane, volume, large, tmp_path):
    made = volume()
    graphlane("import", large, made.path / "f")
    before = all_paths(made)
    job = Job(graphlane.program, "restripe", "--stripe-depth", "64K", made.path)
    job.wait_until(lambda: all_paths(made) - before)
    graphlane("export", made.path / "f", tmp_path / "back")
    job.process.communicate(timeout=60)
    assert job.process.returncode == 0
    assert (tmp_path / "back").read_bytes() == large.read_bytes()
    assert not (set(depths(graphlane, made.path).values()) - {"64K"})
