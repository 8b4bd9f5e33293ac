"""A program that knows nothing of the volume truncated a stub, or appended to it (`echo >> VOL/file`). No way of reading takes
what is there for the file's content."""

import os
import random
import sys

import pytest

from harness import run

CONTENT = random.Random(7).randbytes(300_000)

# FILE: one that reads as most programs do, and others by other calls.
READERS = {
    "read": ["cat"],
    "stdio": ["sha256sum"],
    "stdin": ["sh", "-c", 'wc -w < "$1"', "sh"],
    "O_DIRECT": ["sh", "-c", 'dd "if=$1" iflag=direct bs=4096 count=1', "sh"],
    "mmap": [sys.executable, "-c", "import mmap, sys; f = open(sys.argv[1], 'rb'); mmap.mmap(f.fileno(), 0, access=1)[:8]"],
    "copy": ["sh", "-c", 'cp "$1" "$1.copy"', "sh"],
}


def cut(path):
    os.truncate(path, 100)


def cut_by_a_byte(path):
    os.truncate(path, 4095)


def appended(path):
    with open(path, "ab") as file:
        file.write(b"x\n")


def extended(path):
    os.truncate(path, 1 << 20)


@pytest.fixture(params=[cut, cut_by_a_byte, appended, extended], ids=lambda change: change.__name__)
def made(request, graphlane, volume, tmp_path):
    made = volume(depth="64K")
    (tmp_path / "data").write_bytes(CONTENT)
    graphlane("import", tmp_path / "data", made.path)
    request.param(made.path / "data")
    return made


@pytest.mark.parametrize("reader", READERS)
def test_without_a_mount(graphlane, made, reader):
    done = graphlane("run", "--no-mount", "--", *READERS[reader], made.path / "data", check=False)
    assert done.returncode != 0 and "nput/output error" in done.stderr, done
    assert "stub is not 4096 bytes long" in done.stderr


@pytest.mark.parametrize("reader", READERS)
def test_on_a_mount(graphlane, fuse, made, mount, reader):
    with mount(made) as at:
        command = [*READERS[reader], str(at / "data")]
        for done in [run(*command, check=False), graphlane("run", "--", *command, check=False)]:
            assert done.returncode != 0 and "nput/output error" in done.stderr, done


def test_commands(graphlane, made, tmp_path):
    refused = graphlane("export", made.path / "data", tmp_path / "out", check=False)
    assert refused.returncode == 1 and "stub is not 4096 bytes long" in refused.stderr
    assert not (tmp_path / "out").exists()
    assert "stub is not 4096 bytes long" in graphlane("check", made.path, check=False).stdout


def test_it_can_be_removed_and_its_parts_stay(graphlane, fuse, made, mount):
    with mount(made) as at:
        (at / "data").unlink()
    assert "1 orphan" in graphlane("check", made.path, check=False).stdout
