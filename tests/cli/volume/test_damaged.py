"""A file in state `open` with parts shorter than before is damaged. No reader gets the rest as
the whole file, or zeros for the missing bytes."""

import errno
import os
import random
import signal
import struct
import subprocess
import sys

import pytest

from harness import run, wait_until
from trust.stubs import RECORD

SIZE = 3_000_000
DEPTH = 64 << 10


@pytest.fixture
def content(tmp_path):
    data = random.Random(3).randbytes(SIZE)
    (tmp_path / "source").write_bytes(data)
    return data


@pytest.fixture
def made(volume):
    return volume(device_count=3, depth="64K", stripe=["s-*"])


def parts_of(made, name="s-data") -> list:
    file_id = (made.path / name).read_bytes()[32:48].hex()
    return [device / f"graphlane-{uuid_of(made)}/parts/{file_id[:2]}/{file_id}" for device in made.devices]


def uuid_of(made) -> str:
    (device,) = made.devices[0].glob("graphlane-*")
    return device.name.removeprefix("graphlane-")


def write_without_mount(graphlane, made, source):
    graphlane("run", "--no-mount", "--", "cp", source, made.path / "s-data")


def size_at_close(made) -> int:
    return max(struct.unpack_from("<Q", os.getxattr(part, RECORD), 40)[0] for part in parts_of(made))


def write_by_killed_mount(graphlane, made, source, at) -> None:
    """The daemon dies after the file is closed, but before the stub says so."""
    at.mkdir()
    for _ in range(10):
        graphlane("mount", made.path, at)
        try:
            (pid,) = run("pgrep", "-f", f"mount {made.path} {at}$").stdout.split()
            run("cp", source, at / "s-data")
            # A daemon that is busy with the file skips what it notes at a close(2).
            wait_until(lambda: size_at_close(made) == SIZE or open(at / "s-data", "r+b").close())
            os.kill(int(pid), signal.SIGKILL)
            wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"))  # it may end what it has begun
        finally:
            run("umount", "-l", at)
        if (made.path / "s-data").read_bytes()[72] == 1:
            return
    pytest.fail("the daemon is always faster: the file is closed")


def check_is_damaged(graphlane, made, content, tmp_path) -> None:
    before = [path.read_bytes() if path.exists() else None for path in [made.path / "s-data", *parts_of(made)]]
    for words in [], ["--repair"], ["--scrub"]:
        result = graphlane("check", *words, made.path, check=False)
        assert result.returncode == 4 and f"problem: {made.path}/s-data: " in result.stdout, result.stdout
    assert graphlane("export", made.path / "s-data", tmp_path / "out", check=False).returncode == 1
    read = graphlane("run", "--no-mount", "--", "sh", "-c", f"cat {made.path}/s-data > /dev/null", check=False)
    assert read.returncode != 0 and "Input/output error" in read.stderr or "No such file" in read.stderr
    written = graphlane("run", "--no-mount", "--", "sh", "-c", f"echo >> {made.path}/s-data", check=False)
    assert written.returncode != 0
    at = tmp_path / "read"
    at.mkdir(exist_ok=True)
    graphlane("mount", made.path, at)
    try:
        for flags in os.O_RDONLY, os.O_RDWR:
            with pytest.raises(OSError) as failed:
                os.close(os.open(at / "s-data", flags))
            assert failed.value.errno in (errno.EIO, errno.ENOENT)
    finally:
        graphlane("umount", at)
    after = [path.read_bytes() if path.exists() else None for path in [made.path / "s-data", *parts_of(made)]]
    assert after == before, "nothing that looks changes it"
    assert graphlane("export", "--salvage", made.path / "s-data", tmp_path / "saved", check=False).returncode == 1
    missing = [line.split()[:2] for line in (tmp_path / "saved.missing").read_text().splitlines() if line[0] != "#"]
    wanted = bytearray(content)
    saved = (tmp_path / "saved").read_bytes()
    for offset, length in missing:
        wanted[int(offset):int(offset) + int(length)] = bytes(int(length))
    assert saved == bytes(wanted)[:len(saved)] and missing


