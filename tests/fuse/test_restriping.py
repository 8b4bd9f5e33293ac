"""graphlane restripe of a volume that is mounted and in use."""

import errno
import mmap
import os
import subprocess
import sys
import threading
import time

import pytest

from harness import BUILD
from mounts import mounted, random_bytes, striped  # noqa: F401, fixtures

READS_ON = """
import os, sys, time
path, content = sys.argv[1], open(sys.argv[2], "rb").read()
rounds = 0
print("ready", flush=True)
while not os.path.exists(sys.argv[3]):
    if rounds % 2:
        with open(path, "rb") as file:
            assert file.read() == content, rounds
    else:
        fd = os.open(path, os.O_RDONLY)
        for at in range(0, len(content), 700_001):
            assert os.pread(fd, 700_001, at) == content[at:at + 700_001], (rounds, at)
        os.close(fd)
    assert os.stat(path).st_size == len(content)
    rounds += 1
    time.sleep(0.01)  # the file is closed
print(rounds)
"""


def restripe(graphlane, made, depth, *options):
    return graphlane("restripe", "--wait", "0", *options, "--stripe-depth", depth, made.path,
                     check=False)


def depth_of(graphlane, path) -> str:
    return graphlane("ls", path).stdout.split(" x ")[0].split()[-1]


