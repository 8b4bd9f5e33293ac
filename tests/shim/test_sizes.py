"""Calls that show a file's size show the logical size of a striped file, with and without a
mount."""

import random
import sys

import pytest

from harness import BUILD, run

SIZE = 3_000_017


@pytest.fixture
def trees(volume, graphlane, tmp_path):
    """A tree of plain files, and a volume with the same tree, where large files are striped."""
    plain = tmp_path / "native/tree"
    (plain / "below").mkdir(parents=True)
    for name in ["striped", "below/striped"]:
        (plain / name).write_bytes(random.Random(name).randbytes(SIZE))
    (plain / "small").write_bytes(b"small")
    (plain / "page").write_bytes(b"x" * 4096)  # as large as a stub, but not one
    (plain / "link").symlink_to("striped")
    made = volume(depth="64K", stripe=["striped"])
    graphlane("import", plain, made.path / "tree")
    assert (made.path / "tree/striped").stat().st_size == 4096
    return plain, made


def listing(tree, prefix=()):
    return run(*prefix, BUILD / "engines/listing", tree).stdout.replace(str(tree), "TREE")


def test_the_listing_shows_an_unhooked_stub(trees):
    plain, made = trees
    assert f"fts_children striped {SIZE} file\n" in listing(plain)
    assert "fts_children striped 4096 file\n" in listing(made.path / "tree")


@pytest.mark.parametrize("way", ["--no-mount", "private mount"])
def test_preloaded(trees, graphlane, request, way):
    plain, made = trees
    words = ["--no-mount"]
    if way == "private mount":
        request.getfixturevalue("fuse")
        words = []
    assert listing(made.path / "tree", [graphlane.program, "run", *words, "--"]) == listing(plain)


def test_mounted(trees, mount):
    plain, made = trees
    with mount(made) as at:
        assert listing(at / "tree") == listing(plain)


def test_find_and_du_without_a_mount(trees, graphlane):
    """find and du walk with a private copy of fts."""
    plain, made = trees
    words = ["-type", "f", "-printf", "%P %s\n"]
    prefix = [graphlane.program, "run", "--no-mount", "--"]
    found = run(*prefix, "find", made.path / "tree", *words).stdout.splitlines()
    assert sorted(found) == sorted(run("find", plain, *words).stdout.splitlines())
    words = ["-b", "-a", "striped", "below/striped"]
    assert (run(*prefix, "du", *words, cwd=made.path / "tree").stdout
            == run("du", *words, cwd=plain).stdout)


SIZES = """
import array, fcntl, os, sys, termios
at = os.open(sys.argv[1], os.O_PATH)
print(os.fstat(at).st_size, os.stat(f"/proc/self/fd/{at}").st_size)
fd = os.open(sys.argv[1], os.O_RDONLY)
left = array.array("i", [0])
for position in (0, 1000, 1 << 40):
    os.lseek(fd, position, os.SEEK_SET)
    fcntl.ioctl(fd, termios.FIONREAD, left)
    print(max(left[0], 0))
"""


@pytest.mark.parametrize("way", [[], ["--no-mount"]])
def test_a_descriptor_without_access_and_the_bytes_that_are_left(trees, graphlane, request, way):
    plain, made = trees
    if not way:
        request.getfixturevalue("fuse")
    prefix = [graphlane.program, "run", *way, "--"]
    shown = run(*prefix, sys.executable, "-c", SIZES, made.path / "tree/striped").stdout.split()
    assert shown[:4] == [str(size) for size in (SIZE, SIZE, SIZE, SIZE - 1000)]
