"""A copied or forged stub shows no user's bytes and takes no parts along, on every path, as root
and as a user. Each row of ENTRIES is one path; each of KINDS is one way to get such a file."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import BUILD, PRELOADED, Volume, run
from stubs import naming_itself, parts_of_file

OWNER, STRANGER = 4242, 65534
SECRET = b"THE SECRET. " * 100_000  # enough to be striped

pytestmark = pytest.mark.usefixtures("root")


@dataclass
class Place:
    """A volume with OWNER's secret, mode 0600, and the folder `pub` where all users may write."""
    graphlane: object
    volume: Volume
    tmp: Path

    @property
    def secret(self) -> Path:
        return self.volume.path / "private/column"

    @property
    def pub(self) -> Path:
        return self.volume.path / "pub"

    def parts(self) -> list[tuple]:
        """All files that an attacker could want to change."""
        return [(path, path.read_bytes(), path.stat().st_uid, path.stat().st_gid, path.stat().st_mode)
                for path in parts_of_file(self.volume, self.secret)]

    def act(self, user: int, *command, **options) -> subprocess.CompletedProcess:
        env = {**os.environ, **PRELOADED}
        return subprocess.run([str(word) for word in command], user=user, group=user, extra_groups=[],
                              capture_output=True, timeout=120, stdin=subprocess.DEVNULL, env=env, **options)

    def preloaded(self, user: int, *command) -> subprocess.CompletedProcess:
        return self.act(user, self.graphlane.program, "run", "--no-mount", "--", *command)

    @contextmanager
    def mounted(self):
        at = self.tmp / "mnt"
        with self.graphlane.mounted(self.volume, at, env=os.environ):
            yield at


@pytest.fixture
def place(graphlane, volume, fuse, open_tmp) -> Place:
    made = volume(device_count=3, depth="64K", stripe=["col*"])
    private = open_tmp / "private"
    private.mkdir()
    (private / "column").write_bytes(SECRET)
    for path in (private, private / "column"):
        os.chown(path, OWNER, OWNER)
    private.chmod(0o700)
    (private / "column").chmod(0o600)
    graphlane("import", private, made.path)
    (made.path / "pub").mkdir()
    (made.path / "pub").chmod(0o1777)
    made.path.parent.chmod(0o755)
    return Place(graphlane, made, open_tmp)


# Each leaves a file of 4096 bytes at `path` that claims to be the secret.

def copied_by_root(place: Place, path: Path) -> None:
    run("cp", place.secret, path)


def copied_with_all_attributes(place: Place, path: Path) -> None:
    run("cp", "-a", place.secret, path)


def taken_from_an_archive(place: Place, path: Path) -> None:
    run("tar", "-C", place.secret.parent, "-cf", place.tmp / "archive", "column")
    run("tar", "-C", place.tmp, "--xattrs", "-xpf", place.tmp / "archive", "column")
    run("mv", place.tmp / "column", path)


def _forged(place: Place, path: Path, owner: int) -> None:
    path.write_bytes(b"")
    os.chown(path, owner, owner)
    with open(path, "r+b") as file:
        file.write(naming_itself(place.secret.read_bytes(), path))


def forged_by_a_user(place: Place, path: Path) -> None:
    """A user that knows the file's id names one of its own inodes."""
    _forged(place, path, STRANGER)


def forged_and_given_to_root(place: Place, path: Path) -> None:
    _forged(place, path, 0)


def forged_and_given_to_the_owner(place: Place, path: Path) -> None:
    """A careless chown -R gives the file away."""
    _forged(place, path, OWNER)


KINDS = [copied_by_root, copied_with_all_attributes, taken_from_an_archive, forged_by_a_user,
         forged_and_given_to_root, forged_and_given_to_the_owner]


# Each tries one path, and returns what it read.

def reads_without_a_mount(place, user, path):
    return place.preloaded(user, "cat", path).stdout


def reads_directly_without_a_mount(place, user, path):
    return place.preloaded(user, "dd", f"if={path}", "iflag=direct", "bs=64K").stdout


def writes_without_a_mount(place, user, path):
    return place.preloaded(user, "sh", "-c", "echo overwritten 1<>$1; echo more >> $1", "sh", path).stdout


def truncates_without_a_mount(place, user, path):
    return place.preloaded(user, "truncate", "-s", "1", path).stdout


