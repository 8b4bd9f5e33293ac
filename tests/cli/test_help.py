"""Help and progress fit the terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from harness import BUILD, run
from test_manual import listed_commands

PROGRAM = BUILD / "bin/graphlane"


def help_of(*words, columns):
    environment = {**os.environ, "COLUMNS": str(columns)}
    return run(PROGRAM, *words, "--help", env=environment).stdout


def on_a_terminal(command, columns):
    """What the command prints on a terminal that is so wide."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        printed = b""
        try:
            while part := os.read(ours, 65536):
                printed += part
        except OSError:  # EIO: the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return printed.decode()


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("command", [(), ("gen", "rmat"), *((name,) for name in listed_commands())], ids=" ".join)
def test_help_fits(command, columns):
    text = help_of(*command, columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    words = help_of(*command, columns=100).replace("\\\n", " ").split()
    assert text.replace("\\\n", " ").split() == words, "the same words at each width"


def test_a_wide_terminal_gets_lines_that_can_be_read():
    assert help_of("convert", columns=300) == help_of("convert", columns=100)


def test_a_folded_example_is_one_command():
    lines = help_of("convert", columns=50).split("Example:\n")[1].split("\n\n")[0]
    told = run("bash", "-c", "graphlane() { printf '%s\\n' \"$*\"; }\n" + lines).stdout
    assert told.splitlines() == [
        "convert -p 8 soc-LiveJournal1.txt.gz graphs/livejournal",
        "convert --columns 2,3 --header --to u32 calls.csv.zst calls.u32"]


@pytest.mark.parametrize("columns", [50, 72])
def test_help_goes_by_the_terminal(columns):
    printed = on_a_terminal([PROGRAM, "mount", "--help"], columns)
    assert printed.replace("\r", "") == help_of("mount", columns=columns)


def test_progress_fits_the_terminal_and_tells_the_rest(tmp_path):
    """The work takes some seconds."""
    columns = 60
    printed = on_a_terminal([PROGRAM, "gen", "rmat", "--scale", "20", "--edges", "160M", "--threads", "1",
                             tmp_path / "edges.bin"], columns)
    lines = [line for line in re.split(r"[\r\n]+", printed.replace("\033[K", "")) if line.startswith("generate: ")]
    assert len(lines) > 3
    assert max(map(len, lines)) < columns
    assert any(re.search(r", \d+ (s|min) left$", line) for line in lines)
