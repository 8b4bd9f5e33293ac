"""open_by_handle_at() finds a file by its handle after a rename, an eviction from the kernel's
caches, or a restart of the daemon."""

import ctypes
import errno
import os

import pytest

from harness import run
from mounts import mounted  # noqa: F401, fixtures

AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)


class FileHandle(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint), ("type", ctypes.c_int), ("bytes", ctypes.c_char * 128)]


def handle_of(path) -> FileHandle:
    handle, mount_id = FileHandle(size=128), ctypes.c_int()
    if libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle),
                              ctypes.byref(mount_id), 0) != 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    return handle


def open_handle(mount, handle: FileHandle, flags=os.O_RDONLY) -> int:
    directory = os.open(mount, os.O_RDONLY)
    fd = libc.open_by_handle_at(directory, ctypes.byref(handle), flags)
    error = ctypes.get_errno()
    os.close(directory)
    if fd < 0:
        raise OSError(error, os.strerror(error))
    return fd


def read_handle(mount, handle: FileHandle) -> bytes:
    fd = open_handle(mount, handle)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


@pytest.fixture
def made(root, volume):
    """A volume on a filesystem with handles of a kind that the mount can pass on."""
    made = volume()
    kind = run("stat", "-f", "-c", "%T", made.path).stdout.strip()
    if kind not in ("ext2/ext3", "xfs", "tmpfs", "f2fs"):
        pytest.skip(f"not applicable: file handles of {kind}")
    return made


def test_after_a_new_mount(made, mounted):
    with mounted(made) as at:
        (at / "a/b").mkdir(parents=True)
        (at / "a/b/f").write_bytes(b"content")
        file, directory = handle_of(at / "a/b/f"), handle_of(at / "a/b")
    with mounted(made) as at:
        assert read_handle(at, file) == b"content"
        fd = open_handle(at, directory, os.O_RDONLY | os.O_DIRECTORY)
        assert os.listdir(fd) == ["f"]
        # The kernel has asked for the parents up to the root.
        assert os.readlink(f"/proc/self/fd/{fd}") == str(at / "a/b")
        os.close(fd)


def test_under_another_name(made, mounted):
    with mounted(made) as at:
        (at / "f").write_bytes(b"content")
        handle = handle_of(at / "f")
        os.rename(at / "f", at / "g")
    with mounted(made) as at:
        assert read_handle(at, handle) == b"content"


def test_a_removed_file_is_stale(made, mounted):
    with mounted(made) as at:
        (at / "f").write_bytes(b"content")
        (at / "d").mkdir()
        handles = [handle_of(at / "f"), handle_of(at / "d")]
        os.unlink(at / "f")
        os.rmdir(at / "d")
        (at / "another").write_bytes(b"another")  # may reuse the inode number
    with mounted(made) as at:
        for handle in handles:
            with pytest.raises(OSError) as caught:
                open_handle(at, handle)
            assert caught.value.errno == errno.ESTALE


def test_a_directory_outside_the_volume_is_stale(made, mounted, tmp_path):
    with mounted(made) as at:
        (at / "d").mkdir()
        handle = handle_of(at / "d")
    os.rename(made.path / "d", tmp_path / "outside")
    with mounted(made) as at:
        with pytest.raises(OSError) as caught:
            open_handle(at, handle)
        assert caught.value.errno == errno.ESTALE


def test_control_files_are_not_found_by_number(made, mounted):
    with mounted(made) as at:
        handle = handle_of(at / ".graphlane/volume.json")
    with mounted(made) as at:
        with pytest.raises(OSError) as caught:
            open_handle(at, handle, os.O_RDWR)
        assert caught.value.errno == errno.ESTALE
