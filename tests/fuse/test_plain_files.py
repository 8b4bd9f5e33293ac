"""Each call gives the same result, errno and bytes in a native directory and on the mount."""

import errno
import fcntl
import mmap
import os
import shutil
import stat
import struct
import subprocess
import time

import pytest

from harness import run
from mounts import FEW_DESCRIPTORS, mounted, random_bytes, with_few_descriptors  # noqa: F401, fixtures

BLOCK = random_bytes(300_000)


def attempt(call, *arguments, **options):
    """The result of a call, or the name of its errno."""
    try:
        return call(*arguments, **options)
    except OSError as error:
        return errno.errorcode[error.errno]


def write_and_read(d):
    (d / "f").write_bytes(BLOCK)
    return (d / "f").read_bytes() == BLOCK, (d / "f").stat().st_size


def open_flags(d):
    results = []
    (d / "f").write_bytes(b"abc")
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT,
                  os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY | os.O_DIRECTORY,
                  os.O_WRONLY | os.O_APPEND, os.O_RDONLY | os.O_NOFOLLOW):
        fd = attempt(os.open, d / "f", flags)
        if isinstance(fd, str):
            results.append(fd)
            continue
        results += [attempt(os.read, fd, 10), attempt(os.write, fd, b"xy"), os.fstat(fd).st_size]
        os.close(fd)
    return results


def create_modes(d):
    results = []
    for mask in (0o022, 0o077, 0):
        old = os.umask(mask)
        fd = os.open(d / f"f{mask}", os.O_CREAT | os.O_WRONLY, 0o606)
        os.mkdir(d / f"d{mask}", 0o764)
        os.mkfifo(d / f"p{mask}", 0o666)
        os.umask(old)
        os.close(fd)
        results += [oct(os.stat(d / f"{kind}{mask}").st_mode) for kind in "fdp"]
    return results


def a_read_only_mode_still_writes_through_the_creating_descriptor(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR, 0o444)
    written = os.write(fd, b"abc")
    return written, os.pread(fd, 10, 0)


def append(d):
    a = os.open(d / "f", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    b = os.open(d / "f", os.O_WRONLY | os.O_APPEND)
    for _ in range(3):
        os.write(a, b"aa")
        os.write(b, b"b")
    fcntl.fcntl(a, fcntl.F_SETFL, 0)  # from now on it writes at its own offset
    os.pwrite(a, b"X", 0)
    return (d / "f").read_bytes()


def truncate(d):
    (d / "f").write_bytes(BLOCK)
    sizes = []
    for size in (100_000, 200_000, 0, 5):
        os.truncate(d / "f", size)
        sizes.append(((d / "f").stat().st_size, (d / "f").read_bytes().count(0)))
    fd = os.open(d / "f", os.O_RDWR)
    os.ftruncate(fd, 7)
    return sizes, os.fstat(fd).st_size, attempt(os.truncate, d / "absent", 1), \
        attempt(os.truncate, d, 1)


def holes(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"end", 1 << 20)
    return (os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE),
            os.lseek(fd, 0, os.SEEK_END), attempt(os.lseek, fd, 2 << 20, os.SEEK_DATA),
            os.pread(fd, 4, (1 << 20) - 2))


