"""Folders deeper than PATH_MAX, which any user can make: each command reaches what is in them, and none fails for them."""

import os
import random

import pytest

from harness import run

NAME = "n" * 200
DEPTH = 25  # 5000 bytes of path
CONTENT = random.Random(1).randbytes(1_200_001)  # enough to be striped


def go_down(top, makes=False) -> int:
    """A descriptor of the deepest folder."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(DEPTH):
        if makes:
            os.mkdir(NAME, dir_fd=fd)
        below = os.open(NAME, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd


def read(top, name) -> bytes:
    directory = go_down(top)
    fd = os.open(name, os.O_RDONLY, dir_fd=directory)
    os.close(directory)
    with open(fd, "rb") as file:
        return file.read()


@pytest.fixture
def source(tmp_path):
    """Down there: a striped file, a plain one, a link, and another name of the striped one."""
    top = tmp_path / "tree"
    top.mkdir()
    fd = go_down(top, makes=True)
    for name, content in (("column", CONTENT), ("plain", b"plain")):
        with open(os.open(name, os.O_WRONLY | os.O_CREAT, 0o640, dir_fd=fd), "wb") as file:
            file.write(content)
    os.symlink("plain", "link", dir_fd=fd)
    os.link("column", "second", src_dir_fd=fd, dst_dir_fd=fd)
    os.close(fd)
    yield top
    run("rm", "-rf", *tmp_path.iterdir())  # pytest's own way fails


def test_they_come_and_go(graphlane, volume, source, tmp_path):
    made = volume(depth="64K", stripe=["col*"])
    graphlane("import", source, made.path)
    assert read(made.path / "tree", "column")[1:6] == b"GLSTU"
    assert "unreadable" not in graphlane("ls", "-R", made.path).stdout
    assert graphlane("check", "--scrub", made.path).returncode == 0
    assert "1 file " in graphlane("restripe", "--stripe-depth", "128K", made.path).stdout
    assert graphlane("import", "--overwrite", source, made.path).returncode == 0
    graphlane("export", made.path / "tree", tmp_path / "out")
    for name in ("column", "second"):
        assert read(tmp_path / "out", name) == CONTENT
    assert read(tmp_path / "out", "plain") == read(tmp_path / "out", "link") == b"plain"
    graphlane("export", "--overwrite", made.path / "tree", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    graphlane("rm", "--recursive", made.path / "tree")
    assert graphlane("check", made.path).returncode == 0


def test_a_copied_one_is_adopted(graphlane, volume, source, tmp_path):
    made = volume(depth="64K", stripe=["col*"])
    graphlane("import", source, made.path)
    copy = tmp_path / "vol"
    (copy / "tree").mkdir(parents=True)
    run("cp", "-a", made.path / ".graphlane", copy)
    stub = read(made.path / "tree", "column")  # no copying program gets there
    fd = go_down(copy / "tree", makes=True)
    with open(os.open("column", os.O_WRONLY | os.O_CREAT, 0o640, dir_fd=fd), "wb") as file:
        file.write(stub)
    os.close(fd)
    run("rm", "-rf", made.path)
    assert "1 stub bound" in graphlane("adopt", tmp_path / "vol").stdout
    graphlane("export", tmp_path / "vol/tree", tmp_path / "out")
    assert read(tmp_path / "out", "column") == CONTENT
