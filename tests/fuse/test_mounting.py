"""Mounting, unmounting, and their errors."""

import json
import os
import resource
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from harness import SANITIZED, are_ssds, is_mounted, limited_to, run, wait_until
from mounts import mounted, striped  # noqa: F401, fixtures

SECONDS_MAX = 20


def alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.fixture
def foreground(graphlane, fuse, tmp_path):
    """A daemon that the test may kill. The stale mount is removed at the end."""
    at = tmp_path / "mnt"
    at.mkdir()
    started = []

    def start(volume, *options):
        daemon = subprocess.Popen(
            [graphlane.program, "mount", "-f", volume.path, at, *options],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started.append(daemon)
        wait_until(lambda: is_mounted(at) or daemon.poll() is not None)
        os.listdir(at)
        return daemon, at

    yield start
    for daemon in started:
        daemon.kill()
        daemon.communicate()
    if is_mounted(at):
        run("fusermount3", "-u", "-z", at, check=False)


def test_the_mount_command_returns_when_the_mount_answers(striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume) as at:
        assert (at / "data").read_bytes() == content
        line = next(line for line in Path("/proc/self/mounts").read_text().splitlines()
                    if f" {at} " in line)
        assert line.startswith(f"{volume.path} {at} fuse.graphlane ")
    assert os.listdir(at) == []


@pytest.mark.skipif(SANITIZED, reason="not applicable: a sanitizer needs address space without end")
def test_a_mount_without_address_space_fails_and_leaves_nothing(graphlane, fuse, volume, tmp_path):
    """Each limit lets it come a little further: its own threads, libfuse's, and requests."""
    made = volume()
    at = tmp_path / "mnt"
    at.mkdir()
    for mib in range(20, 120, 4):
        done = run(graphlane.program, "mount", made.path, at, check=False, timeout=60, preexec_fn=limited_to(mib << 20))
        assert is_mounted(at) == (done.returncode == 0), f"{mib} MiB: {done.stderr}"
        if done.returncode == 0:
            graphlane("umount", at)
        else:
            assert done.stderr, f"{mib} MiB"


def page_cache_limits(at: Path) -> Path:
    device = at.stat().st_dev
    return Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}")


def test_a_mount_by_root_raises_its_page_cache_limits(volume, mounted, root):
    with mounted(volume()) as at:
        limits = page_cache_limits(at)
        number = lambda name: int((limits / name).read_text())  # noqa: E731
        assert number("read_ahead_kb") >= 1024, "128 by default"
        if not (limits / "min_ratio_fine").exists():
            pytest.skip("not applicable: no limits of dirty bytes before Linux 6.2")
        assert number("max_ratio_fine") > number("min_ratio_fine") > 0, "0 by default"


def test_readahead_on_ssds_is_just_enough_to_keep_all_busy(graphlane, disks, mounted, tmp_path):
    made = graphlane.create_on(tmp_path / "vol", disks, depth="1M")

    def read_ahead() -> int:
        with mounted(made) as at:
            return int((page_cache_limits(at) / "read_ahead_kb").read_text())

    on_disks = read_ahead()
    are_ssds(disks)
    assert on_disks > read_ahead() == 2048


def test_over_the_volumes_own_directory(striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume, at=volume.path) as at:
        assert (at / "data").read_bytes() == content
        (at / "plain").write_bytes(b"plain")
    assert (volume.path / "data").stat().st_size == 4096
    assert (volume.path / "plain").read_bytes() == b"plain"


def test_two_mounts_of_one_volume(striped, mounted, tmp_path):
    volume, content = striped(size=100_000)
    with mounted(volume) as one, mounted(volume, at=tmp_path / "other") as two:
        (one / "f").write_bytes(b"f")
        assert (two / "f").read_bytes() == b"f"
        assert (two / "data").read_bytes() == content


def test_read_only(striped, mounted):
    volume, content = striped(size=100_000)
    with mounted(volume, "-o", "ro") as at:
        assert (at / "data").read_bytes() == content
        for call in (lambda: (at / "f").touch(), lambda: os.unlink(at / "data")):
            with pytest.raises(OSError, match="Read-only"):
                call()