def changes_rights_without_a_mount(place, user, path):
    return place.preloaded(user, "sh", "-c", "chmod 666 $1; chown 65534 $1; chgrp 65534 $1", "sh", path).stdout


def removes_without_a_mount(place, user, path):
    return place.preloaded(user, "rm", "-f", path).stdout


def replaces_without_a_mount(place, user, path):
    return place.preloaded(user, "sh", "-c", "echo new > $1.new; mv -f $1.new $1", "sh", path).stdout


def reads_while_it_is_served(place, user, path):
    place.graphlane("serve", place.volume.path)
    try:
        return place.preloaded(user, "dd", f"if={path}", "iflag=direct", "bs=64K").stdout
    finally:
        place.graphlane("serve", "--stop", place.volume.path)


def reads_by_a_private_mount(place, user, path):
    if user != 0:
        return b""  # it needs /dev/fuse open to all, which would disturb other tests
    return place.act(user, place.graphlane.program, "run", "--", "cat", path).stdout


def uses_a_mount(place, user, path):
    inside = path.relative_to(place.volume.path)
    script = ("cat $1; dd if=$1 iflag=direct bs=64K; echo more >> $1; truncate -s 1 $1; chmod 666 $1; chgrp 65534 $1;"
              "ln $1 $1.link; mv $1 $1.moved; cat $1.moved; mv $1.moved $1; rm -f $1.link $1")
    with place.mounted() as at:
        os.chmod(at / "pub", 0o1777)
        return place.act(user, "sh", "-c", script, "sh", at / inside).stdout


def is_preloaded_on_a_mount(place, user, path):
    with place.mounted() as at:
        return place.preloaded(user, "cat", at / path.relative_to(place.volume.path)).stdout


def exports(place, user, path):
    out = place.tmp / "out"
    out.mkdir(exist_ok=True)
    out.chmod(0o777)
    place.act(user, place.graphlane.program, "export", path, out / "exported")
    try:
        return (out / "exported").read_bytes()
    except OSError:
        return b""
    finally:
        shutil.rmtree(out)


def restripes(place, user, path):
    return place.act(user, place.graphlane.program, "restripe", "--stripe-depth", "128K", path).stdout


def removes_by_command(place, user, path):
    return place.act(user, place.graphlane.program, "rm", path).stdout


def is_replaced_by_an_import(place, user, path):
    source = place.tmp / path.name
    source.write_bytes(b"new" * 100_000)
    return place.act(user, place.graphlane.program, "import", "--overwrite", source, path.parent).stdout


def is_imported(place, user, path):
    place.act(user, place.graphlane.program, "import", path, place.volume.path / "pub/imported")
    return b""


def reads_by_the_kit(place, user, path):
    """A grid whose edges the stub says to be."""
    grid = place.tmp / "grid"
    if not grid.exists():
        (place.tmp / "edges").write_text("".join(f"{n} {n + 1}\n" for n in range(1000)))
        place.graphlane("convert", "-p", "1", place.tmp / "edges", grid)
        (grid / "column").unlink()
        run("chmod", "-R", "a+rwX", grid)
    (grid / "column").unlink(missing_ok=True)
    (grid / "column").symlink_to(path)
    program = BUILD / "bin/grid_program"
    done = [place.preloaded(user, program, "components", grid, 1 << 20),
            place.act(user, program, "components", grid, 1 << 20)]
    assert all(one.returncode != 0 for one in done), done
    assert b"is a stub of a volume" in done[1].stderr
    return b"".join(one.stdout + one.stderr for one in done)


def checks_and_repairs(place, user, path):
    return place.act(user, place.graphlane.program, "check", "--repair", place.volume.path).stdout


def lists(place, user, path):
    return place.act(user, place.graphlane.program, "ls", path).stdout


ENTRIES = [reads_without_a_mount, reads_directly_without_a_mount, writes_without_a_mount, truncates_without_a_mount,
           changes_rights_without_a_mount, removes_without_a_mount, replaces_without_a_mount,
           reads_while_it_is_served, reads_by_a_private_mount, uses_a_mount, is_preloaded_on_a_mount, exports,
           restripes, reads_by_the_kit, removes_by_command, is_replaced_by_an_import, is_imported, checks_and_repairs, lists]


