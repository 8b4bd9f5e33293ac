"""Records what a workload writes to the disks of a volume, then cuts the power at random points.

    workload ──► graphlane ──► ext4 ──► loop device ──► block_log ──► log     (once)
    log, up to a point ──► images ──► ext4, mounted ──► graphlane export, check    (at each point)

At a point, a disk has all writes before its last flush. Of the later writes it has none, all, or a random
half, by blocks of 4 KiB. So blocks that were not flushed survive in any order.

It must run in a mount namespace of its own, with which its mounts and loop devices end.
"""

import contextlib
import errno
import itertools
import os
import random
import re
import struct
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from workload import content

HERE = Path(__file__).resolve().parent
BLOCK = 4096
DISK_BYTES = 48 << 20
RECORD = struct.Struct("<cBHIQ")
BOOT_ID = "/proc/sys/kernel/random/boot_id"
NAME = re.compile(r"/s-[mnp](\d+): ")  # in a line of check: the tag of the file


def run(*words, check=True, **kwargs) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, **kwargs)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


@dataclass
class Record:
    kind: str
    disk: int
    offset: int
    data: bytes


def read_log(path: Path) -> list[Record]:
    records, log, at = [], path.read_bytes(), 0
    while at < len(log):
        kind, disk, _, length, offset = RECORD.unpack_from(log, at)
        at += RECORD.size
        records.append(Record(kind.decode(), disk, offset, log[at:at + length]))
        at += length
    return records


@dataclass
class Disk:
    """`image` has the flushed writes."""
    image: Path
    unflushed: list[Record] = field(default_factory=list)

    def take(self, record: Record) -> None:
        if record.kind == "W":
            self.unflushed.append(record)
            return
        with open(self.image, "r+b") as file:
            for one in self.unflushed:
                os.pwrite(file.fileno(), one.data, one.offset)
        self.unflushed.clear()

    def after_a_cut(self, path: Path, kept: str, r: random.Random) -> None:
        run("cp", "--sparse=always", self.image, path)
        with open(path, "r+b") as file:
            for one in self.unflushed if kept != "none" else []:
                for at in range(0, len(one.data), BLOCK):
                    if kept == "all" or r.random() < 0.5:
                        os.pwrite(file.fileno(), one.data[at:at + BLOCK], one.offset + at)


