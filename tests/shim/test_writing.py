"""Writing striped files without a mount behaves as writing plain files."""

import errno
import fcntl
import os
import random
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import BUILD, Volume, names_locked, run

UNIT = 65536
CHANGES = Path(__file__).parent / "changes.py"


@pytest.fixture
def made(volume):
    return volume(depth="64K", stripe=["*.dat"])


@pytest.fixture
def preloaded(graphlane):
    """Runs a command without a mount. A str is a Python program."""
    def start(*command, **options):
        if len(command) == 1:
            command = (sys.executable, "-c", *command)
        return run(graphlane.program, "run", "--no-mount", "--", *command, **options)
    return start


ORDINARY = dict(user=65534, group=65534, extra_groups=[])


@pytest.fixture
def owned(root, graphlane, open_tmp):
    """A volume that an ordinary user owns."""
    home = open_tmp / "owned"
    home.mkdir()
    os.chown(home, 65534, 65534)
    devices = [home / f"d{n}" for n in range(2)]
    words = [word for device in devices for word in ("--device", device)]
    run("mkdir", *devices, **ORDINARY)
    run(graphlane.program, "create", home / "vol", *words, "--stripe", "*.dat", **ORDINARY)
    return Volume(home / "vol", devices)


def is_stub(path: Path) -> bool:
    with open(path, "rb") as file:
        return path.stat().st_size == 4096 and file.read(8) == b"\x89GLSTUB\n"


def content(graphlane, made, name: str) -> bytes:
    """The content as other programs see it: exported, without the library."""
    with tempfile.TemporaryDirectory() as out:
        graphlane("export", made.path / name, f"{out}/copy")
        return Path(out, "copy").read_bytes()


def part_count(made) -> int:
    return sum(1 for device in made.devices for path in device.rglob("parts/*/" + 32 * "?"))


def settled(graphlane, made) -> None:
    """A check finds only files that were not closed. A second check finds nothing."""
    assert run(graphlane.program, "check", "--repair", made.path, check=False).returncode in (0, 1)
    assert "no problems" in graphlane("check", made.path).stdout


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_agree_with_a_plain_file(graphlane, preloaded, made, tmp_path, seed):
    preloaded(sys.executable, CHANGES, made.path / "a.dat", tmp_path / "plain", seed, 600)
    assert is_stub(made.path / "a.dat")
    assert content(graphlane, made, "a.dat") == (tmp_path / "plain").read_bytes()
    settled(graphlane, made)
    assert content(graphlane, made, "a.dat") == (tmp_path / "plain").read_bytes()


def test_a_new_name_is_striped_by_the_policy(preloaded, made):
    preloaded(f"""
import os
os.chdir({str(made.path)!r})
os.umask(0o027)
open("yes.dat", "w").close()
open("no.txt", "w").close()
os.mkdir("sub")
os.close(os.open("sub/yes.dat", os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o604))
""")
    assert is_stub(made.path / "yes.dat") and is_stub(made.path / "sub/yes.dat")
    assert (made.path / "no.txt").stat().st_size == 0
    assert stat.S_IMODE((made.path / "yes.dat").stat().st_mode) == 0o640
    modes = {stat.S_IMODE(part.stat().st_mode) for device in made.devices
             for part in device.rglob("parts/*/" + 32 * "?")}
    assert modes == {0o640, 0o600}, "the parts have their stubs' modes"


def test_short_files_spread_over_the_devices(preloaded, made):
    preloaded(f"""
for n in range(60):
    open(f"{made.path}/{{n}}.dat", "wb").write(b"x" * 1000)
""")
    used = [sum(path.stat().st_size for path in device.rglob("parts/*/" + 32 * "?")) for device in made.devices]
    assert sum(used) == 60_000 and min(used) >= 3_000


SHELL = """
set -e
cp {plain} a.dat; cmp {plain} a.dat
cat {plain} > b.dat; cat {plain} >> b.dat; test $(stat -c %s b.dat) = $((2 * $(stat -c %s {plain})))
dd if={plain} of=c.dat bs=100000 status=none; cmp {plain} c.dat
dd if={plain} of=d.dat bs=64K oflag=direct,sync conv=notrunc status=none; cmp {plain} d.dat
echo first > e.dat; echo second >> e.dat; test "$(cat e.dat)" = "$(printf 'first\\nsecond')"
seq 100000 > f.dat; sort -rn f.dat -o g.dat; sort -n g.dat > h.dat; cmp f.dat h.dat
awk '{{ print }}' f.dat > i.dat; cmp f.dat i.dat
truncate -s 5 e.dat; test "$(cat e.dat)" = first
mv a.dat j.dat; mv j.dat b.dat; cmp {plain} b.dat; rm c.dat
cp -a d.dat {outside}/copy; cmp {plain} {outside}/copy
mv d.dat {outside}/moved; cmp {plain} {outside}/moved; test ! -e d.dat
perl -e 'open(F, "+<", "h.dat"); seek(F, 10, 0); print F "HELLO"; close F'
test "$(dd if=h.dat bs=1 skip=10 count=5 status=none)" = HELLO
"""