@pytest.mark.parametrize("user", [0, STRANGER], ids=["root", "user"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_a_forged_stub_gives_no_access(place, entry, user):
    before = place.parts()
    for kind in KINDS:
        path = place.pub / f"col-{kind.__name__}"
        kind(place, path)
        path.chmod(0o666)
        told = entry(place, user, path)
        assert b"SECRET" not in told, kind.__name__
        assert place.parts() == before, kind.__name__
        path.unlink(missing_ok=True)
    run("cmp", place.tmp / "private/column", _exported(place))


def _exported(place: Place) -> Path:
    out = place.tmp / "still-there"
    place.graphlane("export", "--overwrite", place.secret, out)
    return out


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_refused_stub_is_an_error_and_can_be_emptied(place, kind):
    """It gives EIO and one line. Emptied, it is a plain file. (Over a mount only truncate(2)
    works: the kernel opens a file before it truncates it, and that open is refused.)"""
    path = place.pub / "col-copy"
    before = place.parts()
    empties = {"truncate": "os.truncate(path, 0)", "open to write": "open(path, 'w').write('new')",
               "open to read": "os.open(path, os.O_RDONLY | os.O_TRUNC)",
               "open while it is open": "kept = open(path); open(path, 'w').write('x' * 4096); "
                                        "assert len(kept.read()) == 4096; open(path, 'w').write('new')"}
    for way in (*empties, "by a mount"):
        kind(place, path)
        path.chmod(0o666)
        if way in empties:
            read = place.preloaded(0, "cat", path)
            assert read.returncode != 0 and b"Input/output error" in read.stderr, read.stderr
            emptied = place.preloaded(0, sys.executable, "-c", f"import os; path = {str(path)!r}; {empties[way]}")
            assert emptied.returncode == 0, emptied.stderr
        else:
            with place.mounted() as at:
                read = place.act(0, "cat", at / "pub/col-copy")
                assert read.returncode != 0 and b"Input/output error" in read.stderr, read.stderr
                os.truncate(at / "pub/col-copy", 0)
        assert path.read_bytes() == (b"new" if "'new'" in empties.get(way, "") else b""), way
        assert place.parts() == before, way
        path.unlink()
    run("cmp", place.tmp / "private/column", _exported(place))


@pytest.mark.parametrize("harm", ["a part is missing", "a part has no record", "an owner differs", "a device is away"])
def test_a_stub_that_may_own_parts_is_not_emptied_as_a_plain_file(place, harm):
    """The file is damaged; emptied, its remaining parts would be orphans."""
    before = place.secret.read_bytes()
    part, device = parts_of_file(place.volume, place.secret)[1], place.volume.devices[1]
    if harm == "a part is missing":
        part.unlink()
    elif harm == "a part has no record":
        os.removexattr(part, "user.graphlane")
    elif harm == "an owner differs":
        os.chown(part, STRANGER, STRANGER)
    else:
        device.rename(device.with_name("away"))
    for empty in ("os.truncate(path, 0)", "open(path, 'w')", "os.open(path, os.O_RDONLY | os.O_TRUNC)"):
        tried = place.preloaded(0, sys.executable, "-c", f"import os; path = {str(place.secret)!r}; {empty}")
        assert tried.returncode != 0 and b"Input/output error" in tried.stderr, tried.stderr
        assert place.secret.read_bytes() == before
    if harm != "a device is away":  # without it the volume is not mounted
        with place.mounted() as at, pytest.raises(OSError, match="Input/output error"):
            os.truncate(at / "private/column", 0)
        assert place.secret.read_bytes() == before


def test_others_cannot_list_the_parts(place):
    for device in place.volume.devices:
        assert place.act(STRANGER, "find", device, "-path", "*parts*", "-type", "f").stdout == b""


def test_a_file_keeps_its_parts_when_it_moves(place):
    """Moves by rename, hard link and mv between folders: without a mount, by a mount, and past both."""
    for way in ("preloaded", "mount", "neither"):
        script = "mkdir $1/d; mv $1/private/column $1/d/column; ln $1/d/column $1/d/column2; rm $1/d/column; " \
                 "mv $1/d/column2 $1/private/column; rmdir $1/d"
        if way == "preloaded":
            assert place.preloaded(0, "sh", "-c", script, "sh", place.volume.path).returncode == 0
        elif way == "mount":
            with place.mounted() as at:
                assert place.act(0, "sh", "-c", script, "sh", at).returncode == 0
        else:
            run("sh", "-c", script, "sh", place.volume.path)
        run("cmp", place.tmp / "private/column", _exported(place))
