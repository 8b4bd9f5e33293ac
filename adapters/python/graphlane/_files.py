"""The arrays of a graph's files: a map of a plain file, a copy of a striped one."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphlane import _core

PIECE_BYTES = 64 << 20


def _as_map(path: Path, dtype: np.dtype, offset: int, count: int) -> NDArray[Any]:
    if count == 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=(count,))


def is_striped(directory: Path, name: str) -> bool:
    """Striped, in a volume that is not mounted there: only the library finds its bytes."""
    return _core.look(str(directory), name)[1] != 0


def read(directory: Path, name: str, offset: int, length: int) -> NDArray[np.uint8]:
    into = np.empty(length, np.uint8)
    reader = _core.FileReader(str(directory), name)
    for begin in range(0, length, PIECE_BYTES):  # Ctrl-C is seen between pieces
        reader.read(offset + begin, into[begin:begin + PIECE_BYTES])
    return into


def array(directory: Path, name: str, dtype: DTypeLike, offset: int = 0, count: int | None = None) -> NDArray[Any]:
    """Numbers of a file. Plain: its pages themselves, nothing is copied."""
    dtype = np.dtype(dtype)
    if count is None:
        count = (_core.look(str(directory), name)[0] - offset) // dtype.itemsize
    if not is_striped(directory, name):
        return _as_map(directory / name, dtype, offset, count)
    return read(directory, name, offset, count * dtype.itemsize).view(dtype)


def npy(directory: Path, name: str) -> NDArray[Any]:
    """An array of a .npy file."""
    if not is_striped(directory, name):
        try:
            return np.asanyarray(np.load(directory / name, mmap_mode="r"))
        except (ValueError, EOFError) as error:  # cut short, or no .npy
            raise _core.Error(f"{directory / name}: {(str(error).splitlines() or ['is no .npy'])[0]}") from None
    size = _core.look(str(directory), name)[0]
    head = read(directory, name, 0, min(size, 4096)).tobytes()
    return _parse_npy(directory, name, head)


def _parse_npy(directory: Path, name: str, head: bytes) -> NDArray[Any]:
    import io

    file = io.BytesIO(head)
    version = np.lib.format.read_magic(file)
    parse = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = parse(file)
    return array(directory, name, dtype, file.tell(), int(np.prod(shape))).reshape(shape)
