"""Features of vertices in a .npy file that is striped over a volume's devices: random rows, in two ways.

    graphlane mount volume /mnt/volume
    python features.py /mnt/volume/features.npy

1. numpy's map: the rows of a batch are page faults of the kernel.
2. As GraphBolt's feature on disk reads: the file is opened "r+" for its shape, and then O_DIRECT; each row is an aligned
   read of the sectors that hold it, and a batch is many reads at once."""

import mmap
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

SECTOR = 4096


def rows_by_map(path: str, ids: NDArray) -> NDArray:
    return np.load(path, mmap_mode="r")[ids]


def rows_by_direct_reads(path: str, ids: NDArray, threads: int = 8) -> NDArray:
    shape = np.load(path, mmap_mode="r+")
    first, row_bytes = shape.offset, shape.strides[0]
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    size = os.fstat(file).st_size
    rows = np.empty((len(ids), *shape.shape[1:]), shape.dtype)

    def read(places: NDArray) -> None:
        # Anonymous memory is aligned to pages, as O_DIRECT asks.
        buffer = mmap.mmap(-1, (row_bytes // SECTOR + 2) * SECTOR)
        for place in places:
            begin = first + int(ids[place]) * row_bytes
            aligned = begin // SECTOR * SECTOR
            wanted = -(-(begin + row_bytes - aligned) // SECTOR) * SECTOR
            got = os.preadv(file, [memoryview(buffer)[:wanted]], aligned)
            if got < min(begin + row_bytes, size) - aligned:
                raise OSError(f"{path}: a short read at {aligned}")
            offset = begin - aligned
            rows[place] = np.frombuffer(buffer[offset:offset + row_bytes], shape.dtype).reshape(shape.shape[1:])

    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(read, np.array_split(np.arange(len(ids)), threads)))
    finally:
        os.close(file)
    return rows


def main(path: str) -> None:
    vertices = np.load(path, mmap_mode="r").shape[0]
    ids = np.random.default_rng(1).integers(0, vertices, 1000)
    mapped, direct = rows_by_map(path, ids), rows_by_direct_reads(path, ids)
    print(f"{len(ids)} rows of {vertices}, equal both ways: {np.array_equal(mapped, direct)}")


if __name__ == "__main__":
    main(sys.argv[1])
