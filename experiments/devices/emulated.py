"""Emulated block devices: loop devices over files, made slow.

    ssd    file in memory ← disk_model (FUSE: bandwidth and I/Os) ← loop device
    hdd    file in memory ← disk_model (FUSE: one head) ← loop device under mq-deadline
    flash  file in memory ← loop device ← limits of the blkio control group

A flash device costs little CPU time per read, so it suits programs that read at random. Its limits
hold for the control group that this process, and all that it starts, is in.

The loop device is an ordinary block device: its scheduler, its merging and its counters
(/sys/block/*/stat) are the kernel's. Half of each is a partition with a filesystem, for the files
of a volume; the other half is left for the OS striped volume. So both are there at the same time,
and a comparison can take turns.

    DIR/undo.jsonl     the steps to undo, see journal.py
    DIR/devices.json   the devices

    DIR/store/i        the bytes, in a tmpfs or on DIR's disk
    DIR/model-i/disk   the same bytes through disk_model
    DIR/d-i            where the filesystem is mounted
"""

import json
import os
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.devices.cgroup import blkio_group
from experiments.devices.journal import JOURNAL, InUse, Journal, command, loop_of, set_throttle, undo_throttle
from experiments.paths import BUILD
from experiments.workspace import StepFailed, signals_held

TEMPORARY = "graphlane-devices-"
SECTOR = 512
ALIGNMENT = 1 << 20
MKFS = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0"],
        "xfs": ["mkfs.xfs", "-q", "-f", "-K"]}
SIZE_MIN = {"ext4": 256 << 20, "xfs": 640 << 20}  # mkfs.btrfs wants 109 MiB, mkfs.xfs 300
BANDWIDTH = {"ssd": 500_000_000, "hdd": 210_000_000, "flash": 140_000_000}
# Four flash devices read 56,000 times a second at random, or 560 MB/s: sequential reads are two to
# three times as fast as random ones of 4 KiB, as FlashGraph says of its SSDs.
IOPS = {"ssd": 90_000, "flash": 14_000}
# Milliseconds that mq-deadline lets a request wait; on a dilated device, so many more.
DEADLINES = {"iosched/read_expire": 500, "iosched/write_expire": 5000}
DISK_MODEL_READ_KB = 1024  # the largest read of FUSE: a longer one would be two I/Os


@dataclass
class Spec:
    """The devices to make. Bandwidth, I/Os, seek and rotation are those before dilation."""

    kind: str = "ssd"
    count: int = 4
    size: int = 3 << 30
    bandwidth: int | None = None  # None: the kind's own
    iops: int | None = None  # None: the kind's own
    dilation: float = 1
    filesystem: str = "ext4"
    backing: str = "memory"
    seek_min: float = 0.0004
    seek_avg: float = 0.004
    seek_max: float = 0.0075
    rpm: float = 10_000
    stroke: int = 100_000_000_000

    def check(self) -> None:
        if self.size < SIZE_MIN[self.filesystem]:
            raise StepFailed(f"--size {self.size >> 20}M: a device with {self.filesystem} needs "
                             f"{SIZE_MIN[self.filesystem] >> 20}M or more")
        if not self.seek_min <= self.seek_avg <= self.seek_max:
            raise StepFailed("seek times must not fall: least, average, longest")
        if os.geteuid() != 0:
            raise StepFailed("emulated devices need root")
        if self.kind == "flash":
            blkio_group()

    def bytes_per_second(self) -> int:
        return int((self.bandwidth or BANDWIDTH[self.kind]) / self.dilation)

    def ios_per_second(self) -> int:
        """The limit of an ssd or flash device."""
        return max(1, int((self.iops or IOPS[self.kind]) / self.dilation))


@dataclass
class Device:
    loop: str  # 'loop3'
    file: str  # what the loop device is over: disk_model's
    filesystem: str  # where it is mounted

    @property
    def node(self) -> Path:
        return Path("/dev", self.loop)

    @property
    def directory(self) -> Path:
        return Path(self.filesystem)

    @property
    def spare(self) -> Path:
        """The partition for the OS striped volume."""
        return Path(f"{self.node}p2")

    def size(self) -> int:
        return int(Path("/sys/block", self.loop, "size").read_text()) * SECTOR

    def counters(self) -> dict[str, float]:
        """I/Os that reached the device after merging, their bytes, and how long it had any:
        since it was attached."""
        fields = Path("/sys/block", self.loop, "stat").read_text().split()
        return {"reads": int(fields[0]), "bytes_read": int(fields[2]) * SECTOR,
                "writes": int(fields[4]), "bytes_written": int(fields[6]) * SECTOR,
                "busy_seconds": int(fields[9]) / 1000}


def since(before: list[dict], after: list[dict]) -> list[dict]:
    """The work of each device between two readings of its counters."""
    return [{key: b[key] - a[key] for key in a} for a, b in zip(before, after)]


