"""With verify=read every byte that a program reads matches its checksum, on every read path. A
killed writer leaves no checksum that contradicts good data."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import PRELOADED, Job, catches, run, wait_until
from mounts import daemon_of, mounted, parts_of, stats  # noqa: F401
from trust.stubs import crc32c

DEPTH, DEVICES = 64 << 10, 4
SIZE = (6 << 20) + 12345
BAD_PART_OFFSET = 300_000  # within part 1

READER = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | (os.O_DIRECT if sys.argv[2] == "direct" else 0))
for at in map(int, sys.argv[3:]):
    # The kernel reads by pages: a longer read through the page cache would be short.
    memory = mmap.mmap(-1, 65536 if sys.argv[2] == "direct" else 4096)
    try:
        print("read" if os.preadv(fd, [memory], at) > 0 else "end", end=" ")
    except OSError as error:
        print(error.errno, end=" ")
"""


@pytest.fixture
def damaged(graphlane, tmp_path):
    """A volume with one file, `data`, and the offset in that file of a flipped bit."""
    made = graphlane.create(tmp_path, DEVICES, depth="64K")
    content = random.Random(1).randbytes(SIZE)
    (tmp_path / "data").write_bytes(content)
    graphlane("import", tmp_path / "data", made.path)
    part = next(made.devices[1].glob("*/parts/*/" + 32 * "?"))
    with open(part, "r+b") as file:
        file.seek(BAD_PART_OFFSET)
        byte = file.read(1)[0]
        file.seek(BAD_PART_OFFSET)
        file.write(bytes([byte ^ 16]))
        os.fsync(file.fileno())
    at = content.find(part.read_bytes()[:4096])  # where part 1 begins in the file
    unit, rest = divmod(BAD_PART_OFFSET, DEPTH)
    return made, content, at % (DEPTH * DEVICES) + unit * DEPTH * DEVICES + rest


