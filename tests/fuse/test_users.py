"""Whose files, whose rights: the mount of root serves all users, each with his own."""

import os
import shutil
import stat
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import run
from mounts import mounted, random_bytes, root, striped  # noqa: F401, fixtures

NOBODY = 65534


def as_user(*command, uid=NOBODY, gid=NOBODY, groups=(), **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], user=uid, group=gid,
                          extra_groups=groups, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **options)


@pytest.fixture
def open_tmp(tmp_path):
    """tmp_path, where every user may pass."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid != os.geteuid() or directory == Path("/"):
            break
        if stat.S_IMODE(directory.stat().st_mode) & 0o011 != 0o011:
            directory.chmod(directory.stat().st_mode | 0o011)
    return tmp_path


@contextmanager
def device_file_open_to_all():
    mode = os.stat("/dev/fuse").st_mode
    os.chmod("/dev/fuse", 0o666)
    try:
        yield
    finally:
        os.chmod("/dev/fuse", stat.S_IMODE(mode))


def test_new_files_belong_to_who_makes_them(root, open_tmp, volume, mounted):
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


def test_a_forged_stub_gives_no_access_to_another_users_parts(root, open_tmp, striped, mounted):
    """Anyone can write 4096 bytes that name somebody's parts; the daemon, as
    root, could open and remove them."""
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


def test_an_ordinary_user_mounts_for_himself(root, open_tmp, fuse, graphlane):
    if shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is missing")
    base = open_tmp / "user"
    base.mkdir()
    os.chown(base, NOBODY, NOBODY)
    (base / "data").write_bytes(random_bytes(1_000_000))
    os.chmod(base / "data", 0o644)
    g = graphlane.program
    script = (f"cd {base} && mkdir d0 d1 mnt && {g} create vol --device d0 --device d1 "
              f"--stripe-depth 64K && {g} import data vol && {g} mount vol mnt && cmp data mnt/data; "
              f"status=$?; echo new > mnt/new; {g} umount mnt && exit $status")
    with device_file_open_to_all():
        result = as_user("sh", "-c", script)
        assert result.returncode == 0, result.stderr
        assert (base / "vol/new").read_text() == "new\n"
        result = as_user("sh", "-c", f"cd {base} && {g} mount vol && cmp data vol/data; {g} umount vol")
        assert result.returncode == 0, result.stderr


def test_an_ordinary_user_has_private_mounts(root, open_tmp, fuse, graphlane):
    namespaces = as_user("unshare", "-Urm", "true")
    if namespaces.returncode != 0:
        pytest.skip("user namespaces are not allowed")
    base = open_tmp / "user"
    base.mkdir()
    os.chown(base, NOBODY, NOBODY)
    (base / "data").write_bytes(random_bytes(1_000_000))
    os.chmod(base / "data", 0o644)
    g = graphlane.program
    prepare = (f"cd {base} && mkdir d0 d1 && {g} create vol --device d0 --device d1 "
               f"--stripe-depth 64K && {g} import data vol")
    assert as_user("sh", "-c", prepare).returncode == 0
    script = "id -u; id -g; cmp data vol/data && echo same; > vol/new; stat -c '%u %s' vol/new vol/data"
    with device_file_open_to_all():
        result = as_user(g, "run", "--", "sh", "-c", script, "sh", "vol", cwd=base)
    assert result.stdout.split() == ["65534", "65534", "same", "65534", "0", "65534", "1000000"], \
        result.stderr
    assert (base / "vol/new").stat().st_uid == NOBODY