@pytest.mark.parametrize("options", [
    "threads=1", "threads=16", "max_read=64K", "max_read=16M", "backend=threads", "depth=1",
    "noatime,nosuid,rw,defaults,_netdev,x-systemd.automount", "allow_other",
    "attr_timeout=60,entry_timeout=60,negative_timeout=1.5", "share_wait=0", "share_hold=0"])
def test_options_are_taken(striped, mounted, root, options):
    volume, content = striped(size=3_000_000)
    with mounted(volume, "-o", options) as at:
        assert (at / "data").read_bytes() == content
        assert not (at / "absent").exists()


@pytest.mark.parametrize("options, reason", [
    ("nonsense", 'unknown mount option "nonsense"'),
    ("threads=0", "option threads=0: expected a number from 1 to 256"),
    ("io=fast", "option io=fast: expected auto, direct or buffered"),
    ("backend=aio", "option backend=aio: expected auto, io_uring, libaio or threads"),
    ("max_read=7", "option max_read=7: expected a size of at least 4K"),
    ("attr_timeout=-1", "option attr_timeout=-1: expected seconds"),
    ("share_wait=long", "option share_wait=long: expected seconds"),
    ("share_hold=-1", "option share_hold=-1: expected seconds")])
def test_wrong_options_are_one_line(graphlane, volume, tmp_path, options, reason):
    result = graphlane("mount", volume().path, tmp_path, "-o", options, check=False)
    assert result.returncode != 0
    assert reason in result.stderr and result.stderr.count("\n") == 1


def test_wrong_places_are_one_line(graphlane, fuse, volume, tmp_path):
    made = volume()
    (tmp_path / "file").touch()
    (made.path / "sub").mkdir()
    (made.devices[0] / "sub").mkdir()
    for place, reason in ((tmp_path / "absent", "no such directory (mkdir "),
                          (tmp_path / "file", "not a directory"),
                          (made.path / "sub", "lies inside the volume"),
                          (made.devices[0], "lies inside the volume's device"),
                          (made.devices[0] / "sub", "lies inside the volume's device")):
        result = graphlane("mount", made.path, place, check=False)
        assert result.returncode != 0
        assert reason in result.stderr and result.stderr.count("\n") == 1, place


def test_a_second_mount_at_the_same_place_is_refused(volume, mounted, graphlane):
    made = volume()
    with mounted(made) as at:
        result = graphlane("mount", made.path, at, check=False)
        assert result.returncode != 0 and "mounted there already" in result.stderr
    with mounted(made, at=made.path):
        result = graphlane("mount", made.path, check=False)
        assert result.returncode != 0 and "mounted there already" in result.stderr


def test_unmounting_a_busy_mount_is_refused(volume, mounted, graphlane):
    with mounted(volume()) as at:
        (at / "f").touch()
        with open(at / "f", "rb"):
            result = graphlane("umount", at, check=False)
            assert result.returncode != 0 and "in use" in result.stderr
            assert is_mounted(at)


def test_unmounting_a_plain_directory_is_refused(graphlane, tmp_path):
    for place in (tmp_path, tmp_path / "absent", "/proc"):
        result = graphlane("umount", place, check=False)
        assert result.returncode != 0 and result.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_unmounts(striped, foreground, number):
    volume, _ = striped(size=100_000)
    daemon, at = foreground(volume)
    daemon.send_signal(number)
    _, said = daemon.communicate(timeout=SECONDS_MAX)
    assert (daemon.returncode, said) == (0, "")
    assert not is_mounted(at)


