"""Attacks of each class in SECURITY.md, "Looked at, and how it stands", that no other test
covers."""

import fcntl
import os
import random
import shutil
import struct
import subprocess
import time
from contextlib import suppress

import pytest

from harness import BUILD, PRELOADED, run, wait_until
from stubs import parts_of_file

CONTENT = random.Random(7).randbytes(1_100_003)
OTHER = CONTENT[::-1]
NOBODY = 65533


@pytest.fixture
def made(graphlane, volume, tmp_path):
    """A volume with the striped files folder/a and b."""
    made = volume(device_count=3, depth="64K")
    (tmp_path / "in/folder").mkdir(parents=True)
    (tmp_path / "in/folder/a").write_bytes(CONTENT)
    (tmp_path / "in/b").write_bytes(OTHER)
    graphlane("import", f"{tmp_path}/in/.", made.path)
    return made


def parts_left(made) -> int:
    return sum(path.suffix != ".sum" for device in made.devices for path in device.glob("*/parts/*/*"))


def content(graphlane, made, name: str, tmp_path) -> bytes:
    graphlane("export", "-f", made.path / name, tmp_path / "out")
    return (tmp_path / "out").read_bytes()


# 1. A folder on the path is a link.

@pytest.mark.parametrize("command", [["rm"], ["restripe", "--stripe-depth", "4K"], ["check", "--repair"]],
                         ids=lambda words: words[0])
def test_commands_do_not_follow_a_folder_that_links_out_of_the_volume(graphlane, made, tmp_path, command):
    os.rename(made.path / "folder", tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere/a").read_bytes()
    (made.path / "folder").symlink_to(tmp_path / "elsewhere")
    target = made.path if command[0] == "check" else made.path / "folder/a"
    done = graphlane(*command, target, check=False)
    assert command[0] == "check" or done.returncode != 0
    assert (tmp_path / "elsewhere/a").read_bytes() == before
    assert parts_left(made) == 6
    (made.path / "folder").unlink()
    os.rename(tmp_path / "elsewhere", made.path / "folder")
    assert content(graphlane, made, "folder/a", tmp_path) == CONTENT


@pytest.mark.parametrize("directory", [".graphlane/tmp", "lost+found"])
def test_a_control_folder_that_is_a_link_is_not_followed(graphlane, made, tmp_path, directory):
    (tmp_path / "mine").mkdir(0o700)
    (tmp_path / "mine/precious").write_text("kept")
    shutil.rmtree(made.path / directory, ignore_errors=True)
    (made.path / directory).symlink_to(tmp_path / "mine")
    os.rename(made.path / "b", tmp_path / "away")  # it leaves an orphan to note
    graphlane("check", "--repair", made.path, check=False)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious"]
    assert parts_left(made) == 6


# 2. A name belongs to another file by the time it is removed.

@pytest.mark.parametrize("way", ["rm", "preloaded"])
def test_removal_of_a_swapped_name_keeps_other_parts(graphlane, made, tmp_path, way):
    """`b` takes the name of `folder/a` after the check. The old content of `b` goes; the parts
    of `a` stay whole."""
    if shutil.which("strace") is None:
        pytest.skip("strace is missing: apt-get install strace")
    words = ([graphlane.program, "rm", made.path / "b"] if way == "rm" else
             ["env", f"LD_PRELOAD={BUILD}/lib/libgraphlane.so", "rm", made.path / "b"])
    log = tmp_path / "calls"
    removing = subprocess.Popen([str(word) for word in (
        "strace", "-f", "-qq", "-o", log, "-e", "trace=unlink,unlinkat",
        "-e", "inject=unlink,unlinkat:delay_enter=700000:when=1", *words)], env={**os.environ, **PRELOADED})
    deadline = time.monotonic() + 30
    while not (log.exists() and "unlink" in log.read_text()) and time.monotonic() < deadline and removing.poll() is None:
        time.sleep(0.02)
    os.rename(made.path / "b", tmp_path / "kept")           # the file that was checked
    os.rename(made.path / "folder/a", made.path / "b")      # another file has its name now
    removing.wait(60)
    os.rename(tmp_path / "kept", made.path / "kept")
    assert content(graphlane, made, "kept", tmp_path) == OTHER


# 4. A reader's lock keeps a writer out. The writer reports it, and nothing hangs.

@pytest.mark.parametrize("command", [["restripe", "--stripe-depth", "4K"], ["check", "--repair"]],
                         ids=lambda words: words[0])
def test_a_lock_held_by_a_reader_is_reported(root, graphlane, made, command):
    """A reader takes struct flock on byte 2^62 + 1 of the stub."""
    with open(made.path / "b", "rb") as file:
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 2**62 + 1, 1, 0))  # F_OFD_SETLK
        begun = time.monotonic()
        done = graphlane(*command, made.path if command[0] == "check" else made.path / "b", check=False)
        assert time.monotonic() - begun < 30
        assert done.returncode in (0, 1, 8) and "Traceback" not in done.stderr
        assert command[0] == "check" or "use" in done.stderr + done.stdout


# 5. Flags of chattr only on one side.

def _can_chattr(path) -> bool:
    can = run("chattr", "+i", path, check=False).returncode == 0
    run("chattr", "-i", path, check=False)
    return can