def test_shells_and_their_tools_write(graphlane, preloaded, made, tmp_path):
    plain, outside = tmp_path / "plain", tmp_path / "outside"
    plain.write_bytes(random.Random(3).randbytes(1_234_567))
    outside.mkdir()
    script = tmp_path / "script"
    script.write_text(SHELL.format(plain=plain, outside=outside))
    preloaded("bash", script, cwd=made.path)
    assert (outside / "moved").read_bytes() == plain.read_bytes()
    striped = sorted(path.name for path in made.path.glob("*.dat"))
    assert striped == [f"{letter}.dat" for letter in "befghi"]
    assert all(is_stub(made.path / name) for name in striped)
    assert part_count(made) == len(striped) * len(made.devices), "replaced and removed: parts too"
    settled(graphlane, made)


def test_every_name_of_write_is_hooked(preloaded, made, tmp_path):
    """libc's old and new names, and streams of every mode, write."""
    preloaded(f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open({str(made.path / 'a.dat')!r}, os.O_RDWR | os.O_CREAT)
want = b""
for name in ["write", "__write"]:
    assert getattr(libc, name)(fd, b"abcdef", 6) == 6
    want += b"abcdef"
for name in ["pwrite", "pwrite64", "__pwrite64"]:
    assert getattr(libc, name)(fd, b"XYZ", 3, ctypes.c_long(len(want))) == 3
    want += b"XYZ"
for name in ["fallocate", "fallocate64"]:
    assert getattr(libc, name)(fd, 3, ctypes.c_long(0), ctypes.c_long(3)) == 0  # a hole
want = b"\\0" * 3 + want[3:]
for name in ["ftruncate", "ftruncate64"]:
    assert getattr(libc, name)(fd, ctypes.c_long(15)) == 0
want = want[:15]
assert os.pread(fd, 100, 0) == want, os.pread(fd, 100, 0)
for name in ["fopen", "fopen64"]:
    for mode, after in [(b"r+", b"STREAM" + want[6:]), (b"a", want + b"STREAM"), (b"a+", want + b"STREAM"),
                        (b"w", b"STREAM"), (b"w+", b"STREAM")]:
        os.ftruncate(fd, 0); os.pwrite(fd, want, 0)
        function = getattr(libc, name)
        function.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(function({str(made.path / 'a.dat').encode()!r}, mode))
        assert stream.value and libc.fputs(b"STREAM", stream) >= 0 and libc.fclose(stream) == 0
        assert os.pread(fd, 100, 0) == after, (mode, os.pread(fd, 100, 0))
""")
    assert is_stub(made.path / "a.dat")


@pytest.mark.parametrize("mode", ["a", "a+"])
@pytest.mark.parametrize("opened", ["libc.fopen(path, mode)",
                                    "libc.fdopen(os.open(path, os.O_RDWR), mode)"], ids=["fopen", "fdopen"])
def test_a_stream_that_appends(preloaded, made, tmp_path, opened, mode):
    """Its first position, its writes, and what its descriptor does afterwards."""
    program = """
import ctypes, fcntl, os
libc = ctypes.CDLL(None)
libc.fopen.restype = libc.fdopen.restype = ctypes.c_void_p
libc.ftell.restype = ctypes.c_long
path, mode = {path!r}, {mode!r}
open(path, "w").write("0123456789")
stream = ctypes.c_void_p({opened})
fd = libc.fileno(stream)
print(os.lseek(fd, 0, os.SEEK_CUR), fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)
print(libc.fgetc(stream), libc.fseek(stream, 3, 0), libc.fputs(b"AB", stream), libc.ftell(stream))
assert libc.fflush(stream) == 0 and os.write(fd, b"CD") == 2
print(libc.fclose(stream), open(path).read())
"""
    striped, plain = (preloaded(program.format(path=bytes(path), mode=mode.encode(), opened=opened)).stdout
                      for path in (made.path / "a.dat", tmp_path / "plain"))
    assert striped == plain and "0123456789ABCD" in plain
    assert is_stub(made.path / "a.dat")


def test_calls_around_the_library_cannot_tear_the_stub(preloaded, made):
    """The kernel's descriptor is read-only. The library sees calls by number that libc makes,
    but not those by the program's own syscall instruction."""
    preloaded(f"""
import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("4889f8 4889f7 4889d6 4889ca 0f05 c3"))  # x86-64: rax, rdi, rsi, rdx; syscall; ret
own_syscall = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_long)(
    ctypes.addressof(ctypes.c_char.from_buffer(code)))
fd = os.open({str(made.path / 'a.dat')!r}, os.O_RDWR | os.O_CREAT)
os.write(fd, b"cont")
assert libc.syscall(1, fd, b"ent, and more", 13) == 13  # write
assert libc.syscall(77, fd, 7) == 0  # ftruncate
assert own_syscall(39, 0, None, 0) == os.getpid()
assert own_syscall(1, fd, b"torn", 4) == -errno.EBADF
assert own_syscall(77, fd, None, 0) == -errno.EINVAL
assert libc.dprintf(fd, b"torn") == -1
assert os.pread(fd, 100, 0) == b"content"
""")
    assert is_stub(made.path / "a.dat")


def test_a_descriptor_keeps_its_flags_and_rights(preloaded, made):
    preloaded(f"""
import errno, fcntl, os, subprocess, sys
path = {str(made.path / 'a.dat')!r}
def failure(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
for flags, reads, writes in [(os.O_RDONLY, True, False), (os.O_WRONLY, False, True), (os.O_RDWR, True, True)]:
    fd = os.open(path, flags | os.O_CREAT | os.O_APPEND)
    assert fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND) == flags | os.O_APPEND
    for one in [fd, os.dup(fd), fcntl.fcntl(fd, fcntl.F_DUPFD, 100)]:
        assert failure(os.read, one, 1) == (None if reads else "EBADF")
        assert failure(os.write, one, b"x") == (None if writes else "EBADF")
        assert failure(os.ftruncate, one, 3) == (None if writes else "EINVAL")
        assert failure(fcntl.lockf, one, fcntl.LOCK_EX | fcntl.LOCK_NB) == (None if writes else "EBADF")
    program = f"import os; os.write({{fd}}, b'child')"
    child = subprocess.run([sys.executable, "-c", program], pass_fds=[fd], capture_output=True)
    assert (child.returncode == 0) == writes, child.stderr
assert open(path).read().endswith("child")
""")


LOOKS = [
    "os.stat(path)", "libc.statx(-100, path.encode(), 0, 0x7ff, ctypes.create_string_buffer(256))",
    "os.chmod(path, 0o600)", "os.fchmod(fd, 0o600)", "os.chown(path, os.getuid(), -1)",
    "os.rename(path, moved)", "os.link(path, moved); os.unlink(path); path = moved", "os.truncate(path, 1000)",
    "kept = os.open(path, os.O_RDWR)", "kept = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)",
    "kept = os.open(path, os.O_RDONLY)", "kept = open(path, 'a')", "libc.fopen(path.encode(), b'r+')"]


@pytest.mark.parametrize("lock", ["fcntl.lockf(fd, fcntl.LOCK_EX)", "libc.lockf(fd, 1, ctypes.c_long(0))"],
                         ids=["fcntl", "lockf"])
@pytest.mark.parametrize("kind", ["striped", "plain"])
@pytest.mark.parametrize("call", LOOKS)
def test_record_locks_last_until_the_program_closes(preloaded, made, call, kind, lock):
    """The kernel releases record locks when the process closes any descriptor of the file. The
    plain file has a stub's size: only a read shows that it is not a stub."""
    path, moved = [made.path / (name + (".dat" if kind == "striped" else "")) for name in ("a", "b")]
    preloaded(f"""
import ctypes, fcntl, os
libc = ctypes.CDLL(None)
path, moved = {str(path)!r}, {str(moved)!r}
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(4096))
os.lseek(fd, 0, os.SEEK_SET)
def is_locked():
    child = os.fork()
    if child == 0:
        other = os.open(moved if os.path.exists(moved) else path, os.O_RDWR)
        try:
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0
{lock}
assert is_locked()
{call}
assert is_locked()
os.close(os.open(moved if os.path.exists(moved) else path, os.O_RDONLY))
assert not is_locked()
""", timeout=20)


@pytest.mark.parametrize("name", ["a", "a.dat"])
def test_a_lock_on_a_whole_file_blocks_no_open(preloaded, made, name):
    """The lock extends past the largest offset, where the library keeps its own locks on striped
    files."""
    preloaded(f"""
import ctypes, os
path = {str(made.path / name)!r}
open(path, "wb").write(bytes(4096))
file = open(path, "r+b", buffering=0)
assert ctypes.CDLL(None).lockf(file.fileno(), 1, ctypes.c_long(0)) == 0
child = os.fork()
if child == 0:
    for mode in ["rb", "r+b"]:
        assert open(path, mode).read() == bytes(4096)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""", timeout=20)


def test_a_lock_by_one_descriptor_is_shared_or_refused(preloaded, made):
    """Without a mount all writers of a process are one lock owner to the kernel."""
    said = preloaded(f"""
import errno, fcntl, os, struct
path = {str(made.path / 'a.dat')!r}
one, other = [os.open(path, os.O_RDWR | os.O_CREAT) for n in range(2)]
def lock(fd, kind, command=fcntl.F_OFD_SETLK):
    try:
        return struct.unpack("hhqqi", fcntl.fcntl(fd, command, struct.pack("hhqqi", kind, 0, 0, 0, 0)))[0]
    except OSError as error:
        return errno.errorcode[error.errno]
for fd in (one, other):
    assert lock(fd, fcntl.F_WRLCK) == "EINVAL"
    assert lock(fd, fcntl.F_RDLCK) == fcntl.F_RDLCK
assert lock(one, fcntl.F_WRLCK, fcntl.F_SETLK) == "EAGAIN"
os.close(other)
assert lock(one, fcntl.F_WRLCK, fcntl.F_OFD_GETLK) == fcntl.F_UNLCK
third = os.open(path, os.O_RDWR)
assert lock(third, fcntl.F_WRLCK, fcntl.F_OFD_GETLK) == fcntl.F_RDLCK
assert lock(one, fcntl.F_UNLCK) == fcntl.F_UNLCK
assert lock(one, fcntl.F_WRLCK, fcntl.F_SETLK) == fcntl.F_WRLCK
assert lock(os.open(path, os.O_RDONLY), fcntl.F_WRLCK) == "EBADF"
""").stderr
    assert said.count("graphlane: ") == 1


def test_appenders_do_not_overlap(graphlane, preloaded, made):
    """Threads, forked children and unrelated processes append at once."""
    preloaded(f"""
import os, subprocess, sys, threading
path = {str(made.path / 'log.dat')!r}
program = '''
import os, sys, threading
path, name = sys.argv[1:]
def append(fd, name):
    for n in range(100):
        os.write(fd, (name + f"{{n:03}}").encode().ljust(999, b".") + b"\\\\n")
fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
child = os.fork()
threads = [threading.Thread(target=append, args=(fd, name + ("c" if child == 0 else "p") + str(n))) for n in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
if child == 0: os._exit(0)
assert os.waitpid(child, 0)[1] == 0
'''
processes = [subprocess.Popen([sys.executable, "-c", program, path, name]) for name in "AB"]
assert [p.wait() for p in processes] == [0, 0]
""")
    lines = content(graphlane, made, "log.dat").split(b"\n")
    assert lines.pop() == b"" and {len(line) for line in lines} == {999}
    names = sorted(line.rstrip(b".").decode() for line in lines)
    assert names == sorted(f"{a}{b}{c}{n:03}" for a in "AB" for b in "cp" for c in range(3) for n in range(100))


def test_readers_in_other_processes_see_writes(preloaded, made):
    """They see sizes and truncations too, although they opened the file before."""
    preloaded(f"""
import os, random, subprocess, sys
path = {str(made.path / 'a.dat')!r}
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"begin")
reader = subprocess.Popen([sys.executable, "-c", '''
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for line in sys.stdin:
    offset, length = map(int, line.split())
    assert os.path.getsize(sys.argv[1]) == os.fstat(fd).st_size
    print(os.fstat(fd).st_size, os.pread(fd, length, offset).hex(), flush=True)
''', path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
rng = random.Random(5)
model = bytearray(b"begin")
for step in range(400):
    if rng.random() < 0.3:
        size = rng.randrange(300_000)
        os.ftruncate(fd, size)
        model[size:] = bytes(max(0, size - len(model)))
    else:
        at, data = rng.randrange(300_000), rng.randbytes(rng.randrange(1, 100_000))
        os.pwrite(fd, data, at)
        model.extend(bytes(max(0, at - len(model))))
        model[at:at + len(data)] = data
    at = rng.randrange(300_000)
    print(at, 1000, file=reader.stdin, flush=True)
    size, got = (reader.stdout.readline().strip() + " ").split(" ")[:2]
    assert (int(size), got) == (len(model), bytes(model[at:at + 1000]).hex()), step
""")


OPENER = """
import os, sys
print("begun", flush=True)
fd = os.open(sys.argv[1], int(sys.argv[2]))
print(os.fstat(fd).st_size)
"""


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
def test_a_file_can_be_opened_while_another_process_cuts_it(graphlane, preloaded, made, tmp_path, flags):
    """The stub and its parts cannot be read at one instant."""
    (tmp_path / "data").write_bytes(bytes(3 << 20))
    path = made.path / "a.dat"
    for reads in (1, 2, 3):  # the cut comes after so many reads of the stub, each of which takes 150 ms
        graphlane("import", "-f", tmp_path / "data", path)
        opening = subprocess.Popen(
            [str(graphlane.program), "run", "--no-mount", "--", "strace", "-f", "-o", tmp_path / "log", "-P", path,
             "-e", "trace=pread64", "-e", "inject=pread64:delay_exit=150000",
             sys.executable, "-c", OPENER, path, str(flags)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert opening.stdout.readline() == "begun\n"
        time.sleep(0.15 * reads - 0.07)
        preloaded("truncate", "-s", "100", path)
        said, complaint = opening.communicate(timeout=60)
        assert complaint == "" and int(said) in (100, 3 << 20), f"after {reads} reads"


def test_an_unlinked_file_lives_as_long_as_it_is_open(preloaded, made):
    preloaded(f"""
import os
path = {str(made.path / 'a.dat')!r}
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 300_000)
reader = os.open(path, os.O_RDONLY)
os.unlink(path)
assert not os.path.exists(path)
assert os.pwrite(fd, b"y" * 300_000, 200_000) == 300_000
assert os.pread(reader, 10, 499_995) == b"yyyyy"
""")
    assert part_count(made) == 0


@pytest.mark.parametrize("looks", [True, False])
def test_a_reader_keeps_its_parts_across_a_writer(preloaded, made, looks):
    """In the same process: the reader need not switch to the writer's parts."""
    preloaded(f"""
import os
path = {str(made.path / 'a.dat')!r}
open(path, "wb").write(b"first")
fd = os.open(path, os.O_RDONLY)
writer = os.open(path, os.O_RDWR)
assert os.pwrite(writer, b"the second", 0) == 10
assert not {looks} or os.pread(fd, 10, 0) == b"the second"
os.ftruncate(writer, 3)
assert not {looks} or os.pread(fd, 10, 0) == b"the" and os.fstat(fd).st_size == os.stat(path).st_size == 3
os.close(writer)
os.unlink(path)
assert os.pread(fd, 10, 0) == b"the"
""")


def test_record_locks_survive_reads_by_an_earlier_descriptor(preloaded, made):
    preloaded(f"""
import fcntl, os
path = {str(made.path / 'a.dat')!r}
open(path, "wb").write(b"content")
reader = os.open(path, os.O_RDONLY)
assert os.pread(reader, 10, 0) == b"content"
fd = os.open(path, os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX)
assert os.pread(reader, 10, 0) == b"content"
child = os.fork()
if child == 0:
    try:
        fcntl.lockf(os.open(path, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] != 0
""")


@pytest.mark.parametrize("call", ["libc.dup2(-1, fd)", "libc.dup3(-1, fd, 0)", "libc.dup3(fd, fd, 0)"])
def test_a_failed_dup2_leaves_the_descriptor_unchanged(preloaded, made, call):
    """It is the last descriptor of an unlinked file: its parts cannot be found again."""
    preloaded(f"""
import ctypes, os
libc = ctypes.CDLL(None)
path = {str(made.path / 'a.dat')!r}
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"content")
os.unlink(path)
assert {call} == -1
assert os.pread(fd, 10, 0) == b"content"
""")


def test_truncate_by_a_reader_keeps_parts(preloaded, made):
    preloaded(f"""
import os
path = {str(made.path / 'a.dat')!r}
open(path, "wb").write(b"content")
fd = os.open(path, os.O_RDONLY | os.O_TRUNC)
assert os.system(f"printf other > {{path}}") == 0
os.unlink(path)
assert os.read(fd, 5000) == b"other"
""")


@pytest.mark.parametrize("change", [
    "os.rename('top/sub/a.dat', 'moved.dat')", "os.rename('top/sub', 'moved')",
    "os.replace('plain', 'top/sub/a.dat')", "os.unlink('top/sub/a.dat')",
    "ctypes.CDLL(None).renameat2(-100, b'plain', -100, b'top', 2)"],
    ids=["rename", "directory", "replace", "unlink", "exchange"])
def test_a_check_blocks_renames(preloaded, made, change):
    """A repair that misses a stub because it moved would take its parts for orphans."""
    preloaded(f"""
import os
os.chdir({str(made.path)!r})
os.makedirs("top/sub")
open("top/sub/a.dat", "w").close(); open("plain", "w").close()
""")
    before = sorted(made.path.rglob("*"))
    with ThreadPoolExecutor(1) as other, names_locked(made):
        changed = other.submit(preloaded, f"import ctypes, os; {change}", cwd=made.path)
        with pytest.raises(TimeoutError):
            changed.result(0.5)
        preloaded("import os; open('other', 'w').close(); os.rename('other', 'another')", cwd=made.path)
        os.unlink(made.path / "another")  # only stubs are locked
        assert sorted(made.path.rglob("*")) == before
    changed.result(10)
    assert sorted(made.path.rglob("*")) != before


def test_a_rename_over_it_is_durable_before_its_parts_go(root, preloaded, made, tmp_path):
    """Otherwise a power failure could restore its stub without the parts, or leave neither file."""
    log = tmp_path / "calls"
    preloaded(f"""
import os, signal, subprocess
os.chdir({str(made.path)!r})
for name in ["old.dat", "new.dat"]:
    open(name, "w").write(name)
plain = {{key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}}
strace = subprocess.Popen(["strace", "-y", "-p", str(os.getpid()), "-o", {str(log)!r}, "-e",
                           "trace=rename,renameat,renameat2,fdatasync,fsync,unlinkat"],
                          stderr=subprocess.PIPE, env=plain, text=True)
assert "attached" in strace.stderr.readline()
os.rename("new.dat", "old.dat")
strace.send_signal(signal.SIGINT)
strace.wait()
""")
    calls = re.findall(r"^(\w+)\((?:\d+<([^>]*)>)?", log.read_text(), re.MULTILINE)
    of_a_part = ["fsync"] * 3  # the part with its record, its name, and its directory's name
    count = len(made.devices) * len(of_a_part)
    assert [name for name, _ in calls[:count]] == len(made.devices) * of_a_part
    (stub, renamed, directory, *removed) = calls[count:]
    assert stub == ("fsync", str(made.path / "new.dat")) and renamed[0].startswith("rename")
    assert directory == ("fsync", str(made.path)) and {name for name, _ in removed} == {"unlinkat"}


@pytest.fixture
def traced(graphlane, tmp_path):
    """The system calls of these names by a command without a mount, with the paths of their
    descriptors."""
    def start(names, *command):
        log = tmp_path / "calls"
        run("strace", "-f", "-y", "-o", log, "-e", f"trace={names}",
            graphlane.program, "run", "--no-mount", "--", *command)
        return [(call, Path(path)) for call, path in re.findall(r"(\w+)\(\d+<([^>]+)>", log.read_text())]
    return start


def test_syncfs_syncs_all_filesystems(preloaded, made, traced):
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'w').write('x')")
    synced = [path for _, path in traced("syncfs", "sync", "-f", made.path / "a.dat")]
    assert [path.is_relative_to(device) for path, device in zip(synced, made.devices)] == [True] * len(made.devices)
    assert synced[len(made.devices):] == [made.path / "a.dat"]


def test_fsync_by_a_reader_syncs_the_stub_too(preloaded, made, traced):
    """The stub may have a bound that a past writer has lifted only in memory."""
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'w').write('x')")
    calls = traced("fsync,fdatasync", "sync", made.path / "a.dat")
    assert calls[-1] == ("fsync", made.path / "a.dat")
    assert [path.is_relative_to(device) for (_, path), device in zip(calls, made.devices)] == [True] * len(made.devices)


def test_a_bound_is_lifted_after_the_cut_parts_are_durable(preloaded, made, traced):
    """Otherwise a power failure could restore some parts to their old length."""
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'wb').write(bytes(1_000_000))")
    calls = traced("fsync,fdatasync,ftruncate,pwrite64", sys.executable, "-c",
                   f"open({str(made.path / 'a.dat')!r}, 'wb').write(b'x')")
    calls = [call for call in calls if call[1].is_relative_to(made.path.parent)]
    cut = max(i for i, (name, _) in enumerate(calls) if name == "ftruncate")
    assert [name for name, _ in calls[cut + 1:cut + 2 + len(made.devices)]] == \
        ["fsync"] * len(made.devices) + ["pwrite64"]  # see iomgr/volume/parts/promises.h


