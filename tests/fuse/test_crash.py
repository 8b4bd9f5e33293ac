"""A process killed at any instant leaves every file whole, old or new. Data confirmed by fsync()
is there. CI kills a few times; GRAPHLANE_KILLS=200 is the long run."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from harness import is_mounted, run

KILLS = int(os.environ.get("GRAPHLANE_KILLS", "5"))
SECONDS_MAX = 0.4

# Appends numbered records and reports which are confirmed. In between it rewrites, renames and
# removes small striped files.
WRITER = """
import os, sys
at = sys.argv[1]
log = os.open(at + "/s-log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
number = os.fstat(log).st_size // 1000
os.ftruncate(log, number * 1000)  # the last one may be torn, as on any filesystem
while True:
    for _ in range(7):
        os.write(log, b"%09d\\n" % number * 100)
        number += 1
    os.fsync(log)
    print(number, flush=True)
    name = at + "/s-%d" % (number % 5)
    with open(name + ".new", "wb") as file:
        file.write(bytes([number % 251]) * 200_000)
    os.rename(name + ".new", name)
    os.truncate(name, 100_000 + number % 1000)
    if number % 3 == 0:
        os.unlink(name)
"""


def check_records(path, confirmed: int) -> None:
    content = path.read_bytes()
    assert len(content) >= confirmed * 1000
    for number in range(len(content) // 1000):
        assert content[number * 1000:(number + 1) * 1000] == b"%09d\n" % number * 100


def check_small_files(at) -> None:
    for path in at.glob("s-[0-9]"):
        content = path.read_bytes()
        assert len(set(content)) == 1
        assert len(content) == 200_000 or 100_000 <= len(content) < 101_000


@pytest.mark.parametrize("way", ["mount", "preloaded"])
@pytest.mark.parametrize("victim", ["daemon", "writer"])
def test_killed_while_it_writes_through_a_mount(volume, graphlane, fuse, tmp_path, victim, way):
    """A preloaded writer appends past the kernel."""
    made = volume(depth="64K", stripe=["s-*"])
    at = tmp_path / "mnt"
    at.mkdir()
    seed = random.randrange(1 << 32)
    r = random.Random(seed)
    confirmed = 0
    preload = [graphlane.program, "run", "--"] if way == "preloaded" else []
    for kill in range(KILLS if way == "mount" else KILLS // 2):
        graphlane("mount", made.path, at)
        try:
            if kill > 0:
                check_records(at / "s-log", confirmed)
                check_small_files(at)
            writer = subprocess.Popen([*preload, sys.executable, "-c", WRITER, at], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            said = writer.stdout.readline()
            time.sleep(r.random() * SECONDS_MAX)
            if victim == "daemon":
                (pid,) = run("pgrep", "-f", f"mount {made.path} {at}$").stdout.split()
                os.kill(int(pid), signal.SIGKILL)
            else:
                writer.kill()
            said += writer.communicate(timeout=30)[0]
            confirmed = int(said.split("\n")[-2])
        finally:
            graphlane("umount", at)
        assert not is_mounted(at), seed
    graphlane("check", "--repair", made.path, check=False)
    assert "no problems" in graphlane("check", made.path).stdout, seed


# Reads a file again and again, and compares it with a copy.
READER = """
import sys, time
path, content = sys.argv[1], open(sys.argv[2], "rb").read()
while True:
    with open(path, "rb") as file:
        assert file.read() == content
    print("whole", flush=True)
    time.sleep(0.005)  # the file is closed
"""


def test_killed_while_it_restripes(volume, graphlane, fuse, tmp_path):
    """A reader runs beside it over a mount. The file is whole at every instant, old or new."""
    made = volume(depth="64K")
    source = tmp_path / "data"
    seed = random.randrange(1 << 32)
    r = random.Random(seed)
    source.write_bytes(r.randbytes(20_000_123))
    graphlane("import", source, made.path / "data")
    at = tmp_path / "mnt"
    changed = 0
    with graphlane.mounted(made, at):
        reader = subprocess.Popen([sys.executable, "-c", READER, at / "data", source],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            depth = None
            for kill in range(KILLS):
                job = subprocess.Popen([graphlane.program, "restripe", "--stripe-depth",
                                        ("4K", "1M", "64K")[kill % 3], made.path],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(r.random() * SECONDS_MAX)
                job.kill()
                job.wait(30)
                graphlane("check", "--repair", made.path, check=False)
                graphlane("check", "--delete-orphans", "--yes", made.path, check=False)  # no repair deletes parts
                assert "no problems" in graphlane("check", made.path).stdout, seed
                assert reader.poll() is None, reader.communicate()
                line = graphlane("ls", made.path).stdout
                changed += depth is not None and line != depth
                depth = line
                parts = [path for device in made.devices for path in device.glob("*/parts/*/" + 32 * "?")]
                assert len(parts) == len(made.devices), seed
                graphlane("export", "-f", made.path / "data", tmp_path / "back")
                assert (tmp_path / "back").read_bytes() == source.read_bytes(), seed
        finally:
            reader.kill()
            said = reader.communicate()[1]
        assert "Error" not in said, said
    print(f"{changed} of {KILLS} had been changed when they were killed")


# Renames files onto each other: each name always exists and is whole.
RENAMER = """
import os, sys
at = sys.argv[1]
number = 0
while True:
    number += 1
    with open(at + "/s-new", "wb") as file:
        file.write(bytes([number % 251]) * 200_000)
    os.makedirs(at + "/d%d" % (number % 3), exist_ok=True)
    os.rename(at + "/s-new", at + "/d%d/s-%d" % (number % 3, number % 4))
    os.rename(at + "/d%d" % (number % 3), at + "/moved")
    os.rename(at + "/moved", at + "/d%d" % (number % 3))
    print(number, flush=True)
"""


@pytest.mark.parametrize("victim", ["daemon", "renamer"])
def test_killed_while_it_renames(volume, graphlane, fuse, tmp_path, victim):
    """Files are renamed over others, and directories are moved. Each file keeps its old or new
    content and its parts. At most one half-written new file is left beside them."""
    made = volume(depth="64K", stripe=["s-*"])
    at = tmp_path / "mnt"
    at.mkdir()
    seed = random.randrange(1 << 32)
    r = random.Random(seed)
    known = set()
    for _ in range(KILLS):
        graphlane("mount", made.path, at)
        try:
            job = subprocess.Popen([sys.executable, "-c", RENAMER, at], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            said = job.stdout.readline()
            assert said, seed
            time.sleep(r.random() * SECONDS_MAX)
            if victim == "daemon":
                (pid,) = run("pgrep", "-f", f"mount {made.path} {at}$").stdout.split()
                os.kill(int(pid), signal.SIGKILL)
            else:
                job.kill()
            job.communicate(timeout=30)
        finally:
            graphlane("umount", at)
        graphlane("check", "--repair", made.path, check=False)
        assert "no problems" in graphlane("check", made.path).stdout, seed
        if (made.path / "moved").exists():  # killed between two renames
            (name,) = {f"d{i}" for i in range(3)} - {path.name for path in made.path.iterdir()}
            (made.path / "moved").rename(made.path / name)
        if (made.path / "s-new").exists():
            graphlane("rm", made.path / "s-new")
        files = {str(path.relative_to(made.path)) for path in made.path.glob("d[0-9]/s-*")}
        assert files >= known, seed
        known = files
        back = tmp_path / "back"
        graphlane("export", "-f", f"{made.path}/.", back)
        for name in files:
            content = (back / name).read_bytes()
            assert len(content) == 200_000 and len(set(content)) == 1, (seed, name)


def test_killed_while_it_imports(volume, graphlane, tmp_path):
    made = volume(depth="64K")
    old, new = tmp_path / "old", tmp_path / "new"
    for source, fill in ((old, b"o"), (new, b"n")):
        source.mkdir()
        (source / "large").write_bytes(fill * 30_000_000)
        (source / "small").write_bytes(fill * 10)
    graphlane("import", old, made.path / "graph")
    r = random.Random(random.randrange(1 << 32))
    for _ in range(KILLS):
        job = subprocess.Popen([graphlane.program, "import", "--overwrite", new,
                                made.path / "graph"], stderr=subprocess.DEVNULL)
        time.sleep(r.random() * SECONDS_MAX)
        job.kill()
        job.wait(30)
        graphlane("check", "--repair", made.path, check=False)
        assert "no problems" in graphlane("check", made.path).stdout
        back = tmp_path / "back"
        graphlane("export", "--overwrite", made.path / "graph", back)
        for name, size in (("large", 30_000_000), ("small", 10)):
            content = (back / name).read_bytes()
            assert len(content) == size and content in (b"o" * size, b"n" * size)
