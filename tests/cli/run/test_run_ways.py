"""The path of a program's reads under `graphlane run`, as its report tells. Reads go to the
devices, for root and for an ordinary user, with an existing mount or a private one."""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import SANITIZED, is_mounted, run

SIZE = 3_000_017
USER = 65534


class Place:
    """A user's place: the program, a volume of that user with `data`, and the user's id."""

    def __init__(self, at, uid, library):
        self.at, self.uid = at, uid
        self.program = at / "build/bin/graphlane"
        for part in (self.program, at / "build/lib/libgraphlane.so"):
            part.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.parent.parent / "bin/graphlane", self.program)
        shutil.copy(library, at / "build/lib/libgraphlane.so")
        (at / "fuse").unlink(missing_ok=True)

    def shell(self, script, **kwargs):
        """Runs as the user, in a mount namespace where /dev/fuse is open to all, as on Debian."""
        words = ["sh", "-ec", script, "sh", str(self.program), str(self.at)]
        if self.uid != 0:
            words = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *words]
            words = ["unshare", "-m", "sh", "-c",
                     'mknod -m 666 "$0" c 10 229 && mount --bind "$0" /dev/fuse && rm "$0" && exec "$@"',
                     str(self.at / "fuse"), *words]
        return subprocess.run(words, capture_output=True, text=True, timeout=100, cwd=self.at,
                              stdin=subprocess.DEVNULL, errors="replace", **kwargs)


@pytest.fixture(params=["root", "user"])
def place(request, graphlane, fuse, root, open_tmp):
    for tool in ("unshare", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"not applicable: {tool} is missing")
    uid = 0 if request.param == "root" else USER
    made = Place(open_tmp, uid, graphlane.program.parent.parent / "lib/libgraphlane.so")
    os.chmod(open_tmp, 0o777)
    (open_tmp / "data").write_bytes(random.Random(1).randbytes(SIZE))
    (open_tmp / "data").chmod(0o644)
    result = made.shell('mkdir d0 d1 mnt; "$1" -q create vol -d d0 -d d1 --stripe-depth 64K; "$1" -q import data vol')
    if uid != 0 and run("unshare", "-m", "setpriv", f"--reuid={uid}", "--clear-groups", "unshare", "-Urm", "true",
                        check=False).returncode != 0:
        pytest.skip("not applicable: no user namespaces for users")
    assert result.returncode == 0, result.stderr
    return made


def way_of(result) -> tuple[str, int]:
    """How the report says that the file was read: the way, and the bytes."""
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    (file,) = json.loads(line)["files"]
    assert file["path"].endswith("/data")
    return file["way"], file["bytes_read"]


READ = '"$1" run --report=report {options} -- cat {path} > got; cmp got data; cat report; rm report'


def test_with_a_mount_of_its_own(place):
    assert way_of(place.shell(READ.format(options="", path="vol/data"))) == ("devices, over the mount", SIZE)


def test_without_a_mount(place):
    assert way_of(place.shell(READ.format(options="--no-mount", path="vol/data"))) == (
        "devices, without a mount", SIZE)


@pytest.mark.parametrize("at", ["mnt", "vol"])
def test_with_an_existing_mount(place, at):
    script = f'"$1" mount vol {at}; trap \'"$1" umount {at}\' EXIT; ' + READ.format(options="", path=f"{at}/data")
    if place.uid != 0 and shutil.which("fusermount3") is None:
        pytest.skip("not applicable: fusermount3 is missing")
    assert way_of(place.shell(script)) == ("devices, over the mount", SIZE)


@pytest.mark.parametrize("at", ["mnt", "vol"])
def test_with_roots_mount(graphlane, place, at):
    """A mount by root serves all users."""
    os.chmod(place.at / "mnt", 0o755)
    graphlane("mount", place.at / "vol", place.at / at)
    try:
        found = way_of(place.shell(READ.format(options="", path=f"{at}/data")))
    finally:
        graphlane("umount", place.at / at)
        assert not is_mounted(place.at / at)
    assert found == ("devices, over the mount", SIZE)


@pytest.mark.parametrize("command", [
    'sh -c "cat vol/data > /dev/null"', 'env GRAPH="$2/vol/data" sh -c \'cat "$GRAPH" > /dev/null\'',
    'dd if=vol/data of=/dev/null bs=1M status=none', 'python3 -c "open(\'vol/data\', \'rb\').read()"'])
def test_any_spelling_of_the_volume_works(place, command):
    assert way_of(place.shell(f'"$1" run --report=report -- {command}; cat report')) == (
        "devices, over the mount", SIZE)