def test_a_wait_to_change_the_size_can_be_interrupted(graphlane, preloaded, made):
    """Any reader of the file can hold the lock for ever."""
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'w').write('x')")
    part = sorted(made.devices[0].glob("*/parts/*/" + 32 * "?"))[0]
    with open(part, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waits = subprocess.Popen([str(graphlane.program), "run", "--no-mount", "--", "truncate", "-s", "9",
                                  str(made.path / "a.dat")])
        with pytest.raises(subprocess.TimeoutExpired):
            waits.wait(1)
        waits.terminate()
        assert waits.wait(10) != 0
    preloaded("truncate", "-s", "9", made.path / "a.dat")
    assert content(graphlane, made, "a.dat") == b"x" + bytes(8)


def test_a_truncation_is_durable_before_parts_are_cut(preloaded, made, traced):
    """The parts lie on different filesystems. A power failure could otherwise leave some cut
    without a stub that says so, and the file would contain zeros."""
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'wb').write(bytes(1_000_000))")
    calls = traced("fdatasync,ftruncate", "truncate", "-s", 100_000, made.path / "a.dat")
    assert calls[0] == ("fdatasync", made.path / "a.dat"), "of a file that was open already"
    assert {call for call, _ in calls[1:]} == {"ftruncate"}


def test_a_wait_for_a_check_blocks_no_other_thread(preloaded, made):
    """Other threads open files and fork, and a signal ends the waiting process."""
    preloaded(f"""
import fcntl, os, signal, struct, subprocess, threading, time
os.chdir({str(made.path)!r})
for name in "abc":
    open(name + ".dat", "w").write(name)
lock = open(".graphlane/run/lock", "r+b")
fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
waiting = [threading.Thread(target=os.rename, args=("a.dat", "d.dat")),
           threading.Thread(target=os.unlink, args=("b.dat",)),
           threading.Thread(target=lambda: open("new.dat", "w").close())]
for thread in waiting:
    thread.start()
time.sleep(0.3)
assert open("c.dat").read() == "c"
child = subprocess.Popen(["touch", "never.dat"])
time.sleep(0.3)
child.terminate()
assert child.wait(5) == -signal.SIGTERM
assert all(thread.is_alive() for thread in waiting)
lock.close()
for thread in waiting:
    thread.join()
assert sorted(name for name in os.listdir() if name.endswith(".dat")) == ["c.dat", "d.dat", "new.dat"]
""", timeout=30)


