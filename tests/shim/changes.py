"""Changes a file at random and compares every answer with a plain file's: changes.py
STRIPED PLAIN SEED COUNT. Run under the preload library."""

import errno
import os
import random
import sys

UNIT = 65536
SIZE_MAX = 12 * UNIT


def call(function, *arguments):
    """Its result, or its errno."""
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]


class Pair:
    """Two descriptors with the same open flags."""

    def __init__(self, paths, flags):
        self.fds = [os.open(path, flags, 0o640) for path in paths]

    def both(self, function, *arguments):
        ours, theirs = (call(function, fd, *arguments) for fd in self.fds)
        assert ours == theirs, f"{function.__name__}{arguments[1:]}: {ours!r:.80}, natively {theirs!r:.80}"
        return ours

    def close(self):
        for fd in self.fds:
            os.close(fd)


def size_of(fd):
    return os.fstat(fd).st_size


def end_of(fd):
    return os.lseek(fd, 0, os.SEEK_END)


def main():
    paths, seed, count = sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
    rng = random.Random(seed)

    def place():
        return rng.choice([rng.randrange(SIZE_MAX), rng.randrange(12) * UNIT, rng.randrange(SIZE_MAX // 8)])

    def data():
        return rng.randbytes(rng.choice([1, 100, 4096, rng.randrange(1, 3 * UNIT)]))

    pair = Pair(paths, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for step in range(count):
        what = rng.randrange(16)
        if what == 0:
            pair.both(os.pwrite, data(), place())
        elif what == 1:
            pair.both(os.write, data())
        elif what == 2:
            pair.both(os.pwritev, [data(), data(), b"", data()], place())
        elif what == 3:
            pair.both(os.ftruncate, place())
        elif what == 4:
            length = place()
            assert call(os.truncate, paths[0], length) == call(os.truncate, paths[1], length)
        elif what == 5:
            pair.both(os.posix_fallocate, place(), rng.randrange(1, 2 * UNIT))
        elif what == 6:
            pair.both(os.lseek, place(), os.SEEK_SET)
        elif what == 7:
            flags = rng.choice([os.O_RDWR, os.O_WRONLY, os.O_RDONLY, os.O_RDWR | os.O_APPEND,
                                os.O_WRONLY | os.O_APPEND | os.O_CREAT, os.O_RDWR | os.O_SYNC,
                                os.O_RDWR | os.O_CREAT | (os.O_TRUNC if rng.random() < 0.2 else 0)])
            pair.close()
            pair = Pair(paths, flags)
        elif what == 8:
            pair.both(os.writev, [data(), data()])
        elif what == 9:
            pair.both(rng.choice([os.fsync, os.fdatasync]))
        elif what == 10:
            pair.both(end_of)
        elif what == 11:
            other = Pair(paths, os.O_WRONLY)  # beside the first
            other.both(os.pwrite, data(), place())
            other.close()
        elif what == 12:
            pair.fds, old = [os.dup(fd) for fd in pair.fds], pair.fds
            for fd in old:
                os.close(fd)
        elif what == 13 and rng.random() < 0.2:
            for path in paths:
                os.rename(path, path + ".old")
                with open(path, "wb") as fresh:
                    fresh.write(b"new" * step)
            pair.both(os.pwrite, data(), place())  # the pair without a name
            for path in paths:
                os.unlink(path + ".old")
        elif what == 14:
            pair.both(os.read, rng.randrange(3 * UNIT))
        pair.both(os.pread, rng.randrange(4 * UNIT), place())
        pair.both(size_of)
        pair.both(os.lseek, 0, os.SEEK_CUR)
        assert os.stat(paths[0]).st_size == os.stat(paths[1]).st_size
        if step % 50 == 0:
            with open(paths[0], "rb") as ours, open(paths[1], "rb") as theirs:
                assert ours.read() == theirs.read(), f"after step {step}"


if __name__ == "__main__":
    main()
