"""A file gets its kind, striped or plain, from its final name (iomgr/volume/kind.h)."""

import fcntl
import os
import shutil
import subprocess
import sys
import time

import pytest

from harness import BUILD, wait_until
from mounts import daemon_of, mounted, parts_of, random_bytes  # noqa: F401, fixtures

CONTENT = random_bytes(3_000_123)


@pytest.fixture
def made(volume):
    return volume(depth="64K", stripe=["column"])


def kind(graphlane, volume, name) -> str:
    line = graphlane("ls", volume.path / name).stdout
    return "waits" if " to " in line else "striped" if " x " in line else "plain"


def wait_for(graphlane, volume, name, wanted):
    wait_until(lambda: kind(graphlane, volume, name) == wanted)


def write(path, content=CONTENT):
    path.write_bytes(content)
    return path


def problems(graphlane, volume) -> str:
    return graphlane("check", volume.path, check=False).stdout


@pytest.mark.parametrize("inplace", [False, True])
def test_rsync(graphlane, made, mounted, tmp_path, inplace):
    if shutil.which("rsync") is None:
        pytest.skip("not applicable: no rsync")
    (tmp_path / "from").mkdir()
    source = write(tmp_path / "from" / "column")
    with mounted(made) as at:
        for size in (len(CONTENT), 2_000_001):
            source.write_bytes(CONTENT[:size])
            subprocess.run(["rsync", "-a", *["--inplace"] * inplace, f"{source.parent}/", at / "to/"],
                           check=True)
            assert kind(graphlane, made, "to/column") == "striped"
            assert (at / "to/column").read_bytes() == CONTENT[:size]


@pytest.mark.parametrize("name", ["column.part", "column.tmp", ".column.Ab3dE9"])
def test_a_temporary_name_says_the_kind_at_once(graphlane, made, mounted, name):
    with mounted(made) as at:
        write(at / name).rename(at / "column")
        assert kind(graphlane, made, "column") == "striped"


def test_a_renamed_file_changes_its_kind_and_nothing_else(graphlane, made, mounted, root):
    with mounted(made) as at:
        write(at / "scratch").chmod(0o640)
        os.chown(at / "scratch", 1234, 2345)
        os.setxattr(at / "scratch", "user.note", b"mine")
        os.utime(at / "scratch", ns=(1_000_000_001, 2_000_000_002))
        (at / "scratch").rename(at / "column")
        assert os.listxattr(at / "column") == ["user.note"]  # the mark is not shown
        for wanted, name in (("striped", "column"), ("plain", "scratch")):
            wait_for(graphlane, made, name, wanted)
            info = (at / name).stat()
            assert (info.st_mode & 0o7777, info.st_uid, info.st_gid) == (0o640, 1234, 2345)
            assert (info.st_mtime_ns, info.st_nlink) == (2_000_000_002, 1)
            assert os.getxattr(at / name, "user.note") == b"mine"
            assert (at / name).read_bytes() == CONTENT
            if wanted == "striped":
                assert len(parts_of(made)) == 4
                (at / "column").rename(at / "scratch")
        wait_until(lambda: parts_of(made) == [])
    assert "no problems" in problems(graphlane, made)


@pytest.mark.parametrize("writes", [False, True])
def test_an_open_file_waits_for_its_close(graphlane, made, mounted, writes):
    with mounted(made) as at:
        with open(write(at / "scratch"), "r+b" if writes else "rb") as file:
            (at / "scratch").rename(at / "column")
            time.sleep(0.5)
            assert kind(graphlane, made, "column") == "waits"
            if writes:
                file.write(b"new")
            else:
                assert file.read() == CONTENT
        wait_for(graphlane, made, "column", "striped")
        assert (at / "column").read_bytes() == (b"new" if writes else CONTENT[:3]) + CONTENT[3:]


def test_a_striped_file_that_was_never_named_so_keeps_its_kind(graphlane, made, mounted, tmp_path):
    graphlane("import", write(tmp_path / "graph.bin"), made.path)
    with mounted(made) as at:
        (at / "graph.bin").rename(at / "other.bin")
        assert kind(graphlane, made, "other.bin") == "striped"


@pytest.mark.parametrize("what", ["links", "small"])
def test_what_keeps_its_kind(graphlane, made, mounted, what):
    with mounted(made) as at:
        write(at / "scratch", CONTENT[:1000] if what == "small" else CONTENT)
        if what == "links":
            os.link(at / "scratch", at / "again")
        (at / "scratch").rename(at / "column")
        if what == "small":
            wait_for(graphlane, made, "column", "plain")
        else:
            time.sleep(0.5)
            assert os.path.samefile(at / "again", at / "column")
    if what == "links":
        assert "column: is plain, to be striped" in problems(graphlane, made)
        assert "it has several names" in graphlane("check", "--repair", made.path).stdout