@pytest.mark.parametrize("mode", ["rb", "r+b"])
def test_a_file_that_is_open_is_not_restriped(graphlane, preloaded, made, mode):
    preloaded(f"""
import subprocess
path = {str(made.path / 'a.dat')!r}
data = bytes(range(256)) * 4000
open(path, "wb").write(data)
file = open(path, {mode!r}, buffering=0)
assert file.read(1000) == data[:1000]
command = [{str(graphlane.program)!r}, "restripe", "--stripe-depth", "128K", "--wait", "0", path]
refused = subprocess.run(command, capture_output=True, text=True)
assert refused.returncode == 1 and path in refused.stdout, refused
assert file.read() == data[1000:]
file.close()
done = subprocess.run(command, capture_output=True, text=True)
assert done.returncode == 0, done
assert open(path, "rb").read() == data
""")
    settled(graphlane, made)


def test_the_modes_of_the_parts_follow_the_stub(preloaded, made):
    preloaded(f"""
import os
path = {str(made.path / 'a.dat')!r}
with open(path, "w") as file:
    file.write("x")
    os.fchmod(file.fileno(), 0o604)
os.chmod(path, 0o640)
if os.geteuid() == 0:
    os.chown(path, 1234, 2345)
""")
    for device in made.devices:
        (part,) = device.rglob("parts/*/" + 32 * "?")
        assert stat.S_IMODE(part.stat().st_mode) == 0o640
        assert os.geteuid() != 0 or (part.stat().st_uid, part.stat().st_gid) == (1234, 2345)