@pytest.mark.parametrize("command", [
    "true", "sh -c 'exit 0'", "sh -c 'kill -9 $$'", "cat vol/.graphlane/volume.json", "no-such-program",
    "--no-mount -- cat vol/data", "sh -c 'cat data; cat data' sh vol", "env -i /bin/true", "cat /dev/null"])
@pytest.mark.parametrize("where", [".", "vol", "/"])
def test_a_report_has_at_least_one_line(place, command, where):
    command = command if command.startswith("--") else f"-- {command}"
    command = command.replace("vol/", "$2/vol/").replace("cat data", "cat $2/data")
    result = place.shell(f'cd {where}; "$1" run --report {command} > /dev/null || true; '
                         f'"$1" run --report="$2/report" {command} > /dev/null || true; cat "$2/report"')
    assert "graphlane: report of " in result.stderr, result
    assert [json.loads(line)["files"] for line in result.stdout.splitlines()], result


STATIC = """
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char** argv) {
  static char buffer[65536];
  int fd = argc > 1 ? open(argv[1], O_RDONLY) : 0;
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) if (write(1, buffer, n) != n) return 2;
  return n < 0;
}
"""


@pytest.fixture
def static(place):
    """A program that the preload library cannot enter. It reads through the mount, or is refused
    without one."""
    path = place.at / "static"
    if run("gcc", "-static", "-O1", "-x", "c", "-", "-o", path, input=STATIC, stdin=None, check=False).returncode != 0:
        pytest.skip("not applicable: no static C library")
    path.chmod(0o755)
    return path


STATIC_WAYS = {
    "by its words": "./static vol/data",
    "a child": "sh -c './static vol/data'",
    "a script": "./script",
    "an environment variable": "env GRAPH=vol/data sh -c './static \"$GRAPH\"'",
    "its input": "./static < vol/data",
    "a path that a preloaded shell computes": "sh -c 'v=v; ./static ${v}ol/data'",
}


@pytest.mark.parametrize("command", STATIC_WAYS.values(), ids=STATIC_WAYS)
def test_a_static_program_reads_through_the_mount(place, static, command):
    (place.at / "script").write_text("#!/bin/sh\n./static vol/data\n")
    (place.at / "script").chmod(0o755)
    result = place.shell(f'"$1" run -- {command} > got; cmp got data')
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(SANITIZED, reason="not applicable: a preload library beside a sanitizer")
@pytest.mark.parametrize("command", STATIC_WAYS.values(), ids=STATIC_WAYS)
def test_a_static_program_without_a_mount_is_refused(place, static, command):
    (place.at / "script").write_text("#!/bin/sh\n./static vol/data\n")
    (place.at / "script").chmod(0o755)
    result = place.shell(f'"$1" run --no-mount -- {command} > got || echo "status $?"; wc -c < got')
    assert result.stdout.split() == ["status", "125", "0"], result
    assert "statically linked" in result.stderr


@pytest.mark.parametrize("no_mount", ["", "--no-mount"])
def test_a_script_and_an_environment_variable(place, no_mount):
    (place.at / "script").write_text('#!/bin/sh\ncat "$GRAPH" > /dev/null\n')
    (place.at / "script").chmod(0o755)
    want = "devices, without a mount" if no_mount else "devices, over the mount"
    assert way_of(place.shell(f'GRAPH="$2/vol/data" "$1" run {no_mount} --report=report -- ./script; cat report')) == (
        want, SIZE)


def test_an_engine_without_reads_waits_for_no_lane(graphlane, fuse, volume, tmp_path):
    """The daemons of a private mount start no thread of a device before the first read."""
    made = volume(device_count=8, depth="64K")
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(SIZE))
    graphlane("import", tmp_path / "data", made.path)
    command = subprocess.Popen([graphlane.program, "run", "--", "sh", "-c", f"ls {made.path}/data; read line; "
                                f"LD_PRELOAD= dd if={made.path}/data of=/dev/null bs=64K iflag=direct status=none; echo read; read line"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def lane_threads() -> int:
        children = [entry for entry in os.listdir("/proc") if entry.isdigit() and parent(entry) == command.pid]
        names = [name.read_text() for child in children for name in Path(f"/proc/{child}/task").glob("*/comm")]
        return names.count("graphlane-lane\n")

    def parent(process: str) -> int:
        try:
            with open(f"/proc/{process}/stat") as file:
                return int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return -1

    try:
        assert command.stdout.readline().endswith("/data\n")
        before = lane_threads()
        command.stdin.write("go\n")
        command.stdin.flush()
        assert command.stdout.readline() == "read\n"
        after = lane_threads()
    finally:
        command.communicate(timeout=60)
    assert before == 0
    assert after >= 8
