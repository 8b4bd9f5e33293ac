"""Stubs and records as bytes, for tests that forge and age them (iomgr/volume/FORMAT.md)."""

import json
import os
import struct
from pathlib import Path

STUB_SIZE = 4096
RECORD = "user.graphlane"


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def sealed(stub: bytes) -> bytes:
    """Appends the right checksum."""
    return stub[:4092] + struct.pack("<I", crc32c(stub[:4092]))


def identity(path: Path) -> tuple[int, int]:
    """Inode and birth time in ns, as a stub names them."""
    inode, born = os.popen(f"stat -c '%i %W' '{path}'").read().split()
    nanoseconds = os.popen(f"stat -c %w '{path}'").read().split()[1].split(".")[1]
    return int(inode), int(born) * 10**9 + int(nanoseconds)


def naming_itself(stub: bytes, path: Path) -> bytes:
    """The stub's content, but for the inode of the file at `path`."""
    return sealed(stub[:80] + struct.pack("<Qq", *identity(path)) + stub[96:])


def file_id(stub: Path) -> str:
    return stub.read_bytes()[32:48].hex()


def parts_of_file(volume, stub: Path) -> list[Path]:
    """The parts in the order of the devices."""
    found = file_id(stub)
    return [next(device.glob(f"*/parts/{found[:2]}/{found}")) for device in volume.devices]


def all_stubs(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink() and ".graphlane" not in path.parts
            and path.read_bytes()[:7] == b"\x89GLSTUB"]


def make_format_1(volume) -> None:
    """The volume as an earlier Graphlane made it."""
    for stub in all_stubs(volume.path):
        info = stub.stat()
        for part in parts_of_file(volume, stub):
            if RECORD in os.listxattr(part):
                os.removexattr(part, RECORD)
        content = stub.read_bytes()
        content = content[:8] + struct.pack("<I", 1) + content[12:80] + b"\xff" * 24 + content[104:]
        with open(stub, "r+b") as file:
            file.write(sealed(content))
        os.utime(stub, ns=(info.st_atime_ns, info.st_mtime_ns))
    records = [volume.path / ".graphlane/volume.json",
               *(next(device.glob("*/device.json")) for device in volume.devices)]
    for record in records:
        content = json.loads(record.read_text())
        content["format"] = 1
        del content["home"], content["epoch"]
        record.write_text(json.dumps(content))
    for device in volume.devices:
        for directory in device.glob("*/parts/**/"):
            directory.chmod(0o755)


def change_record(part: Path, flags: int, boot_tag: int | None = None) -> None:
    """Sets flags in the record of a part. With `boot_tag` None it gets this boot's."""
    record = bytearray(os.getxattr(part, RECORD))
    record[1] |= flags
    if boot_tag is None:
        boot_tag = crc32c(Path("/proc/sys/kernel/random/boot_id").read_bytes())
    record[48:52] = struct.pack("<I", boot_tag)
    volume = part.parents[2].name.removeprefix("graphlane-")
    record[56:60] = struct.pack("<I", crc32c(bytes(record[:56]) + bytes.fromhex(volume + part.name)))
    os.setxattr(part, RECORD, bytes(record))


def flags_of(part: Path) -> int:
    return os.getxattr(part, RECORD)[1]
