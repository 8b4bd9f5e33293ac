"""Large writes over a mount bypass the page cache while no other process has the file open. On
either path the file behaves as a plain one."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from harness import run

MIB = 1 << 20

CHANGES = """
import mmap, os, random, sys
paths, rng = sys.argv[1:3], random.Random(int(sys.argv[3]))
fds = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for path in paths]
maps = []

def both(function, *arguments):
    ours, theirs = (function(fd, *arguments) for fd in fds)
    assert ours == theirs, (function, step)
    return ours

for step in range(250):
    what = rng.randrange(10)
    at = rng.randrange(64) * 4096 * rng.choice([1, 16, 64])
    data = rng.randbytes(rng.choice([4096, MIB, 3 * MIB, MIB + 4096, 12345]))
    if what <= 2:
        both(os.pwrite, data, at)
    elif what <= 4:
        both(os.write, data)
    elif what == 5:
        both(os.lseek, at, os.SEEK_SET)
    elif what == 6:
        both(os.ftruncate, rng.choice([at, 24 * MIB]))
    elif what == 7 and not maps and os.fstat(fds[0]).st_size > 2 * MIB:
        maps = [mmap.mmap(fd, 2 * MIB) for fd in fds]
        assert maps[0][:] == maps[1][:]
    elif what == 8 and maps and os.fstat(fds[0]).st_size > 2 * MIB:
        page = rng.randrange(512) * 4096
        for mapped in maps:
            mapped[page:page + 5000] = data[:1].ljust(5000, b"m")
        if rng.random() < 0.3:
            maps = []
    elif what == 9:
        with open(paths[0], "rb") as ours, open(paths[1], "rb") as theirs:  # other handles
            both(os.pwrite, data, at)
            assert ours.read() == theirs.read()
    both(os.pread, len(data), at)
    assert len({os.fstat(fd).st_size for fd in fds}) == 1, step
    both(os.lseek, 0, os.SEEK_CUR)
with open(paths[0], "rb") as ours, open(paths[1], "rb") as theirs:
    assert ours.read() == theirs.read()
""".replace("MIB", str(MIB))


@pytest.fixture
def made(volume):
    return volume(depth="256K", stripe=["*.dat"])


def preloaded(graphlane, tmp_path, program, *arguments, **options):
    """The program's report: for each file the bytes that it wrote past the page cache."""
    report = tmp_path / "report"
    report.unlink(missing_ok=True)
    run(graphlane.program, "run", f"--report={report}", "--", sys.executable, "-c", program,
        *arguments, **options)
    if not report.exists():
        return {}
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return {os.path.basename(file["path"]): file for line in lines for file in line["files"]}


def checked(graphlane, made):
    assert "no problems" in graphlane("check", made.path).stdout


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_agree_with_a_plain_file(graphlane, made, mount, tmp_path, seed):
    with mount(made) as at:
        files = preloaded(graphlane, tmp_path, CHANGES, at / "a.dat", tmp_path / "plain", seed)
        assert files["a.dat"]["writes"] > 20, "past the kernel"
        assert (at / "a.dat").read_bytes() == (tmp_path / "plain").read_bytes(), "without the library"
    checked(graphlane, made)


WRITES = f"""
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for n in range(8):
    assert os.write(fd, bytes([n + 1]) * {MIB}) == {MIB}
"""


def test_other_readers_see_every_write(graphlane, made, mount, tmp_path):
    with mount(made) as at:
        assert preloaded(graphlane, tmp_path, WRITES, at / "a.dat")["a.dat"]["writes"] == 8
        with open(at / "a.dat", "rb", buffering=0) as reader:
            assert reader.read(1) == b"\x01"
            files = preloaded(graphlane, tmp_path, WRITES.replace("n + 1", "n + 11"), at / "a.dat")
            assert files["a.dat"]["writes"] == 0, "through the mount"
            reader.seek(0)
            assert reader.readall() == b"".join(bytes([n + 11]) * MIB for n in range(8))


@pytest.mark.parametrize("flags", ["os.O_WRONLY", "os.O_WRONLY | os.O_DIRECT"])
def test_write_only_descriptors_bypass_the_page_cache_too(graphlane, made, mount, tmp_path, flags):
    program = WRITES.replace("os.O_RDWR", flags).replace(f"bytes([n + 1]) * {MIB}", "block(n)")
    aligned = f"""
import mmap
def block(n):
    memory = mmap.mmap(-1, {MIB})
    memory[:] = bytes([n + 1]) * {MIB}
    return memory
"""
    with mount(made) as at:
        assert preloaded(graphlane, tmp_path, aligned + program, at / "a.dat")["a.dat"]["writes"] == 8
        assert (at / "a.dat").read_bytes() == b"".join(bytes([n + 1]) * MIB for n in range(8))


