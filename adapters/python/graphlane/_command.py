"""Runs the `graphlane` command that lies in the package: its answer, its progress, its errors."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from operator import index
from pathlib import Path, PurePath
from typing import Any

from graphlane._core import Error

PROGRAM = Path(__file__).parent / "bin" / "graphlane"
SIZE_MAX = 2**62
END_SECONDS_MAX = 20  # that an interrupted command may take to clean up


def size(value: int | str) -> str:
    """A size as the command takes it. Errors as size_bytes."""
    return str(size_bytes(value))


def size_bytes(value: int | str) -> int:
    """Bytes: of a number, or of "1GiB", "64M", "10MB" (as the command reads sizes: M and MiB are 1024**2, MB is 1000**2).
    TypeError, ValueError: it is no size."""
    if not isinstance(value, str):
        bytes_given = index(value)  # TypeError: no whole number
        if isinstance(value, bool) or not 0 <= bytes_given <= SIZE_MAX:
            raise ValueError(f"{value!r}: not a size in bytes")
        return bytes_given
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?B)?|B)?\s*", value, re.IGNORECASE)
    if found is None:
        raise ValueError(f"{value!r}: not a size such as '64M' or '1GiB'")
    base = 1000 if (found[3] or "").upper() == "B" else 1024
    total = int(float(found[1]) * base ** (" KMGT".index(found[2].upper()) if found[2] else 0))
    if total > SIZE_MAX:
        raise ValueError(f"{value!r}: not a size such as '64M' or '1GiB'")
    return total


def _shows_progress(progress: bool | None) -> bool:
    """Unless told: on terminals and in notebooks."""
    if progress is not None:
        return progress
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _Messages(threading.Thread):
    """Reads what the command says: progress goes to sys.stderr, the rest is kept for the error."""

    def __init__(self, pipe: Any, shown: bool) -> None:
        super().__init__(daemon=True)
        self.pipe, self.shown = pipe, shown
        self.kept: list[str] = []
        self.start()

    def run(self) -> None:
        on_terminal = sys.stderr.isatty()
        printed = False
        for line in self.pipe:
            self.kept.append(line)
            del self.kept[:-50]
            if self.shown and not line.startswith("graphlane: "):
                columns = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"\r\033[K{line.rstrip()[:columns]}" if on_terminal else line)
                sys.stderr.flush()
                printed = True
        if printed and on_terminal:
            sys.stderr.write("\n")

    def error(self) -> str:
        lines = [line.removeprefix("graphlane: ").rstrip() for line in self.kept if line.startswith("graphlane: ")]
        return lines[-1] if lines else "".join(self.kept).strip()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C on a terminal: the command removes what it has half made."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(*words: str | os.PathLike[str], feed: Callable[[Any], None] | None = None, progress: bool | None = None,
        ok: Sequence[int] = (0,)) -> str:
    """Runs the command and returns its output. `feed` writes its input, to the file that it is given. Raises Error with the command's
    own line; an exception of `feed`, and Ctrl-C, end the command."""
    command = [str(PROGRAM), *(_word(word) for word in words)]
    # The command is interrupted when this thread, which waits for it, dies with the interpreter.
    environment = os.environ | {"GRAPHLANE_PARENT": str(os.getpid())}
    process = subprocess.Popen(command, stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert process.stdout is not None and process.stderr is not None
    stdout, stderr = process.stdout, process.stderr
    messages = _Messages(_text(stderr), _shows_progress(progress))
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(stdout.read()), daemon=True)
    reader.start()
    try:
        if feed:
            _feed(process, feed)
        while reader.is_alive():  # short waits: Ctrl-C is seen between them
            reader.join(0.2)
        process.wait()  # with a limit it would sleep up to 50 ms too long
    except BaseException:
        _stop(process)
        raise
    finally:
        reader.join()
        messages.join()
        stdout.close()
        stderr.close()
    if process.returncode not in ok:
        told = messages.error() or output[0].decode(errors="replace").strip()
        error = Error(told or f"{words[0]}: ended with status {process.returncode}")
        error.errno = 0
        raise error
    return output[0].decode(errors="surrogateescape")


def _word(word: str | os.PathLike[str]) -> str:
    """A path that begins with a dash is no option."""
    text = os.fspath(word)
    return f"./{text}" if isinstance(word, PurePath) and text.startswith("-") else text


def _text(pipe: Any) -> Iterable[str]:
    return (line.decode(errors="replace") for line in pipe)


def _feed(process: subprocess.Popen[bytes], feed: Callable[[Any], None]) -> None:
    """A command that has failed takes no more input; its own message says why."""
    assert process.stdin is not None
    try:
        with process.stdin as pipe:
            feed(pipe)
    except BrokenPipeError:
        pass


def run_json(*words: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """Runs a command that prints a JSON object."""
    found: dict[str, Any] = json.loads(run(*words, "--json", **options))
    return found


def main() -> None:
    """The command itself, under the name that the package installs."""
    os.execve(PROGRAM, ["graphlane", *sys.argv[1:]], os.environ | {"GRAPHLANE_PYTHON": sys.executable})