def fallocate(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(fd, 0, 100_000)
    first = os.fstat(fd).st_size
    os.posix_fallocate(fd, 90_000, 20_000)
    return first, os.fstat(fd).st_size


def renames(d):
    (d / "a").write_bytes(b"a")
    (d / "b").write_bytes(b"b")
    (d / "sub").mkdir()
    fd = os.open(d / "b", os.O_RDONLY)
    os.rename(d / "a", d / "b")
    return (sorted(os.listdir(d)), (d / "b").read_bytes(), os.read(fd, 9), os.fstat(fd).st_nlink,
            attempt(os.rename, d / "b", d / "sub"), attempt(os.rename, d / "sub", d / "b"),
            attempt(os.rename, d / "absent", d / "x"),
            attempt(os.rename, d / "sub", d / "sub" / "x"),
            attempt(os.rename, d / "b", d / "sub" / "c"), sorted(os.listdir(d / "sub")))


def rename_flags(d):
    (d / "a").write_bytes(b"a")
    (d / "b").write_bytes(b"b")
    results = [run("mv", "--no-clobber", d / "a", d / "b", check=False).returncode >= 0]
    results.append(((d / "a").exists(), (d / "b").read_bytes()))
    return results


def links(d):
    (d / "a").write_bytes(b"a")
    os.link(d / "a", d / "b")
    (d / "sub").mkdir()
    same = os.stat(d / "a").st_ino == os.stat(d / "b").st_ino
    os.unlink(d / "a")
    return (same, os.stat(d / "b").st_nlink, (d / "b").read_bytes(),
            attempt(os.link, d / "b", d / "b"), attempt(os.link, d / "sub", d / "x"),
            attempt(os.unlink, d / "sub"), attempt(os.rmdir, d / "b"),
            attempt(os.unlink, d / "absent"))


def symbolic_links(d):
    os.symlink("target", d / "l")
    before = attempt((d / "l").read_bytes)
    (d / "target").write_bytes(b"t")
    os.symlink("l2", d / "l2")
    return (os.readlink(d / "l"), before, (d / "l").read_bytes(), os.lstat(d / "l").st_size,
            stat.S_ISLNK(os.lstat(d / "l").st_mode), attempt((d / "l2").read_bytes),
            attempt(os.open, d / "l", os.O_RDONLY | os.O_NOFOLLOW),
            attempt(os.readlink, d / "target"), attempt(os.symlink, "x", d / "l"))


def directories(d):
    os.makedirs(d / "a/b/c")
    for i in range(2000):
        (d / f"file{i:04}").touch()
    names = sorted(os.listdir(d))
    kinds = sorted((entry.name, entry.is_dir(), entry.is_file()) for entry in os.scandir(d))[:5]
    return (len(names), names[:3], names[-1], kinds, attempt(os.rmdir, d / "a"),
            attempt(os.mkdir, d / "a"), attempt(os.listdir, d / "file0000"),
            attempt(os.mkdir, d / "absent/x"), attempt(os.stat, d / "file0000/x"),
            attempt(os.stat, d / ("n" * 256)))


def removing_while_listing(d):
    for i in range(1000):
        (d / str(i)).touch()
    for entry in os.scandir(d):
        os.unlink(entry.path)
    return os.listdir(d)


def inodes_of_a_listing_are_those_of_stat(d):
    for name in "abc":
        (d / name).touch()
    return all(entry.inode() == os.stat(entry.path).st_ino for entry in os.scandir(d))


def unlinked_while_open(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"abc")
    os.unlink(d / "f")
    os.pwrite(fd, b"X", 1)
    os.ftruncate(fd, 2)
    return os.pread(fd, 9, 0), os.fstat(fd).st_nlink, os.path.exists(d / "f")


def times(d):
    (d / "f").write_bytes(b"a")
    os.utime(d / "f", ns=(1_000_000_001, 2_000_000_002))
    s = os.stat(d / "f")
    os.utime(d / "f")
    moved = os.stat(d / "f").st_mtime_ns > s.st_mtime_ns
    os.symlink("f", d / "l")
    os.utime(d / "l", ns=(5, 6), follow_symlinks=False)
    return s.st_atime_ns, s.st_mtime_ns, moved, os.lstat(d / "l").st_mtime_ns


def a_write_moves_mtime(d):
    (d / "f").write_bytes(b"a")
    os.utime(d / "f", (1, 1))
    with open(d / "f", "ab") as file:
        file.write(b"b")
    return os.stat(d / "f").st_mtime > 1, os.stat(d / "f").st_size


def modes(d):
    (d / "f").touch()
    results = []
    for mode in (0, 0o600, 0o6755, 0o1777, 0o644):
        os.chmod(d / "f", mode)
        results.append(oct(os.stat(d / "f").st_mode))
    return results


def extended_attributes(d):
    (d / "f").touch()
    set_error = attempt(os.setxattr, d / "f", "user.a", b"1\0two")
    attempt(os.setxattr, d / "f", "user.b", b"")
    return (set_error, attempt(os.getxattr, d / "f", "user.a"),
            sorted(os.listxattr(d / "f")), attempt(os.getxattr, d / "f", "user.absent"),
            attempt(os.setxattr, d / "f", "user.a", b"x", os.XATTR_CREATE),
            attempt(os.setxattr, d / "f", "user.c", b"x", os.XATTR_REPLACE),
            attempt(os.removexattr, d / "f", "user.a"),
            attempt(os.removexattr, d / "f", "user.a"), sorted(os.listxattr(d / "f")))


def locks(d):
    a = os.open(d / "f", os.O_CREAT | os.O_RDWR)
    b = os.open(d / "f", os.O_RDWR)
    fcntl.flock(a, fcntl.LOCK_EX)
    busy = attempt(fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(a, fcntl.LOCK_UN)
    free = attempt(fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(a, fcntl.LOCK_EX, 10, 0)
    other = subprocess.run(
        ["python3", "-c", "import fcntl,os,sys\n"
         "f=os.open(sys.argv[1],os.O_RDWR)\n"
         "try: fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,5,0)\n"
         "except OSError as e: print(e.errno)\n"
         "fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,5,20)\n", d / "f"],
        capture_output=True, text=True)
    return busy, free, other.stdout, other.returncode


def copies(d):
    (d / "a").write_bytes(BLOCK)
    a, b = os.open(d / "a", os.O_RDONLY), os.open(d / "b", os.O_CREAT | os.O_RDWR)
    copied = os.copy_file_range(a, b, 100_000, 5, 7)
    shutil.copyfile(d / "a", d / "c")  # sendfile
    run("cp", "-p", d / "a", d / "e")
    return (copied, os.pread(b, 200_000, 0) == bytes(7) + BLOCK[5:100_005],
            (d / "c").read_bytes() == BLOCK, (d / "e").read_bytes() == BLOCK,
            os.stat(d / "e").st_mtime_ns == os.stat(d / "a").st_mtime_ns)


def vectors(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR)
    written = os.pwritev(fd, [b"abc", b"", b"defgh"], 4)
    buffers = [bytearray(3), bytearray(20)]
    return written, os.preadv(fd, buffers, 2), buffers, os.lseek(fd, 0, os.SEEK_CUR)


def syncs(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"abc")
    directory = os.open(d, os.O_RDONLY)
    return [attempt(call, f) for call in (os.fsync, os.fdatasync) for f in (fd, directory)]


def special_files(d):
    os.mkfifo(d / "p")
    results = [stat.filemode(os.stat(d / "p").st_mode)]
    reader = os.open(d / "p", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(d / "p", os.O_WRONLY)
    os.write(writer, b"through")
    results.append(os.read(reader, 20))
    return results


def rewriting_blocks_as_graphchi_does(d):
    fds = [os.open(d / "block", os.O_CREAT | os.O_RDWR, 0o606) for _ in range(3)]
    os.write(fds[0], BLOCK)
    results = [os.pread(fds[1], len(BLOCK), 0) == BLOCK]
    other = bytes(reversed(BLOCK))[:-1000]
    os.lseek(fds[2], 0, os.SEEK_END)
    os.lseek(fds[2], 0, os.SEEK_SET)
    os.ftruncate(fds[2], 0)
    results += [os.write(fds[2], other), os.pread(fds[1], len(BLOCK), 0) == other]
    for fd in fds:
        os.close(fd)
    results.append((d / "block").read_bytes() == other)
    return results


def a_direct_writer_with_an_odd_tail(d):
    """dd switches O_DIRECT off for the last block."""
    run("dd", "if=/dev/zero", f"of={d / 'f'}", "bs=4096", "count=10001", "iflag=count_bytes",
        "oflag=direct")
    return (d / "f").stat().st_size


def opens_of_all_kinds_beside_each_other(d):
    """The kernel must accept the other kinds of open, whatever the first one was."""
    kinds = [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_DIRECT,
             os.O_RDONLY | os.O_DIRECT, os.O_RDWR | os.O_TRUNC]
    results = []
    for first in range(len(kinds)):
        fds = [os.open(d / f"f{first}", os.O_CREAT | kinds[first])]
        fds += [os.open(d / f"f{first}", kind) for kind in kinds]
        os.write(fds[3], b"appended")
        os.pwrite(fds[2], b"A", 0)
        page = mmap.mmap(-1, mmap.PAGESIZE)
        results.append([os.pread(fds[1], 20, 0), os.preadv(fds[4], [page], 0), page[:8]])
        os.chmod(d / f"f{first}", 0o6755)
        fds.append(os.open(d / f"f{first}", os.O_RDWR))
        with mmap.mmap(fds[-1], 8) as memory:
            memory[1] = ord("B")
            os.pwrite(fds[-1], b"C", 2)
            results.append([memory[:], os.pread(fds[1], 20, 0), os.fstat(fds[1]).st_size])
        for fd in fds:
            os.close(fd)
    return results


FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
NODUMP, APPEND, IMMUTABLE = 0x40, 0x20, 0x10


def chattr(path, wanted=None):
    """The flags of these three files. With `wanted`, sets them first."""
    ours = NODUMP | APPEND | IMMUTABLE
    fd = os.open(path, os.O_RDONLY)
    try:
        flags = struct.unpack("i", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(4)))[0]
        if wanted is not None:
            fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("i", flags & ~ours | wanted))
        return flags & ours
    finally:
        os.close(fd)


def flags_of_chattr(d):
    """The calls that each flag forbids on a file and on a directory. Only root may set two of
    the flags."""
    file, other, directory = d / "f", d / "h", d / "sub"
    file.write_bytes(b"abc")
    directory.mkdir()
    (directory / "old").touch()

    def append():
        with open(file, "ab", buffering=0) as stream:
            return stream.write(b"d"), os.pwrite(stream.fileno(), b"e", 0)

    results = []
    for wanted in (NODUMP, IMMUTABLE, APPEND, IMMUTABLE | APPEND, 0):
        for path in (file, directory):
            before = path.stat().st_ctime_ns
            time.sleep(0.01)  # the clock of Linux before 6.13
            results += [attempt(chattr, path, wanted), attempt(chattr, path),
                        path.stat().st_ctime_ns > before]
        results += [attempt(append), attempt(os.truncate, file, 2), attempt(file.write_bytes, b"F"),
                    attempt(os.chmod, file, 0o600), attempt(os.rename, file, other),
                    attempt(os.rename, other, file), attempt((directory / "new").touch),
                    attempt((directory / "old").unlink), attempt((directory / "new").unlink)]
        for path in (file, directory):
            attempt(chattr, path, 0)
        results.append(file.read_bytes())
    return results


def closing_after(case, directory):
    """Returns the case's result, and closes the descriptors that it left open."""
    before = os.open("/dev/null", os.O_RDONLY)  # the lowest free descriptor
    try:
        return case(directory)
    finally:
        os.closerange(before, before + 100)


CASES = [write_and_read, open_flags, create_modes,
         a_read_only_mode_still_writes_through_the_creating_descriptor, append, truncate, holes,
         fallocate, renames, rename_flags, links, symbolic_links, directories,
         removing_while_listing, inodes_of_a_listing_are_those_of_stat, unlinked_while_open, times,
         a_write_moves_mtime, modes, extended_attributes, locks, copies, vectors, syncs,
         special_files, rewriting_blocks_as_graphchi_does, a_direct_writer_with_an_odd_tail,
         opens_of_all_kinds_beside_each_other, flags_of_chattr]


@pytest.fixture(scope="module")
def two_directories(graphlane, fuse, tmp_path_factory):
    """A native directory and one on a mount, on the same host filesystem."""
    base = tmp_path_factory.mktemp("plain")
    volume = graphlane.create(base / "v")
    (base / "native").mkdir()
    with graphlane.mounted(volume, base / "mnt") as at:
        yield base / "native", at


@pytest.fixture(scope="module")
def without_descriptors(graphlane, fuse, tmp_path_factory):
    """A native directory and one on a mount that has looked up more files than its daemon has
    descriptors."""
    if os.geteuid() != 0:
        pytest.skip("not root: no handles")
    base = tmp_path_factory.mktemp("crowded")
    volume = graphlane.create(base / "v")
    (base / "native").mkdir()
    for number in range(2 * FEW_DESCRIPTORS):
        (volume.path / str(number)).touch()
    with graphlane.mounted(volume, base / "mnt", preexec_fn=with_few_descriptors) as at:
        for number in range(2 * FEW_DESCRIPTORS):
            (at / str(number)).stat()
        yield base / "native", at


def check_parity(directories, case):
    results = []
    for base in directories:
        directory = base / case.__name__
        directory.mkdir()
        results.append(closing_after(case, directory))
    assert results[1] == results[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_parity(two_directories, case):
    check_parity(two_directories, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_parity_without_descriptors(without_descriptors, case):
    check_parity(without_descriptors, case)


def test_names_work_when_no_more_files_can_be_opened(without_descriptors):
    _, at = without_descriptors
    opened = []
    try:
        with pytest.raises(OSError) as refused:
            for number in range(2 * FEW_DESCRIPTORS):
                opened.append(os.open(at / str(number), os.O_RDONLY))
        assert refused.value.errno == errno.EMFILE and len(opened) > FEW_DESCRIPTORS // 10
        assert attempt(os.open, at, os.O_RDONLY) == "EMFILE"
        assert attempt(os.open, at / "made", os.O_WRONLY | os.O_CREAT) == "EMFILE"
        (at / "directory").mkdir()
        (at / "directory").rename(at / "renamed")
        assert (at / "renamed").stat().st_nlink == 2
        (at / "renamed").rmdir()
        assert not (at / "made").exists()
    finally:
        for fd in opened:
            os.close(fd)
    (at / "made").touch()


def test_a_map_cannot_change_an_append_only_file(volume, mounted):
    """The host would append the page instead."""
    made = volume()
    with mounted(made) as at:
        (at / "log").write_bytes(b"as it was")
        if isinstance(attempt(chattr, at / "log", APPEND), str):
            pytest.skip("not applicable: chattr +a is root's, on ext4 and the like")
        try:
            with open(at / "log", "a+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                memory[:2] = b"AS"
                with pytest.raises(OSError):
                    memory.flush()
            assert (made.path / "log").read_bytes() == b"as it was"
        finally:
            chattr(at / "log", 0)


def test_statfs_is_the_hosts_when_all_devices_lie_on_it(two_directories):
    native, mounted = map(os.statvfs, two_directories)
    assert (mounted.f_blocks, mounted.f_bsize, mounted.f_namemax) == \
        (native.f_blocks, native.f_bsize, native.f_namemax)


def test_a_pipeline_of_ordinary_tools(two_directories):
    results = []
    for directory in two_directories:
        script = ("seq 100000 > n && sort -r n > r && sort -n r | cmp - n && tar cf t.tar n r && "
                  "mkdir x && tar xf t.tar -C x && cmp n x/n && gzip -k n && zcat n.gz | md5sum && "
                  "sed -i s/9/nine/ n && md5sum < n && find . -type f | wc -l && rm -r x && ls")
        results.append(run("sh", "-c", script, cwd=directory).stdout)
    assert results[0].replace("native", "mnt") == results[1]
