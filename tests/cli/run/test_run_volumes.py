"""The volumes that `graphlane run` finds before the command starts. A static program, which the
preload library cannot enter, shows it: without the mount it prints a stub."""

import os
import shutil
import subprocess

import pytest

from harness import run

# A static cat(1).
SHOW = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static char buffer[65536];
int main(int argc, char** argv) {
  for (int i = argc > 1 ? 1 : 0; i < argc; ++i) {
    const int fd = i > 0 ? open(argv[i], O_RDONLY) : 0;
    if (fd < 0) { perror(argv[i]); return 1; }
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) if (write(1, buffer, n) != n) return 1;
  }
  return 0;
}
"""


@pytest.fixture(scope="session")
def show(tmp_path_factory):
    """A static program that prints files, or its input."""
    path = tmp_path_factory.mktemp("static") / "show"
    made = run("gcc", "-O1", "-static", "-x", "c", "-", "-o", path, input=SHOW, stdin=None, check=False)
    if made.returncode != 0:
        pytest.skip(f"not applicable: no static libc: {made.stderr}")
    return path


@pytest.fixture
def shows(graphlane, fuse, striped, tmp_path):
    """Runs a command that prints `data`, and compares."""
    content = (tmp_path / "data").read_bytes()

    def check(*words, options=(), said=b"", **kwargs):
        kwargs.setdefault("cwd", "/")
        result = subprocess.run(list(map(str, [graphlane.program, "run", *options, "--", *words])),
                                capture_output=True, timeout=60, **{"stdin": subprocess.DEVNULL, **kwargs})
        assert result.returncode == 0, result.stderr
        assert result.stderr == said
        assert result.stdout == content, result.stdout[:4]

    return check


@pytest.mark.parametrize("text", [
    "{show} {vol}/data", "{show} < '{vol}/data'", "cd {vol} && {show} data", "cd {vol}/..; {show} vol/data",
    "F={vol}/data; {show} \"$F\"", "{show} \"${{MISSING:-{vol}/data}}\"", "cat {vol}/data | {show}",
    "exec {show} <{vol}/data", "D={vol}/..\n(cd \"$D\"\n{show} ./vol/data)", "x() {{ {show} {vol}/data; }}; x",
    "{show} `echo {vol}/data`", "env -C {vol} {show} data"])
def test_in_a_shells_text(shows, show, striped, text):
    shows("sh", "-c", text.format(show=show, vol=striped.path))


@pytest.mark.parametrize("value, text", [
    ("{vol}/data", '{show} "$GRAPH"'), ("{vol}", '{show} "$GRAPH/data"'), ("{vol}/..", '{show} "$GRAPH/vol/data"'),
    ("/nowhere:{vol}:/usr", '{show} "$(echo "$GRAPH" | cut -d: -f2)/data"'),
    ("--graph={vol}/data --verbose", '{show} "$(echo "$GRAPH" | cut -d= -f2 | cut -d" " -f1)"'),
    ("file://{vol}/data", '{show} "${{GRAPH#file://}}"')])
def test_in_the_environment(shows, show, striped, value, text):
    shows("sh", "-c", text.format(show=show), env=os.environ | {"GRAPH": value.format(vol=striped.path)})


@pytest.mark.parametrize("script", [
    "#!/bin/sh\n{show} {vol}/data\n", "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{show} {name}/vol/data\n",
    "#!/usr/bin/env -S sh -e\nDATA={vol}\n{show} $DATA/data\n", "{show} < {vol}/data\n",
    "#!/bin/sh\n. {tmp}/settings\n{show} \"$GRAPH\"\n", "#!/bin/sh\nread graph < {tmp}/list\n{show} $graph\n",
    "#!/bin/sh\nexec {tmp}/inner\n",
    "#!/usr/bin/python3\nimport os, subprocess\n"
    "subprocess.run(['{show}', os.path.join('{vol}', 'data')], check=True)\n"])
@pytest.mark.parametrize("by_shell", [False, True])
def test_in_a_script(shows, show, striped, tmp_path, script, by_shell):
    if script.startswith("#!/usr/bin/python3") and (by_shell or not os.access("/usr/bin/python3", os.X_OK)):
        pytest.skip("not applicable: no script for a shell")
    words = {"show": show, "vol": striped.path, "tmp": tmp_path, "name": striped.path.parent.name}
    (tmp_path / "settings").write_text("GRAPH='{vol}/data'\n".format(**words))
    (tmp_path / "list").write_text("{vol}/data\n".format(**words))
    for name, text in {"script": script, "inner": "#!/bin/sh\nexec {show} {vol}/data\n"}.items():
        (tmp_path / name).write_text(text.format(**words))
        (tmp_path / name).chmod(0o755)
    shows(*(["sh"] if by_shell or not script.startswith("#!") else []), tmp_path / "script")


@pytest.mark.parametrize("words", [
    ["{show}", "{vol}/data"], ["env", "A=b", "{show}", "{vol}/../vol/data"],
    ["xargs", "-a", "{tmp}/list", "{show}"], ["find", "{tmp}/{name}/vol", "-name", "data", "-exec", "{show}", "{{}}", ";"],
    ["find", "{tmp}", "-path", "*/vol/data", "-exec", "{show}", "{{}}", ";"], ["sh", "-c", '{show} "$1/data"', "sh", "{link}"]])
def test_in_words(shows, show, striped, tmp_path, words):
    (tmp_path / "list").write_text(f"{striped.path}/data\n")
    (tmp_path / "link").symlink_to(striped.path)
    shows(*[word.format(show=show, vol=striped.path, tmp=tmp_path, name=striped.path.parent.name,
                        link=tmp_path / "link") for word in words])


@pytest.mark.parametrize("where, word", [("", "data"), ("..", "vol/data"), ("../..", "{name}/vol/data")])
def test_from_the_working_directory(shows, show, striped, where, word):
    shows(show, word.format(name=striped.path.parent.name), cwd=striped.path / where)


def test_on_a_descriptor(graphlane, shows, show, striped, tmp_path):
    with open(striped.path / "data", "rb") as data:
        shows(show, stdin=data)
    # The command gets the descriptor under another number.
    script = f"exec 7< {striped.path}/data; exec {graphlane.program} run -- sh -c '{show} <&7'"
    assert subprocess.run(["sh", "-c", script], capture_output=True, cwd="/").stdout == (
        tmp_path / "data").read_bytes()


def test_a_descriptor_keeps_its_place(graphlane, fuse, show, striped, tmp_path):
    with open(striped.path / "data", "rb") as data:
        data.seek(1000)
        got = subprocess.run([graphlane.program, "run", "--", show], stdin=data, capture_output=True, cwd="/")
        assert got.stdout == (tmp_path / "data").read_bytes()[1000:]


def test_in_the_users_list(shows, show, striped, tmp_path):
    (tmp_path / "reversed").write_text(str(striped.path)[::-1])
    text = f'{show} "$(rev {tmp_path}/reversed)/data"'
    config = tmp_path / "config"
    (config / "graphlane").mkdir(parents=True)
    (config / "graphlane/volumes").write_text(f"# mine\n{striped.path}\n")
    shows("sh", "-c", text, env=os.environ | {"XDG_CONFIG_HOME": str(config)})
    home = tmp_path / "home"
    (home / ".config/graphlane").mkdir(parents=True)
    (home / ".config/graphlane/volumes").write_text(f"{striped.path}\n")
    environment = {**os.environ, "HOME": str(home)}
    environment.pop("XDG_CONFIG_HOME", None)
    shows("sh", "-c", text, env=environment)


def test_in_fstab(graphlane, fuse, root, show, striped, tmp_path):
    (tmp_path / "fstab").write_text(f"{striped.path} /nowhere fuse.graphlane noauto 0 0\n")
    (tmp_path / "reversed").write_text(str(striped.path)[::-1])
    script = (f'mount --bind {tmp_path}/fstab /etc/fstab && cd / && exec {graphlane.program} run -- '
              f'sh -c \'{show} "$(rev {tmp_path}/reversed)/data"\'')
    if run("unshare", "-m", "true", check=False).returncode != 0:
        pytest.skip("not applicable: no mount namespaces")
    result = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, timeout=60)
    assert result.stdout == (tmp_path / "data").read_bytes(), result.stderr


def test_a_broken_volume_found_by_guess_stops_nothing(graphlane, fuse, striped, tmp_path):
    striped.devices[1].rename(tmp_path / "away")
    result = graphlane("run", "--", "sh", "-c", "echo on", cwd="/",
                       env=os.environ | {"GRAPH": str(striped.path)})
    assert result.stdout == "on\n"
    (line,) = result.stderr.splitlines()
    assert str(striped.devices[1]) in line and "not mounted" in line


@pytest.mark.parametrize("name", ["my tools", "a:b"])
def test_where_the_library_cannot_be_preloaded(graphlane, fuse, striped, show, tmp_path, name):
    """LD_PRELOAD allows no blank and no colon in a path: only the private mount works."""
    for part in ("bin", "lib"):
        (tmp_path / name / part).mkdir(parents=True)
    shutil.copy(graphlane.program, tmp_path / name / "bin")
    shutil.copy(graphlane.program.parent.parent / "lib/libgraphlane.so", tmp_path / name / "lib")
    own = tmp_path / name / "bin/graphlane"
    for words in (["cmp"], ["sh", "-c", 'cmp "$1" "$2"', "sh"]):
        assert run(own, "run", "--", *words, striped.path / "data", tmp_path / "data").stderr == ""
    refused = run(own, "run", "--no-mount", "--", "cat", striped.path / "data", check=False)
    assert refused.returncode == 125 and name in refused.stderr and refused.stdout == ""


@pytest.mark.parametrize("words", [["{show}", "{vol}/data"], ["{show}", "/dev/null"], ["{tmp}/script"]])
def test_a_static_program_without_a_mount_is_refused(graphlane, show, striped, tmp_path, words):
    (tmp_path / "script").write_text(f"#!{show}\n")
    (tmp_path / "script").chmod(0o755)
    words = [word.format(show=show, vol=striped.path, tmp=tmp_path) for word in words]
    result = graphlane("run", "--no-mount", "--", *words, check=False)
    assert (result.returncode, result.stdout) == (125, "")
    (line,) = result.stderr.splitlines()
    assert "statically linked" in line and "without --no-mount" in line


def test_a_static_program_without_a_volume(graphlane, show, tmp_path):
    (tmp_path / "plain").write_text("plain")
    result = graphlane("run", "--", show, tmp_path / "plain", cwd="/")
    assert result.stdout == "plain"
    (line,) = result.stderr.splitlines()
    assert "statically linked" in line and "--volume" in line


@pytest.mark.parametrize("words", [["--bogus", "true"], ["--no-mont", "--", "true"], ["-x"]])
def test_an_unknown_option_is_a_usage_error(graphlane, words):
    result = graphlane("run", *words, check=False)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert words[0] in line and "graphlane run --help" in line


def test_a_damaged_volume_that_merely_lies_there_is_not_told(graphlane, fuse, volume, tmp_path):
    """It is once a program, or a text, names it."""
    made = volume(depth="64K")
    made.devices[1].rename(tmp_path / "away")
    at = {"cwd": made.path.parent, "check": False}
    assert graphlane("run", "--", "true", **at).stderr == ""
    assert "is not there" in graphlane("run", "--", "sh", "-c", "cat vol/data", **at).stderr
    named = graphlane("run", "--", "ls", "vol", **at)
    assert named.returncode == 125 and "is not there" in named.stderr
