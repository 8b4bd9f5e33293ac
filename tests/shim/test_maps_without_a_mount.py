"""Without a mount, mmap of a striped file is assembled from the pages of its parts."""

import random
import shutil
import sys

import pytest

from harness import run

UNIT = 64 << 10
SIZE = 1_000_003

PRELUDE = """
import ctypes, mmap, os, sys
path, plain = sys.argv[1], open(sys.argv[2], "rb").read()
fd = os.open(path, os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
FAILED = ctypes.c_void_p(-1).value
"""

PROGRAMS = {
    "whole, shared": "assert mmap.mmap(fd, 0, prot=mmap.PROT_READ)[:] == plain",
    "whole, private": "assert mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)[:] == plain",
    "all at once": "assert mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE | mmap.MAP_POPULATE, prot=mmap.PROT_READ)[:] == plain",
    "from anywhere": """
for offset in range(0, len(plain), 7 * 4096):
    for length in (1, 4096, 65536, 65537, 200000):
        length = min(length, len(plain) - offset)
        assert mmap.mmap(fd, length, prot=mmap.PROT_READ, offset=offset)[:] == plain[offset:offset + length]""",
    "a private one is changed for itself": """
own = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
own[:70000] = b"x" * 70000
assert own[70000:] == plain[70000:] and os.pread(fd, len(plain), 0) == plain""",
    "behind the end are zeros": """
at = libc.mmap(None, 1 << 20, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
whole = (len(plain) + 4095) // 4096 * 4096
assert ctypes.string_at(at, whole) == plain + bytes(whole - len(plain))""",
    "over what is there": """
at = libc.mmap(None, 1 << 20, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
there = libc.mmap(at + 65536, 200000, mmap.PROT_READ, mmap.MAP_PRIVATE | 0x10, fd, 131072)
assert there == at + 65536 and ctypes.string_at(there, 200000) == plain[131072:331072]""",
    "after the descriptor was closed": """
own = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
os.close(fd)
assert own[:] == plain""",
    "in a child": """
own = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
if os.fork() == 0:
    os._exit(0 if own[:] == plain else 1)
assert os.wait()[1] == 0""",
    "written to a file": """
own = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
out = os.open(sys.argv[2] + ".copy", os.O_RDWR | os.O_CREAT)
assert os.write(out, own) == len(plain) and os.pread(out, len(plain), 0) == plain""",
    "a map sees what the program writes": """
both = os.open(path, os.O_RDWR)
own = mmap.mmap(both, 0, prot=mmap.PROT_READ)
os.pwrite(both, b"new" * 30000, 60000)
assert own[60000:150000] == b"new" * 30000 and own[150000:] == plain[150000:]""",
    "a small one that would grow": """
at = libc.mmap(None, 65536, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
assert libc.mremap(at, 65536, 131072, 1, None) == FAILED and ctypes.get_errno() == 12
own = libc.mmap(None, 65536, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
assert libc.mremap(own, 65536, 131072, 1, None) != FAILED
assert libc.mremap(at, 65536, 4096, 0, None) == at and ctypes.string_at(at, 4096) == plain[:4096]""",
    "what is wrong with it": """
for arguments, error in [((4096, 1, 2, fd, 5), 22), ((0, 1, 2, fd, 0), 22), ((4096, 3, 1, fd, 0), 13),
                         ((4096, 1, 2, os.open(path, os.O_WRONLY), 0), 13)]:
    assert libc.mmap(None, *arguments) == FAILED and ctypes.get_errno() == error, arguments""",
}


@pytest.fixture
def striped(graphlane, volume, tmp_path):
    made = volume(depth="64K", stripe=["new*"])
    (tmp_path / "data").write_bytes(random.Random(5).randbytes(SIZE))
    graphlane("import", tmp_path / "data", made.path)
    return made


@pytest.mark.parametrize("what", PROGRAMS)
def test_maps_behave_as_on_an_ordinary_file(graphlane, striped, tmp_path, what):
    program = PRELUDE + PROGRAMS[what]
    shutil.copy(tmp_path / "data", tmp_path / "ordinary")
    if what != "a small one that would grow":
        run(sys.executable, "-c", program, tmp_path / "ordinary", tmp_path / "data")
    said = graphlane("run", "--no-mount", "--", sys.executable, "-c", program, striped.path / "data",
                     tmp_path / "data").stderr
    assert said.count("\n") == (1 if "grow" in what else 0), said


def test_a_refused_map_names_the_file_and_a_remedy(graphlane, striped):
    said = graphlane("run", "--no-mount", "--", sys.executable, "-c",
                     "import mmap, os, sys\nfor i in range(2):\n try: mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)\n"
                     " except OSError as error: assert error.errno == 19\n else: sys.exit(1)", striped.path / "data").stderr
    (line,) = said.splitlines()
    assert str(striped.path / "data") in line and "mmap: ENODEV" in line and "without --no-mount" in line


def test_a_map_of_too_many_pieces_is_read_at_once(graphlane, tmp_path):
    made = graphlane.create(tmp_path, device_count=2, depth="4096", stripe=["new*"])
    pieces = int(open("/proc/sys/vm/max_map_count").read()) // 2
    if pieces > 100_000:
        pytest.skip("not applicable: the kernel allows any number of maps")
    size = (pieces + 100) * 4096
    program = f"""
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, {size})
for at in (0, 4090, 1 << 20, {size} - 5):
    os.pwrite(fd, b"mark!", at)
own = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
assert len(own) == {size} and own[:5] == own[4090:4095] == own[1 << 20:(1 << 20) + 5] == own[-5:] == b"mark!"
assert own[5:4090] == bytes(4085) and sum(1 for line in open("/proc/self/maps") if "/parts/" in line) == 0
"""
    graphlane("run", "--no-mount", "--", sys.executable, "-c", program, made.path / "new")


@pytest.mark.parametrize("words", [["git", "hash-object", "{}"], ["git", "diff", "--no-index", "--stat", "/dev/null", "{}"],
                                   ["grep", "-c", "a", "{}"]])
def test_real_programs(graphlane, striped, tmp_path, words):
    if shutil.which(words[0]) is None:
        pytest.skip(f"not applicable: no {words[0]}")
    plain = run(*[word.format(tmp_path / "data") for word in words], check=False, cwd=tmp_path)
    found = graphlane("run", "--no-mount", "--", *[word.format(striped.path / "data") for word in words], check=False,
                      cwd=tmp_path)
    strip = lambda text: text.replace(str(striped.path), "").replace(str(tmp_path), "").split()[-3:]  # noqa: E731
    assert (found.returncode, strip(found.stdout)) == (plain.returncode, strip(plain.stdout))
