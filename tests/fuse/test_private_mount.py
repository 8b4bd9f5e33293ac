"""`graphlane run` gives one command a private mount."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import processes, run, wait_until
from mounts import striped  # noqa: F401, fixtures

SECONDS_MAX = 20


def mounts_of(volume) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines()
            if line.startswith(f"{volume.path} ")]


def daemons_of(volume) -> list[int]:
    """Processes with the volume's path in their command line."""
    return [pid for pid, words in processes("cmdline") if str(volume.path).encode() in words]


@pytest.fixture
def in_private(graphlane, fuse):
    """Runs a shell script under `graphlane run`."""

    def start(volume, script, **options):
        return run(graphlane.program, "run", "--", "sh", "-c", script, "sh", volume.path,
                   check=False, **options)

    return start


def test_only_the_command_sees_whole_files(striped, in_private, tmp_path):
    volume, content = striped(size=300_000)
    result = in_private(volume, 'stat -c %s "$1/data"; grep -c "^$1 .* fuse.graphlane " /proc/self/mounts; '
                                'stat -c %s "$1/data" > ' + str(tmp_path / "size"))
    assert result.stdout.split() == ["300000", "1"], result.stderr
    assert result.stderr == ""
    assert mounts_of(volume) == []
    assert (volume.path / "data").stat().st_size == 4096
    wait_until(lambda: not daemons_of(volume))


def test_the_command_may_write_beside_the_striped_files(striped, in_private):
    volume, _ = striped(size=300_000)
    result = in_private(volume, 'cp "$1/data" "$1/copy" && cmp "$1/data" "$1/copy"')
    assert result.returncode == 0, result.stderr
    assert (volume.path / "copy").stat().st_size == 300_000


def test_working_in_the_volume(striped, in_private):
    volume, _ = striped(size=300_000)
    result = in_private(volume, "pwd; stat -c %s data", cwd=volume.path)
    assert result.stdout.split() == [str(volume.path), "300000"]


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9)])
def test_the_exit_status_is_the_commands(striped, in_private, script, status):
    volume, _ = striped(size=100_000)
    assert in_private(volume, script).returncode == status


def test_commands_that_cannot_be_started(striped, graphlane, fuse):
    volume, _ = striped(size=100_000)
    for command, status in (("no-such-command", 127), ("/proc", 126)):
        result = run(graphlane.program, "run", "--", command, volume.path, check=False)
        assert result.returncode == status
        assert command in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_signals_reach_the_command(striped, graphlane, fuse, tmp_path, number):
    volume, _ = striped(size=100_000)
    name = signal.Signals(number).name.removeprefix("SIG")
    caller = subprocess.Popen(
        [graphlane.program, "run", "--", "sh", "-c",
         f'trap "exit 33" {name}; : > "$1/../started"; while :; do sleep 0.05; done',
         "sh", volume.path], stdin=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # make under nohup ignores some signals
    wait_until((volume.path.parent / "started").exists)
    caller.send_signal(number)
    assert caller.wait(SECONDS_MAX) == 33


def test_killing_the_caller_and_the_command_leaves_nothing(striped, graphlane, fuse):
    volume, _ = striped(size=100_000)
    caller = subprocess.Popen(
        [graphlane.program, "run", "--", "sh", "-c",
         ': > "$1/../started"; exec sleep 1000', "sh", volume.path],
        stdin=subprocess.DEVNULL, start_new_session=True)
    wait_until((volume.path.parent / "started").exists)
    children = Path(f"/proc/{caller.pid}/task/{caller.pid}/children").read_text().split()
    commands = []
    wait_until(lambda: commands.extend(  # the daemon's command line has the word too
        pid for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"))
        or commands)
    caller.kill()
    caller.wait()
    os.kill(int(commands[0]), signal.SIGKILL)
    wait_until(lambda: not daemons_of(volume))
    assert mounts_of(volume) == []


def test_a_background_process_of_the_command_keeps_the_mount(striped, in_private, tmp_path):
    volume, _ = striped(size=100_000)
    done = tmp_path / "late"
    in_private(volume, f'(sleep 1.5; stat -c %s "$1/data" > {done}.new; mv {done}.new {done}) '
                       '> /dev/null 2>&1 &')
    wait_until(done.exists)
    assert done.read_text() == "100000\n"
    wait_until(lambda: not daemons_of(volume))


def test_two_commands_at_the_same_time(striped, graphlane, fuse):
    volume, content = striped(size=3_000_000)
    commands = [subprocess.Popen(
        [graphlane.program, "run", "--", "sha256sum", volume.path / "data"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({command.communicate(timeout=SECONDS_MAX)[0] for command in commands}) == 1


def test_the_callers_pipe_ends_with_the_caller(striped, graphlane, fuse):
    """The pipe ends although a background process of the command lives on: the daemon has closed
    it."""
    volume, _ = striped(size=100_000)
    ended = run("sh", "-c", f'{graphlane.program} run -- sh -c "sleep 1000 >/dev/null 2>&1 & echo \\$! {volume.path}" '
                            f'sh {volume.path} 2>&1 | cat', timeout=SECONDS_MAX)
    os.kill(int(ended.stdout.split()[0]), signal.SIGTERM)  # it lives