@pytest.mark.parametrize("side", ["stub", "part"])
@pytest.mark.parametrize("command", [["rm"], ["restripe", "--stripe-depth", "4K"]], ids=lambda words: words[0])
def test_an_immutable_stub_or_part_ends_a_command_and_loses_nothing(root, graphlane, made, tmp_path, side, command):
    fixed = made.path / "b" if side == "stub" else parts_of_file(made, made.path / "b")[1]
    if not _can_chattr(fixed):
        pytest.skip("not applicable: a host without chattr's flags")
    run("chattr", "+i", fixed)
    try:
        done = graphlane(*command, made.path / "b", check=False)
        assert done.returncode != 0 and len((done.stdout + done.stderr).strip().splitlines()) <= 4
        if side == "stub":
            assert content(graphlane, made, "b", tmp_path) == OTHER
        assert fixed.exists()
    finally:
        run("chattr", "-i", fixed)
    if (made.path / "b").exists():
        assert content(graphlane, made, "b", tmp_path) == OTHER
    assert graphlane("check", "--repair", made.path, check=False).returncode in (0, 1)
    assert content(graphlane, made, "folder/a", tmp_path) == CONTENT


# 6. Descriptors that outlive a change of mode or owner.

@pytest.mark.parametrize("change", [lambda path: os.chmod(path, 0o600), lambda path: os.chown(path, 0, 0)],
                         ids=["chmod", "chown"])
def test_a_revoked_right_opens_no_part(root, fuse, graphlane, open_tmp, volume, mount, change):
    made = volume(device_count=2, depth="64K")
    (open_tmp / "data").write_bytes(CONTENT)
    graphlane("import", open_tmp / "data", made.path / "data")
    with mount(made) as at:
        os.chmod(at / "data", 0o640)
        os.chown(at / "data", NOBODY, NOBODY)
        change(at / "data")
        script = ("import os, sys\n"
                  f"os.setgroups([]); os.setresgid({NOBODY}, {NOBODY}, {NOBODY}); os.setresuid(1, 1, 1)\n"
                  "for path in sys.argv[1:]:\n"
                  "    try:\n"
                  "        os.open(path, os.O_RDONLY)\n"
                  "        print('opened', path)\n"
                  "    except OSError:\n"
                  "        pass\n")
        parts = parts_of_file(made, made.path / "data")
        said = run("python3", "-c", script, at / "data", made.path / "data", *parts).stdout
    assert said == ""


def test_an_earlier_descriptor_reads_on_but_cannot_write(root, fuse, graphlane, open_tmp, volume, mount):
    made = volume(device_count=2, depth="64K")
    (open_tmp / "data").write_bytes(CONTENT)
    graphlane("import", open_tmp / "data", made.path / "data")
    with mount(made) as at:
        with open(at / "data", "rb") as file:
            os.chmod(at / "data", 0)
            assert file.read() == CONTENT
            with pytest.raises(OSError):
                os.write(file.fileno(), b"x")
            with pytest.raises(OSError):
                os.ftruncate(file.fileno(), 0)


# 8. The user that is charged for space.

def test_lost_and_found_belongs_to_the_volumes_owner_and_its_entries_to_the_parts(root, graphlane, made, tmp_path):
    os.chown(made.path, NOBODY, NOBODY)
    for path in (made.path / "b", *parts_of_file(made, made.path / "b")):
        os.chown(path, 1, 1)
    os.rename(made.path / "b", tmp_path / "away")
    graphlane("check", "--repair", made.path, check=False)
    lost = made.path / "lost+found"
    (entry,) = lost.iterdir()
    assert (lost.stat().st_uid, lost.stat().st_mode & 0o777) == (NOBODY, 0o700)
    assert (entry.stat().st_uid, entry.stat().st_mode & 0o777) == (1, 0o400)
    env = {**os.environ, **PRELOADED, "LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")}
    subprocess.run(["cmp", str(entry), str(tmp_path / "in/b")], env=env, check=True, timeout=60)
    assert subprocess.run(["sh", "-c", f"echo x >> {entry}"], env=env, capture_output=True, timeout=60).returncode != 0


def test_a_device_without_inodes_makes_no_half_file(root, graphlane, fuse, tmp_path):
    """The device has bytes left, but no inodes."""
    made = tmp_path / "vol"
    device_paths = []
    mounted = []
    try:
        for number in range(2):
            image, at = tmp_path / f"image{number}", tmp_path / f"d{number}"
            at.mkdir()
            with open(image, "wb") as file:
                file.truncate(8 << 20)
            run("mkfs.ext4", "-q", "-F", "-N", "32", image)
            if run("mount", "-o", "loop", image, at, check=False).returncode != 0:
                pytest.skip("not applicable: no loop devices here")
            mounted.append(at)
            device_paths += ["--device", at]
        graphlane("-q", "create", made, *device_paths, "--stripe", "*", "--stripe-depth", "4K")
        mnt = tmp_path / "mnt"
        mnt.mkdir()
        graphlane("mount", made, mnt)
        try:
            count = 0
            with pytest.raises(OSError) as full:
                for count in range(100):
                    (mnt / f"s{count}").write_bytes(b"x" * 10000)
            assert full.value.errno in (28, 122)
            names = sorted(os.listdir(mnt))
            whole = [name for name in names if name != "lost+found" and (mnt / name).stat().st_size == 10000]
            assert len(whole) >= count - 1
            os.unlink(mnt / whole[0])

            def fits():
                with suppress(OSError):
                    return (mnt / "again").write_bytes(b"y" * 10000)

            wait_until(fits)  # the kernel tells the mount of the last close a little later
        finally:
            graphlane("umount", mnt)
        assert graphlane("check", "--repair", made, check=False).returncode in (0, 1)
        assert "no problems" in graphlane("check", made).stdout
    finally:
        for at in mounted:
            run("umount", at, check=False)
