"""Devices on filesystems like network mounts: what is missing is told, and everything works."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import is_mounted, run

SFTP_SERVERS = [path for path in ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server") if os.path.exists(path)]
CONTENT = os.urandom(1 << 20) + b"end"


@contextmanager
def ramfs(folder: Path, at: Path):
    """No direct I/O, no attributes, no birth times: as much is missing as on any network mount."""
    if run("mount", "-t", "ramfs", "ramfs", at, check=False).returncode != 0:
        pytest.skip("not applicable: ramfs cannot be mounted here")
    try:
        yield "direct I/O, user attributes and birth times"
    finally:
        run("umount", "-l", at, check=False)


@contextmanager
def sshfs(folder: Path, at: Path):
    """A network filesystem, whose server is a process behind a pipe."""
    if shutil.which("sshfs") is None or not SFTP_SERVERS:
        pytest.skip("not applicable: there is no sshfs with an sftp-server")
    with subprocess.Popen(SFTP_SERVERS[:1], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        with subprocess.Popen(["sshfs", "-f", "-o", "passive", f"server:{folder}", at], stdin=server.stdout, stdout=server.stdin,
                              stderr=subprocess.PIPE) as client:
            ends = time.monotonic() + 30
            while not is_mounted(at):
                assert client.poll() is None and time.monotonic() < ends, client.stderr.read()
                time.sleep(0.05)
            try:
                yield "user attributes and birth times"
            finally:
                run("fusermount3", "-u", "-z", at, check=False)
                server.stdin.close()


@pytest.fixture(params=[ramfs, sshfs], ids=lambda kind: kind.__name__)
def devices(request, root, fuse, tmp_path):
    """The directories of two devices, the second one on such a filesystem; and what that lacks."""
    made = [tmp_path / name for name in ("d0", "d1", "server")]
    for path in made:
        path.mkdir()
    with request.param(made[2], made[1]) as missing:
        yield made[:2], missing


def test_what_is_missing_is_told_and_all_works(graphlane, devices, tmp_path):
    (local, remote), missing = devices
    volume, source, at = tmp_path / "vol", tmp_path / "data", tmp_path / "mnt"
    source.write_bytes(CONTENT)
    at.mkdir()
    told = graphlane("create", volume, "-d", local, "-d", remote, "--stripe-depth", "64K").stderr
    notes = [line for line in told.splitlines() if "note:" in line]
    assert len(notes) == 1 and f"{remote}: its filesystem has no {missing}:" in notes[0]
    assert not list(remote.glob("*/probe-*"))
    graphlane("import", source, volume)
    assert list(remote.glob("*/sums/*/*.sum")), "where records are"
    assert graphlane("run", "--no-mount", "--", "sha256sum", volume / "data").stdout == \
        run("sha256sum", source).stdout.replace(str(source), str(volume / "data"))
    graphlane("mount", volume, at)
    try:
        assert (at / "data").read_bytes() == CONTENT
        with open(at / "data", "r+b") as file:
            file.seek(100_000)
            file.write(b"changed")
            file.truncate(900_000)
        descriptor = os.open(at / "data", os.O_RDONLY | os.O_DIRECT)
        os.close(descriptor)
    finally:
        graphlane("umount", at)
    expected = bytearray(CONTENT[:900_000])
    expected[100_000:100_007] = b"changed"
    graphlane("restripe", "--stripe-depth", "128K", volume)
    graphlane("check", "--scrub", volume)
    graphlane("export", volume / "data", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == expected
    (part,) = remote.glob("*/parts/*/*")
    part.write_bytes(bytes(part.stat().st_size))
    assert graphlane("check", "--scrub", volume, check=False).returncode != 0
    graphlane("rm", volume / "data")
    assert not list(remote.glob("*/parts/*/*"))
