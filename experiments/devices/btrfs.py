"""The OS striped volume: what one has without Graphlane."""

from contextlib import contextmanager

from experiments.devices.emulated import Devices
from experiments.devices.journal import command


@contextmanager
def btrfs_raid0(devices: Devices):
    """btrfs over the devices' spare partitions, data and metadata in stripes of 64 KiB (this
    kernel has no md or dm). It is gone afterwards."""
    spares = [device.spare for device in devices]
    with devices.journal.section() as journal:
        journal.note("btrfs", files=[device.file for device in devices])
        striped = journal.directory / "striped"
        with devices.unlimited():
            # Several devices of one filesystem; with one there is nothing to stripe over.
            profile = "raid0" if len(spares) > 1 else "single"
            command("mkfs.btrfs", "--quiet", "--force", "--nodiscard", "--data", profile,
                    "--metadata", profile, *spares)
            # Named one by one: nothing of the machine is scanned for parts of it.
            members = ",".join(f"device={spare}" for spare in spares)
            journal.make_mount(striped, "mount", "-t", "btrfs", "-o", members, spares[0])
        devices.filesystems.append(striped)
        try:
            yield striped
        finally:
            devices.filesystems.remove(striped)