def test_mtime_is_the_time_of_the_last_write(preloaded, made):
    preloaded(f"""
import os, time
path = {str(made.path / 'a.dat')!r}
with open(path, "wb", buffering=0) as file:
    file.write(b"x" * 1000)
    times = [os.fstat(file.fileno()).st_mtime_ns]
    for step in range(3):
        time.sleep(0.03)
        os.pwrite(file.fileno(), b"y", step)
        times.append(os.fstat(file.fileno()).st_mtime_ns)
    assert times == sorted(set(times)), times
    time.sleep(0.03)
    os.pwrite(file.fileno(), b"y", 5)
assert os.stat(path).st_mtime_ns > times[-1]
os.utime(path, (1, 1))
assert open(path, "rb").read(1) == b"y" and os.stat(path).st_mtime == 1
""")


def test_a_mount_and_a_preloaded_writer_exclude_each_other(graphlane, preloaded, made, fuse, tmp_path):
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'w').write('one')")
    with graphlane.mounted(made, tmp_path / "mnt") as at:
        assert (at / "a.dat").read_text() == "one"
        with open(at / "a.dat", "a") as file:
            refused = run(graphlane.program, "run", "--no-mount", "--", sys.executable, "-c",
                          f"open({str(made.path / 'a.dat')!r}, 'a')", check=False)
            assert os.strerror(errno.EBUSY) in refused.stderr
            file.write(" two")
    preloaded(f"""
import subprocess
with open({str(made.path / 'a.dat')!r}, "a") as file:
    file.write(" three")
    file.flush()
    said = subprocess.run([{str(graphlane.program)!r}, "check", {str(made.path)!r}], capture_output=True, text=True)
    assert "never closed" not in said.stdout, said
""")
    with graphlane.mounted(made, tmp_path / "mnt") as at:
        assert (at / "a.dat").read_text() == "one two three"


