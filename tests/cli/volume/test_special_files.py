"""Graphlane opens only regular files by itself. Anything else is an error at once."""

import os
import random
import signal
import socket
import stat
import subprocess
import sys

import pytest

from harness import BUILD, run

CONTENT = random.Random(36).randbytes(1_200_000)
SECONDS_MAX = 20  # for a command that must not wait at all


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    """Binds a short name: a socket's path has at most 108 bytes."""
    directory = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


def make_device(path):
    """/dev/tty has no bytes, and opening it could make it a daemon's controlling terminal."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(5, 0))


def make_directory(path):
    path.mkdir()


KINDS = {"fifo": make_fifo, "socket": make_socket, "device": make_device, "directory": make_directory}
NAMES = {"fifo": "is a FIFO, not a regular file", "socket": "is a socket, not a regular file",
         "device": "is a character device, not a regular file", "directory": "is a directory, not a regular file"}


@pytest.fixture
def imported(graphlane, volume, tmp_path):
    """A volume with the striped file `data`, and its source file."""
    made = volume(device_count=2, depth="64K", stripe=["data"])
    (tmp_path / "data").write_bytes(CONTENT)
    graphlane("import", tmp_path / "data", made.path)
    return made


def replace(path, kind):
    path.unlink()
    KINDS[kind](path)


def first_part(volume):
    return min(part for device in volume.devices for part in device.glob("*/parts/*/" + 32 * "?"))


def ends(graphlane, *words, stdin=subprocess.DEVNULL):
    """The command's result. A command that waits is killed, and the test fails."""
    return subprocess.run([graphlane.program, *words], capture_output=True, text=True, errors="replace",
                          stdin=stdin, timeout=SECONDS_MAX)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["run", "export", "restripe", "check", "scrub"])
def test_a_part_of_another_kind_is_an_error_at_once(graphlane, imported, tmp_path, kind, command):
    replace(first_part(imported), kind)
    words = {"run": ["run", "--no-mount", "--", "cat", imported.path / "data"],
             "export": ["export", imported.path / "data", tmp_path / "out"],
             "restripe": ["restripe", "--stripe-depth", "128K", imported.path / "data"],
             "check": ["check", imported.path],
             "scrub": ["check", "--scrub", imported.path]}[command]
    result = ends(graphlane, *words)
    assert result.returncode != 0
    said = result.stdout + result.stderr
    assert first_part(imported).name in said and NAMES[kind] in said, said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_a_part_of_another_kind_is_an_error_by_a_mount(graphlane, imported, mount, kind):
    replace(first_part(imported), kind)
    with mount(imported) as at:
        result = subprocess.run(["cat", at / "data"], capture_output=True, timeout=SECONDS_MAX)
        assert result.returncode == 1 and b"Input/output error" in result.stderr
        assert subprocess.run(["rm", at / "data"], timeout=SECONDS_MAX).returncode == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["volume.json", "device.json", "lock"])
def test_a_record_of_another_kind_is_an_error_at_once(graphlane, imported, tmp_path, kind, which):
    path = {"volume.json": imported.path / ".graphlane/volume.json",
            "device.json": next(imported.devices[0].glob("*/device.json")),
            "lock": imported.path / ".graphlane/run/lock"}[which]
    replace(path, kind)
    for words in [["check", imported.path], ["import", tmp_path / "data", imported.path / "new"],
                  ["export", imported.path / "data", tmp_path / "out"],
                  ["run", "--no-mount", "--", "cat", imported.path / "data"],
                  ["rm", imported.path / "data"]]:
        result = ends(graphlane, *words)
        takes_lock = words[0] in ("check", "import", "rm")
        if which != "lock" or takes_lock:
            assert result.returncode != 0, words
    if which == "volume.json" and kind != "directory":
        assert "not a regular file" in ends(graphlane, "check", imported.path).stderr


@pytest.mark.parametrize("kind", ["fifo", "device", "directory"])
def test_a_grids_meta_of_another_kind_is_an_error_at_once(graphlane, tmp_path, kind):
    (tmp_path / "edges").write_text("0 1\n1 2\n")
    graphlane("convert", tmp_path / "edges", tmp_path / "grid", "--partitions", "1")
    replace(tmp_path / "grid/meta", kind)
    assert ends(graphlane, "advise", tmp_path / "grid").returncode != 0


# A filesystem mounted at argv[1] that answers only its INIT, until stdin ends.
SILENT = """
import ctypes, os, select, struct, sys, threading
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None)
assert libc.mount(b"silent", sys.argv[1].encode(), b"fuse", 0,
                  f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()) == 0
def serve():
    unique, = struct.unpack_from("<Q", os.read(device, 1 << 20), 8)
    body = struct.pack("<4I2H4I", 7, 31, 4096, 0, 1, 1, 4096, 1, 0, 0) + bytes(24)
    os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
    select.select([device], [], [])  # what was read could not be interrupted any more
    print("asked", flush=True)
threading.Thread(target=serve, daemon=True).start()
print("mounted", flush=True)
sys.stdin.read()
libc.umount2(sys.argv[1].encode(), 1)
os._exit(0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_a_program_while_its_file_is_identified(graphlane, imported, root, number):
    """A device lies on a filesystem that does not answer, and the library looks for the file
    there."""
    device = imported.devices[1]
    with subprocess.Popen([sys.executable, "-c", SILENT, device], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as silent:
        try:
            assert silent.stdout.readline() == "mounted\n"
            preloaded = {**os.environ, "LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")}
            with subprocess.Popen(["cat", imported.path / "data"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=preloaded) as reader:
                try:
                    assert silent.stdout.readline() == "asked\n"
                    reader.send_signal(number)
                    assert reader.wait(timeout=SECONDS_MAX) == -number
                finally:
                    reader.kill()
        finally:
            silent.stdin.close()
            silent.wait(timeout=60)
            run("umount", "-l", device, check=False)