@pytest.mark.parametrize("flags", ["os.O_APPEND", "os.O_SYNC", "os.O_DSYNC"])
def test_the_kernel_sees_writes_that_it_must_handle(graphlane, made, mount, tmp_path, flags):
    with mount(made) as at:
        program = WRITES.replace("os.O_CREAT", f"os.O_CREAT | {flags}")
        files = preloaded(graphlane, tmp_path, program, at / "a.dat")
        assert files.get("a.dat", {"writes": 0})["writes"] == 0
        assert (at / "a.dat").stat().st_size == 8 * MIB


def test_a_write_by_a_user_clears_set_id_bits(root, graphlane, made, mount, tmp_path):
    with mount(made) as at:
        files = preloaded(graphlane, tmp_path, f"""
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.seteuid(65534)
assert os.write(fd, bytes({MIB})) == {MIB}
os.seteuid(0)
os.fchmod(fd, 0o6777)
assert os.write(fd, bytes({MIB})) == {MIB}
assert os.fstat(fd).st_mode & 0o7777 == 0o6777, "root's keeps them"
os.seteuid(65534)
assert os.write(fd, bytes({MIB})) == {MIB}
assert os.fstat(fd).st_mode & 0o7777 == 0o777
assert os.write(fd, bytes({MIB})) == {MIB}
os.seteuid(0)
""", at / "a.dat")
        assert files["a.dat"]["writes"] == 2, "past the kernel, where there are none"


def test_the_file_size_limit_of_the_process_holds(graphlane, made, mount, tmp_path):
    with mount(made) as at:
        preloaded(graphlane, tmp_path, f"""
import errno, os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({4 * MIB}, {4 * MIB}))
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
assert os.write(fd, bytes({3 * MIB})) == {3 * MIB}
assert os.write(fd, bytes({3 * MIB})) == {MIB}
try:
    os.write(fd, bytes({MIB}))
    sys.exit("it was written")
except OSError as error:
    assert error.errno == errno.EFBIG
""", at / "a.dat")


def test_a_full_device_ends_the_write_where_it_is_full(
        graphlane, small_device_volume, mount, tmp_path):
    made = small_device_volume("2M", depth="256K", stripe=["*.dat"])
    with mount(made) as at:
        preloaded(graphlane, tmp_path, f"""
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
data = os.urandom({MIB})
total = 0
while True:
    try:
        n = os.write(fd, data)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        break
    assert os.pread(fd, n, total) == data[:n]
    total += n
assert {7 * MIB} < total < {9 * MIB} and os.fstat(fd).st_size == total == os.lseek(fd, 0, os.SEEK_CUR)
""", at / "a.dat")
    checked(graphlane, made)


def start_writer(graphlane, at):
    program = f"""
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
data = bytes(range(256)) * {32 * MIB // 256}
for n in range(10**9):
    os.pwrite(fd, data, n % 8 * {32 * MIB})
    print(n, flush=True)
"""
    writer = subprocess.Popen([graphlane.program, "run", "--", sys.executable, "-c", program, at / "a.dat"],
                              stdout=subprocess.PIPE, text=True)
    writer.stdout.readline()
    return writer


def test_a_killed_writer_leaves_a_whole_file(graphlane, made, mount):
    """GRAPHLANE_KILLS=200 for more."""
    rng = random.Random(2)
    pattern = bytes(range(256)) * (MIB // 256)
    for _ in range(int(os.environ.get("GRAPHLANE_KILLS", 5))):
        with mount(made) as at:
            writer = start_writer(graphlane, at)
            time.sleep(rng.random() * 0.1)
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            size = (at / "a.dat").stat().st_size
            with open(at / "a.dat", "rb") as file:
                while block := file.read(MIB):
                    assert block == pattern[:len(block)]
                assert file.tell() == size
            (at / "a.dat").write_bytes(b"and on")
            (at / "a.dat").unlink()
        checked(graphlane, made)


def test_a_stopped_writer_delays_others_by_seconds_at_most(graphlane, made, mount):
    with mount(made) as at:
        writer = start_writer(graphlane, at)
        try:
            writer.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            os.truncate(at / "a.dat", 1000)
            with open(at / "a.dat", "r+b") as file:
                assert len(file.read(2000)) == 1000
                file.write(b"x" * 5000)
            # five seconds each for the truncation and the write, then it goes on
            assert time.monotonic() - begun < 20
            writer.send_signal(signal.SIGCONT)
            time.sleep(0.1)
        finally:
            writer.kill()
            writer.communicate()
    checked(graphlane, made)


def test_the_server_killed_beneath_a_writer(graphlane, made, tmp_path, fuse):
    """The writer fails as if the filesystem had: no hang, no torn data."""
    at = tmp_path / "mnt"
    at.mkdir()
    graphlane("mount", made.path, at)
    try:
        (daemon,) = run("pgrep", "-f", f"mount {made.path} {at}( |$)").stdout.split()
        writer = start_writer(graphlane, at)
        os.kill(int(daemon), signal.SIGKILL)
        said = writer.communicate(timeout=20)
        assert writer.returncode == 1, said
    finally:
        run("fusermount3", "-u", "-z", at, check=False)
    assert run(graphlane.program, "check", "--repair", made.path, check=False).returncode in (0, 1)
    checked(graphlane, made)
