"""With GRAPHLANE_SHARE=map, data that several programs read is mapped into their buffers instead
of copied (shim/share/mapped_pages.h)."""

import errno
import json
import os
import signal
import sys
import time
import zlib

import pytest

from harness import wait_until
from readers import BLOCK, SIZE, SharedFile

pytestmark = pytest.mark.usefixtures("kept_caches")

PRIVATE = {"GRAPHLANE_SHARE": "map", "ROOM": "private"}
PAGE_KIB = 4
OPEN = "os.open(sys.argv[1], os.O_WRONLY)"


class Mapped(SharedFile):
    """A file that is shared by a mount, or by the server of its volume."""

    def __init__(self, graphlane, made, path, options):
        super().__init__(graphlane, made, path)
        self.options = options

    def change(self, expression: str) -> None:
        """Changes the file by a preloaded program, or by the mount."""
        program = f"import os, sys\ntry: {expression}\nexcept OSError as e: print(e.errno)"
        got = self.graphlane("run", *self.options, "--", sys.executable, "-c", program, self.path)
        if got.stdout:
            raise OSError(int(got.stdout), expression)


@pytest.fixture(params=["mounted", "served"])
def mapped(request, graphlane, volume, tmp_path):
    made = volume(depth="1M", stripe=["data"])
    source = tmp_path / "data"
    served = request.param == "served"
    at = made.path if served else tmp_path / "mnt"
    file = Mapped(graphlane, made, at / "data", ("--no-mount",) if served else ())
    source.write_bytes(file.content)
    graphlane("import", source, made.path)
    time.sleep(0.05)  # a file changed just now is not shared: it could change again unseen
    if served:
        graphlane("serve", "-o", "cache=64M", made.path)
    else:
        request.getfixturevalue("fuse")
        at.mkdir()
        graphlane("mount", "-o", "cache=64M", made.path, at)
    try:
        yield file
    finally:
        graphlane(*(["serve", "--stop", made.path] if served else ["umount", at]))


def said(reader, expression) -> str:
    reader.ask("say", expression)
    return reader.process.stdout.readline().strip()


def own_kib(reader) -> int:
    """The private memory of the reader's buffer."""
    return int(said(reader, "own_kib()"))


def test_maps_shared_blocks_into_buffers(mapped):
    with mapped.readers(3, **PRIVATE) as readers:
        for _ in range(2):
            mapped.read_all(readers)
        for block in mapped.blocks:
            for reader in readers:
                assert reader.read(block) == mapped.expected(block)
                if (block + 1) * BLOCK <= SIZE:
                    assert own_kib(reader) == 0


@pytest.mark.parametrize("how", [{"GRAPHLANE_SHARE": "auto", "ROOM": "private"},
                                 {"GRAPHLANE_SHARE": "map"}])
def test_unsuitable_buffers_get_copies(mapped, how):
    """Programs that did not ask for maps, and buffers in shared memory."""
    with mapped.readers(2, **how) as readers:
        mapped.read_all(readers)
        if "ROOM" in how:
            assert all(own_kib(reader) == BLOCK >> 10 for reader in readers)


def test_a_single_reader_gets_copies(mapped):
    with mapped.readers(1, **PRIVATE) as (reader,):
        mapped.read_all([reader])
        assert reader.read(0) == mapped.expected(0)
        assert own_kib(reader) == BLOCK >> 10


def test_a_store_to_a_buffer_stays_private(mapped):
    with mapped.readers(2, **PRIVATE) as (one, other):
        mapped.read_all([one, other])
        assert one.read(1) == other.read(1) == mapped.expected(1)
        said(one, "room.__setitem__(slice(5000, 5003), b'own')")
        assert own_kib(one) == PAGE_KIB
        whole = mapped.content[BLOCK:2 * BLOCK]
        changed = whole[:5000] + b"own" + whole[5003:]
        assert int(said(one, "zlib.crc32(room)")) == zlib.crc32(changed)
        assert int(said(other, "zlib.crc32(room)")) == zlib.crc32(whole)
        assert one.read(1) == other.read(1) == mapped.expected(1)