def offsets_of(bad: int, way: str) -> list[str]:
    """One range with the bad byte, and two without it."""
    step = DEPTH if way == "direct" else 4096
    return [str(at) for at in (bad // step * step, 0, bad // step * step + step)]


@pytest.mark.parametrize("way", ["direct", "buffered"])
@pytest.mark.parametrize("preloaded", [False, True], ids=["mount", "preloaded"])
def test_a_mount_reports_a_flipped_bit(graphlane, mounted, damaged, way, preloaded):  # noqa: F811
    made, content, bad = damaged
    with mounted(made, "-o", "verify=read") as at:
        command = [sys.executable, "-c", READER, at / "data", way, *offsets_of(bad, way)]
        said = graphlane("run", "--", *command, env={**os.environ, **PRELOADED}) if preloaded else run(*command)
        assert said.stdout.split() == [str(errno.EIO), "read", "read"], said.stderr
        with open(at / "data", "rb") as file:
            assert file.read(bad // 4096 * 4096 - 131072)[:100] == content[:100]
        assert stats(at)["checksums"]["failed"] > 0
        assert stats(at)["checksums"]["verified"] > 0


def test_without_verify_a_mount_serves_damaged_data(mounted, damaged):  # noqa: F811
    made, _, bad = damaged
    with mounted(made) as at:
        said = run(sys.executable, "-c", READER, at / "data", "direct", *offsets_of(bad, "direct")).stdout
        assert said.split() == ["read"] * 3
        assert stats(at)["checksums"] == {"verified": 0, "unverified": 0, "failed": 0}


@pytest.mark.parametrize("way", ["direct", "buffered"])
def test_the_preload_library_reports_a_flipped_bit(graphlane, damaged, way):
    made, _, bad = damaged
    said = graphlane("run", "--no-mount", "--verify=read", "--", sys.executable, "-c", READER, made.path / "data", way,
                     *offsets_of(bad, way), env={**os.environ, **PRELOADED})
    assert said.stdout.split() == [str(errno.EIO), "read", "read"]
    assert said.stderr.count("do not match their checksum") == 1
    assert "/d1/" in said.stderr


def test_a_volume_can_require_verification(graphlane, tmp_path):
    devices = [tmp_path / f"e{i}" for i in range(2)]
    for device in devices:
        device.mkdir()
    graphlane("create", tmp_path / "vol", "--verify=read", "--stripe-depth", "64K",
              *(word for device in devices for word in ("--device", device)))
    (tmp_path / "data").write_bytes(random.Random(2).randbytes(1 << 20))
    graphlane("import", tmp_path / "data", tmp_path / "vol")
    assert "read" in graphlane("info", tmp_path / "vol").stdout
    part = next(devices[0].glob("*/parts/*/" + 32 * "?"))
    with open(part, "r+b") as file:
        file.write(b"damaged!")
    exported = graphlane("export", tmp_path / "vol/data", tmp_path / "out", check=False)
    assert exported.returncode != 0
    assert not (tmp_path / "out").exists()


def test_a_restriping_refuses_damaged_data(graphlane, damaged):
    made, _, _ = damaged
    assert graphlane("restripe", "--stripe-depth", "128K", made.path, check=False).returncode != 0
    assert graphlane("check", "--scrub", made.path, check=False).returncode == 4


def test_missing_checksums_are_an_error(graphlane, mounted, damaged):  # noqa: F811
    made, _, bad = damaged
    for sums in made.devices[2].glob("*/sums/*/*.sum"):
        sums.unlink()
    with mounted(made, "-o", "verify=read") as at:
        unit = bad // DEPTH * DEPTH
        said = run(sys.executable, "-c", READER, at / "data", "direct", str(unit + DEPTH), str(unit + 2 * DEPTH)).stdout
        assert str(errno.EIO) in said.split() and "read" in said.split()


# Writes only behind the first 40 MiB: the regions before stay clean.
WRITER = """
import os, random, sys, mmap
path, seed, kind = sys.argv[1:]
r = random.Random(int(seed))
begin = 40 << 20
fd = os.open(path, os.O_RDWR)
large = mmap.mmap(-1, 2 << 20)
print("begun", flush=True)
while True:
    size = os.fstat(fd).st_size
    what = r.randrange(12)
    if what == 0 and kind != "large":
        os.ftruncate(fd, begin + r.randrange(4 << 20))
    elif what == 1:
        os.fsync(fd)
    elif what == 2 and kind == "maps":
        with mmap.mmap(fd, size) as memory:
            at = r.randrange(begin, size - 1000) if size > begin + 1000 else begin
            memory[at:at + 1000] = r.randbytes(len(memory[at:at + 1000]))
    elif kind == "large":
        large[:4096] = r.randbytes(4096)
        os.pwritev(fd, [memoryview(large)[:r.choice([1 << 20, 2 << 20])]], begin + r.randrange(512) * 4096)
    else:
        os.pwrite(fd, r.randbytes(r.randrange(1, 70000)), r.randrange(begin, size + 1))
"""

# Each has: by a mount (its daemon is killed too), the number of writers, the kind of writes.
WRITERS = {"mount": (True, 1, "maps"), "several by a mount": (True, 3, "maps"), "write link": (True, 1, "large"),
           "no mount": (False, 1, "small"), "several without a mount": (False, 3, "small")}


def failed_blocks(graphlane, made) -> list[str]:
    said = graphlane("check", "--scrub", made.path, check=False).stdout
    return [line for line in said.splitlines() if "checksum" in line and line.startswith("problem")]


@pytest.mark.parametrize("rounds", [int(os.environ.get("GRAPHLANE_KILLS", 3))])
@pytest.mark.parametrize("way", WRITERS)
def test_a_killed_writer_leaves_no_wrong_checksum(graphlane, fuse, tmp_path, way, rounds):
    """A damaged block in a clean region stays damaged: its checksum is not computed anew."""
    by_mount, count, kind = WRITERS[way]
    made = graphlane.create(tmp_path, 2, depth="64K")
    source = tmp_path / "data"
    with open(source, "wb") as file:  # with a hole, which an import keeps
        file.write(random.Random(3).randbytes(1 << 20))
        file.seek(40 << 20)
        file.write(random.Random(4).randbytes(3 << 20))
    graphlane("import", source, made.path)
    part = next(made.devices[1].glob("*/parts/*/" + 32 * "?"))
    with open(part, "r+b") as file:
        file.seek(100_000)
        file.write(b"damaged")
    damaged = failed_blocks(graphlane, made)
    assert len(damaged) == 1
    at = tmp_path / "mnt"
    at.mkdir()
    r = random.Random(int(os.environ.get("GRAPHLANE_SEED", 5)))
    place = at if by_mount else made.path
    words = ["run", *([] if by_mount else ["--no-mount"]), "--", sys.executable, "-c", WRITER, place / "data"]
    for number in range(rounds):
        if by_mount:
            graphlane("mount", made.path, at)
        with open(tmp_path / "said", "w") as said:
            writers = [subprocess.Popen([*map(str, [graphlane.program, *words, 10 * number + one, kind])],
                                        stdout=subprocess.PIPE, stderr=said, env={**os.environ, **PRELOADED})
                       for one in range(count)]
        for writer in writers:
            assert writer.stdout.readline() == b"begun\n", f"round {number}: {(tmp_path / 'said').read_text()}"
        time.sleep(r.random() * 0.4)
        if by_mount and number % 3 < 2:  # otherwise the daemon closes the file
            os.kill(int(daemon_of(made, at)), signal.SIGKILL)
        for writer in writers:
            with writer:
                writer.kill()
        if by_mount:
            graphlane("umount", at, check=False)
            run("fusermount3", "-u", "-z", at, check=False)
        assert failed_blocks(graphlane, made) == damaged, f"round {number}"
    # The next mount closes the file; then every block is verified.
    graphlane("mount", made.path, at)
    with open(at / "data", "r+b") as file:
        file.seek(40 << 20)
        file.write(b"x")
    graphlane("umount", at)
    assert failed_blocks(graphlane, made) == damaged
    assert " 0 have none" in graphlane("check", "--scrub", made.path, check=False).stdout


def sums_of(part: Path) -> Path:
    return part.parents[2] / "sums" / part.parent.name / f"{part.name}.sum"


def take_checksums_away(made) -> None:
    """The files as Graphlane made them before it had checksums."""
    volume = bytes.fromhex(json.loads((made.path / ".graphlane/volume.json").read_text())["uuid"])
    for part in parts_of(made):
        record = bytearray(os.getxattr(part, "user.graphlane"))
        record[1] = 0
        record[56:] = crc32c(bytes(record[:56]) + volume + bytes.fromhex(part.name)).to_bytes(4, "little")
        os.setxattr(part, "user.graphlane", bytes(record))
        sums_of(part).unlink()


def test_files_without_checksums_get_them(graphlane, tmp_path):
    made = graphlane.create(tmp_path, DEVICES, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(5).randbytes(SIZE))
    graphlane("import", tmp_path / "data", made.path)
    take_checksums_away(made)
    said = graphlane("check", "--scrub", made.path).stdout
    assert "scrubbed: 0 blocks match" in said and "files without checksums: 1 " in said
    assert graphlane("info", made.path / "data").stdout.count("checksums: none") == DEVICES
    added = graphlane("check", "--checksum", made.path, check=False)
    assert added.returncode == 1 and "data: has checksums now" in added.stdout
    assert graphlane("check", "--checksum", made.path).stdout.count("repaired") == 0
    assert graphlane("info", made.path / "data").stdout.count("checksums: of each block") == DEVICES
    assert "0 do not, 0 have none" in graphlane("check", "--scrub", made.path).stdout


def test_an_interrupted_scrub_resumes(graphlane, tmp_path):
    made = graphlane.create(tmp_path, 2, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(6).randbytes(20 << 20))
    graphlane("import", tmp_path / "data", made.path)
    state = made.path / ".graphlane/scrub"
    job = Job(graphlane.program, "check", "--scrub", "--limit-rate", "2M", made.path)
    job.wait_until(lambda: catches(job.process.pid, signal.SIGTERM))
    time.sleep(1)  # 4 MiB of each part, on an idle machine
    job.stop(signal.SIGTERM)
    done = sum(int(line.split()[2]) for line in state.read_text().splitlines())
    assert done < 20 << 20
    rest = graphlane("check", "--scrub", "--resume", made.path).stdout
    assert f"scrubbed: {(20 << 20) - done >> 12} blocks match" in rest
    assert not state.exists()


def flip(part: Path, at: int) -> None:
    with open(part, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
        os.fsync(file.fileno())


def test_making_checksums_resumes_within_a_file(graphlane, tmp_path):
    """The checksums that a killed run has made hold. They are not made anew: a block that is damaged later is found."""
    made = graphlane.create(tmp_path, 2, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(7).randbytes(48 << 20))
    graphlane("import", tmp_path / "data", made.path)
    take_checksums_away(made)
    for seconds in (3.5, 7, 14):  # the first sums hold after two, on an idle machine
        with subprocess.Popen([graphlane.program, "check", "--checksum", "--limit-rate", "4M", made.path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
            time.sleep(seconds)
            job.kill()
        said = graphlane("check", "--scrub", made.path).stdout  # a part of a file is no problem
        if "scrubbed: 0 blocks" not in said:
            break
    assert " 0 do not" in said and "scrubbed: 0 blocks" not in said, said
    assert graphlane("info", made.path / "data").stdout.count("have none that holds (check --checksum goes on)") == 2
    part = next(made.devices[0].glob("*/parts/*/" + 32 * "?"))
    flip(part, 1 << 20)
    assert graphlane("check", "--checksum", made.path, check=False).returncode == 1
    assert graphlane("info", made.path / "data").stdout.count("checksums: of each block\n") == 2
    assert len(failed_blocks(graphlane, made)) == 1
    assert " 1 do not, 0 have none" in graphlane("check", "--scrub", made.path, check=False).stdout


def test_a_killed_scrub_tells_later_what_it_has_found(graphlane, tmp_path):
    made = graphlane.create(tmp_path, 2, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(8).randbytes(64 << 20))
    graphlane("import", tmp_path / "data", made.path)
    flip(next(made.devices[0].glob("*/parts/*/" + 32 * "?")), 5 << 20)
    with subprocess.Popen([graphlane.program, "check", "--scrub", "--limit-rate", "4M", made.path],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        wait_until(lambda: (made.path / ".graphlane/scrub").exists())
        job.kill()
    rest = graphlane("check", "--scrub", "--resume", made.path, check=False)
    assert rest.returncode == 4 and rest.stdout.count("do not match their checksums") == 1, rest.stdout
    assert " 0 do not" in rest.stdout  # the block itself was not read again


def test_an_export_compares_whatever_the_volume_says(graphlane, tmp_path, damaged):
    made, content, bad = damaged
    block = bad // 4096 * 4096
    done = graphlane("export", made.path / "data", tmp_path / "out", check=False)
    assert done.returncode != 0 and not (tmp_path / "out").exists()
    assert f"data: bytes {block} to {block + 4095} do not match their checksum: device {made.devices[1]}" in done.stderr
    assert done.stderr.count("\n") == 1
    saved = graphlane("export", "--salvage", made.path / "data", tmp_path / "out", check=False)
    assert saved.returncode == 1
    assert (tmp_path / "out").read_bytes() == content[:block] + bytes(4096) + content[block + 4096:]
    assert f"\n{block} 4096 " in (tmp_path / "out.missing").read_text()


def test_a_salvage_keeps_bytes_whose_checksums_are_lost(graphlane, tmp_path, damaged):
    made, _, _ = damaged
    content = b"".join(random.Random(9).randbytes(1 << 20) for _ in range(2))
    (tmp_path / "other").write_bytes(content)
    graphlane("import", tmp_path / "other", made.path)
    for sums in made.devices[2].glob("*/sums/*/*.sum"):
        sums.unlink()
    assert "its checksums are missing" in graphlane("export", made.path / "other", tmp_path / "out", check=False).stderr
    saved = graphlane("export", "--salvage", made.path / "other", tmp_path / "out")
    assert "copied as it is: its checksums are missing" in saved.stderr
    assert (tmp_path / "out").read_bytes() == content


WRITES_AND_WAITS = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(fd, b"changed" * 9000, 100_000)
os.pwrite(fd, b"longer" * 50_000, os.fstat(fd).st_size)
print("written", flush=True)
sys.stdin.read()
os.close(fd)
if sys.argv[2] == "again":
    fd = os.open(sys.argv[1], os.O_RDWR)
    os.pwrite(fd, b"again", 0)
"""


@pytest.mark.parametrize("end", ["kill", "exit", "again"])
def test_files_that_a_run_without_a_mount_wrote_are_closed(graphlane, tmp_path, end):
    made = graphlane.create(tmp_path, 2, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(10).randbytes(1 << 20))
    graphlane("import", tmp_path / "data", made.path)
    env = {name: value for name, value in os.environ.items() if name != "GRAPHLANE_CHANGES"}
    with subprocess.Popen([graphlane.program, "run", "--no-mount", "--", sys.executable, "-c", WRITES_AND_WAITS,
                           made.path / "data", end], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**env, **PRELOADED}) as job:
        assert job.stdout.readline() == b"written\n"
        assert "state         open" in graphlane("info", made.path / "data").stdout
        if end == "kill":
            job.kill()
        job.communicate()  # also the end of its output, which no process beside it may keep open
    wait_until(lambda: "state         closed" in graphlane("info", made.path / "data").stdout)
    assert graphlane("info", made.path / "data").stdout.count("checksums: of each block\n") == 2
    assert " 0 do not, 0 have none" in graphlane("check", "--scrub", made.path).stdout


def test_an_adopted_volume_keeps_its_checksums(graphlane, tmp_path, damaged):
    """Also those of small parts. A file system is restored, and its stubs have other inodes."""
    made, _, _ = damaged
    (tmp_path / "small").write_bytes(b"small" * 5000)
    graphlane("import", tmp_path / "small", made.path)
    before = failed_blocks(graphlane, made)
    run("cp", "-a", made.path, tmp_path / "copy")
    run("rm", "-r", made.path)
    (tmp_path / "copy").rename(made.path)
    graphlane("adopt", made.path, check=False)
    for name in ("data", "small"):
        graphlane("adopt", made.path / name)
    assert len(before) == 1 and failed_blocks(graphlane, made) == before
    assert "1 do not, 0 have none" in graphlane("check", "--scrub", made.path, check=False).stdout
    said = graphlane("info", made.path / "data").stdout + graphlane("info", made.path / "small").stdout
    assert said.count("checksums: of each block\n") == DEVICES and said.count("checksums: of the part") == DEVICES
