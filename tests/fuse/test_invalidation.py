"""The kernel's pages of a file are invalidated when another process changes it behind the mount,
and stay after a change by this mount."""

import mmap
import os
import sys

import pytest

from harness import wait_until
from mounts import mounted, random_bytes, stats  # noqa: F401, fixtures

MIB = 1 << 20
SIZE = 4 * MIB

# The interval at which the mount revalidates open files.
OFTEN = ("-o", "attr_timeout=0.2")
# With this, the kernel caches plain files by the mount too: no passthrough.
NOT_PASSED_THROUGH = ("-o", "noatime")


class Watched:
    """A file that stays open, with all its pages read."""

    def __init__(self, path, size=SIZE):
        self.size = size
        self.fd = os.open(path, os.O_RDONLY)
        self.map = mmap.mmap(self.fd, size, prot=mmap.PROT_READ)
        self.content = os.pread(self.fd, size, 0)
        assert self.map[:] == self.content

    def shows(self, content: bytes) -> bool:
        """Compares by read and by map. No call asks for the attributes."""
        return os.pread(self.fd, len(content), 0) == content and \
            self.map[:] == content[:self.size]

    def close(self):
        self.map.close()
        os.close(self.fd)


def change(path, content: bytes, offset: int) -> None:
    with open(path, "r+b", buffering=0) as file:
        file.seek(offset)
        file.write(content)


@pytest.fixture
def two_mounts(volume, mounted, tmp_path):
    """Two mounts of one volume."""
    made = volume(depth="64K", stripe=["s*"])
    with mounted(made, *OFTEN) as one, mounted(made, *OFTEN, at=tmp_path / "other") as other:
        yield one, other


def test_another_mount_changes_a_striped_file(two_mounts):
    one, other = two_mounts
    content = random_bytes(SIZE)
    (other / "s").write_bytes(content)
    watched = Watched(one / "s")
    assert watched.content == content
    for seed in range(2, 5):
        new = random_bytes(100_000, seed)
        change(other / "s", new, 300_000)
        content = content[:300_000] + new + content[400_000:]
        wait_until(lambda: watched.shows(content))
    watched.close()


def test_another_mount_makes_a_striped_file_longer(two_mounts):
    """The last page was cached with zeros behind the end of the file."""
    one, other = two_mounts
    content = random_bytes(SIZE - 1000)
    (other / "s").write_bytes(content)
    watched = Watched(one / "s", len(content))
    more = random_bytes(100_000, 2)
    with (other / "s").open("ab") as file:
        file.write(more)
    wait_until(lambda: watched.shows(content + more))
    watched.close()


def test_writers_of_two_mounts_take_turns(two_mounts):
    """Each mount has pages from before. The kernel waits until the other daemon has released the
    file."""
    content = random_bytes(SIZE)
    (two_mounts[0] / "s").write_bytes(content)
    watched = [Watched(at / "s") for at in two_mounts]
    for turn in range(2):
        new = random_bytes(5000, 10 + turn)
        path = two_mounts[turn] / "s"

        def written() -> bool:
            try:
                change(path, new, turn * 6000)
            except OSError:  # EBUSY: the other mount keeps it for five seconds
                return False
            return True

        wait_until(written)
        content = content[:turn * 6000] + new + content[turn * 6000 + 5000:]
        assert path.read_bytes() == content
        wait_until(lambda: all(each.shows(content) for each in watched))
    for each in watched:
        each.close()


def test_a_reader_that_saw_a_striped_files_mtime_sees_its_bytes(two_mounts):
    one, other = two_mounts
    sees_bytes_with_mtime(one / "s", other / "s")


def test_a_reader_that_saw_a_plain_files_mtime_sees_its_bytes(volume, mounted):
    made = volume()
    with mounted(made, *NOT_PASSED_THROUGH) as at:
        sees_bytes_with_mtime(at / "plain", made.path / "plain")


