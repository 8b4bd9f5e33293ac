"""graphlane destroy, and import of several things at once."""

import os
import pty
import random
import shutil
import subprocess

import pytest

from harness import snapshot


@pytest.fixture
def filled(graphlane, volume, tmp_path):
    made = volume(depth="64K")
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(300_000))
    graphlane("import", tmp_path / "data", made.path)
    (made.path / "plain").mkdir()
    (made.path / "plain/small").write_text("small")
    return made


def test_destroy_leaves_nothing(graphlane, filled, tmp_path):
    (filled.devices[0] / "other").write_text("not ours")
    assert graphlane("destroy", "--yes", filled.path).stdout == f"destroyed {filled.path}\n"
    assert not filled.path.exists()
    assert [path.name for device in filled.devices for path in device.iterdir()] == ["other"]
    graphlane("create", filled.path, *(word for device in filled.devices for word in ("-d", device)))


def test_destroy_resumes_after_an_interrupt(graphlane, filled):
    """The removal stops after the second device."""
    for device in filled.devices[:2]:
        for path in device.iterdir():
            shutil.rmtree(path)
    result = graphlane("destroy", "--yes", filled.path)
    assert result.stderr.count("not found; it is left where it is\n") == 2
    assert not filled.path.exists() and not any(list(device.iterdir()) for device in filled.devices)


@pytest.mark.parametrize("answer, is_gone", [("vol", True), ("yes", False), ("", False)])
def test_destroy_asks_for_the_name(graphlane, filled, answer, is_gone):
    ours, its_end = pty.openpty()
    with subprocess.Popen([graphlane.program, "destroy", filled.path], stdin=its_end, stderr=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        os.close(its_end)
        os.write(ours, answer.encode() + b"\n")
        _, said = process.communicate(timeout=60)
        os.close(ours)
    assert "Type vol to go on: " in said
    assert process.returncode == (0 if is_gone else 1)
    assert filled.path.exists() != is_gone
    if not is_gone:
        assert graphlane("check", filled.path).returncode == 0


def test_a_volume_in_use_is_not_destroyed(graphlane, refused, filled, tmp_path, fuse):
    with graphlane.mounted(filled, tmp_path / "mnt"):
        refused("destroy", "--yes", filled.path, naming=f"is mounted at {tmp_path}/mnt (graphlane umount {tmp_path}/mnt)")
        refused("destroy", "--yes", tmp_path / "mnt", naming="is mounted at")
    graphlane("serve", filled.path)
    try:
        result = graphlane("destroy", "--yes", filled.path, check=False)
        assert result.returncode == 1 and f"(graphlane serve --stop {filled.path} ends a server)" in result.stderr
    finally:
        graphlane("serve", "--stop", filled.path)
    (tmp_path / "link").symlink_to(filled.path)
    refused("destroy", "--yes", tmp_path / "link", naming=f"a link: destroy {filled.path} itself")
    graphlane("check", filled.path)


def test_destroy_waits_for_what_is_about_to_end(graphlane, filled):
    """The coordinator of shared graphs ends two seconds after the last job."""
    holds = subprocess.Popen(["flock", "--shared", filled.path / ".graphlane/run", "sh", "-c", "echo held; exec sleep 1"],
                             stdout=subprocess.PIPE)
    with holds:
        assert holds.stdout.readline() == b"held\n"
        graphlane("destroy", "--yes", filled.path)
    assert not filled.path.exists()


def test_destroy_without_a_terminal_does_nothing(refused, filled):
    refused("destroy", filled.path, naming="asks on a terminal only: --yes", stdin=subprocess.DEVNULL)


def test_several_things_are_imported_as_cp_does(graphlane, volume, tmp_path):
    made = volume(depth="64K")
    (tmp_path / "tree/below").mkdir(parents=True)
    (tmp_path / "tree/below/file").write_text("in a tree")
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode() * 100_000)
    result = graphlane("import", tmp_path / "a", tmp_path / "b", tmp_path / "tree", made.path)
    assert result.stdout == "imported: 2 striped and 1 plain file, 195 KiB\n"
    result = graphlane("import", tmp_path / "absent", tmp_path / "a", made.path / "tree", check=False)
    assert (result.returncode, result.stderr) == (
        1, f"graphlane: {tmp_path}/absent: cannot open: No such file or directory\n")
    graphlane("export", made.path / "tree", tmp_path / "back")
    assert (tmp_path / "back/a").read_bytes() == b"a" * 100_000
    assert (tmp_path / "back/below/file").read_text() == "in a tree"
    before = snapshot(made.path)
    result = graphlane("import", tmp_path / "a", tmp_path / "b", made.path / "new", check=False)
    assert result.returncode == 1 and "no directory, and 2 things are to go there" in result.stderr
    assert snapshot(made.path) == before
