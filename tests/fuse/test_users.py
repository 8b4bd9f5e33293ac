"""A mount by root serves all users, each with that user's rights and ownership."""

import errno
import fcntl
import os
import shutil
import stat
import struct
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import run
from mounts import mounted, parts_of, random_bytes, striped  # noqa: F401, fixtures

NOBODY = 65534


def as_user(*command, uid=NOBODY, gid=NOBODY, groups=(), **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], user=uid, group=gid,
                          extra_groups=groups, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **options)


@contextmanager
def device_file_open_to_all():
    """Opens /dev/fuse to all users, for one test at a time: the first to end would close it for the others."""
    with open(Path(tempfile.gettempdir(), f"graphlane-tests-{os.geteuid()}.fuse"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mode = os.stat("/dev/fuse").st_mode
        os.chmod("/dev/fuse", 0o666)
        try:
            yield
        finally:
            os.chmod("/dev/fuse", stat.S_IMODE(mode))


def test_new_files_belong_to_their_creator(root, open_tmp, volume, mounted):
    with mounted(volume()) as at:
        os.chmod(at, 0o777)
        script = "umask 027; cd $1; > f; mkdir d; mkfifo p; ln -s f l; ln f h; stat -c '%n %u %g %a' *"
        result = as_user("sh", "-c", script, "sh", at, gid=1234)
        assert result.stdout.splitlines() == [
            "d 65534 1234 750", "f 65534 1234 640", "h 65534 1234 640", "l 65534 1234 777",
            "p 65534 1234 640"], result.stderr


def test_a_set_group_id_directory_gives_its_group(root, open_tmp, volume, mounted):
    with mounted(volume()) as at:
        (at / "d").mkdir()
        os.chown(at / "d", 0, 4321)
        os.chmod(at / "d", 0o2777)
        result = as_user("sh", "-c", "cd $1; > f; mkdir s; stat -c '%u %g' f s", "sh", at / "d")
        assert result.stdout.split() == ["65534", "4321"] * 2
        assert os.stat(at / "d/s").st_mode & stat.S_ISGID


def test_permissions_are_checked(root, open_tmp, striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume) as at:
        (at / "secret").write_bytes(b"s")
        os.chmod(at / "secret", 0o600)
        os.chmod(at / "data", 0o600)
        for command in (["cat", at / "secret"], ["cat", at / "data"], ["touch", at / "new"],
                        ["rm", "-f", at / "data"], ["chmod", "777", at / "data"],
                        ["python3", "-c", "import os,sys; os.getxattr(sys.argv[1], "
                         "'user.graphlane.server')", at / "data"]):
            result = as_user(*command)
            assert result.returncode != 0, command
            assert "denied" in result.stderr or "not permitted" in result.stderr
        os.chown(at / "data", NOBODY, NOBODY)
        assert as_user("cmp", at / "data", at / "data").returncode == 0
    owners = {(os.stat(path).st_uid, os.stat(path).st_mode & 0o777)
              for device in volume.devices for path in device.glob("*/parts/*/*")}
    assert owners == {(NOBODY, 0o600)}


def test_supplementary_groups_count(root, open_tmp, volume, mounted):
    with mounted(volume()) as at:
        (at / "d").mkdir()
        os.chown(at / "d", 0, 777)
        os.chmod(at / "d", 0o770)
        assert as_user("touch", at / "d/f").returncode != 0
        assert as_user("touch", at / "d/f", groups=[777]).returncode == 0


def test_a_write_by_a_user_clears_set_id_bits(root, open_tmp, volume, mounted):
    made = volume()
    with mounted(made) as at:
        program = at / "program"
        for script in ("echo x >> $1", "truncate -s 1 $1", "> $1", "fallocate -l 8192 $1",
                       "dd if=/dev/zero of=$1 bs=1 count=1 conv=notrunc"):
            program.write_bytes(b"#!/bin/sh\n")
            os.chmod(program, 0o6777)
            assert as_user("sh", "-c", script, "sh", program).returncode == 0
            assert oct(os.stat(made.path / "program").st_mode & 0o7777) == oct(0o777), script


def test_cleared_set_id_bits_are_shown_at_once(root, open_tmp, volume, mounted):
    """After a write the kernel asks for the size and the times again, but not for the mode. It
    would start the program with its old set-id bits."""
    with mounted(volume(stripe=["s*"]), "-o", "attr_timeout=1000,entry_timeout=1000") as at:
        for name in ("striped", "plain"):
            for script in ("dd if=/dev/zero of=$1 bs=4096 count=1 conv=notrunc oflag=direct",
                           "fallocate -l 8192 $1", "echo x >> $1"):
                program = at / name
                program.write_bytes(b"#!/bin/sh\n")
                os.chmod(program, 0o6777)
                # stat asks for the mode alone, which the kernel may have cached.
                told = as_user("sh", "-c", f"{script} 2> /dev/null && stat -c %a $1", "sh", program)
                assert told.stdout == "777\n", (name, script, told.stderr)


LOCKING_MODE = 0o2666  # set-group-ID without group execution


@pytest.mark.parametrize("groups", [[], [1234]], ids=["a stranger", "a member"])
def test_a_set_group_id_bit_without_execution_stays_for_members(
        root, open_tmp, volume, mounted, groups):
    with mounted(volume(), "-o", "attr_timeout=1000") as at:
        (open_tmp / "native").mkdir(0o755)
        for script in ("fallocate -l 8192 $1", "echo x >> $1", "truncate -s 1 $1",
                       "fallocate -p -o 0 -l 4096 $1"):
            seen = []
            for file in (open_tmp / "native/f", at / "f"):
                file.write_bytes(b"x" * 8192)
                os.chown(file, 0, 1234)
                os.chmod(file, LOCKING_MODE)
                # stat asks for the mode alone, which the kernel may have cached.
                told = as_user("sh", "-c", f"{script}; stat -c %a $1", "sh", file, groups=groups)
                seen.append((told.stdout, told.stderr))
            assert seen[0] == seen[1], script


def access_list(*entries, owner=7, group=5, mask=7, other=0) -> bytes:
    """An access list in the kernel's format; `entries` are (user, permissions)."""
    none = 0xFFFFFFFF
    rows = [(0x01, owner, none), *((0x02, rights, user) for user, rights in entries),
            (0x04, group, none), (0x10, mask, none), (0x20, other, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def mode_as_list(owner: int, group: int, other: int) -> bytes:
    """An access list without entries of its own: the host keeps the mode alone."""
    rows = [(0x01, owner), (0x04, group), (0x20, other)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row, 0xFFFFFFFF) for row in rows)


ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


@pytest.fixture
def with_lists(root, open_tmp, volume, mounted):
    """A native directory and one on a mount, on a filesystem with access lists."""
    native = open_tmp / "native"
    native.mkdir()
    try:
        os.setxattr(native, DEFAULT, access_list())
    except OSError:
        pytest.skip("not applicable: the host has no access control lists")
    os.removexattr(native, DEFAULT)
    with mounted(volume()) as at:
        for directory in (native, at):
            os.chmod(directory, 0o777)
        yield native, at


def test_an_access_list_counts(with_lists):
    for directory in with_lists:
        file = directory / "f"
        file.write_bytes(b"content")
        os.chmod(file, 0o640)
        assert as_user("cat", file).returncode != 0
        os.setxattr(file, ACCESS, access_list((NOBODY, 4), group=0))
        assert as_user("cat", file).stdout == "content"
        assert as_user("cat", file, uid=1234).returncode != 0
        assert os.stat(file).st_mode & 0o777 == 0o770  # the group's bits are the mask
        os.chmod(file, 0o700)  # so this removes the user's right
        assert as_user("cat", file).returncode != 0


def test_a_default_list_stands_in_for_the_umask(with_lists):
    seen = []
    script = "umask $2; cd $1; > f$2; mkdir d$2; mkfifo p$2; stat -c '%n %a' f$2 d$2 p$2"
    for directory in with_lists:
        (directory / "listed").mkdir()
        os.chmod(directory / "listed", 0o777)
        os.setxattr(directory / "listed", DEFAULT, access_list((1234, 6), mask=7, other=5))
        for place in (directory, directory / "listed"):
            for mask in ("077", "022", "0"):
                seen.append(as_user("sh", "-c", script, "sh", place, mask).stdout)
        seen.append([os.getxattr(directory / "listed/f077", ACCESS),
                     os.getxattr(directory / "listed/d077", DEFAULT)])
    assert seen[7:] == seen[:7]
    assert seen[0].splitlines()[0] == "f077 600" and seen[3].splitlines()[0] == "f077 664"


def test_a_stranger_to_the_group_loses_its_bit_by_an_access_list(with_lists):
    script = f"import os, sys; os.setxattr(sys.argv[1], '{ACCESS}', bytes.fromhex(sys.argv[2]))"
    for directory in with_lists:
        modes = []
        for groups in ([1234], []):
            file = directory / "g"
            file.touch()
            os.chown(file, NOBODY, 1234)
            os.chmod(file, 0o2777)
            result = as_user("python3", "-c", script, file, access_list(group=7, other=7).hex(),
                             groups=groups)
            assert result.returncode == 0, result.stderr
            modes.append(oct(os.stat(file).st_mode & 0o7777))
        assert modes == ["0o2777", "0o777"], directory


def test_a_striped_file_has_no_access_list(root, striped, mounted):
    volume, _ = striped(size=100_000)
    with mounted(volume) as at:
        with pytest.raises(OSError) as caught:
            os.setxattr(at / "data", ACCESS, access_list((NOBODY, 4)))
        assert caught.value.errno == errno.EOPNOTSUPP
        assert "acl" not in " ".join(os.listxattr(at / "data"))


def test_a_new_access_list_holds_at_once(with_lists):
    """The mount reads a file's attributes when the kernel checks permissions. If it dropped the
    file's pages then, the kernel would discard the attributes, and use the old mode."""
    for at in with_lists:
        for number in range(20):
            file = at / f"f{number}"
            file.write_bytes(b"x")
            os.chmod(file, 0o666)
            assert as_user("cat", file).returncode == 0
            os.setxattr(file, ACCESS, mode_as_list(owner=6, group=0, other=0))
            assert as_user("cat", file).returncode != 0, "nobody may read it any more"
            os.setxattr(file, ACCESS, access_list((NOBODY, 4), owner=6, group=0, other=0))
            assert as_user("cat", file).returncode == 0, "nobody is on its list"


def test_the_next_write_by_a_user_clears_new_set_id_bits(
        root, open_tmp, volume, mounted):
    made = volume()
    script = "exec 3<>$1; echo opened; read go; echo x >&3"
    with mounted(made) as at:
        program = at / "program"
        program.write_bytes(b"#!/bin/sh\n")
        os.chmod(program, 0o777)
        with subprocess.Popen(["sh", "-c", script, "sh", program], user=NOBODY, group=NOBODY,
                              extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as writer:
            assert writer.stdout.readline() == "opened\n"
            os.chmod(program, 0o6777)
            writer.communicate("go\n", timeout=60)
        assert oct(os.stat(made.path / "program").st_mode & 0o7777) == oct(0o777)


def test_a_write_by_root_keeps_set_id_bits(root, open_tmp, volume, mounted):
    made = volume()
    with mounted(made) as at:
        program = at / "program"
        program.write_bytes(b"#!/bin/sh\n")
        os.chmod(program, 0o6777)
        for script in ("echo x >> $1", "dd if=/dev/zero of=$1 bs=1 count=1 conv=notrunc"):
            run("sh", "-c", script, "sh", program)
            assert oct(os.stat(made.path / "program").st_mode & 0o7777) == oct(0o6777), script


def test_a_forged_stub_gives_no_access_to_another_users_parts(root, open_tmp, striped, mounted):
    """Any user can write 4096 bytes that name the parts of another user's file. The daemon, as
    root, could open and remove these parts."""
    volume, _ = striped(size=100_000)
    with mounted(volume, "-o", "attr_timeout=0") as at:
        os.chmod(at / "data", 0o600)
        os.chmod(at, 0o777)
        forged = open_tmp / "forged"
        shutil.copyfile(volume.path / "data", forged)
        os.chmod(forged, 0o644)
        assert as_user("cp", forged, at / "mine").returncode == 0
        result = as_user("cat", at / "mine")
        assert result.returncode != 0 and result.stdout == ""
        assert as_user("rm", at / "mine").returncode == 0
    assert sum(1 for device in volume.devices for _ in device.glob("*/parts/*/*")) == 4


@pytest.fixture
def forging(root, open_tmp, striped, mounted):
    """A mount with root's secret `data`, its parts, and `mine`: a user's 4096 bytes that name
    these parts. The descriptor of `mine` was opened before the bytes were written."""
    volume, _ = striped(size=100_000)
    with mounted(volume, "-o", "attr_timeout=0") as at:
        os.chmod(at / "data", 0o600)
        os.chmod(at, 0o777)
        with open(at / "mine", "w+b", buffering=0) as mine:
            os.chown(at / "mine", NOBODY, NOBODY)
            mine.write((volume.path / "data").read_bytes())
            yield at, parts_of(volume), mine


def test_a_forged_stub_changes_nothing_of_another_users_parts(forging):
    at, parts, _ = forging
    assert as_user("chmod", "666", at / "mine").returncode == 0  # a user may change its own file
    as_user("chgrp", str(NOBODY), at / "mine")
    os.chown(at / "mine", NOBODY, 1234)
    assert {(os.stat(part).st_uid, os.stat(part).st_gid, stat.S_IMODE(os.stat(part).st_mode))
            for part in parts} == {(0, 0, 0o600)}
    assert as_user("truncate", "-s", "1", at / "mine").returncode != 0
    os.truncate(at / "mine", 0)  # a plain file again
    assert sum(os.stat(part).st_size for part in parts) == 100_000


def test_a_plain_file_that_becomes_a_stub_can_be_truncated(forging):
    """A descriptor from before can truncate it. (The daemon once took the handle for a striped
    file's, and died.)"""
    at, parts, mine = forging
    mine.truncate(5000)
    assert os.fstat(mine.fileno()).st_size == 5000
    assert sum(os.stat(part).st_size for part in parts) == 100_000


def test_a_forged_stub_is_not_opened_beside_a_writer(forging):
    at, _, mine = forging
    mine.close()
    with open(at / "data", "r+b"):
        for how in ("cat $1", "echo x >> $1", "echo x > $1"):
            assert as_user("sh", "-c", f"({how}) | wc -c", "sh", at / "mine").stdout == "0\n", how


def test_a_forged_stub_gets_no_ticket(forging):
    """That holds even while the owner of the parts writes them."""
    at, _, mine = forging
    for flags in (os.O_RDONLY, os.O_RDWR):
        data = os.open(at / "data", flags)
        with pytest.raises(OSError) as raised:
            fcntl.ioctl(mine.fileno(), 0x8050b747, bytes(80))
        assert raised.value.errno == errno.ENODATA
        os.close(data)


@pytest.fixture
def users_place(root, open_tmp):
    """An ordinary user's directory, with `data` in it."""
    base = open_tmp / "user"
    base.mkdir()
    os.chown(base, NOBODY, NOBODY)
    (base / "data").write_bytes(random_bytes(1_000_000))
    os.chmod(base / "data", 0o644)
    return base


def test_an_ordinary_user_can_mount(users_place, fuse, graphlane):
    if shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is missing")
    base, g = users_place, graphlane.program
    script = (f"cd {base} && mkdir d0 d1 mnt && {g} create vol --device d0 --device d1 "
              f"--stripe-depth 64K && {g} import data vol && {g} mount vol mnt && cmp data mnt/data; "
              f"status=$?; echo new > mnt/new; {g} umount mnt && exit $status")
    with device_file_open_to_all():
        result = as_user("sh", "-c", script)
        assert result.returncode == 0, result.stderr
        assert (base / "vol/new").read_text() == "new\n"
        result = as_user("sh", "-c", f"cd {base} && {g} mount vol && cmp data vol/data; {g} umount vol")
        assert result.returncode == 0, result.stderr


def test_a_stub_that_its_owner_may_not_read_stays_one(users_place, fuse, graphlane):
    """On the user's own mount the daemon may not read it either. On root's mount the user just
    writes the file."""
    base, g = users_place, graphlane.program
    script = (f"cd {base} && mkdir d0 d1 mnt && {g} create vol --device d0 --device d1 && "
              f"{g} import data vol && {g} mount vol mnt && cd mnt && chmod 200 data; "
              "echo x >> data; echo x > data; truncate -s 5 data; chmod 000 data; chmod 644 data; "
              f"cmp ../data data; status=$?; cd ..; {g} umount mnt && {g} check vol && exit $status")
    with device_file_open_to_all():
        result = as_user("sh", "-c", script)
    assert result.returncode == 0, result
    assert result.stderr.count("Permission denied") == 3


def test_an_ordinary_user_has_private_mounts(users_place, fuse, graphlane):
    namespaces = as_user("unshare", "-Urm", "true")
    if namespaces.returncode != 0:
        pytest.skip("user namespaces are not allowed")
    base, g = users_place, graphlane.program
    prepare = (f"cd {base} && mkdir d0 d1 && {g} create vol --device d0 --device d1 "
               f"--stripe-depth 64K && {g} import data vol")
    assert as_user("sh", "-c", prepare).returncode == 0
    script = "id -u; id -g; cmp data vol/data && echo same; > vol/new; stat -c '%u %s' vol/new vol/data"
    with device_file_open_to_all():
        result = as_user(g, "run", "--", "sh", "-c", script, "sh", "vol", cwd=base)
    assert result.stdout.split() == ["65534", "65534", "same", "65534", "0", "65534", "1000000"], \
        result.stderr
    assert (base / "vol/new").stat().st_uid == NOBODY