def test_a_full_device_ends_the_write_where_it_is_full(graphlane, preloaded, small_device_volume):
    made = small_device_volume("1M", depth="64K", stripe=["*.dat"])
    preloaded(f"""
import errno, os
path = {str(made.path / 'a.dat')!r}
fd = os.open(path, os.O_RDWR | os.O_CREAT)
data = os.urandom(8 << 20)
written = os.write(fd, data)
assert 3 << 20 < written < 6 << 20, written
try:
    os.write(fd, data)
    assert False
except OSError as error:
    assert error.errno == errno.ENOSPC
assert os.fstat(fd).st_size == written == os.lseek(fd, 0, os.SEEK_CUR)
assert os.pread(fd, 8 << 20, 0) == data[:written]
os.fsync(fd)
os.ftruncate(fd, 1000)
assert os.write(fd, b"x") == 1 and os.pread(fd, 2000, 0)[:1000] == data[:1000]
""")
    settled(graphlane, made)


VFORKS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int fd, opened, truncated, appends;
int main(int count, char** words) {
  pid_t child = vfork();
  if (child == 0) {
    fd = open(words[1], O_WRONLY | O_TRUNC);
    opened = fd < 0 ? errno : 0;
    truncated = truncate(words[1], 1) < 0 ? errno : 0;
    appends = open(words[1], O_WRONLY | O_APPEND) >= 0;
    _exit(0);
  }
  waitpid(child, 0, 0);
  printf("%d %d %d\n", opened, truncated, appends);
  return 0;
}
"""


def test_a_child_by_vfork_truncates_nothing(graphlane, preloaded, made, tmp_path):
    (tmp_path / "vforks.c").write_text(VFORKS)
    run("gcc", "-O1", "-o", tmp_path / "vforks", tmp_path / "vforks.c")
    preloaded(f"open({str(made.path / 'a.dat')!r}, 'w').write('content')")
    said = preloaded(tmp_path / "vforks", made.path / "a.dat", "")
    assert said.stdout == f"{errno.ENOTSUP} {errno.ENOTSUP} 1\n" and said.stderr.count("graphlane: ") == 1
    assert content(graphlane, made, "a.dat") == b"content"


def test_an_ordinary_user_writes_its_own_files(graphlane, owned):
    command = [graphlane.program, "run", "--no-mount", "--", "bash", "-c",
               f"printf mine >> {owned.path}/a.dat"]
    run(*command, **ORDINARY)
    other = run(*command, check=False, user=65533, group=65533, extra_groups=[])
    assert "Permission denied" in other.stderr
    assert (owned.path / "a.dat").stat().st_uid == 65534
    assert content(graphlane, owned, "a.dat") == b"mine"


AS_OWNER = f"""
import os
os.setgroups([])
os.setgid({ORDINARY['group']})
os.setuid({ORDINARY['user']})
"""


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o200], ids=oct)
def test_the_creator_of_a_file_can_write_it_whatever_its_mode(graphlane, preloaded, owned, mode):
    """cp(1) does so when it copies read-only files."""
    path = owned.path / "a.dat"
    preloaded(AS_OWNER + f"""
