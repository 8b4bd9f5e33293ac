"""Runs fio for reads, and for writes to whole devices: bytes, I/Os and seconds."""

import json

from experiments.devices.journal import command
from experiments.workspace import StepFailed

LARGE = 24 << 20  # what engines read at once
SMALL = 4096
# It reads no longer than we live, however we end.
WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def fio(*words, prefix=(), write: bool = False) -> dict:
    """All its jobs together; the seconds are those of the slowest."""
    text = command(*WITH_US, *prefix, "fio", "--output-format=json", "--thread",
                   *([] if write else ["--readonly"]), *words)
    # Warnings precede the JSON.
    jobs = [job["write" if write else "read"]
            for job in json.loads(text[text.index("{"):])["jobs"]]
    seconds = max(job["runtime"] for job in jobs) / 1000
    if seconds == 0:
        raise StepFailed(f"fio {' '.join(map(str, words))}: moved nothing")
    moved = sum(job["io_bytes"] for job in jobs)
    return {"bytes": moved, "ios": sum(job["total_ios"] for job in jobs), "seconds": seconds,
            "bytes_per_second": moved / seconds}


def device_job(node, seconds: float, small: bool, write: bool) -> list[str]:
    """One device: sequentially by large blocks and one stream, or reads at random, 32 at a
    time."""
    how = [f"--bs={SMALL}", "--rw=randread", "--ioengine=libaio", "--iodepth=32"] if small else \
          [f"--bs={LARGE}", f"--rw={'write' if write else 'read'}", "--ioengine=psync"]
    # In the first tenth a head is not there yet. In milliseconds:
    # of 0.5s fio reads the 0, and never ends.
    return [f"--name={node}", f"--filename={node}", "--direct=1", "--time_based",
            f"--runtime={round(seconds * 1000)}ms", f"--ramp_time={round(seconds * 100)}ms", *how]


def ceiling(nodes, seconds: float, small: bool = False, write: bool = False) -> dict:
    """All the devices at the same time, each with a stream of its own. Writing destroys what is
    there."""
    return fio(*(word for node in nodes for word in device_job(node, seconds, small, write)),
               write=write)


# Which a preloaded program's reads are seen of, and which ask the kernel by themselves.
SYNCHRONOUS = ("psync", "pvsync2")
ASYNCHRONOUS = ("libaio", "io_uring")


def engine_words(path, size: int, threads: int, direct: bool, sweeps: int = 1,
                 ioengine: str = "psync", iodepth: int = 1) -> list[str]:
    """A file read as GridGraph's threads do from their queue: each takes the next 24 MiB. Each
    sweep by the same descriptors.
    (fio has no such queue: each thread takes every n-th block.)"""
    blocks = size // LARGE // threads
    return ["--name=read", f"--filename={path}", f"--bs={LARGE}", f"--ioengine={ioengine}",
            f"--iodepth={iodepth}",
            f"--rw=read:{(threads - 1) * LARGE}", f"--numjobs={threads}",
            f"--offset_increment={LARGE}", f"--io_size={sweeps * blocks * LARGE}",
            f"--size={size - (threads - 1) * LARGE}", f"--direct={int(direct)}", "--invalidate=0",
            "--iomem_align=4096"]  # as engines' buffers are
