"""Large reads of a file that exceeds memory bypass the kernel's page cache."""

import mmap
import os
import socket

import pytest

from mounts import mounted, resident, striped  # noqa: F401, fixtures

pytestmark = pytest.mark.usefixtures("kept_caches")

MIB = 1 << 20
SIZE = 12 * MIB + 12345


@pytest.fixture
def swept(striped, mounted):
    """A mounted file that counts as larger than the memory, and its bytes."""
    volume, content = striped(size=SIZE, depth="64K")
    with mounted(volume, "-o", "io=direct") as at:
        with open(at / "data", "rb", buffering=0) as file:
            file.read(MIB)
            if resident(at / "data") > 0:
                pytest.skip("not applicable: before Linux 6.6 all that is read leaves pages")
        yield at / "data", content


def read_small(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(4096):
            pass


@pytest.mark.parametrize("size", [4096, 65536 + 512, MIB, 3 * MIB + 4096, SIZE + 1])
def test_pieces_of_any_size_read_the_whole_file(swept, size):
    path, content = swept
    with open(path, "rb", buffering=0) as file:
        for at in range(0, SIZE, size):
            assert os.pread(file.fileno(), size, at) == content[at:at + size]
        assert file.read(0) == b"" and os.pread(file.fileno(), 4096, SIZE) == b""
    assert resident(path) == 0


def test_buffers_of_any_alignment_are_filled(swept):
    path, content = swept
    memory = bytearray(2 * MIB)
    with open(path, "rb", buffering=0) as file:
        for shift in (1, 100, 4095):
            view = memoryview(memory)[shift:shift + MIB + 77]
            assert os.preadv(file.fileno(), [view], shift * 3) == len(view)
            assert view == content[shift * 3:shift * 3 + len(view)]


def test_a_readers_piece_size_decides_for_the_next_reader(swept):
    path, content = swept
    read_small(path)
    assert resident(path) == 0, "past the pages, as long as nobody knew"
    with open(path, "rb", buffering=0) as file:
        assert file.read(4096) == content[:4096]
        assert resident(path) > 0
    with open(path, "rb", buffering=0) as file:  # still as the reader before
        assert os.pread(file.fileno(), SIZE, 4 * MIB) == content[4 * MIB:]
    os.posix_fadvise(fd := os.open(path, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    with open(path, "rb", buffering=0) as file:
        assert file.read(8 * MIB) == content[:8 * MIB]
        assert resident(path) == 0


def test_a_reader_beside_a_writer_ends_at_the_written_size(swept):
    path, content = swept
    reader = os.open(path, os.O_RDONLY)  # opened before the writer
    writer = os.open(path, os.O_RDWR)
    with mmap.mmap(writer, 2 * MIB) as cached:
        for at in (0, MIB - 3, MIB + 4090):
            cached[at:at + 5] = b"a map"
            assert os.pread(reader, 5, at) == b"a map"
            os.pwrite(writer, b"calls", at)
            assert os.pread(reader, 2 * MIB, 0)[at:at + 5] == b"calls"
    os.close(writer)
    with open(path, "rb", buffering=0) as file:
        whole = file.read()
    assert whole[:5] == b"calls" and whole[5:MIB - 3] == content[5:MIB - 3]
    assert os.pread(reader, SIZE, 0) == whole
    os.close(reader)


@pytest.mark.parametrize("kind", [mmap.MAP_SHARED, mmap.MAP_PRIVATE], ids=["shared", "private"])
def test_it_can_be_mapped_while_it_is_read(swept, kind):
    path, content = swept
    fd = os.open(path, os.O_RDONLY)
    with mmap.mmap(fd, SIZE, flags=kind, prot=mmap.PROT_READ) as memory:
        assert memory[5 * MIB:6 * MIB] == content[5 * MIB:6 * MIB]
        assert os.pread(fd, 4 * MIB, 4 * MIB) == content[4 * MIB:8 * MIB]
        assert memory[:] == content
    os.close(fd)


def test_it_can_be_sent(swept):
    path, content = swept
    ours, theirs = socket.socketpair()
    with open(path, "rb", buffering=0) as file, ours, theirs:
        sent = os.sendfile(ours.fileno(), file.fileno(), MIB, 65536)
        assert theirs.recv(sent, socket.MSG_WAITALL) == content[MIB:MIB + sent]


def test_a_reader_sees_the_current_end_of_the_file(swept):
    path, content = swept
    fd = os.open(path, os.O_RDONLY)
    assert os.pread(fd, MIB, 0) == content[:MIB]
    with open(path, "r+b", buffering=0) as file:
        file.truncate(SIZE + 7)
        file.seek(SIZE)
        file.write(b"seven..")
    assert os.pread(fd, 2 * MIB, SIZE - MIB) == content[SIZE - MIB:] + b"seven.."
    with open(path, "r+b", buffering=0) as file:
        file.truncate(MIB)
    assert os.pread(fd, 2 * MIB, MIB - 100) == content[MIB - 100:MIB]
    os.close(fd)