def test_a_discarded_page_of_a_buffer_is_zero(mapped):
    """Allocators rely on that."""
    with mapped.readers(2, **PRIVATE) as readers:
        mapped.read_all(readers)
        for reader in readers:
            assert reader.read(2) == mapped.expected(2)
            assert own_kib(reader) == 0
            said(reader, "memory.madvise(mmap.MADV_DONTNEED, 8192, 4096)")
            piece = bytearray(mapped.content[2 * BLOCK:3 * BLOCK])
            piece[8192:12288] = bytes(4096)
            assert int(said(reader, "zlib.crc32(room)")) == zlib.crc32(piece)


@pytest.mark.parametrize("buffer, offset, shows", [
    (0, BLOCK, True), (100, BLOCK + 100, True), (100, BLOCK, False), (4096, BLOCK, True)])
def test_only_whole_pages_are_shown(mapped, buffer, offset, shows):
    length = 2 * (1 << 20) + 4444
    with mapped.readers(2, **PRIVATE) as readers:
        mapped.read_all(readers)
        for reader in readers:
            said(reader, "memory.madvise(mmap.MADV_DONTNEED)")
            said(reader, f"os.preadv(fd, [room[{buffer}:{buffer + length}]], {offset})")
            assert int(said(reader, f"zlib.crc32(room[{buffer}:{buffer + length}])")) == \
                zlib.crc32(mapped.content[offset:offset + length])
            own = own_kib(reader)
            assert own <= 2 * PAGE_KIB if shows else own >= length >> 10
            assert not any(int(said(reader, f"max(room[{at}])")) for at in [
                f":{buffer}", f"{buffer + length}:"] if buffer or at[-1] == ":")


def test_a_file_mapped_into_buffers_cannot_be_changed(mapped):
    with mapped.readers(2, **PRIVATE) as readers:
        mapped.read_all(readers)
        with pytest.raises(OSError) as refused:
            mapped.change(OPEN)
        assert refused.value.errno == errno.EBUSY
        failed = mapped.graphlane("restripe", "--wait", "0", "--stripe-depth", "2M",
                                  mapped.made.path / "data", check=False)
        assert failed.returncode == 1 and "is shown in a program's memory\n" in failed.stdout
        mapped.read_all(readers)
    mapped.change(OPEN)


def test_a_child_keeps_its_mapped_buffers(mapped):
    with mapped.readers(2, **PRIVATE) as (one, other):
        mapped.read_all([one, other])
        assert one.read(1) == mapped.expected(1)
        child = int(said(one, "os.fork() or [os.close(0), os.close(1), __import__('time').sleep(1000)]"))
    try:
        with pytest.raises(OSError):
            mapped.change(OPEN)
    finally:
        os.kill(child, signal.SIGKILL)

    def may_be_changed():
        try:
            mapped.change(OPEN)
            return True
        except OSError:
            return False
    wait_until(may_be_changed)


def test_a_read_after_a_change_returns_new_data(mapped):
    with mapped.readers(2, **PRIVATE) as readers:
        pass
    mapped.change(f"os.pwrite(os.open(sys.argv[1], os.O_WRONLY), b'changed', {BLOCK})")
    mapped.replace(BLOCK, b"changed")
    with mapped.readers(2, **PRIVATE) as readers:
        for _ in range(2):
            mapped.read_all(readers)


def test_a_report_tells(mapped, tmp_path):
    report = tmp_path / "report"
    with mapped.readers(2, **PRIVATE, GRAPHLANE_REPORT=str(report)) as readers:
        for _ in range(2):
            mapped.read_all(readers)
    of_each = [json.loads(line) for line in report.read_text().splitlines()]
    assert len(of_each) == 2
    for one in of_each:
        assert SIZE // 2 < one["mapped_bytes"] <= one["shared_bytes"]