def test_a_plain_file_with_its_mtime_set_back_counts_as_changed(volume, mounted):
    made = volume()
    with mounted(made, *NOT_PASSED_THROUGH, *OFTEN) as at:
        (made.path / "plain").write_bytes(random_bytes(SIZE))
        before = (made.path / "plain").stat()
        watched = Watched(at / "plain")
        content = random_bytes(SIZE, 2)
        change(made.path / "plain", content, 0)
        os.utime(made.path / "plain", ns=(before.st_atime_ns, before.st_mtime_ns))
        wait_until(lambda: watched.shows(content))
        watched.close()


def sees_bytes_with_mtime(path, elsewhere):
    content = random_bytes(SIZE)
    elsewhere.write_bytes(content)
    watched = Watched(path)
    for seed in range(2, 6):
        known = os.fstat(watched.fd).st_mtime_ns
        content = random_bytes(100_000, seed) + content[100_000:]
        change(elsewhere, content[:100_000], 0)
        wait_until(lambda: os.fstat(watched.fd).st_mtime_ns != known)
        assert watched.shows(content)
    watched.close()


def test_a_change_on_the_host_invalidates_a_plain_file(volume, mounted):
    made = volume()
    content = random_bytes(SIZE)
    (made.path / "plain").write_bytes(content)
    with mounted(made, *NOT_PASSED_THROUGH) as at:
        watched = Watched(at / "plain")
        content = random_bytes(5000, 2) + content[5000:]
        change(made.path / "plain", content[:5000], 0)
        wait_until(lambda: watched.shows(content))
        watched.close()
        # A closed file is revalidated at the next open.
        content = random_bytes(5000, 3) + content[5000:]
        change(made.path / "plain", content[:5000], 0)
        watched = Watched(at / "plain")
        assert watched.content == content
        watched.close()


@pytest.mark.usefixtures("kept_caches")
@pytest.mark.parametrize("name", ["plain", "s"])
@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_WRONLY], ids=["reads too", "writes only"])
def test_a_write_by_this_mount_keeps_the_other_pages(volume, mounted, name, flags):
    made = volume(depth="64K", stripe=["s*"])
    content = bytearray(random_bytes(SIZE))
    with mounted(made, *NOT_PASSED_THROUGH) as at:
        (at / name).write_bytes(content)
        watched = Watched(at / name)
        writer = os.open(at / name, flags)

        def served() -> int:
            return sum(device["bytes_read"] for device in stats(at)["devices"])

        before = served()
        for step in range(50):
            content[step * 4096:step * 4096 + 100] = random_bytes(100, step)
            os.pwrite(writer, content[step * 4096:step * 4096 + 100], step * 4096)
            os.fstat(watched.fd)  # the kernel asks for the new mtime
            # These pages were read before the writes, far away from them.
            assert os.pread(watched.fd, MIB, 2 * MIB) == content[2 * MIB:3 * MIB]
        assert watched.shows(bytes(content))
        os.close(writer)
        assert os.pread(watched.fd, SIZE, 0) == content
        if name == "s":
            # Dropping all pages would reread a MiB each time.
            assert served() - before < 4 * MIB
        watched.close()


NAMES = """
import os, sys
os.chdir(sys.argv[1])
os.chmod("s", 0o640)
os.utime("s", ns=(10**18, 10**18))
os.rename("old", "new")
os.unlink("gone")
"""


def test_names_and_attributes_that_a_preloaded_program_changed_are_seen_after_the_timeout(graphlane, volume, mounted):
    made = volume(depth="64K", stripe=["*"])
    content = random_bytes(300_000)
    with mounted(made, "-o", "attr_timeout=1,entry_timeout=1") as at:
        for name in ("s", "old", "gone"):
            (at / name).write_bytes(content)
        fd = os.open(at / "s", os.O_RDONLY)

        assert all((at / name).exists() for name in ("s", "old", "gone"))
        graphlane("run", "--no-mount", "--", sys.executable, "-c", NAMES, made.path)
        wait_until(lambda: os.fstat(fd).st_mode & 0o777 == 0o640)
        assert os.fstat(fd).st_mtime_ns == 10**18
        wait_until(lambda: sorted(os.listdir(at)) == ["new", "s"] and not (at / "old").exists())
        assert (at / "new").read_bytes() == os.pread(fd, len(content), 0) == content
        os.close(fd)
    assert "no problems" in graphlane("check", made.path).stdout