fd = os.open({str(path)!r}, os.O_CREAT | os.O_EXCL | os.O_WRONLY, {mode})
assert os.write(fd, b"content") == 7 and os.pwrite(fd, b"C", 0) == 1
os.ftruncate(fd, 4)
""")
    modes = {stat.S_IMODE(part.stat().st_mode) for device in owned.devices for part in device.rglob("parts/*/" + 32 * "?")}
    assert modes == {mode} == {stat.S_IMODE(path.stat().st_mode)}
    assert content(graphlane, owned, "a.dat") == b"Cont"


def test_a_failed_create_leaves_no_name(preloaded, made):
    """The test runs out of descriptors at each step in turn."""
    failures = preloaded(f"""
import os, resource
os.chdir({str(made.path)!r})
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
open("first.dat", "w").close()
failures = 0
for count in range(4, 60):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, limit[1]))
    try:
        os.close(os.open("a.dat", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        failures += 1
        assert not os.path.lexists("a.dat"), count
    else:
        os.unlink("a.dat")
print(failures)
""").stdout
    assert int(failures) > 5
    assert part_count(made) == len(made.devices), "of the first"


@pytest.mark.parametrize("call", ["os.open(path, os.O_WRONLY)", "os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)",
                                  "open(path, 'w')", "os.truncate(path, 10)", "reopened('w')",
                                  "spawned(os.O_WRONLY | os.O_TRUNC)"])
def test_a_stub_that_cannot_be_read_is_not_torn(graphlane, preloaded, owned, call):
    path = owned.path / "a.dat"
    preloaded("import ctypes" + AS_OWNER + f"""
path, plain = {str(path)!r}, {str(owned.path.parent / 'plain')!r}
for name, data in (path, b"content"), (plain, bytes(4096)):
    open(name, "wb").write(data)
    os.chmod(name, 0o200)
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
def reopened(mode):
    stream = ctypes.c_void_p(libc.fopen(b"/dev/null", b"r"))
    if not libc.freopen(path.encode(), mode.encode(), stream):
        raise PermissionError(ctypes.get_errno())
def spawned(flags):
    try:
        actions = [(os.POSIX_SPAWN_OPEN, 1, path, flags, 0)]
        os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=actions), 0)
    except OSError as error:
        raise PermissionError(error.errno)
