"""graphlane run."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cli.striped_data import STRIPED_BYTES
from harness import PRELOADED, is_mounted


@pytest.fixture(params=["--no-mount", "mount"])
def way(request):
    """The options that choose how `run` does it."""
    if request.param == "--no-mount":
        return ["--no-mount"]
    request.getfixturevalue("fuse")
    return []


def digest(path) -> str:
    return subprocess.run(["sha256sum"], stdin=open(path), capture_output=True,
                          text=True).stdout.split()[0]


def test_programs_see_the_file(graphlane, striped, way, tmp_path):
    data, plain = striped.path / "data", tmp_path / "data"
    run = lambda *words: graphlane("run", *way, "--", *words).stdout  # noqa: E731
    assert run("sha256sum", data).split()[0] == digest(plain)
    assert run("stat", "-c", "%s", data) == f"{STRIPED_BYTES}\n"
    run("cmp", data, plain)
    run("cp", data, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == plain.read_bytes()


def test_a_volume_is_found_in_a_word_behind_an_equals_sign(graphlane, striped, way, tmp_path):
    graphlane("run", *way, "--", "dd", f"if={striped.path}/data", f"of={tmp_path}/copy", "bs=1M")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "data").read_bytes()


def test_a_volume_is_found_from_the_working_directory(graphlane, striped, way, tmp_path):
    graphlane("run", *way, "--", "cmp", "data", tmp_path / "data", cwd=striped.path)
    graphlane("run", *way, "--volume", striped.path, "--", "sh", "-c",
              f"cmp {striped.path}/data {tmp_path}/data")


def test_the_private_mount_is_seen_by_the_command_alone(graphlane, striped, fuse, tmp_path):
    job = subprocess.Popen([graphlane.program, "run", "--", "sh", "-c",
                            f"stat -c %s {striped.path}/data; echo; read line", striped.path],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert job.stdout.readline() == f"{STRIPED_BYTES}\n"
    assert not is_mounted(striped.path)
    assert (striped.path / "data").stat().st_size == 4096
    job.communicate("go\n")
    assert job.returncode == 0


def test_an_existing_mount_is_used(graphlane, striped, mount, tmp_path):
    with mount(striped) as at:
        graphlane("run", "--", "cmp", at / "data", tmp_path / "data")
        mounts = graphlane("run", "--", "cat", "/proc/mounts", cwd=at).stdout.splitlines()
        assert [line for line in mounts if line.startswith(f"{striped.path} ")] == [
            line for line in Path("/proc/mounts").read_text().splitlines()
            if line.startswith(f"{striped.path} ")]


def test_over_the_volume_itself(graphlane, striped, fuse, tmp_path):
    graphlane("mount", striped.path)
    try:
        graphlane("run", "--", "cmp", striped.path / "data", tmp_path / "data")
    finally:
        graphlane("umount", striped.path)


def test_status_and_streams_come_from_the_command(graphlane, striped, way):
    for status in [0, 1, 3, 125]:
        result = graphlane("run", *way, "--", "sh", "-c", f"echo out; echo err >&2; exit {status}",
                           cwd=striped.path, check=False)
        assert (result.returncode, result.stdout, result.stderr) == (status, "out\n", "err\n")
    read = graphlane("run", *way, "--", "cat", cwd=striped.path, input="in", stdin=None)
    assert read.stdout == "in"


def test_a_command_that_cannot_run_gives_126_or_127(graphlane, striped, way, tmp_path):
    for words, status in [(["no-such-program"], 127), ([tmp_path / "data"], 126)]:
        result = graphlane("run", *way, "--", *words, cwd=striped.path, check=False)
        assert result.returncode == status
        assert len(result.stderr.splitlines()) == 1
        assert str(words[0]) in result.stderr


def test_a_command_that_a_signal_ends(graphlane, striped, way):
    result = graphlane("run", *way, "--", "sh", "-c", "kill -TERM $$", cwd=striped.path,
                       check=False)
    assert result.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)


def test_signals_reach_the_command(graphlane, striped, way, tmp_path):
    script = f"trap 'echo got; exit 9' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    job = subprocess.Popen([graphlane.program, "run", *way, "--", "sh", "-c", script],
                           cwd=striped.path, stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "ready").exists():
        assert job.poll() is None
        time.sleep(0.01)
    job.send_signal(signal.SIGTERM)
    assert job.communicate(timeout=30)[0] == "got\n"
    assert job.returncode == 9


def test_words_without_dashes_and_options_of_the_command(graphlane, striped, way):
    assert graphlane("run", *way, "wc", "-c", striped.path / "data").stdout.split()[0] == str(STRIPED_BYTES)


def test_dashes_of_the_command_are_passed_on(graphlane, striped, way):
    assert graphlane("run", *way, "echo", "a", "--", "b", cwd="/").stdout == "a -- b\n"
    read = graphlane("run", *way, "sh", "-c", 'wc -c < "$1"', "--", striped.path / "data")
    assert read.stdout.strip() == str(STRIPED_BYTES)


def test_no_volume_at_all(graphlane, way):
    assert graphlane("run", *way, "--", "echo", "hello", "--", "x=y", cwd="/").stdout == (
        "hello -- x=y\n")


def test_report(graphlane, striped, way, tmp_path):
    report = tmp_path / "report"
    graphlane("run", *way, f"--report={report}", "--", "cat", striped.path / "data",
              errors="replace")
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    read = sum(device["bytes_read"] for line in lines for device in line["devices"])
    assert read == STRIPED_BYTES
    result = graphlane("run", *way, "--report", "--", "cat", striped.path / "data",
                       errors="replace")
    assert "data" in result.stderr


def test_the_environment_is_passed_on(graphlane):
    library = subprocess.run(["sh", "-c", "ldd /bin/sh | grep -o '/[^ ]*libc.so[^ ]*'"],
                             capture_output=True, text=True).stdout.strip()
    said = graphlane("run", "--io", "direct", "--share=map", "--", "sh", "-c",
                     "echo $LD_PRELOAD $GRAPHLANE_IO $GRAPHLANE_SHARE",
                     cwd="/", env=os.environ | PRELOADED | {"LD_PRELOAD": library}).stdout.split()
    ours, theirs = said[0].split(":")
    assert ours.endswith("/libgraphlane.so")
    assert theirs == library
    assert said[1:] == ["direct", "map"]


def test_the_program_itself_is_not_preloaded(graphlane, striped, tmp_path):
    library = graphlane("run", "--", "sh", "-c", "echo $LD_PRELOAD", cwd="/").stdout.strip()
    graphlane("check", striped.path, env=os.environ | PRELOADED | {"LD_PRELOAD": library})
    # A nested run preloads it once.
    said = graphlane("run", "--", "sh", "-c", f"{graphlane.program} run sh -c 'echo $LD_PRELOAD'",
                     cwd="/", env=os.environ | PRELOADED).stdout.strip()
    assert said == library


def test_a_missing_device_stops_it(graphlane, refused, striped):
    away = striped.devices[1].rename(striped.devices[1].with_name("away"))
    refused("run", "--", "cat", striped.path / "data", naming=striped.devices[1], status=125)
    away.rename(striped.devices[1])


def test_a_path_that_is_no_volume_is_refused(refused, tmp_path):
    refused("run", "--volume", tmp_path, "--", "true", naming=tmp_path, status=125)


def test_without_fuse_run_warns_and_goes_on(graphlane, striped, root, tmp_path):
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing")
    hidden = "mount --bind /dev/null /dev/fuse && exec \"$@\""
    result = subprocess.run(["unshare", "-m", "sh", "-c", hidden, "sh", graphlane.program, "run",
                             "--", "cmp", striped.path / "data", tmp_path / "data"],
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "no private mount" in result.stderr
