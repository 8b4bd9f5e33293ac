"""Volumes not foreseen when the command began are mounted later: before a program gets a
descriptor, or executes a program without the preload library."""

import os
import subprocess
import sys

import pytest

from harness import SANITIZED, wait_until
from test_run_volumes import show, shows  # noqa: F401, fixtures

# A sanitizer's runtime must be loaded first, but the preload library precedes it.
pytestmark = pytest.mark.skipif(SANITIZED, reason="not applicable: a preload library beside a sanitizer")

# Prints a path computed at run time: no text of the command names the volume.
REVERSED = '"$(rev {tmp}/reversed)/data"'


@pytest.fixture
def elsewhere(graphlane, volume, tmp_path, striped):  # noqa: F811
    """Another volume, for which the command gets a namespace, and the hidden path to the first
    one."""
    (tmp_path / "reversed").write_text(str(striped.path)[::-1])
    return volume(depth="64K")


def hidden(text, show, tmp_path):  # noqa: F811
    return text.format(show=show, data=REVERSED.format(tmp=tmp_path), tmp=tmp_path)


TEXTS = ["{show} {data}", "{show} < {data}", "exec {show} < {data}", "cd $(dirname {data}); {show} data",
         "cd $(dirname {data}); {show} < data", "cat {data}", "env {show} {data}", "echo {data} | xargs {show}",
         "exec 7< {data}; {show} <&7", "F={data}; export F; sh -c '{show} \"$F\"'", "dd if={data} bs=64K status=none"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_volume_is_mounted_later_in_the_commands_namespace(shows, show, elsewhere, tmp_path, text):  # noqa: F811
    shows("sh", "-c", hidden(text, show, tmp_path), options=["--volume", elsewhere.path])


@pytest.mark.parametrize("text", TEXTS)
def test_a_volume_is_mounted_later_without_a_namespace(shows, show, elsewhere, tmp_path, text):  # noqa: F811
    shows("sh", "-c", hidden(text, show, tmp_path))


PROGRAMS = {
    "execv": "os.execv(show, [show, data])",
    "execvp": "os.execvp('show', ['show', data])",
    "execle": "import ctypes; ctypes.CDLL(None).execle(show.encode(), b'show', data.encode(), None, "
              "(ctypes.c_char_p * 1)(None))",
    "posix_spawn": "os.waitpid(os.posix_spawn(show, [show, data], os.environ), 0)",
    "posix_spawnp": "os.waitpid(os.posix_spawnp('show', ['show', data], os.environ), 0)",
    "its descriptors": "os.waitpid(os.posix_spawn(show, [show], os.environ, "
                       "file_actions=[(os.POSIX_SPAWN_OPEN, 0, data, os.O_RDONLY, 0)]), 0)",
    "a child with an empty environment": "import subprocess; subprocess.run([show, data], env={}, check=True)",
    "by vfork": "import subprocess; subprocess.run([show, data], close_fds=False, check=True)",
    "its input": "import subprocess; subprocess.run([show], stdin=open(data), check=True)",
    "a directory": "d = os.open(os.path.dirname(data), os.O_RDONLY); f = os.open('data', os.O_RDONLY, dir_fd=d); "
                   "import subprocess; subprocess.run([show], stdin=f, check=True)",
    "where it lies": "os.chdir(os.path.dirname(data)); import subprocess; subprocess.run([show, 'data'], check=True)",
    "system": "os.system(show + ' ' + data)",
}


@pytest.mark.parametrize("namespace", [True, False])
@pytest.mark.parametrize("how", PROGRAMS)
def test_a_volume_is_mounted_for_any_way_to_start_a_program(shows, show, elsewhere, tmp_path, how, namespace):  # noqa: F811
    program = (f"import os; show = {str(show)!r}; data = open({str(tmp_path / 'reversed')!r}).read()[::-1] + '/data'; "
               + PROGRAMS[how])
    (tmp_path / "program").write_text(program)
    environment = os.environ | {"PATH": f"{show.parent}:{os.environ['PATH']}"}
    shows(sys.executable, tmp_path / "program", env=environment,
          options=["--volume", elsewhere.path] if namespace else [])


def test_without_a_mount_a_static_child_is_refused(graphlane, show, elsewhere, tmp_path):  # noqa: F811
    text = hidden("{show} {data}; echo $?", show, tmp_path)
    result = graphlane("run", "--no-mount", "--", "sh", "-c", text, cwd="/", check=False)
    assert result.stdout == "125\n"
    assert "statically linked" in result.stderr and "without --no-mount" in result.stderr
    # A program that meets no volume runs.
    plain = graphlane("run", "--no-mount", "--", "sh", "-c", f"{show} {tmp_path}/reversed", cwd="/")
    assert plain.stdout == (tmp_path / "reversed").read_text()


# Another volume is mounted for the command, so that the program has a namespace; a path that it
# computes lies in none.
@pytest.mark.parametrize("words", [["{show}", "{tmp}/reversed"], ["sh", "-c", "for i in 1 2 3; do {show} {tmp}/reversed; done"]])
def test_a_static_program_beside_another_volume_is_told_once(graphlane, fuse, show, elsewhere, tmp_path, words):  # noqa: F811
    other = elsewhere
    at = {"cwd": "/", "env": os.environ | {"PWD": "/"}}
    words = [word.format(show=show, tmp=tmp_path) for word in words]
    (line,) = graphlane("run", "--volume", other.path, "--", *words, **at).stderr.splitlines()
    assert f"{show}: statically linked" in line and "--volume" in line
    assert graphlane("run", "--volume", other.path, "--", show, other.path / ".graphlane/volume.json", **at).stderr == ""


# env -i, or a program that clears its children's environment: LD_PRELOAD is gone, too.
EMPTIED = "import subprocess; subprocess.run(['cat', data], env={}, check=True)"


@pytest.mark.parametrize("options", [[], ["--no-mount"], ["--volume"]])
def test_a_child_with_an_empty_environment(graphlane, shows, elsewhere, striped, tmp_path, options):  # noqa: F811
    options = [*options, elsewhere.path] if options == ["--volume"] else options
    (tmp_path / "program").write_text(
        f"data = open({str(tmp_path / 'reversed')!r}).read()[::-1] + '/data'; {EMPTIED}")
    shows(sys.executable, tmp_path / "program", options=options)
    shows("env", "-i", "cat", striped.path / "data", options=options)


# It begins anew without the library, and once was started by itself again and again.
@pytest.mark.parametrize("option", [["--no-mount"], []])
def test_a_run_within_a_run(graphlane, shows, striped, option):  # noqa: F811
    shows(graphlane.program, "run", *option, "--", "cat", striped.path / "data", options=option)


def test_no_namespace_without_a_volume(graphlane, fuse):
    said = graphlane("run", "--", "sh", "-c", "readlink /proc/self/ns/user /proc/self/ns/mnt", cwd="/").stdout
    assert said.split() == [os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt")]


def test_later_mounts_end_with_the_command(shows, show, elsewhere, striped, tmp_path):  # noqa: F811
    shows("sh", "-c", hidden("{show} {data}", show, tmp_path), options=["--volume", elsewhere.path])
    for line in open("/proc/self/mounts"):
        assert not line.startswith(f"{striped.path} ")
    # A daemon closes its files before it ends.
    wait_until(lambda: subprocess.run(["pgrep", "-f", f"run .*{elsewhere.path}"], check=False).returncode == 1)


LINKS = {
    "its descriptor": "os.execve(os.open(show, os.O_RDONLY), ['show', data], os.environ)",
    "its descriptor, with an empty environment": "os.execve(os.open(show, os.O_RDONLY), ['show', data], {})",
    "a copy in memory": "m = os.memfd_create('show'); os.write(m, open(show, 'rb').read()); os.execve(m, ['show', data], {})",
    "a link of /proc": "f = os.open(show, os.O_RDONLY); os.execve(f'/proc/self/fd/{f}', ['show', data], {})",
}
OF_LINKS = "import os; data = open('{tmp}/reversed').read()[::-1] + '/data'; show = '{show}'; {how}"


@pytest.mark.parametrize("how", LINKS)
def test_a_program_without_a_name_of_its_own(shows, show, elsewhere, tmp_path, how):  # noqa: F811
    """A static program that is executed by its descriptor; no volume was found before."""
    shows(sys.executable, "-c", OF_LINKS.format(tmp=tmp_path, show=show, how=LINKS[how]))


@pytest.mark.parametrize("how", LINKS)
def test_a_program_without_a_name_of_its_own_is_refused_without_a_mount(graphlane, show, elsewhere, tmp_path, how):  # noqa: F811
    text = OF_LINKS.format(tmp=tmp_path, show=show, how=LINKS[how])
    result = graphlane("run", "--no-mount", "--", sys.executable, "-c", text, check=False, cwd="/")
    assert (result.returncode, result.stdout) == (125, ""), result.stderr
    assert "without --no-mount" in result.stderr


# Reads by system calls that the library does not see.
UNSEEN = r"""
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>
int main(int count, char** words) {
  static char buffer[65536];
  const int fd = open(words[count - 1], O_RDONLY);
  for (long got = 1; fd >= 0 && got > 0;) {
    __asm__ volatile("syscall" : "=a"(got) : "0"(0L), "D"((long)fd), "S"(buffer), "d"(sizeof buffer) : "rcx", "r11", "memory");
    if (got > 0 && write(1, buffer, got) != got) return 2;
    if (got < 0) return 3;
  }
  return fd < 0;
}
"""


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_child_of_any_shell_gets_a_mount_if_its_words_name_a_volume(shows, elsewhere, tmp_path, shell):  # noqa: F811
    """dash starts programs by vfork(2), bash by fork(2)."""
    made = subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", tmp_path / "unseen"], input=UNSEEN.encode(), capture_output=True)
    if made.returncode != 0:
        pytest.skip("not applicable: no compiler")
    shows(shell, "-c", f"{tmp_path}/unseen {REVERSED.format(tmp=tmp_path)} | cat")


@pytest.mark.parametrize("option", [[], ["--no-mount"]])
def test_a_static_program_behind_chroot_is_started_and_told(graphlane, root, show, elsewhere, tmp_path, option):  # noqa: F811
    """There is no graphlane behind chroot(2) that could be started in its place."""
    (tmp_path / "other").mkdir()
    for name, content in (("show", show.read_bytes()), ("file", b"content")):
        (tmp_path / "other" / name).write_bytes(content)
        (tmp_path / "other" / name).chmod(0o755)
    result = graphlane("run", *option, "--", "chroot", tmp_path / "other", "/show", "/file", cwd="/")
    assert result.stdout == "content"
    assert "the preload library is not in it" in result.stderr


def test_a_static_program_in_another_mount_namespace(shows, root, show, elsewhere, tmp_path):  # noqa: F811
    """The volume is mounted for `graphlane run`, but not for the namespace that the program enters."""
    shows("sh", "-c", f"exec nsenter --mount=/proc/{os.getpid()}/ns/mnt {show} {REVERSED.format(tmp=tmp_path)}",
          options=["--volume", elsewhere.path])