@pytest.mark.parametrize("writer", ["without a mount", "by a mount"])
@pytest.mark.parametrize("loss", ["all of one", "the end of one", "pieces of two"])
def test_damage_is_reported_and_left_unchanged(graphlane, fuse, made, content, tmp_path, writer, loss):
    if writer == "by a mount":
        write_by_killed_mount(graphlane, made, tmp_path / "source", tmp_path / "mnt")
    else:
        write_without_mount(graphlane, made, tmp_path / "source")
    parts = parts_of(made)
    if loss == "all of one":
        os.truncate(parts[1], 0)
    elif loss == "the end of one":
        os.truncate(parts[2], parts[2].stat().st_size - 1)
    else:
        os.truncate(parts[0], DEPTH)
        os.truncate(parts[1], 2 * DEPTH)
    check_is_damaged(graphlane, made, content, tmp_path)


def test_a_part_that_is_gone(graphlane, fuse, made, content, tmp_path):
    write_without_mount(graphlane, made, tmp_path / "source")
    parts_of(made)[1].unlink()
    check_is_damaged(graphlane, made, content, tmp_path)


IN_ANOTHER_BOOT = """
echo 01234567-89ab-4cde-8f01-23456789abcd > "$0" && mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"
"""


def in_another_boot(tmp_path, *words):
    return run("unshare", "--mount", "sh", "-c", IN_ANOTHER_BOOT, tmp_path / "boot_id", *words, check=False)


def test_after_a_power_cut_only_missing_synced_bytes_are_damage(root, graphlane, made, content, tmp_path):
    """Unsynced bytes may be lost in a power cut: the file is the prefix that remains."""
    write_without_mount(graphlane, made, tmp_path / "source")
    cut = 10 * DEPTH
    os.truncate(parts_of(made)[1], cut)
    assert graphlane("check", made.path, check=False).returncode == 4
    there = in_another_boot(tmp_path, graphlane.program, "check", made.path)
    assert there.returncode == 0, there.stdout
    done = in_another_boot(tmp_path, graphlane.program, "export", made.path / "s-data", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    prefix = (tmp_path / "out").read_bytes()
    assert 28 * DEPTH <= len(prefix) <= 33 * DEPTH and prefix == content[:len(prefix)]


def test_missing_synced_bytes_are_damage_in_every_boot(root, graphlane, made, content, tmp_path):
    write_without_mount(graphlane, made, tmp_path / "source")
    writer = ("import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND); os.write(fd, b'x' * 10); "
              "os.fsync(fd); os.close(fd)")
    graphlane("run", "--no-mount", "--", sys.executable, "-c", writer, made.path / "s-data")
    os.truncate(parts_of(made)[1], 10 * DEPTH)
    there = in_another_boot(tmp_path, graphlane.program, "check", made.path)
    assert there.returncode == 4 and "damaged: it had 3000010 bytes" in there.stdout


def test_missing_imported_bytes_are_damage_after_an_append(root, graphlane, made, content, tmp_path):
    graphlane("import", tmp_path / "source", made.path / "s-data")
    graphlane("run", "--no-mount", "--", "sh", "-c", f"printf more >> {made.path}/s-data")
    os.truncate(parts_of(made)[1], 10 * DEPTH)
    there = in_another_boot(tmp_path, graphlane.program, "check", made.path)
    assert there.returncode == 4 and f"damaged: it had {SIZE} bytes" in there.stdout


CHANGES = """
import os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
size = 3_000_000
for step in range(12):
    os.ftruncate(fd, size // 3)
    os.close(fd)
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"y" * 100_000, size // 3)
    if step % 2:
        os.fsync(fd)
    os.close(fd)
    fd = os.open(path, os.O_RDWR | (os.O_TRUNC if step % 4 == 0 else 0))
    os.pwrite(fd, b"z" * 50_000, 20_000)
    size = os.fstat(fd).st_size
os.close(fd)
"""


@pytest.mark.parametrize("writer", ["without a mount", "by a mount", "both"])
def test_a_truncated_file_is_not_damaged(graphlane, fuse, made, content, tmp_path, writer):
    write_without_mount(graphlane, made, tmp_path / "source")
    (tmp_path / "plain").write_bytes(content)
    at = tmp_path / "mnt"
    at.mkdir()
    for round_number in range(3 if writer == "both" else 1):
        subprocess.run([sys.executable, "-c", CHANGES, tmp_path / "plain"], check=True, timeout=60)
        if writer == "without a mount" or round_number % 2 == 1:
            graphlane("run", "--no-mount", "--", sys.executable, "-c", CHANGES, made.path / "s-data")
        else:
            graphlane("mount", made.path, at)
            try:
                run(sys.executable, "-c", CHANGES, at / "s-data")
            finally:
                graphlane("umount", at)
        assert "no problems" in graphlane("check", made.path).stdout
    graphlane("export", made.path / "s-data", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "plain").read_bytes()
