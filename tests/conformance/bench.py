"""Where the suites run: a volume on four directories of a filesystem made for it,
its mount, and a directory of the same filesystem to compare with.

    image ─loop─► host/   native/   vol/   d0/ d1/ d2/ d3/
                                     └──────┴─ graphlane mount ─► mnt/
"""

import os
import platform
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.result import ROOT

BUILD = Path(os.environ.get("GRAPHLANE_BUILD", ROOT / "build/release"))
GRAPHLANE = BUILD / "bin/graphlane"
PRELOAD = BUILD / "lib/libgraphlane.so"

DEVICE_COUNT = 4
STRIPE_DEPTH = "64K"  # small, so that the suites' small files lie on all devices
STRIPED_NAMES = "*.striped"
ALL_NAMES = "*"
IMAGE_BYTES = 6 << 30  # sparse

# How a filesystem is made, and mounted with all that it can do.
FILESYSTEMS = {
    "ext4": (["mkfs.ext4", "-q", "-E", "lazy_itable_init=1"], "loop,user_xattr,acl"),
    "xfs": (["mkfs.xfs", "-q"], "loop"),
}
# Debian's packages of the programs that may be missing.
PACKAGES = {"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "stress-ng": "stress-ng",
            "fio": "fio", "prove": "perl", "git": "git"}


class BenchError(Exception):
    """Prints one line for the user."""


@dataclass
class Ran:
    status: int | None  # None: it took too long
    output: str         # stdout and stderr

    def tail(self) -> str:
        """The last line, where programs print what went wrong."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        ending = "took too long" if self.status is None else f"status {self.status}"
        return lines[-1][:200] if lines else ending


def run(*words, seconds_max: float, **options) -> Ran:
    """Runs a command as a process group, and leaves none of its processes."""
    name = str(words[0])
    if name in PACKAGES and shutil.which(name) is None:
        raise BenchError(f"{name} is missing: apt-get install {PACKAGES[name]}")
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                               start_new_session=True, **options)
    try:
        output, _ = process.communicate(timeout=seconds_max)
        return Ran(process.returncode, output)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return Ran(None, process.communicate()[0])
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def installed(*words) -> list:
    """The command in a mount namespace where mount(8) finds `graphlane`. mount(8) passes no
    PATH, so sh searches its default path."""
    script = ('mount -t tmpfs none /usr/local/sbin && ln -s "$0" /usr/local/sbin/graphlane && '
              'exec "$@"')
    return ["unshare", "-m", "sh", "-c", script, GRAPHLANE, *words]


def step(*words, seconds_max: float = 60) -> str:
    ran = run(*words, seconds_max=seconds_max)
    if ran.status != 0:
        raise BenchError(f"{' '.join(map(str, words))}: {ran.tail()}")
    return ran.output


@dataclass
class Bench:
    host: Path
    native: Path  # a directory of the host
    volume: Path
    mount: Path
    filesystem: str  # the host's
    verifies: bool = False  # volumes are made with --verify=read
    striped_names: str = STRIPED_NAMES  # a glob: files of other names are plain

    @property
    def setting(self) -> str:
        fuse = run("pkg-config", "--modversion", "fuse3", seconds_max=10).output.strip()
        return f"{self.filesystem}, Linux {platform.release().split('-')[0]}, libfuse {fuse}"

    def check_striped(self) -> None:
        """Checks that the policy stripes the suites' files: otherwise they would test nothing."""
        probe = self.mount / "probe.striped"
        probe.write_bytes(b"x")
        behind = self.volume / probe.name  # its stub
        if behind.stat().st_size == probe.stat().st_size:
            raise BenchError(f"{probe}: is a plain file")
        probe.unlink()


def make_volume(host: Path, name: str = "vol", verifies: bool = False,
                striped_names: str = STRIPED_NAMES) -> Path:
    devices = [host / f"{name}-d{i}" for i in range(DEVICE_COUNT)]
    for device in devices:
        device.mkdir()
    words = [word for device in devices for word in ("--device", device)]
    step(GRAPHLANE, "--quiet", "create", host / name, "--stripe-depth", STRIPE_DEPTH,
         "--stripe", striped_names, f"--verify={'read' if verifies else 'scrub'}", *words)
    return host / name


def _unmount(path: Path) -> None:
    if run("umount", path, seconds_max=60).status != 0:
        run("umount", "-l", path, seconds_max=60)


def _unmount_volume(mount: Path) -> None:
    """Waits for the daemon, which has files of the host open."""
    if run(GRAPHLANE, "umount", mount, seconds_max=60).status != 0:
        _unmount(mount)


@contextmanager
def new_filesystem(filesystem: str, image: Path, at: Path):
    """Mounts a new filesystem, which lies in the file `image`, at the new directory `at`."""
    make, options = FILESYSTEMS[filesystem]
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    step(*make, image)
    step("mount", "-o", options, image, at)
    try:
        yield at
    finally:
        _unmount(at)
        image.unlink()


@contextmanager
def bench(filesystem: str, verifies: bool = False, striped_names: str = STRIPED_NAMES):
    with ExitStack() as undo:
        top = Path(tempfile.mkdtemp(prefix="graphlane-conformance-"))
        undo.callback(shutil.rmtree, top, ignore_errors=True)
        top.chmod(0o755)  # suites switch to other users
        host, mount = top / "host", top / "mnt"
        mount.mkdir()
        undo.enter_context(new_filesystem(filesystem, top / "image", host))
        native = host / "native"
        native.mkdir()
        volume = make_volume(host, verifies=verifies, striped_names=striped_names)
        step(GRAPHLANE, "mount", volume, mount, "-o", "dev,suid")
        undo.callback(_unmount_volume, mount)
        place = Bench(host, native, volume, mount, filesystem, verifies, striped_names)
        place.check_striped()
        yield place
