"""The changes to the machine, written down before each step. They can be undone from the file alone, after any
end of the process, SIGKILL included.

A step is undone by what it is known by (a mount point, the file under a loop
device), never by a number that another program may have been given since.
"""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from experiments.workspace import StepFailed, is_mounted, signals_held

BUSY_SECONDS_MAX = 8  # until a daemon that was told to go is gone
JOURNAL = "undo.jsonl"
# Limits of the blkio controller, version 1: bytes and I/Os a second of a device; 0 is no limit.
THROTTLES = {f"blkio.throttle.{direction}_{unit}_device": unit
             for direction in ("read", "write") for unit in ("bps", "iops")}


class InUse(StepFailed):
    """The journal of a process that lives."""


def command(*words, **options) -> str:
    """The command's output. On failure, the last line of its stderr becomes the error."""
    line = [str(word) for word in words]
    try:
        result = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                **options)
    except FileNotFoundError:
        raise StepFailed(f"{line[0]}: not installed") from None
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines() or [
            f"exit status {result.returncode}" if result.returncode > 0 else
            f"killed by signal {-result.returncode}"]
        raise StepFailed(f"{' '.join(line)}: {said[-1]}")
    return result.stdout


def retry(action, seconds_max: float = BUSY_SECONDS_MAX):
    """Until it does not fail, for so long."""
    deadline = time.monotonic() + seconds_max
    while True:
        try:
            return action()
        except (StepFailed, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def loops() -> dict[str, str]:
    """The file under each loop device: by its name, 'loop3'."""
    found = {}
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached meanwhile
            found[backing.parent.parent.name] = backing.read_text().rstrip("\n").removesuffix(
                " (deleted)")
    return found


def loop_of(file: str | Path) -> str | None:
    return next((name for name, over in loops().items() if over == str(file)), None)


# --- how a step of each kind is undone: also when it never happened ---

@contextmanager
def ignore_vanished():
    """Ignores the errors of a filesystem that has gone with its device."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EROFS, errno.ENOTCONN):
            raise


def undo_directory(path: str) -> None:
    with ignore_vanished():
        os.rmdir(path)


def undo_file(path: str) -> None:
    with ignore_vanished():
        os.unlink(path)


def undo_tree(path: str) -> None:
    """Never through a mount that would not go away."""
    if any(line.split()[1].startswith(f"{path}/".replace(" ", "\\040"))
           for line in Path("/proc/self/mounts").read_text().splitlines()):
        raise StepFailed(f"{path}: something is still mounted below")
    with ignore_vanished():
        shutil.rmtree(path)


def undo_mount(path: str) -> None:
    def unmount():
        # Attached by a command that was just starting when its step was undone.
        for name, file in loops().items():
            if file.startswith(f"{path}/"):
                command("losetup", "--detach", f"/dev/{name}")
        if is_mounted(Path(path)):
            command("umount", path)
    retry(unmount)


def undo_loop(file: str) -> None:
    def detach():
        if (name := loop_of(file)) is not None:
            # A process that has it open keeps it: then it is still there.
            command("losetup", "--detach", f"/dev/{name}")
            if loop_of(file) is not None:
                raise StepFailed(f"/dev/{name}: in use")
    retry(detach)


def undo_queue(file: str, before: dict[str, str]) -> None:
    if (name := loop_of(file)) is not None:
        for setting, value in before.items():
            with suppress(FileNotFoundError):  # a scheduler's own, gone with it
                Path(f"/sys/block/{name}/queue", setting).write_text(value)


def set_throttle(group: Path, device: str, bytes_per_second: int, ios_per_second: int) -> None:
    """For a device 'MAJOR:MINOR', in both directions; 0 is no limit."""
    for limit, unit in THROTTLES.items():
        value = bytes_per_second if unit == "bps" else ios_per_second
        (group / limit).write_text(f"{device} {value}")


def undo_throttle(file: str, group: str) -> None:
    if (name := loop_of(file)) is not None:
        number = Path(f"/sys/block/{name}/dev").read_text().strip()
        with ignore_vanished():
            set_throttle(Path(group), number, 0, 0)


def undo_cgroup(path: str) -> None:
    """Only what we started was put into it."""
    def empty():
        if not Path(path).is_dir():
            return
        for pid in Path(path, "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        os.rmdir(path)
    retry(empty)


def undo_btrfs(files: list[str]) -> None:
    """The kernel remembers the devices of a btrfs until told, also when they are gone."""
    for file in files:
        if (name := loop_of(file)) is not None:
            with suppress(StepFailed):  # it knows none there
                command("btrfs", "device", "scan", "--forget", f"/dev/{name}p2")


UNDO: dict[str, Callable] = {"directory": undo_directory, "file": undo_file, "tree": undo_tree, "mount": undo_mount,
        "loop": undo_loop, "queue": undo_queue, "throttle": undo_throttle, "cgroup": undo_cgroup,
        "btrfs": undo_btrfs}


class Journal:
    """The steps done in a directory. One process at a time has it open."""

    def __init__(self, directory: Path, create: bool = False):
        self.directory = directory
        self.path = directory / JOURNAL
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (create and os.O_CREAT | os.O_EXCL)
            self.file = os.fdopen(os.open(self.path, flags, 0o600), "r+b", buffering=0)
        except FileExistsError:
            raise StepFailed(f"{directory}: there are devices already: "
                             f"`devices down --at {directory}` removes them") from None
        except FileNotFoundError:
            raise StepFailed(f"{directory}: no devices were set up there") from None
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise InUse(f"{directory}: in use by another process") from None
        self.file.truncate(sum(map(len, self.lines())))

    def lines(self) -> list[bytes]:
        """The whole ones. The last may be torn: its step was not begun."""
        self.file.seek(0)
        return [line for line in self.file.readall().splitlines(keepends=True)
                if line.endswith(b"\n")]

    def note(self, step: str, **facts) -> None:
        """Call it before the step. What is there already is not ours to remove."""
        assert step in UNDO
        if step in ("file", "tree") and os.path.lexists(facts["path"]):
            raise StepFailed(f"{facts['path']}: is there already")
        self.file.write((json.dumps({"step": step} | facts) + "\n").encode())

    def undo(self, keep: int = 0) -> None:
        """All steps but the first few, the last first. If one cannot be, it and
        those before it stay in the journal."""
        while len(lines := self.lines()) > keep:
            facts = json.loads(lines.pop())
            try:
                UNDO[facts.pop("step")](**facts)
            except OSError as error:
                raise StepFailed(f"{error.filename}: {error.strerror}") from None
            self.file.truncate(sum(map(len, lines)))

    def close(self) -> None:
        if not self.lines():  # nothing is left to be undone
            self.path.unlink(missing_ok=True)
        self.file.close()

    @contextmanager
    def section(self):
        """Undoes the steps of its block at the block's end, however that ends."""
        keep = len(self.lines())
        try:
            yield self
        finally:
            with signals_held():
                self.undo(keep)

    # --- steps that all need ---

    def make_directory(self, path: Path) -> Path:
        if os.path.lexists(path):
            raise StepFailed(f"{path}: is there already")
        self.note("directory", path=str(path))
        path.mkdir()
        return path

    def make_mount(self, path: Path, *words) -> Path:
        """Makes the directory, and mounts there by the command, which nothing interrupts: a daemon
        that is just beginning would mount after the step was undone."""
        with signals_held():
            self.make_directory(path)
            self.note("mount", path=str(path))
            command(*words, path)
        return path
