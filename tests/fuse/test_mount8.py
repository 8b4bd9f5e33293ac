"""mount(8) and fstab: type fuse.graphlane, through fuse3's mount.fuse3."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from harness import BUILD, run
from mounts import mounted, striped  # noqa: F401, fixtures


class Place:
    """A mountpoint in a mount namespace where `graphlane` is installed. mount(8) passes no PATH,
    so mount.fuse3 searches sh's default path."""

    INSTALL = ('mount -t tmpfs none /usr/local/sbin && ln -s "$0" /usr/local/sbin/graphlane && '
               "echo ready && exec sleep infinity")

    def __init__(self, directory: Path):
        self.directory = directory
        self.holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", self.INSTALL, str(BUILD / "bin/graphlane")],
            stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.holder.wait()
            pytest.skip("mount namespaces cannot be made")
        # Shows the same directory inside that namespace.
        self.path = Path(f"/proc/{self.holder.pid}/root{directory}")

    def __call__(self, *words, check=True):
        return run("nsenter", "-t", self.holder.pid, "-m", *words, check=check)

    def mount8(self, *words):
        return self("mount", *words)

    def graphlane(self, *words, check=True):
        return self(BUILD / "bin/graphlane", *words, check=check)

    def options(self) -> set[str]:
        mounts = Path(f"/proc/{self.holder.pid}/mounts").read_text().splitlines()
        return next((set(line.split()[3].split(",")) for line in mounts
                     if f" {self.directory} " in line), set())

    def end(self) -> None:
        while self.options():
            self("umount", "-l", self.directory)
        self.holder.kill()
        self.holder.communicate()


@pytest.fixture
def place(fuse, root, tmp_path):
    directory = tmp_path / "mnt"
    directory.mkdir()
    made = Place(directory)
    yield made
    made.end()


def test_mount_by_type(place, striped):
    volume, content = striped(size=100_000)
    place.mount8("-t", "fuse.graphlane", volume.path, place.directory, "-o", "nosuid,max_read=131072,threads=4")
    assert (place.path / "data").read_bytes() == content
    assert {"nosuid", "max_read=131072", "default_permissions"} <= place.options()
    assert "nodev" not in place.options()  # mount(8) allows every option that is not refused
    place("umount", place.directory)


def test_a_line_of_fstab(place, striped, tmp_path):
    volume, content = striped(size=100_000)
    fstab = tmp_path / "fstab"
    fstab.write_text(f"{volume.path} {place.directory} fuse.graphlane ro,noauto,nofail,_netdev,noatime,nodev,"
                     "allow_other,default_permissions,x-systemd.automount 0 0\n")
    place.mount8("-T", fstab, place.directory)
    assert (place.path / "data").read_bytes() == content
    assert {"ro", "noatime", "nodev"} <= place.options()


def test_remount_read_only_and_back(place, volume):
    place.mount8("-t", "fuse.graphlane", volume().path, place.directory, "-o", "nosuid")
    (place.path / "f").write_bytes(b"before")
    place.mount8("-o", "remount,ro", place.directory)
    with pytest.raises(OSError, match="Read-only"):
        (place.path / "f").write_bytes(b"refused")
    with pytest.raises(OSError, match="Read-only"):
        (place.path / "g").touch()
    assert (place.path / "f").read_bytes() == b"before"
    assert {"ro", "nosuid"} <= place.options()
    place.mount8("-o", "remount,rw", place.directory)
    (place.path / "f").write_bytes(b"after")


def test_remount_during_a_write(place, volume):
    made = volume()
    place.mount8("-t", "fuse.graphlane", made.path, place.directory)
    with (place.path / "f").open("wb"):
        refused = place.graphlane("mount", made.path, place.directory, "-o", "remount,ro", check=False)
    assert refused.returncode == 1
    assert refused.stderr == f"graphlane: {place.directory}: in use: a file is open for writing\n"


def test_remount_of_nothing(place, volume):
    refused = place.graphlane("mount", volume().path, place.directory, "-o", "remount,ro", check=False)
    assert refused.stderr == f"graphlane: {place.directory}: no Graphlane volume is mounted there\n"


def test_remount_changes_only_the_given_options(place, volume):
    made = volume()
    place.graphlane("mount", made.path, place.directory, "-o", "nosuid,nodev,noexec")
    place.graphlane("mount", made.path, place.directory, "-o", "remount,ro,exec")
    assert {"ro", "nosuid", "nodev"} <= place.options()
    assert "noexec" not in place.options()


@pytest.mark.parametrize("option", ["noatime", "ro", "relatime"])
def test_noatime_is_for_the_hosts_files_as_well(place, volume, option):
    made = volume()
    (made.path / "f").write_bytes(b"x")
    (made.path / "d").mkdir()
    for name in "fd":
        os.utime(made.path / name, (1, 1))
    place.graphlane("mount", made.path, place.directory, "-o", option)
    assert (place.path / "f").read_bytes() == b"x"
    assert os.listdir(place.path / "d") == []
    moved = [os.stat(made.path / name).st_atime > 1 for name in "fd"]
    assert moved == [option == "relatime"] * 2


@pytest.mark.parametrize("option", ["dev", "nodev"])
def test_device_files(place, volume, option):
    place.graphlane("mount", volume().path, place.directory, "-o", option)
    os.mknod(place.path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    opened = run("sh", "-c", 'echo x > "$1"', "sh", place.path / "null", check=False)
    assert (opened.returncode == 0) == (option == "dev")
