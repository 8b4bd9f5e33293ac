"""Commands of root on behalf of users give no user access beyond that user's rights."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import run

USER = 65533
SECRET = b"root's own. " * 100_000


def as_user(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], user=USER, group=USER, extra_groups=[],
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL, **options)


def give(*trees: Path) -> None:
    for tree in trees:
        for path in (tree, *tree.rglob("*")):
            os.chown(path, USER, USER, follow_symlinks=False)


@pytest.fixture
def secret(root, open_tmp) -> Path:
    path = open_tmp / "secret"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def linked(graphlane, volume, secret, tmp_path):
    """A user's volume with the striped file `data`. One of its parts is a link to the secret."""
    made = volume(device_count=2, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(1_000_000))
    graphlane("import", tmp_path / "data", made.path)
    part = next(made.devices[0].glob("*/parts/*/" + 32 * "?"))
    part.unlink()
    part.symlink_to(secret)
    give(made.path, *made.devices)
    return made


def test_a_part_that_is_a_link_is_not_exported(graphlane, linked, tmp_path):
    result = graphlane("export", linked.path / "data", tmp_path / "out", check=False)
    assert result.returncode == 1
    assert "is a symbolic link, which is not followed here" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_part_that_is_a_link_is_not_read_by_a_mount(linked, mount):
    with mount(linked) as at:
        result = as_user("cat", at / "data")
    assert result.returncode != 0
    assert result.stdout == b""


def test_a_mode_change_does_not_follow_a_part_that_is_a_link(graphlane, linked, secret):
    graphlane("run", "--no-mount", "--", "chmod", "666", linked.path / "data", check=False)
    assert secret.stat().st_mode & 0o777 == 0o600


def test_a_mode_change_by_a_mount_does_not_follow_a_part_that_is_a_link(linked, mount, secret):
    with mount(linked) as at:
        as_user("chmod", "666", at / "data")
    assert secret.stat().st_mode & 0o777 == 0o600


def test_no_part_is_made_in_a_directory_that_is_a_link(graphlane, volume, root, open_tmp, mount):
    """Root makes parts for a user, and gives them to that user."""
    made = volume(device_count=2, depth="64K", stripe=["data"])
    private = open_tmp / "private"
    private.mkdir(0o700)
    parts, = made.devices[0].glob("*/parts")
    for number in range(256):
        (parts / f"{number:02x}").symlink_to(private)
    give(made.path, *made.devices)
    (open_tmp / "data").write_bytes(bytes(3 << 20))
    with mount(made) as at:
        as_user("cp", open_tmp / "data", at / "data")
    graphlane("import", open_tmp / "data", made.path / "imported", check=False)
    assert list(private.iterdir()) == []


def test_a_stub_naming_another_users_parts_is_not_exported(graphlane, volume, root, open_tmp):
    """A user writes a stub of 4096 bytes, and waits for root's backup of the volume."""
    made = volume(depth="64K")
    (open_tmp / "data").write_bytes(random.Random(1).randbytes(1_000_000))
    (open_tmp / "data").chmod(0o600)
    graphlane("import", open_tmp / "data", made.path)
    shutil.copyfile(made.path / "data", made.path / "mine")
    os.chown(made.path / "mine", USER, USER)
    result = graphlane("export", made.path / "mine", open_tmp / "out", check=False)
    assert result.returncode == 1
    assert result.stderr.startswith(f"graphlane: {made.path}/mine: a copy of a stub")
    assert not (open_tmp / "out").exists()
    graphlane("export", made.path / "data", open_tmp / "out")
    run("cmp", open_tmp / "data", open_tmp / "out")


def test_export_into_a_directory_beside_which_nothing_may_be_written(graphlane, volume, root, open_tmp):
    made = volume(depth="64K")
    (open_tmp / "data").write_bytes(random.Random(1).randbytes(1_000_000))
    graphlane("import", open_tmp / "data", made.path)
    (open_tmp / "out").mkdir()
    give(open_tmp / "out", made.path, *made.devices)
    result = as_user(graphlane.program, "export", f"{made.path}/.", open_tmp / "out")
    assert result.returncode == 0, result.stderr
    run("cmp", open_tmp / "data", open_tmp / "out/data")
    assert [path.name for path in (open_tmp / "out").iterdir()] == ["data"]


def test_removal_by_root_does_not_follow_a_folder_that_becomes_a_link(graphlane, volume, root, open_tmp):
    """The folder's owner puts a link in its place again and again."""
    made = volume(device_count=2, depth="64K")
    private = open_tmp / "private"
    private.mkdir(0o700)
    names = [str(number) for number in range(50)]
    for name in names:
        (private / name).write_text("root's own")
    flip = """
import os, sys
top, private, user = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
os.chdir(top)
print("begun", flush=True)
while os.getppid() != 1:
    try:
        os.rename("f", "g")
        os.symlink(private, "f")
        os.unlink("f")
        os.rename("g", "f")
    except OSError:
        pass
"""
    for _ in range(5):
        folder = made.path / "user/f"
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).touch()
        give(made.path / "user")
        flipping = subprocess.Popen([sys.executable, "-c", flip, folder.parent, private, str(USER)],
                                    stdout=subprocess.PIPE)
        try:
            flipping.stdout.readline()
            graphlane("rm", "-r", made.path / "user", check=False)
        finally:
            flipping.kill()
            flipping.communicate()
        assert sorted(path.name for path in private.iterdir()) == sorted(names)
        shutil.rmtree(made.path / "user", ignore_errors=True)