@pytest.mark.parametrize("preload", [False, True])
def test_readers_come_and_go_meanwhile(graphlane, striped, mounted, tmp_path, preload):
    made, content = striped()
    environment = {"LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")} if preload else {}
    changed = 0
    with mounted(made) as at:
        reader = subprocess.Popen(
            [sys.executable, "-c", READS_ON, at / "data", tmp_path / "data", tmp_path / "stop"],
            stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        assert reader.stdout.readline() == "ready\n"
        for depth in ("4K", "1M", "64K", "12K") * 2:
            report = graphlane("restripe", "--wait", "5", "--stripe-depth", depth, made.path,
                               check=False)
            changed += "1 file " in report.stdout
        (tmp_path / "stop").touch()
        assert int(reader.communicate(timeout=60)[0]) > 0
        assert reader.returncode == 0
    assert changed > 0
    assert "no problems" in graphlane("check", made.path).stdout


@pytest.mark.parametrize("how", ["descriptor", "map", "second mount"])
def test_an_open_file_is_not_restriped(graphlane, striped, mounted, tmp_path, how):
    made, content = striped()
    with mounted(made) as at, mounted(made, at=tmp_path / "other") as other:
        fd = os.open((other if how == "second mount" else at) / "data", os.O_RDONLY)
        if how == "map":
            view = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
            os.close(fd)
        result = restripe(graphlane, made, "4K")
        assert result.returncode == 1
        assert f"left: {made.path}/data: is in use\n" in result.stdout
        if how == "map":
            assert view[:] == content
            view.close()
        else:
            assert os.pread(fd, len(content), 0) == content
            os.close(fd)
        # A closed file is restriped.
        assert "1 file " in graphlane("restripe", made.path).stdout
        assert depth_of(graphlane, made.path / "data") == "4K"
        assert (at / "data").read_bytes() == (other / "data").read_bytes() == content


def test_a_file_being_written_is_not_restriped(graphlane, striped, mounted):
    made, content = striped()
    with mounted(made) as at:
        with open(at / "data", "r+b") as file:
            result = restripe(graphlane, made, "4K")
            assert result.returncode == 1
            assert f"left: {made.path}/data: is being written\n" in result.stdout
            file.write(b"changed")
        # The mount keeps the file some seconds after its writer; restripe waits for that.
        result = graphlane("restripe", made.path)
        assert "1 file " in result.stdout
        assert (at / "data").read_bytes() == b"changed" + content[7:]


def test_writes_after_a_restripe_are_seen_by_all_mounts(graphlane, striped, mounted, tmp_path):
    """The mount rereads the stub: no old parts and no old pages are served."""
    made, content = striped()
    with mounted(made) as at, mounted(made, at=tmp_path / "other") as other:
        assert (at / "data").read_bytes() == (other / "data").read_bytes() == content
        for depth, word in (("4K", b"first"), ("1M", b"again")):
            assert graphlane("restripe", "--stripe-depth", depth, made.path).returncode == 0
            with open(at / "data", "r+b") as file:
                file.seek(len(content) - 3)
                file.write(word)
                file.flush()
                expected = content[:-3] + word
                assert (at / "data").read_bytes() == expected
                assert os.stat(at / "data").st_size == len(expected)
            deadline = time.monotonic() + 20
            while (other / "data").read_bytes() != expected:  # its cached size expires
                assert time.monotonic() < deadline
                time.sleep(0.1)
    assert "no problems" in graphlane("check", made.path).stdout


def test_a_writer_during_a_restripe_is_refused_or_waits(graphlane, striped, mounted):
    made, content = striped(size=50_000_000)
    with mounted(made) as at:
        before = {path for device in made.devices for path in device.rglob("*")}
        job = subprocess.Popen([graphlane.program, "restripe", "--stripe-depth", "4K", made.path],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while {path for device in made.devices for path in device.rglob("*")} <= before:
            assert job.poll() is None
        try:
            os.close(os.open(at / "data", os.O_RDWR))
        except OSError as error:
            assert error.errno == errno.EBUSY
        assert job.wait(60) == 0
        with open(at / "data", "r+b") as file:
            file.write(b"changed")
        assert (at / "data").read_bytes() == b"changed" + content[7:]


def test_mode_and_owner_changes_during_a_restripe_are_kept(graphlane, striped, mounted, root):
    made, content = striped()
    stop = threading.Event()
    with mounted(made) as at:
        def change():
            number = 0
            while not stop.is_set():
                number += 1
                os.chmod(at / "data", 0o600 + number % 64)
                os.chown(at / "data", number % 3, number % 5)

        changer = threading.Thread(target=change)
        changer.start()
        try:
            # A file with the parts' new owner but the stub's old one is left, and not tried again.
            tried = done = 0
            while tried < 18 or done == 0:
                report = restripe(graphlane, made, ("4K", "1M", "64K")[tried % 3]).stdout
                tried += 1
                done += "1 file " in report
                assert tried < 500, report
        finally:
            stop.set()
            changer.join()
        stub = (made.path / "data").stat()
        for device in made.devices:
            parts = [*device.glob("*/parts/*/*"), *device.glob("*/sums/*/*")]  # a part and its sums
            assert len(parts) == 2
            infos = [path.stat() for path in parts]
            assert {(info.st_mode, info.st_uid, info.st_gid) for info in infos} == {
                (stub.st_mode, stub.st_uid, stub.st_gid)}


def test_a_volume_mounted_over_itself(graphlane, striped, mounted, root):
    made, content = striped()
    with mounted(made, at=made.path) as at:
        assert "1 file " in graphlane("restripe", "--stripe-depth", "4K", made.path).stdout
        assert (at / "data").read_bytes() == content
        assert depth_of(graphlane, at / "data") == "4K"


def test_new_files_have_the_new_depth_after_a_mount(graphlane, volume, mounted):
    made = volume(depth="64K", stripe=["s*"])
    graphlane("restripe", "--stripe-depth", "8K", made.path)
    with mounted(made) as at:
        (at / "s").write_bytes(random_bytes(100_000))
    assert depth_of(graphlane, made.path / "s") == "8K"


def test_removal_during_a_restripe_leaves_no_parts(graphlane, striped, mounted):
    made, content = striped(size=50_000_000)
    with mounted(made) as at:
        job = subprocess.Popen([graphlane.program, "restripe", "--stripe-depth", "4K", made.path],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.05)
        os.unlink(at / "data")
        job.wait(60)
    assert not [path for device in made.devices for path in device.glob("*/parts/*/*")]
    assert "no problems" in graphlane("check", made.path).stdout