@dataclass
class Promises:
    """The promises that the marks before a point make."""
    synced: dict[int, int] = field(default_factory=dict)  # tag -> bytes
    gone: set[int] = field(default_factory=set)
    cutting: set[int] = field(default_factory=set)
    rewritten: dict[str, int] = field(default_factory=dict)  # name -> bytes
    rewrites: dict[str, "Rewrites"] = field(default_factory=dict)
    attributes: dict[str, list[tuple]] = field(default_factory=dict)  # since the last fsync

    def take(self, mark: bytes) -> None:
        for line in mark.decode().splitlines():
            word, tag, *rest = line.split()
            if word == "rewritten":
                self.rewritten[tag] = int(rest[0])
                self.rewrites[tag] = Rewrites([0] * (int(rest[0]) // 16))
            elif word == "rewrite":
                self.rewrites[tag].begin(*map(int, rest))
            elif word == "kept":
                self.rewrites[tag].keep()
            elif word == "attributes":
                self.attributes.setdefault(tag, []).append(tuple(map(int, rest)))
            elif word == "fixed":
                del self.attributes[tag][:-1]
            elif word == "gone":
                self.gone.add(int(tag))
            elif word == "cutting":
                self.synced[int(tag)] = 0
                self.cutting.add(int(tag))
            else:
                self.synced[int(tag)] = int(rest[0])
                self.cutting.discard(int(tag))

    def may_lack_parts(self, line: str) -> bool:
        """An unlink does not wait until it is durable: a removed file's stub may return without
        its parts."""
        name = NAME.search(line)
        return name is not None and int(name[1]) in self.gone

    def check(self, directory: Path) -> int:
        """Compares the files of an export. Returns how many have bytes."""
        found: dict[int, int] = {}
        for path in sorted(directory.glob("s-*")):
            try:
                data = path.read_bytes()
            except OSError as failed:
                if failed.errno == errno.EIO and self.may_lack_parts(f"/{path.name}: "):
                    continue
                raise AssertionError(f"{path.name}: {failed}") from None
            if not data:
                continue
            if len(data) < 6:  # too short for a tag
                tags = [tag for tag in self.synced if content(tag, 0, len(data)) == data]
                assert tags or data.isdigit(), f"{path.name}: {data!r}"
                found.update({tag: max(found.get(tag, 0), len(data)) for tag in tags})
                continue
            if any(is_right_or_zeros(data, tag) for tag in self.cutting):
                continue
            tag = int(data[:6]) if data[:6].isdigit() else -1
            if data != content(tag, 0, len(data)):
                check_tails(path.name, data, tag, self.synced.get(tag, 0))
            found[tag] = max(found.get(tag, 0), len(data))
        for tag, size in self.synced.items():
            assert tag in self.gone or found.get(tag, 0) >= size, (
                f"{tag}: {size} bytes were synced, {found.get(tag, 0)} are there")
        for name, size in self.rewritten.items():
            check_versions(name, (directory / name).read_bytes(), size, self.rewrites[name])
        return len(found) + len(self.rewritten)

    def check_attributes(self, directory: Path, devices: list[Path]) -> int:
        """After a repair: the attributes are those of the last fsync or later ones, and the parts have
        the rights of the file. Returns how many files were compared."""
        for name, states in self.attributes.items():
            info = (directory / name).stat()
            seen = (info.st_mode & 0o7777, info.st_uid, info.st_gid, info.st_mtime_ns)
            assert seen[0] in {state[0] & mask for state in states for mask in (0o7777, 0o777)} and all(
                got in {state[i] for state in states} for i, got in enumerate(seen) if i), f"{name}: {seen} of {states}"
            stub = (directory / name).read_bytes()
            for part in (part for device in devices for part in device.glob(f"graphlane-*/parts/*/{stub[32:48].hex()}")):
                of_part = part.stat()
                assert (of_part.st_mode & 0o777, of_part.st_uid, of_part.st_gid) == (seen[0] & 0o777, *seen[1:3]), (
                    f"{part}: {of_part}, and the file {seen}")
        return len(self.attributes)


@dataclass
class Rewrites:
    """The versions of each 16 bytes of a file that is rewritten in place: the last synced one, or a later one."""
    kept: list[int]  # by the 16 bytes: the version at the last sync
    later: list[tuple[int, int, int]] = field(default_factory=list)  # version, first, behind the last

    def begin(self, version: int, begin: int, end: int) -> None:
        self.later.append((version, begin // 16, end // 16))

    def keep(self) -> None:
        for version, first, end in self.later:
            self.kept[first:end] = [version] * (end - first)
        self.later.clear()

    def may_be(self, cell: int, version: int) -> bool:
        return version == self.kept[cell] or any(
            version == later and first <= cell < end for later, first, end in self.later)


def check_versions(name: str, data: bytes, size: int, rewrites: Rewrites) -> None:
    """Each 16 bytes belong to the version that was synced last, or to a later one."""
    assert len(data) == size, f"{name}: {len(data)} bytes of {size}"
    right = content(0, 0, size)
    for at in range(0, size, 16):
        got = data[at:at + 16]
        assert got[:6].isdigit() and got[6:] == right[at:at + 16][6:], f"{name}: at {at}: {got!r}"
        assert rewrites.may_be(at // 16, int(got[:6])), (
            f"{name}: at {at}: version {int(got[:6])}, and {rewrites.kept[at // 16]} was synced")


def is_right_or_zeros(data: bytes, tag: int) -> bool:
    right = content(tag, 0, len(data))
    return all(got == right[n] or got == 0 for n, got in enumerate(data))


def check_tails(name: str, data: bytes, tag: int, synced: int) -> None:
    """ext4 may record a file's new size before the data appended to a partial block. Then the
    rest of that block is zeros, in a plain file as in a part. No other byte may differ, and no
    synced one."""
    assert tag >= 0, f"{name}: {data[:32]!r}"
    right = content(tag, 0, len(data))
    for begin in range(0, len(data), BLOCK):
        got, wanted = data[begin:begin + BLOCK], right[begin:begin + BLOCK]
        if got == wanted:
            continue
        at = next(i for i, byte in enumerate(got) if byte != wanted[i])
        assert at > 0 and begin + at >= synced and not any(got[at:]), (
            f"{name}: wrong from byte {begin + at} of {len(data)} on ({synced} were synced): {got[at:at + 32]!r}")


def unmount(at: Path) -> None:
    """Waits a moment for other programs that look at all filesystems of the machine."""
    for _ in range(100):
        if run("umount", at, check=False).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", at)


class PowerCut:
    def __init__(self, build: Path, directory: Path, device_count: int = 3):
        self.graphlane = build / "bin/graphlane"
        self.block_log = build / "engines/block_log"
        self.directory = directory
        self.names = ["vol", *(f"d{i}" for i in range(device_count))]
        self.at = [directory / name for name in self.names]
        for path in self.at:
            path.mkdir(parents=True)

    def image(self, kind: str, number: int) -> Path:
        return self.directory / f"{kind}{number}"

    @contextlib.contextmanager
    def mounted(self, images: list[Path]):
        done = 0
        try:
            for image, at in zip(images, self.at):
                run("mount", "-o", "loop", image, at)
                done += 1
            yield self.at[0] / "v"
        finally:
            for at in reversed(self.at[:done]):
                unmount(at)

    def make(self) -> None:
        """Makes the volume before the log begins."""
        images = [self.image("image", n) for n in range(len(self.at))]
        for image in images:
            with open(image, "wb") as file:
                file.truncate(DISK_BYTES)
            run("mkfs.ext4", "-q", "-F", "-b", BLOCK, "-E", "lazy_itable_init=0,lazy_journal_init=0", "-J", "size=4", image)
        with self.mounted(images) as volume:
            devices = itertools.chain.from_iterable(("--device", at) for at in self.at[1:])
            run(self.graphlane, "-q", "create", volume, *devices, "--stripe-depth", "16K",
                "--stripe", "s-*", "--stripe", "w-*", "--stripe", "a-*")
        for number, image in enumerate(images):
            run("cp", "--sparse=always", image, self.image("flushed", number))

    def record(self, seed: int, count: int) -> None:
        images = [self.image("image", n) for n in range(len(self.at))]
        served = self.directory / "served"
        served.mkdir()
        server = subprocess.Popen([str(self.block_log), str(served), str(self.directory / "log"), *map(str, images)])
        mark = served / "mark"
        try:
            while not mark.exists():
                assert server.poll() is None
                time.sleep(0.01)
            with self.mounted([served / f"disk{n}" for n in range(len(images))]) as volume:
                self.work(volume, mark, seed, count)
        finally:
            run("umount", "-l", served, check=False)
            server.wait(30)

    def work(self, volume: Path, mark: Path, seed: int, count: int) -> None:
        """Through a mount, preloaded over it, and without one."""
        words = ["python3", HERE / "workload.py"]
        mnt = self.directory / "mnt"
        mnt.mkdir()
        run(self.graphlane, "mount", volume, mnt)
        try:
            run(*words, mnt, mark, "s-m", seed * 10 + 1, count)
            run(self.graphlane, "run", "--", *words, mnt, mark, "s-p", seed * 10 + 3, count)
        finally:
            run(self.graphlane, "umount", mnt)
        run(self.graphlane, "run", "--no-mount", "--", *words, volume, mark, "s-n", seed * 10 + 2, count)

    def replay(self, points: int, seed: int) -> str:
        """Cuts the power at so many points. Returns a line about the outcome."""
        r = random.Random(seed)
        log = read_log(self.directory / "log")
        where = sorted(r.sample(range(len(log)), min(points, len(log))))
        disks = [Disk(self.image("flushed", n)) for n in range(len(self.at))]
        promises = Promises()
        files = done = 0
        for number, record in enumerate(log):
            if record.kind == "M":
                promises.take(record.data)
            else:
                disks[record.disk].take(record)
            if done < len(where) and number == where[done]:
                kept = ("none", "all", "half")[done % 3]
                try:
                    files += self.cut(disks, promises, kept, r, reads_by_mount=done % 8 == 0)
                except AssertionError as failed:
                    raise AssertionError(f"seed {seed}, record {number}, {kept} of what was not flushed: {failed}") from None
                done += 1
        return f"{done} points of {len(log)} records, {files} files compared"

    def cut(self, disks: list[Disk], promises: Promises, kept: str, r: random.Random, reads_by_mount: bool) -> int:
        images = [self.image("replayed", n) for n in range(len(disks))]
        for disk, image in zip(disks, images):
            disk.after_a_cut(image, kept, r)
        boot_id = self.directory / "boot_id"
        boot_id.write_text(f"{uuid.UUID(int=r.getrandbits(128))}\n")
        run("mount", "--bind", boot_id, BOOT_ID)  # gives it another boot id
        try:
            with self.mounted(images) as volume:
                if reads_by_mount:
                    self.compare(volume, promises)
                self.check_repair(volume, promises)
                return promises.check_attributes(volume, self.at[1:]) + self.compare(volume, promises)
        finally:
            run("umount", BOOT_ID)

    def check_repair(self, volume: Path, promises: Promises) -> None:
        for words, good in ((["--repair"], (0, 1)), (["--scrub"], (0,))):
            done = run(self.graphlane, "check", *words, volume, check=False)
            problems = [line for line in done.stdout.splitlines() if line.startswith("problem: ")]
            lost = [line for line in problems if promises.may_lack_parts(line)]
            assert lost == problems and done.returncode in (good if not lost else (4, 5)), done.stdout + done.stderr

    def compare(self, volume: Path, promises: Promises) -> int:
        mnt = self.directory / "mnt"
        run(self.graphlane, "mount", volume, mnt)
        try:
            return promises.check(mnt)
        finally:
            run(self.graphlane, "umount", mnt)


def main() -> None:
    build, directory, points, seed = sys.argv[1:]
    cut = PowerCut(Path(build), Path(directory))
    cut.make()
    cut.record(int(seed), count=70)
    print(cut.replay(int(points), int(seed)))


if __name__ == "__main__":
    main()
