"""Memory maps, alone and beside O_DIRECT calls, as GridGraph's BigVector uses them."""

import mmap
import os
import random
import subprocess
import sys

import pytest

from mounts import mounted, striped  # noqa: F401, fixtures

PAGE = 4096
SIZE = 200 * PAGE


def aligned(size: int) -> mmap.mmap:
    """A page-aligned buffer, as O_DIRECT needs."""
    return mmap.mmap(-1, size)


@pytest.fixture
def directory(volume, mounted):
    with mounted(volume()) as at:
        yield at


def test_a_file_opened_with_o_direct_can_be_mapped_shared_and_writable(directory):
    path = directory / "vertices"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    for _ in range(SIZE // PAGE):
        os.write(fd, b"\1" * PAGE)  # BigVector writes page by page
    os.close(fd)
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(fd, SIZE) as memory:
        memory[5 * PAGE:5 * PAGE + 3] = b"abc"
        memory[SIZE - 1] = 7
    os.close(fd)
    content = path.read_bytes()
    assert content[5 * PAGE:5 * PAGE + 3] == b"abc" and content[-1] == 7


def test_the_host_sees_stores_to_a_map(volume, mounted):
    made = volume()
    with mounted(made) as at:
        (at / "f").write_bytes(bytes(SIZE))
        fd = os.open(at / "f", os.O_RDWR)
        with mmap.mmap(fd, SIZE) as memory:
            memory[:] = b"\5" * SIZE
        os.close(fd)
    assert (made.path / "f").read_bytes() == b"\5" * SIZE


def test_direct_calls_and_maps_alternate_coherently(directory):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    fd = os.open(directory / "f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    os.ftruncate(fd, SIZE)
    model = bytearray(SIZE)
    buffer = aligned(SIZE)
    memory = mmap.mmap(fd, SIZE)
    for step in range(300):
        first = rng.randrange(SIZE // PAGE)
        pages = rng.randrange(1, SIZE // PAGE - first + 1)
        begin, end = first * PAGE, (first + pages) * PAGE
        value = rng.randrange(256)
        action = rng.randrange(5)
        if action == 0:
            memory[begin + 1:end - 1] = bytes([value]) * (end - begin - 2)
            model[begin + 1:end - 1] = bytes([value]) * (end - begin - 2)
        elif action == 1:
            buffer[:end - begin] = bytes([value]) * (end - begin)
            assert os.pwritev(fd, [memoryview(buffer)[:end - begin]], begin) == end - begin
            model[begin:end] = bytes([value]) * (end - begin)
        elif action == 2:
            assert os.preadv(fd, [memoryview(buffer)[:end - begin]], begin) == end - begin
            assert buffer[:end - begin] == model[begin:end], f"seed {seed}, step {step}"
        elif action == 3:
            assert memory[begin:end] == model[begin:end], f"seed {seed}, step {step}"
        else:
            memory.close()
            memory = mmap.mmap(fd, SIZE)
    memory.close()
    os.close(fd)
    assert (directory / "f").read_bytes() == model, f"seed {seed}"


def test_a_direct_write_rounded_up_grows_the_file(directory):
    path = directory / "f"
    path.write_bytes(bytes(5000))
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    buffer = aligned(2 * PAGE)
    assert os.preadv(fd, [buffer], 0) == 5000
    assert os.pwritev(fd, [buffer], 0) == 2 * PAGE
    os.close(fd)
    assert path.stat().st_size == 2 * PAGE


@pytest.mark.parametrize("flags", [0, os.O_DIRECT], ids=["buffered", "O_DIRECT"])
@pytest.mark.parametrize("kind", [mmap.MAP_SHARED, mmap.MAP_PRIVATE], ids=["shared", "private"])
@pytest.mark.parametrize("io", ["buffered", "direct"])
def test_a_striped_file_can_be_mapped(striped, mounted, flags, kind, io):
    volume, content = striped(size=1_000_123)
    with mounted(volume, "-o", f"io={io}") as at:
        fd = os.open(at / "data", os.O_RDONLY | flags)
        with mmap.mmap(fd, len(content), flags=kind, prot=mmap.PROT_READ) as memory:
            assert memory[:] == content
        os.close(fd)


def test_a_private_map_of_a_striped_file_can_be_written(striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume) as at:
        with open(at / "data", "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as memory:
            memory[:3] = b"xyz"
            assert memory[3:] == content[3:]
        assert (at / "data").read_bytes() == content


@pytest.mark.parametrize("io", ["auto", "direct"])
def test_a_reader_past_the_page_cache_sees_a_writer_within_it(volume, mounted, io):
    """With io=direct the creator of the file reads by pages. A later open has pages only in a
    map."""
    with mounted(volume(stripe=["s"], depth="64K"), "-o", f"io={io}") as at:
        writer = os.open(at / "s", os.O_CREAT | os.O_RDWR)
        os.ftruncate(writer, SIZE)
        reader = os.open(at / "s", os.O_RDWR)
        with mmap.mmap(writer, SIZE) as cached, mmap.mmap(reader, SIZE) as mapped:
            os.pwrite(writer, b"call", 0)
            assert os.pread(reader, 4, 0) == mapped[:4] == b"call"
            cached[5000:5003] = b"map"
            assert os.pread(reader, 3, 5000) == mapped[5000:5003] == b"map"
            mapped[9000:9003] = b"new"
            assert os.pread(writer, 3, 9000) == os.pread(reader, 3, 9000) == b"new"
            os.pwrite(reader, b"back", 2)
            assert os.pread(writer, 6, 0) == cached[:6] == mapped[:6] == b"caback"
        os.close(reader)
        os.close(writer)


READER = """
import mmap, os, random, sys
path, host_path, done_path, how, size, block = *sys.argv[1:5], *map(int, sys.argv[5:])
fd, host = os.open(path, os.O_RDONLY), os.open(host_path, os.O_RDONLY)
done = mmap.mmap(os.open(done_path, os.O_RDONLY), 8 * (size // block + 1), prot=mmap.PROT_READ)
done = memoryview(done).cast("Q")
view = mmap.mmap(fd, size, prot=mmap.PROT_READ)
pread = lambda fd, at: int.from_bytes(os.pread(fd, 8, at), "little")
mapped = lambda at: int.from_bytes(view[at:at + 8], "little")
print("ready", flush=True)
while done[size // block] == 0:
    i = random.randrange(size // block)
    at = i * block + random.randrange(block // 8) * 8
    least = done[i]
    got = mapped(at) if how == "map" else pread(fd, at)
    assert got >= least, (f"{how}: version {got} at {at} after {least} was written; now"
                          f" {mapped(at)} in the map, {pread(fd, at)} by pread,"
                          f" {pread(host, at)} on the host, {done[i]} written")
"""


@pytest.mark.parametrize("name", ["striped", "plain"])
@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR], ids=["writes only", "reads too"])
def test_a_completed_write_is_visible_to_all_readers(volume, mounted, tmp_path, flags, name):
    """Versions only grow. A read that begins after a write has ended returns that version or a
    later one."""
    if flags == os.O_WRONLY and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 18):
        pytest.skip("not applicable: earlier kernels have nobody write past the page cache")
    block, count = 65536, 32
    size = block * count
    done = tmp_path / "done"
    done.write_bytes(bytes(8 * (count + 1)))
    with open(done, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        ended = memoryview(memory).cast("Q")
        made = volume(stripe=["striped"], depth="64K")
        with mounted(made) as at:
            (at / name).write_bytes(bytes(size))
            readers = [subprocess.Popen([sys.executable, "-c", READER, at / name, made.path / name,
                                         done, how, str(size), str(block)],
                                        stdout=subprocess.PIPE)
                       for how in ("map", "map", "pread", "pread")]
            for reader in readers:
                reader.stdout.readline()
            fd = os.open(at / name, flags)
            r = random.Random(5)
            for version in range(1, 6001):
                i = r.randrange(count)
                content = version.to_bytes(8, "little") * (block // 8)
                assert os.pwrite(fd, content, i * block) == block
                ended[i] = version
            os.close(fd)
            ended[count] = 1
            results = [reader.wait(60) for reader in readers]
        ended.release()
    assert results == [0] * len(readers)