APPENDS = """
import os, sys
for i in range(int(sys.argv[2])):
    with open(sys.argv[1], "ab") as file:
        file.write(b"%07d\\n" % i)
"""


@pytest.mark.parametrize("preload", [False, True])
def test_writers_that_come_and_go_lose_nothing(graphlane, made, mounted, preload):
    environment = {"LD_PRELOAD": str(BUILD / "lib/libgraphlane.so")} if preload else {}
    with mounted(made) as at:
        write(at / "scratch").rename(at / "column")
        subprocess.run([sys.executable, "-c", APPENDS, at / "column", "400"], check=True,
                       env={**os.environ, **environment})
        wait_for(graphlane, made, "column", "striped")
        assert (at / "column").read_bytes() == CONTENT + b"".join(b"%07d\n" % i for i in range(400))


def test_readers_meanwhile_see_the_file(graphlane, made, mounted):
    with mounted(made) as at:
        write(at / "scratch")
        for old, new, wanted in (("scratch", "column", "striped"), ("column", "scratch", "plain")):
            (at / old).rename(at / new)
            for _ in range(15):
                assert (at / new).read_bytes() == CONTENT
                time.sleep(0.03)  # the file is closed
            wait_for(graphlane, made, new, wanted)
            assert (at / new).read_bytes() == CONTENT


def test_a_lock_through_another_mount_is_an_open_file(graphlane, made, mounted, tmp_path):
    with mounted(made) as at, mounted(made, at=tmp_path / "other") as other:
        write(at / "scratch").rename(at / "column")
        with open(other / "column", "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(b"new")
            time.sleep(0.4)
        wait_for(graphlane, made, "column", "striped")
        time.sleep(1.1)  # names of another mount may be a second old
        assert (other / "column").read_bytes() == b"new" + CONTENT[3:]


# The calls that change names or make bytes durable.
STEPS = "renameat2,unlinkat,fsync"


@pytest.mark.parametrize("to", ["column", "scratch"])
def test_killed_at_any_step_the_file_is_whole(graphlane, volume, tmp_path, to):
    if shutil.which("strace") is None:
        pytest.skip("not applicable: no strace")
    old = "scratch" if to == "column" else "column"
    content = CONTENT[:1_200_000]
    made = volume(device_count=2, stripe=["column"])
    killed = 0
    while True:
        name = made.path / f"{killed}"
        name.mkdir()
        if to == "column":
            write(name / old, content)
        else:
            graphlane("import", write(tmp_path / old, content), name)
        graphlane("run", "--no-mount", "--", "mv", name / old, name / to)
        repair = subprocess.run(
            ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={STEPS}",
             "-e", f"inject={STEPS}:signal=KILL:when={killed + 1}",
             graphlane.program, "check", "--repair", made.path], capture_output=True, text=True)
        graphlane("export", "-f", name / to, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content, killed
        if repair.returncode >= 0:
            break
        killed += 1
        graphlane("check", "--repair", made.path, check=False)
    assert "no problems" in problems(graphlane, made)
    for i in range(killed + 1):
        assert kind(graphlane, made, f"{i}/{to}") == ("striped" if to == "column" else "plain")
        graphlane("export", "-f", made.path / f"{i}/{to}", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content, i
    assert killed > 5


def test_a_killed_daemon_leaves_the_file_whole(graphlane, made, mounted, tmp_path):
    content = CONTENT * 10
    for _ in range(3):
        with mounted(made) as at:
            write(at / "scratch", content).rename(at / "column")
            wait_until(lambda: list((made.path / ".graphlane/tmp").glob("*")))
            os.kill(int(daemon_of(made, at)), 9)
        graphlane("check", "--repair", made.path, check=False)
        assert kind(graphlane, made, "column") == "striped"
        graphlane("export", "-f", made.path / "column", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content
        assert "no problems" in problems(graphlane, made)
        graphlane("rm", made.path / "column")
    assert parts_of(made) == []


def test_without_a_mount_a_check_changes_the_kind(graphlane, made):
    write(made.path / "scratch")
    for old, new, wanted in (("scratch", "column", "striped"), ("column", "scratch", "plain")):
        graphlane("run", "--no-mount", "--", "mv", made.path / old, made.path / new)
        assert kind(graphlane, made, new) == "waits"
        assert f"{new}: is " in problems(graphlane, made)
        assert f"repaired: {made.path}/{new}: is {wanted} now" in graphlane(
            "check", "--repair", made.path, check=False).stdout
        assert kind(graphlane, made, new) == wanted
        graphlane("export", "-f", made.path / new, made.path.parent / "back")
        assert (made.path.parent / "back").read_bytes() == CONTENT
    assert "no problems" in problems(graphlane, made)
