"""A job of adapters/share that goes through a grid and computes nothing; graphlane_share.h says
what its calls mean."""

import ctypes
import os
import time
from ctypes import POINTER, byref, c_char_p, c_uint32, c_uint64, c_void_p
from pathlib import Path

from experiments.paths import BUILD, ROOT
from experiments.workspace import StepFailed

LIBRARY = ROOT / "build/plain/lib/libgraphlane-share.so"
COORDINATOR = BUILD / "bin/graphlane-share-coordinator"
EDGES = "column"  # of a grid


class Options(ctypes.Structure):
    _fields_ = [("files", c_void_p), ("file_count", c_uint32),
                ("partition_count", c_uint32), ("ranges", c_void_p), ("range_count", c_uint64),
                ("load", c_void_p), ("load_context", c_void_p),
                ("record_bytes", c_uint32), ("source_offset_bytes", c_uint32),
                ("vertex_count", c_uint64), ("thread_count", c_uint32),
                ("thread_count_min", c_uint32), ("vertex_bytes", c_uint32),
                ("budget_bytes", c_uint64), ("idle_ms", c_uint64)]


class GridInfo(ctypes.Structure):
    _fields_ = [("vertex_count", c_uint64), ("edge_count", c_uint64), ("partitions", c_uint32),
                ("weighted", c_uint32)]


LABELS = f".graphlane-chunks-{EDGES}"  # beside them
LABELLED_SECONDS_MAX = 60
POLL_SECONDS = 0.001


def sweep(grid: Path) -> None:
    """One iteration over all partitions, by a job that names its active vertices: all of them.
    It stays until the coordinator, which ends with it, has written the labels."""
    os.environ.setdefault("GRAPHLANE_SHARE_COORDINATOR", str(COORDINATOR))
    kit = ctypes.CDLL(str(LIBRARY))
    kit.graphlane_share_error.restype = c_char_p
    kit.graphlane_share_init_grid.argtypes = [c_char_p, POINTER(Options), POINTER(c_void_p),
                                              POINTER(GridInfo)]
    kit.graphlane_share_get_active_vertices.argtypes = [c_void_p, c_void_p, c_uint64]
    kit.graphlane_share_sharing.argtypes = [c_void_p, POINTER(c_uint32)]
    kit.graphlane_share_end.argtypes = [c_void_p]

    def check(result: int) -> int:
        if result < 0:
            raise StepFailed(kit.graphlane_share_error().decode())
        return result

    job, info, partition = c_void_p(), GridInfo(), c_uint32()
    check(kit.graphlane_share_init_grid(str(grid).encode(), byref(Options(idle_ms=1)), byref(job),
                                        byref(info)))
    try:
        words = (info.vertex_count + 63) // 64
        active = (c_uint64 * words)(*[2**64 - 1] * words)
        check(kit.graphlane_share_get_active_vertices(job, active, info.vertex_count))
        while check(kit.graphlane_share_sharing(job, byref(partition))) == 1:
            pass
        wait_for(grid / LABELS)
    finally:
        kit.graphlane_share_end(job)


def wait_for(labels: Path) -> None:
    deadline = time.monotonic() + LABELLED_SECONDS_MAX
    while not labels.exists():
        if time.monotonic() > deadline:
            raise StepFailed(f"{labels}: the coordinator has not written it")
        time.sleep(POLL_SECONDS)
