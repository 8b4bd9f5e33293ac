"""When a device fails or the daemon dies, programs get the right errno, nothing hangs, and no
data is lost."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from harness import BUILD, forget_pages, run
from mounts import mounted, striped  # noqa: F401, fixtures

HANG_SECONDS = 5


def daemon_of(volume, at) -> int:
    (pid,) = run("pgrep", "-f", f"mount {volume.path} {at}( |$)").stdout.split()
    return int(pid)


READER = """
import hashlib, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
whole = lambda: hashlib.md5(os.pread(fd, 1 << 30, 0)).hexdigest()
print(whole(), flush=True)
sys.stdin.readline()
print(whole(), flush=True)
os.lseek(fd, 0, 0)
print(hashlib.md5(os.read(fd, 1 << 30)).hexdigest(), flush=True)
"""


def test_a_preloaded_reader_outlives_the_daemon(striped, graphlane, tmp_path):
    volume, content = striped(size=3_000_000)
    at = tmp_path / "mnt"
    at.mkdir()
    graphlane("mount", volume.path, at)
    reader = subprocess.Popen([sys.executable, "-c", READER, at / "data"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "LD_PRELOAD": BUILD / "lib/libgraphlane.so"})
    try:
        before = reader.stdout.readline()
        os.kill(daemon_of(volume, at), signal.SIGKILL)
        time.sleep(1.1)  # the kernel's cached attributes expire
        out, _ = reader.communicate("go on\n", timeout=HANG_SECONDS)
        assert out.split() == [before.strip()] * 2
        assert reader.returncode == 0
    finally:
        reader.kill()
        graphlane("umount", at)


def test_without_the_library_the_daemons_death_is_an_error(striped, mounted):
    volume, _ = striped(size=3_000_000)
    with mounted(volume) as at, open(at / "data", "rb", buffering=0) as file:
        os.kill(daemon_of(volume, at), signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(OSError) as raised:
            while True:  # until the kernel has noticed
                os.preadv(file.fileno(), [bytearray(100)], random.randrange(3_000_000))
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        # ECONNABORTED: the request in flight when the daemon died
        assert raised.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
        assert time.monotonic() - start < HANG_SECONDS
        with suppress(OSError):
            file.close()


def test_a_device_lost_while_mounted_fails_its_files_only(striped, mounted):
    """Open files of that device read on; opening others fails. Plain files are unaffected."""
    volume, content = striped(size=1_000_000)
    with mounted(volume) as at:
        (at / "plain").write_bytes(b"plain")
        with open(at / "data", "rb") as file:
            shutil.rmtree(volume.devices[1])
            assert file.read() == content
        with pytest.raises(OSError) as raised:
            while True:  # the daemon hears of the close() a moment later
                (at / "data").read_bytes()
        assert raised.value.errno == errno.EIO
        assert (at / "plain").read_bytes() == b"plain"
        assert (at / "data").stat().st_size == len(content)
        assert sorted(os.listdir(at)) == ["data", "plain"]


def test_a_lost_device_refuses_new_files_and_leaves_none(volume, mounted):
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made) as at:
        shutil.rmtree(made.devices[1])
        with pytest.raises(OSError):
            (at / "s").write_bytes(b"x")
        assert os.listdir(at) == []
        assert [path for path in made.devices[0].glob("*/parts/*/*")] == []


@pytest.fixture
def failing_device(tmp_path):
    """A device on an ext4 of its own, and a function that makes reads of it fail."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    image, at = tmp_path / "image", tmp_path / "failing"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    run("mkfs.ext4", "-q", "-F", image)
    at.mkdir()
    if run("mount", "-o", "loop", image, at, check=False).returncode != 0:
        pytest.skip("no loop devices here")

    def fail():
        forget_pages(path for path in at.rglob("*") if path.is_file())
        os.truncate(image, 4096)  # reads beyond this now fail with EIO

    yield at, fail
    run("umount", "-l", at, check=False)


def test_a_read_error_of_a_device_fails_only_its_ranges(failing_device, graphlane,
                                                                     mounted, tmp_path):
    at_device, fail = failing_device
    devices = [tmp_path / f"d{i}" for i in range(3)]
    for device in devices:
        device.mkdir()
    (at_device / "d").mkdir()
    volume = graphlane.create_on(tmp_path / "vol", [*devices, at_device / "d"], depth="64K")
    content = random.Random(1).randbytes(4_000_000)
    (tmp_path / "data").write_bytes(content)
    graphlane("import", tmp_path / "data", volume.path)
    first = json.loads(graphlane("info", "--json", volume.path / "data").stdout)["first_device"]
    with mounted(volume, "-o", "io=direct") as at:
        fd = os.open(at / "data", os.O_RDONLY)
        fail()
        failed = []
        for unit in range(len(content) // 65536):
            try:
                assert os.pread(fd, 65536, unit * 65536) == \
                    content[unit * 65536:(unit + 1) * 65536]
            except OSError as error:
                assert error.errno == errno.EIO
                failed.append(unit)
        os.close(fd)
        assert failed and all((unit + first) % 4 == 3 for unit in failed)