class Devices:
    """The devices of DIR/devices.json; use fresh() or existing()."""

    def __init__(self, journal: Journal, spec: Spec, devices: list[Device]):
        self.journal = journal
        self.directory = journal.directory
        self.spec = spec
        self.devices = devices
        self.filesystems = [device.directory for device in devices]

    def __iter__(self):
        return iter(self.devices)

    def counters(self) -> list[dict]:
        return [device.counters() for device in self.devices]

    def set_speed(self, limited: bool) -> None:
        for device in self.devices:
            if self.spec.kind == "flash":
                throttle(self.spec, device.loop, limited)
            else:
                set_speed(device.file, limited)

    def note_limits(self) -> None:
        """Before the first limit in this process's control group."""
        facts = [json.loads(line) for line in self.journal.lines()]
        for device in self.devices:
            fact = {"step": "throttle", "file": device.file, "group": str(blkio_group())}
            if fact not in facts:
                self.journal.note(**fact)

    @contextmanager
    def unlimited(self):
        """For what is prepared, not measured. All is on the devices afterwards."""
        self.set_speed(limited=False)
        try:
            yield
            self.sync()
        finally:
            self.set_speed(limited=True)

    def sync(self) -> None:
        """Ours only: sync(2) would wait for every slow device of the machine. All at the same
        time, as devices work."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda filesystem: command("sync", "--file-system", filesystem),
                             self.filesystems))

    def drop_caches(self) -> None:
        """The machine's, not only ours: there is no smaller choice."""
        self.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")

    def describe(self) -> dict:
        return {"spec": asdict(self.spec), "devices": [asdict(d) for d in self.devices]}


# --- how one is made ---

def set_speed(file: Path | str, limited: bool) -> None:
    os.setxattr(file, "user.disk_model.speed", b"model" if limited else b"unlimited")


def throttle(spec: Spec, loop: str, limited: bool) -> None:
    number = Path(f"/sys/block/{loop}/dev").read_text().strip()
    set_throttle(blkio_group(), number, spec.bytes_per_second() if limited else 0,
                 spec.ios_per_second() if limited else 0)


def start_model(journal: Journal, spec: Spec, store: Path, at: Path) -> Path:
    """The file that is as slow as the device."""
    how = ["--flash", "--iops", spec.iops or IOPS["ssd"]] if spec.kind == "ssd" else [
        "--seek-min", spec.seek_min, "--seek-avg", spec.seek_avg, "--seek-max", spec.seek_max,
        "--rpm", spec.rpm, "--stroke", spec.stroke]
    journal.make_mount(
        at, BUILD / "engines/disk_model", "--store", store,
        "--bandwidth", spec.bandwidth or BANDWIDTH[spec.kind], "--dilation", spec.dilation, *how)
    return at / "disk"


def make_node(journal: Journal, name: str, nodes: Path = Path("/dev")) -> None:
    """Makes the device node, which udev does not make in a container."""
    node = nodes / name
    if node.exists():
        return
    major, minor = map(int, Path("/sys/class/block", name, "dev").read_text().split(":"))
    journal.note("file", path=str(node))
    os.mknod(node, stat.S_IFBLK | 0o660, os.makedev(major, minor))


