"""The library refuses what it cannot do, with the usual errno and one line. It leaves to FUSE
what it may not do. Damage affects only the damaged bytes."""

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness import run

SIZE = 2_000_000
UNIT = 65536

# Each line is evaluated with `path`, the striped file, and `fd`, open on it. It must raise the
# error named before it.
REFUSALS = {
    "mmap": ("ENODEV", "mmap.mmap(os.open(path, os.O_RDWR), 4096)"),  # shared and writable
    "sendfile": ("EINVAL", "os.sendfile(other, fd, 0, 100)"),
    "copy_file_range": ("EXDEV", "os.copy_file_range(fd, other, 100)"),
    "splice": ("EINVAL", "os.splice(fd, os.pipe()[1], 100)"),
    "reflink": ("EOPNOTSUPP", "fcntl.ioctl(other, 0x40049409, fd)"),
    "freopen": ("ENOTSUP", "call('freopen', path.encode(), b'r', stdin(), pointer=True)"),
    "freopen itself": ("ENOTSUP", "call('freopen', None, b'w', stream(fd), pointer=True)"),
    "posix_spawn": ("ENOTSUP", "spawn_on(path)"),
    "aio_read": ("ENOSYS", "call('aio_read', request(fd))"),
    "aio_write": ("ENOSYS", "call('aio_write', request(fd))"),
    "aio_fsync": ("ENOSYS", "call('aio_fsync', os.O_SYNC, request(fd))"),
    "lio_listio": ("ENOSYS", "call('lio_listio', 0, "
                   "(ctypes.POINTER(ctypes.c_int * 64) * 1)(ctypes.pointer(request(fd))), 1, None)"),
}
PRELUDE = """
import ctypes, errno, fcntl, mmap, os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDONLY)
other = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments, pointer=False):
    function = getattr(libc, name)
    function.restype = ctypes.c_void_p if pointer else ctypes.c_int
    result = function(*arguments)
    if (result is None) if pointer else result < 0:
        raise OSError(ctypes.get_errno(), name)

def stdin():
    return ctypes.c_void_p.in_dll(libc, "stdin")

def stream(fd):
    libc.fdopen.restype = ctypes.c_void_p
    return ctypes.c_void_p(libc.fdopen(fd, b"r"))

def spawn_on(path):
    action = (os.POSIX_SPAWN_OPEN, 1, path, os.O_WRONLY | os.O_TRUNC, 0)
    child = os.posix_spawn("/bin/echo", ["echo", "spawned"], os.environ, file_actions=[action])
    assert os.waitpid(child, 0)[1] == 0

def request(fd):  # struct aiocb: the descriptor, LIO_READ, then zeros
    block = (ctypes.c_int * 64)()
    block[0] = fd
    return block

"""


@pytest.fixture
def striped(volume, graphlane, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(7).randbytes(SIZE))
    made = volume(depth="64K")
    graphlane("import", plain, made.path)
    return made


def python(graphlane, striped, tmp_path, program, *way, path=None):
    return run(graphlane.program, "run", *way, "--", sys.executable, "-c", PRELUDE + program,
               path or striped.path / "plain", tmp_path / "other")


@pytest.mark.parametrize("what", REFUSALS)
def test_without_a_mount(graphlane, striped, tmp_path, what):
    name, line = REFUSALS[what]
    before = {path: path.read_bytes() for path in striped.path.rglob("*") if path.is_file()}
    said = python(graphlane, striped, tmp_path, f"""
for attempt in range(2):
    try:
        {line}
        sys.exit("it was done")
    except OSError as error:
        assert error.errno == errno.{name}, error
assert os.pread(fd, 10, 0)
""", "--no-mount").stderr
    assert said.count("graphlane: ") <= 1, "said more than once"
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("what", ["mmap", "sendfile", "splice", "posix_spawn"])
def test_a_mount_serves_refused_calls(graphlane, striped, fuse, tmp_path, what):
    assert python(graphlane, striped, tmp_path, REFUSALS[what][1]).stderr == ""


def test_parts_that_the_caller_may_not_read_are_left_to_fuse(graphlane, fuse):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = Path(tempfile.mkdtemp())  # pytest's own directory is only for root
    try:
        directory.chmod(0o755)
        content = random.Random(8).randbytes(SIZE)
        (directory / "plain").write_bytes(content)
        made = graphlane.create(directory, depth="64K")
        graphlane("import", directory / "plain", made.path)
        for device in made.devices:
            for part in device.rglob("parts/*/" + 32 * "?"):
                part.chmod(0o600)
        with graphlane.mounted(made, directory / "mnt") as at:
            out = subprocess.run(
                [graphlane.program, "run", f"--report={directory}/report", "--", "cat", at / "plain"],
                capture_output=True, user=65534, group=65534, extra_groups=[], timeout=60)
            assert (out.returncode, out.stderr) == (0, b"")
            assert out.stdout == content
            assert not (directory / "report").exists()
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("when", ["before it is opened", "while it is open"])
def test_a_cut_part_fails_only_its_bytes(graphlane, striped, tmp_path, when):
    (part,) = striped.devices[1].rglob("parts/*/" + 32 * "?")
    cut = UNIT * 3  # the fourth of its units is cut, with all after it
    program = f"""
part, plain = {str(part)!r}, open({str(tmp_path / "plain")!r}, "rb").read()
assert os.pread(fd, 10, 0) == plain[:10]
whole_units = os.path.getsize(part) // {UNIT}
os.truncate(part, {cut})
bad = 0
for n in range({SIZE} // {UNIT}):
    try:
        assert os.pread(fd, {UNIT}, n * {UNIT}) == plain[n * {UNIT}:(n + 1) * {UNIT}]
    except OSError as error:
        assert error.errno == errno.EIO
        bad += 1
sys.exit(0 if bad == whole_units - 3 else f"{{bad}} units lost")
"""
    if when == "while it is open":
        python(graphlane, striped, tmp_path, program, "--no-mount")
        return
    os.truncate(part, cut)
    result = subprocess.run(
        [graphlane.program, "run", "--no-mount", "--", "cat", striped.path / "plain"],
        capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and result.stdout == ""
    assert f"{striped.devices[1]}/" in result.stderr and "shorter" in result.stderr
    assert os.strerror(errno.EIO) in result.stderr
