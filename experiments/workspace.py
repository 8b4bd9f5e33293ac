"""A place to work in, and commands that run there, gone without a trace
afterwards: also when a step fails, on Ctrl-C, SIGTERM and SIGHUP."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

STOP_SECONDS_MAX = 10
TAIL_LINES = 10


class StepFailed(Exception):
    """One line for the user: what was tried, and what came of it."""


def size(size_bytes: float) -> str:
    """33554432 -> '32.0 MiB'."""
    for unit in ["B", "KiB", "MiB", "GiB"]:
        if size_bytes < 1024:
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


@contextmanager
def workspace(console: Console, need_bytes: int):
    """An empty directory under $TMPDIR with that much room, and a stack for
    what else is to be undone."""
    parent = Path(tempfile.gettempdir())
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < need_bytes:
        raise StepFailed(f"{parent}: {size(free_bytes)} free, about {size(need_bytes)} needed: "
                         "set TMPDIR to a larger place")
    with ExitStack() as undo:
        with signals_held():
            directory = Path(tempfile.mkdtemp(prefix="graphlane-demo-"))
            undo.callback(remove, console, directory)
        try:
            yield directory, undo
        finally:
            # Nothing interrupts the way out. The order is the stack's: unmount first.
            with signals_held():
                undo.close()


def remove(console: Console, directory: Path) -> None:
    """Deletes a tree, but never through a mount that would not go away."""
    mounted = [path for path in directory.iterdir() if is_mounted(path)]
    if mounted:
        console.print(f"left behind, because it is still mounted: {mounted[0]}")
        return
    shutil.rmtree(directory, ignore_errors=True)


def is_mounted(path: Path) -> bool:
    """Also when its daemon is dead: os.path.ismount() says no then."""
    return any(line.split()[1] == str(path).replace(" ", "\\040")
               for line in Path("/proc/self/mounts").read_text().splitlines())


def interrupt(*_) -> None:
    raise KeyboardInterrupt


def not_ignored(*numbers) -> list[int]:
    """Those that are not ignored, as nohup has SIGHUP."""
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]


def stop_on_signals() -> None:
    """SIGTERM, and SIGHUP of a terminal that is closed, unwind the stack as Ctrl-C does."""
    for number in not_ignored(signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


@contextmanager
def signals_held():
    """Delays SIGINT, SIGTERM and SIGHUP until the block has ended. (Blocking signals would not suffice:
    numpy has threads, and one of them would take the signal.)"""
    pending = []
    before = {number: signal.signal(number, lambda number, _: pending.append(number))
              for number in not_ignored(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt


@dataclass
class Runner:
    """Runs commands in the workspace, showing them, and stops the one that runs
    when we are stopped."""

    console: Console
    work: Path
    build: Path

    def __call__(self, *words, show=True, talkative=False, environment=None) -> str:
        """The command's stdout. Its stderr goes to the user; of a talkative command only the end, and only
        if it fails."""
        command = [str(word) for word in words]
        if show:
            self.console.print("$ " + self.shown(command), style="dim", markup=False,
                               soft_wrap=True)
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if talkative else None, text=True, errors="replace",
                cwd=self.work, env=os.environ | (environment or {}),
                # Ctrl-C is for us; we end the command, when that is right.
                process_group=0)
        except OSError as error:
            raise StepFailed(f"{command[0]}: {error.strerror}") from None
        try:
            output, complaints = process.communicate()
        except BaseException:
            self.stop(process)
            raise
        if process.returncode != 0:
            for line in (complaints or "").splitlines()[-TAIL_LINES:]:
                self.console.print(line, markup=False)
            raise StepFailed(f"{self.shown(command)}: exit status {process.returncode}")
        return output

    @staticmethod
    def stop(process: subprocess.Popen) -> None:
        for number in [signal.SIGTERM, signal.SIGKILL]:
            if process.poll() is None:
                os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS_MAX)

    def shown(self, command: list[str]) -> str:
        """As one would type it in the workspace, with our programs in PATH."""
        line = shlex.join(command)
        for directory in [self.work, self.build / "bin", self.build / "engines"]:
            line = line.replace(f"{directory}/", "")
        return line
