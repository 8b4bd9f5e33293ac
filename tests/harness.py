"""Helpers for tests that run whole programs: running a command, volumes, mounts. The fixtures
are in conftest.py."""

import fcntl
import os
import re
import resource
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("GRAPHLANE_BUILD", ROOT / "build/release"))
# Arguments that make `make` build there.
BUILD_WORDS = [f"VARIANT={BUILD.name.removesuffix('-by-files')}", f"UNITY={0 if BUILD.name.endswith('-by-files') else 1}"]
SANITIZED = BUILD.name in ("asan", "tsan")  # everything takes three times as long there, and memory is not what it is
COMMAND_SECONDS_MAX = 120
WAIT_SECONDS_MAX = 30


def run(*command, check=True, **kwargs) -> subprocess.CompletedProcess:
    """Runs a command with its output captured. A failure shows the output."""
    kwargs.setdefault("timeout", COMMAND_SECONDS_MAX)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **kwargs)
    if check and result.returncode != 0:
        words = " ".join(str(word) for word in command)
        pytest.fail(f"{words}: status {result.returncode}\n{result.stdout}{result.stderr}",
                    pytrace=False)
    return result


def limited_to(address_bytes: int) -> Callable[[], None]:
    """For preexec_fn: the program has so much address space."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (address_bytes, address_bytes))


def snapshot(*roots: Path) -> dict[str, tuple]:
    """Every path below, with type, mode and content, but without times and without a volume's
    epoch, which counts changes by processes."""
    found = {}
    for root in roots:
        for path in [root, *sorted(root.rglob("*"))]:
            info = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
            if path.name in ("volume.json", "device.json"):
                content = re.sub(rb'"epoch": \d+', b"", content)
            found[str(path)] = (info.st_mode, content)
    return found


def forget_pages(paths: Iterable[Path]) -> None:
    """Drops the cached pages of these files only: other tests run beside this one."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def machine_caches(dropped: bool):
    """Tests that count cached pages and tests that drop the machine's caches exclude each other."""
    path = Path(tempfile.gettempdir(), f"graphlane-tests-{os.geteuid()}.lock")
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if dropped else fcntl.LOCK_SH)
        yield


def are_ssds(directories: list[Path]) -> None:
    """Makes the block devices under these directories, those of the fixture `disks`, claim to be
    SSDs."""
    for directory in directories:
        device = directory.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        Path(f"/sys/dev/block/{number}/queue/rotational").write_text("0")


def is_mounted(path: Path) -> bool:
    """True for a mount with a dead daemon too, where os.path.ismount() is false."""
    return f" {path} " in Path("/proc/self/mounts").read_text()


@dataclass
class Volume:
    path: Path
    devices: list[Path]


class Graphlane:
    """The graphlane command."""

    def __init__(self, program: Path):
        self.program = program

    def __call__(self, *arguments, **kwargs) -> subprocess.CompletedProcess:
        return run(self.program, *arguments, **kwargs)

    def create(self, directory: Path, device_count=4, **options) -> Volume:
        """A volume directory/vol on the devices directory/d0, d1, …"""
        devices = [directory / f"d{i}" for i in range(device_count)]
        for device in devices:
            device.mkdir(parents=True)
        return self.create_on(directory / "vol", devices, **options)

    def create_on(self, path: Path, devices: list[Path], depth="1M", stripe=()) -> Volume:
        words = ["create", path, "--stripe-depth", depth]
        for device in devices:
            words += ["--device", device]
        for glob in stripe:
            words += ["--stripe", glob]
        self(*words)
        return Volume(path, devices)

    @contextmanager
    def mounted(self, volume: Volume, at: Path, **how):
        """Moves the volume to another place, and removes it from there afterwards."""
        at.mkdir(exist_ok=True)
        settle()
        self("mount", volume.path, at, **how)
        try:
            yield at
        finally:
            stopped = self("umount", at, check=False)
            if is_mounted(at):
                run("fusermount3", "-u", "-z", at, check=False)
                pytest.fail(f"graphlane umount {at}: {stopped.stderr}", pytrace=False)


def settle() -> None:
    """Waits until a further change would show in the file's times. A mount drops the first pages
    of a file changed just now, so tests that count pages call this first."""
    time.sleep(0.03)


# A preloaded program that is built with the address sanitizer needs this.
PRELOADED = {"ASAN_OPTIONS": "verify_asan_link_order=0"}


@contextmanager
def names_locked(volume):
    """Locks the volume's names as `graphlane check` does."""
    with open(volume.path / ".graphlane/run/lock", "r+b") as lock:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(lock, fcntl.F_OFD_SETLKW, whole)  # a past change may hold them still
        yield


class Job:
    """A graphlane command that is stopped while it works. It has the lowest priority, so that
    on a busy machine the test looks again before the command has ended."""

    def __init__(self, program: Path, *words):
        self.process = subprocess.Popen(
            ["nice", "-n", "19", str(program), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)

    def wait_until(self, condition) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def stop(self, number: signal.Signals) -> str:
        """Stops it by the signal. Returns its stderr."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)[1]


def processes(file: str) -> Iterator[tuple[int, bytes]]:
    """Each process with the content of this file of /proc/PID, without those that end meanwhile."""
    for directory in Path("/proc").iterdir():  # glob("*/stat") would fail for a process that ends
        if directory.name.isdecimal():
            with suppress(OSError):
                yield int(directory.name), (directory / file).read_bytes()


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler of the signal, so that it would end in its own way."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def comes(condition, seconds_max: float = 2) -> bool:
    """Waits until the condition holds, but returns False after a while: another program may have
    undone it."""
    end = time.monotonic() + seconds_max
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def wait_until(condition) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, "took too long"
        time.sleep(0.02)