def attach(journal: Journal, spec: Spec, file: Path) -> str:
    journal.note("loop", file=str(file))
    # disk_model is direct in any case.
    node = command("losetup", "--find", "--show", "--partscan", "--direct-io=off", file).strip()
    sectors = spec.size // 2 // ALIGNMENT * ALIGNMENT // SECTOR
    first = ALIGNMENT // SECTOR
    command("addpart", node, 1, first, sectors - first)
    command("addpart", node, 2, sectors, spec.size // SECTOR - sectors)
    loop = node.removeprefix("/dev/")
    for partition in "p1", "p2":
        make_node(journal, loop + partition)
    return loop


def tune(journal: Journal, spec: Spec, loop: str, file: Path) -> None:
    """Sets the device's queue as the kernel would for such a real device."""
    settings = {"rotational": "0", "max_sectors_kb": str(DISK_MODEL_READ_KB), "scheduler": "none"}
    if spec.kind == "hdd":
        settings |= {"rotational": "1", "scheduler": "mq-deadline"}
        settings |= {name: str(round(ms * spec.dilation)) for name, ms in DEADLINES.items()}
    queue = Path(f"/sys/block/{loop}/queue")
    before = {name: (queue / name).read_text().strip()
              for name in settings if (queue / name).exists()}
    before["scheduler"] = before["scheduler"].split("[")[1].split("]")[0]
    journal.note("queue", file=str(file), before=before)
    for name, value in settings.items():
        (queue / name).write_text(value)


def make_devices(journal: Journal, spec: Spec) -> list[Device]:
    """None is interrupted: a command that is just starting would go on after its step was undone."""
    devices = []
    for index in range(spec.count):
        with signals_held():
            devices.append(make_device(journal, spec, index))
    return devices


def make_device(journal: Journal, spec: Spec, index: int) -> Device:
    directory = journal.directory
    file = directory / "store" / str(index)
    journal.note("file", path=str(file))
    with open(file, "xb") as store:
        store.truncate(spec.size)
    if spec.kind != "flash":
        file = start_model(journal, spec, file, directory / f"model-{index}")
        set_speed(file, limited=False)
    loop = attach(journal, spec, file)
    tune(journal, spec, loop, file)
    command(*MKFS[spec.filesystem], f"/dev/{loop}p1")
    mounted = journal.make_mount(directory / f"d-{index}", "mount", f"/dev/{loop}p1")
    return Device(loop, str(file), str(mounted))


def make_store(journal: Journal, spec: Spec) -> None:
    at = journal.directory / "store"
    if spec.backing == "memory":
        journal.make_mount(at, "mount", "-t", "tmpfs", "-o", f"size={spec.count * spec.size}",
                           "graphlane-devices")
    else:
        journal.make_directory(at)


def up(journal: Journal, spec: Spec) -> Devices:
    spec.check()
    make_store(journal, spec)
    devices = Devices(journal, spec, make_devices(journal, spec))
    description = journal.directory / "devices.json"
    journal.note("file", path=str(description))
    description.write_text(json.dumps(devices.describe(), indent=1))
    if spec.kind == "flash":
        devices.note_limits()
    devices.set_speed(limited=True)
    return devices


# --- how they are had ---

@contextmanager
def open_journal(directory: Path, create: bool = False):
    """The journal of a directory; created, together with the directory if that is missing, it
    is undone when the block fails."""
    made = create and not directory.exists()
    if made:
        try:
            directory.mkdir()
        except OSError as error:
            raise StepFailed(f"{directory}: {error.strerror}") from None
    journal = Journal(directory, create)
    try:
        if made:
            journal.note("directory", path=str(directory))
        yield journal
    except BaseException:
        if create:
            with signals_held():
                take_down(journal)
        raise
    finally:
        journal.close()


def lift_limits(steps: list[dict]) -> None:
    """Lifts the devices' throttling, so that undoing does not wait for slow writes."""
    for step in steps:
        if step["step"] == "throttle":
            undo_throttle(step["file"], step["group"])
        elif step["step"] == "loop":
            with suppress(OSError):  # a disk_model that is gone
                set_speed(step["file"], limited=False)


def take_down(journal: Journal) -> None:
    """All steps; the directory goes last, after the journal in it, if we made it."""
    facts = [json.loads(line) for line in journal.lines()]
    if not facts:
        return
    lift_limits(facts)
    made = facts[:1] == [{"step": "directory", "path": str(journal.directory)}]
    journal.undo(keep=int(made))
    if made:
        journal.path.unlink()
        journal.directory.rmdir()


def remove_leftovers() -> None:
    """Undoes killed runs of this user. Journals of other users are ignored, because their lines are
    executed. An empty journal is ignored, because its run may be just beginning."""
    for path in Path(tempfile.gettempdir()).resolve().glob(f"{TEMPORARY}*/{JOURNAL}"):
        with suppress(InUse, FileNotFoundError):  # its run lives; or has just ended
            owners = {path.lstat().st_uid, path.parent.lstat().st_uid}
            if owners != {os.geteuid()} or path.lstat().st_size == 0:
                continue
            try:
                with open_journal(path.parent) as journal, signals_held():
                    take_down(journal)
                print(f"{path.parent}: left by a run that was killed, and now removed",
                      file=sys.stderr)
            except InUse:
                raise
            except StepFailed as why:
                print(f"{path.parent}: left by a run that was killed: {why}", file=sys.stderr)


@contextmanager
def fresh(spec: Spec):
    """New devices, removed afterwards. Prints their directory. After a SIGKILL the next run removes them,
    or `devices down --at DIR` at once."""
    remove_leftovers()
    directory = Path(tempfile.mkdtemp(prefix=TEMPORARY)).resolve()
    directory.rmdir()  # opened() makes it, and so may remove it
    with open_journal(directory, create=True) as journal:
        print(f"devices in {directory}", file=sys.stderr, flush=True)
        yield up(journal, spec)
        with signals_held():
            take_down(journal)


@contextmanager
def existing(directory: Path):
    """Devices that `devices up` has made. They stay."""
    with open_journal(directory.resolve()) as journal:
        try:
            description = json.loads((journal.directory / "devices.json").read_text())
        except FileNotFoundError:
            raise StepFailed(f"{directory}: set up in part only: "
                             f"`devices down --at {directory}` removes that") from None
        devices = [Device(**device) for device in description["devices"]]
        for device in devices:
            if loop_of(device.file) != device.loop:
                raise StepFailed(f"{directory}: {device.loop} is not attached any more: "
                                 f"`devices down --at {directory}` removes the rest")
        ours = Devices(journal, Spec(**description["spec"]), devices)
        if ours.spec.kind == "flash":  # this process may be in another control group
            ours.note_limits()
        ours.set_speed(limited=True)  # a killed process may have left them fast
        yield ours