def failed():
    try:
        {call}
    except PermissionError:
        return True
assert failed()
path = plain
assert not failed(), "elsewhere it is no stub"
""")
    assert content(graphlane, owned, "a.dat") == b"content"


def test_restoring_read_permission_restores_the_parts(graphlane, preloaded, owned):
    """The parts once stayed closed for good."""
    path = owned.path / "a.dat"
    preloaded(AS_OWNER + f"""
path = {str(path)!r}
open(path, "wb").write(b"content")
os.chmod(path, 0)
os.chmod(path, 0o644)
assert open(path, "rb").read() == b"content"
""")
    assert content(graphlane, owned, "a.dat") == b"content"


def test_an_unreadable_file_can_be_renamed_over_another(graphlane, preloaded, owned):
    preloaded(AS_OWNER + f"""
os.chdir({str(owned.path)!r})
open("a.dat", "wb").write(b"old")
fd = os.open("b.dat", os.O_WRONLY | os.O_CREAT, 0o200)
os.write(fd, b"new")
os.rename("b.dat", "a.dat")
os.chmod("a.dat", 0o600)
""")
    assert content(graphlane, owned, "a.dat") == b"new"
    settled(graphlane, owned)


@pytest.mark.parametrize("end", ["libc.fclose(stream)", "libc.freopen(b'/dev/null', b'r', stream)",
                                 "libc.fcloseall()", "pass"], ids=["fclose", "freopen", "fcloseall", "exit"])
def test_closing_a_stream_writes_its_buffer(graphlane, preloaded, owned, end):
    """The file's mode forbids by then to open it for writing."""
    preloaded(f"""
import ctypes, os
os.setgroups([])
os.setgid({ORDINARY['group']})
os.setuid({ORDINARY['user']})
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen({str(owned.path / 'a.dat').encode()!r}, b"w"))
assert libc.fputs(b"held", stream) >= 0 and os.fchmod(libc.fileno(stream), 0o444) is None
{end}
""")
    assert content(graphlane, owned, "a.dat") == b"held"


WRITER = """
import os, random, sys
path, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
fd = os.open(path, os.O_RDWR | os.O_CREAT)
for number in range(1_000_000):
    record = number.to_bytes(8, "little") * 2500
    os.write(fd, record)
    if number % 7 == 6:
        os.fsync(fd)
        print(os.lseek(fd, 0, os.SEEK_CUR), flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing_that_was_synced(graphlane, made, tmp_path):
    """GRAPHLANE_KILLS=200 is the long run."""
    rng = random.Random(11)
    for kill in range(int(os.environ.get("GRAPHLANE_KILLS", 5))):
        path = made.path / f"{kill}.dat"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(kill)], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")})
        writer.stdout.readline()
        time.sleep(rng.random() * 0.1)
        writer.send_signal(signal.SIGKILL)
        synced = max([0, *map(int, writer.communicate()[0].split())])
        data = content(graphlane, made, path.name)
        settled(graphlane, made)
        assert content(graphlane, made, path.name) == data
        assert len(data) >= synced
        whole = len(data) // 20_000
        for number in range(whole):
            assert data[number * 20_000:(number + 1) * 20_000] == number.to_bytes(8, "little") * 2500
        rest = data[whole * 20_000:]
        assert rest == (whole.to_bytes(8, "little") * 2500)[:len(rest)]
        path.unlink()