def test_a_signal_closes_files_that_programs_have_open(striped, foreground, graphlane):
    volume, content = striped(size=100_000)
    daemon, at = foreground(volume)
    handles = [os.open(at, os.O_RDONLY), os.open(at / "data", os.O_RDONLY),
               os.open(at / "data", os.O_RDWR), os.open(at / "new", os.O_RDWR | os.O_CREAT)]
    os.pwrite(handles[2], b"changed", 0)
    daemon.terminate()
    _, said = daemon.communicate(timeout=SECONDS_MAX)
    assert (daemon.returncode, said) == (0, "")
    for fd in handles:
        with suppress(OSError):
            os.close(fd)
    layout = json.loads(graphlane("info", volume.path / "data", "--json").stdout)
    assert layout["state"] == "closed"
    graphlane("check", volume.path)
    with graphlane.mounted(volume, at):
        assert (at / "data").read_bytes() == b"changed" + content[7:]


def test_umount_ends_the_daemon(striped, foreground, graphlane):
    volume, _ = striped(size=100_000)
    daemon, at = foreground(volume)
    graphlane("umount", at)
    assert daemon.wait(SECONDS_MAX) == 0


def test_a_killed_daemon_leaves_a_stale_mount_that_umount_clears(striped, foreground, graphlane):
    volume, content = striped(size=100_000)
    daemon, at = foreground(volume, "-o", "attr_timeout=60")
    (at / "f").write_bytes(b"written before")
    at.stat()  # which the kernel goes on to answer
    daemon.kill()
    daemon.wait()
    with pytest.raises(OSError):
        os.listdir(at)
    result = graphlane("mount", volume.path, at, check=False)
    assert result.returncode != 0 and "graphlane umount" in result.stderr
    graphlane("umount", at)
    assert not is_mounted(at)
    assert (volume.path / "f").read_bytes() == b"written before"
    graphlane("check", volume.path)
    with graphlane.mounted(volume, at):
        assert (at / "data").read_bytes() == content


def test_a_damaged_stub_is_told_in_one_line(striped, foreground):
    volume, _ = striped(size=100_000)
    (volume.path / "cut").write_bytes((volume.path / "data").read_bytes()[:100])
    daemon, at = foreground(volume)
    with pytest.raises(OSError):
        (at / "cut").read_bytes()
    daemon.terminate()
    _, said = daemon.communicate(timeout=SECONDS_MAX)
    assert said.count("\n") == 1 and "stub is not 4096 bytes long" in said


def test_a_volume_path_with_odd_characters(graphlane, fuse, tmp_path):
    volume = graphlane.create(tmp_path / "a, b\\c")
    at = tmp_path / "mnt point"
    at.mkdir()
    graphlane("mount", volume.path, at)
    try:
        (at / "f").write_bytes(b"f")
        result = graphlane("mount", volume.path, at, check=False)
        assert "mounted there already" in result.stderr
    finally:
        graphlane("umount", at)
    assert (volume.path / "f").read_bytes() == b"f"


def test_a_missing_device_is_named(graphlane, fuse, volume, tmp_path):
    made = volume()
    made.devices[1].rename(tmp_path / "away")
    result = graphlane("mount", made.path, tmp_path, check=False)
    assert result.returncode != 0
    assert str(made.devices[1]) in result.stderr and result.stderr.count("\n") == 1


def test_the_daemon_leaves_no_descriptor_behind(striped, foreground):
    volume, content = striped(size=100_000)
    daemon, at = foreground(volume, "-o", "entry_timeout=0,attr_timeout=0")

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    def work() -> None:
        for i in range(100):
            (at / f"f{i}").write_bytes(b"x")
            assert (at / "data").read_bytes() == content
            os.unlink(at / f"f{i}")

    work()
    before = descriptors()
    work()
    assert descriptors() <= before + 8  # pipes of threads that started later


def test_the_daemon_raises_its_descriptor_limit(foreground, volume):
    """Each file that the kernel has looked up costs one descriptor."""
    capabilities = next(line for line in Path("/proc/self/status").read_text().splitlines()
                        if line.startswith("CapEff:")).split()[1]
    may_raise = int(capabilities, 16) >> 24 & 1  # CAP_SYS_RESOURCE
    most = int(Path("/proc/sys/fs/nr_open").read_text()) if may_raise else \
        resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    try:
        daemon, _ = foreground(volume())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    limits = Path(f"/proc/{daemon.pid}/limits").read_text()
    line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
    assert int(line.split()[3]) == most
