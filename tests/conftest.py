"""The fixtures of tests that run whole programs."""

import os
import shutil
import signal
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

# Files that are written without a mount stay `open` in the tests, which look at that state. Otherwise
# `graphlane run --no-mount` starts a process that closes them (cli/run/closer.h).
os.environ.setdefault("GRAPHLANE_CHANGES", "")

# A shell's background job ignores this signal, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

from harness import BUILD, WAIT_SECONDS_MAX, Graphlane, Volume, machine_caches, run  # noqa: E402

from experiments.devices import cgroup  # noqa: E402
from experiments.devices.journal import retry  # noqa: E402
from experiments.workspace import StepFailed  # noqa: E402

LITTLE_MEMORY = 260 << 20
# The files that take longest begin first: a long one that begins last would run alone. A file's
# tests stay together.
LONGEST_FIRST = ["power_cut/test_power_cut.py", "algo/test_algorithms.py", "experiments/measure/test_compare.py",
                 "shim/test_parity.py", "experiments/figures/test_report.py", "shim/test_storm.py",
                 "engines/test_engines.py", "cli/run/test_run_programs.py", "fuzz/test_fuzz.py",
                 "fuse/test_large_writes.py"]


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(f"{item.path.parent.name}/{item.path.name}", len(places)))


@pytest.fixture(scope="session")
def graphlane() -> Graphlane:
    return Graphlane(BUILD / "bin/graphlane")


@pytest.fixture
def kept_caches():
    """Keeps other tests from dropping the machine's caches."""
    with machine_caches(dropped=False):
        yield


@pytest.fixture(scope="session")
def engines() -> Path:
    return BUILD / "engines"


@pytest.fixture(scope="session")
def fuse() -> None:
    """Skips where this user cannot mount."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    if shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is missing")


@pytest.fixture
def volume(graphlane, tmp_path):
    """Makes volumes: volume(depth="64K", stripe=["column"])."""
    made = 0

    def make(**options) -> Volume:
        nonlocal made
        made += 1
        return graphlane.create(tmp_path / f"volume{made}", **options)

    return make


@pytest.fixture
def mount(graphlane, fuse, tmp_path):
    """`with mount(volume) as path:` ends with the volume unmounted."""
    return lambda volume: graphlane.mounted(volume, tmp_path / "mnt")


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def little_group(root):
    try:
        group = cgroup.named(f"graphlane-test-{os.getpid()}", LITTLE_MEMORY)
        group.begin()
    except (StepFailed, OSError) as failed:
        pytest.skip(f"not applicable: {failed}")
    yield group
    retry(group.remove, WAIT_SECONDS_MAX)  # a daemon, whose mount has gone, may still be ending


@pytest.fixture
def little_memory(little_group):
    """The command prefix that gives a program little memory."""
    return little_group.enter()


@pytest.fixture
def open_tmp(tmp_path):
    """tmp_path, with access for every user."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid != os.geteuid() or directory == Path("/"):
            break
        if stat.S_IMODE(directory.stat().st_mode) & 0o011 != 0o011:
            directory.chmod(directory.stat().st_mode | 0o011)
    return tmp_path


@pytest.fixture
def small_filesystem(root, tmp_path):
    """small_filesystem(path, "8M"): a filesystem of that size, gone afterwards."""
    mounted = []

    def make(path: Path, size: str, options: str = "") -> Path:
        path.mkdir(exist_ok=True)
        if run("mount", "-t", "tmpfs", "-o", f"size={size}{options}", "tmpfs", path,
               check=False).returncode != 0:
            pytest.skip("mount of a tmpfs is not allowed here")
        mounted.append(path)
        return path

    yield make
    for path in reversed(mounted):
        run("umount", "-l", path, check=False)


@pytest.fixture
def small_device_volume(graphlane, small_filesystem, tmp_path):
    """Makes volumes of four devices, of which the third is small: small_device_volume("2M",
    depth="64K")."""
    def make(size: str, **options) -> Volume:
        devices = [tmp_path / f"device{n}" for n in range(4)]
        for device in devices:
            device.mkdir()
        small_filesystem(devices[2], size)
        return graphlane.create_on(tmp_path / "vol", devices, **options)

    return make


@pytest.fixture
def disks(root, tmp_path):
    """Two directories, each on a device of its own that claims to be a disk."""
    with ExitStack() as undo:
        directories = []
        for number in range(2):
            image, at = tmp_path / f"image{number}", tmp_path / f"disk{number}"
            with open(image, "wb") as file:
                file.truncate(48 << 20)
            run("mkfs.ext4", "-q", "-F", image)
            made = run("losetup", "--find", "--show", image, check=False)
            if made.returncode != 0:
                pytest.skip("not applicable: no loop devices here")
            device = made.stdout.strip()
            undo.callback(run, "losetup", "--detach", device)
            Path(f"/sys/block/{Path(device).name}/queue/rotational").write_text("1")
            at.mkdir()
            run("mount", device, at)
            undo.callback(run, "umount", at)
            directories.append(at)
        yield directories
