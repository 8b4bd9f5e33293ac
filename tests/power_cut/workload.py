"""Makes, extends, replaces, cuts, removes and rewrites files, and logs what must hold from then on.

    workload.py DIRECTORY MARK PREFIX SEED COUNT

Every file has a number of its own, its tag. Each 16 bytes hold the tag and their offset. So a file is
right if it is a prefix of its tag's content, and zeros are never right. The marks:

    synced TAG SIZE    so many bytes of it are durable; a smaller size takes the promise back
    gone TAG           it may be gone from now on
    cutting TAG        it becomes shorter, until it is synced
    rewritten NAME SIZE    each 16 bytes of it say where they are, in one of the versions that were written
    rewrite NAME VERSION BEGIN END    this version may be there from now on
    kept NAME          what was rewritten before is durable
    attributes NAME MODE UID GID MTIME_NS    may be so from now on
    fixed NAME         these attributes are durable

While a file is cut, ext4 writes the smaller size before the data that it has not written yet. These bytes are zeros
then, also of a plain file.
"""

import os
import random
import sys


def content(tag: int, begin: int, end: int) -> bytes:
    first, last = begin // 16, (end + 15) // 16
    text = b"".join(b"%06d%09d\n" % (tag, n) for n in range(first, last))
    return text[begin - first * 16:][:end - begin]


REWRITTEN_SIZE = 600_000  # more than 64 KiB a part, so that each block has a checksum


def main() -> None:
    directory, mark_path, prefix, seed, count = sys.argv[1:]
    r = random.Random(int(seed))
    mark_fd = os.open(mark_path, os.O_WRONLY)
    files: dict[int, str] = {}  # tag -> path
    sizes: dict[int, int] = {}
    next_tag = int(seed) % 1000 * 1000

    def mark(*words) -> None:
        os.write(mark_fd, " ".join(map(str, words)).encode() + b"\n")

    def write(fd: int, tag: int, begin: int, end: int) -> None:
        at = begin
        while at < end:
            step = min(end - at, r.choice([700, 4096, 30_000, 200_000]))
            os.pwrite(fd, content(tag, at, at + step), at)
            at += step

    def append(path: str, tag: int, begin: int, end: int) -> int:
        """A preloaded program over a mount writes most of it past the kernel."""
        fd = os.open(path, os.O_WRONLY | r.choice([0, os.O_APPEND]))
        os.lseek(fd, begin, os.SEEK_SET)
        at = begin
        while at < end:
            step = min(end - at, r.choice([16, 100, 700]))
            os.write(fd, content(tag, at, at + step))
            at += step
            if r.random() < 0.01:
                os.fsync(fd)
                mark("synced", tag, at)
        return fd

    def make(path: str, synced: bool) -> int:
        nonlocal next_tag
        next_tag += 1
        tag, size = next_tag, r.choice([0, 100, 5000, 70_000, 300_000])
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        write(fd, tag, 0, size)
        if synced:
            os.fsync(fd)
            mark("synced", tag, size)
        os.close(fd)
        sizes[tag] = size
        return tag

    rewritten = f"w-{prefix[-1]}"
    with open(f"{directory}/{rewritten}", "wb") as file:
        file.write(content(0, 0, REWRITTEN_SIZE))
        file.flush()
        os.fsync(file.fileno())
    mark("rewritten", rewritten, REWRITTEN_SIZE)

    def rewrite(number: int) -> None:
        """Some places; the size stays."""
        fd = os.open(f"{directory}/{rewritten}", os.O_RDWR)
        for _ in range(r.randrange(1, 6)):
            begin = r.randrange(REWRITTEN_SIZE) // 16 * 16
            end = min(begin + r.choice([16, 4096, 20_000, 150_000]) // 16 * 16, REWRITTEN_SIZE)
            mark("rewrite", rewritten, number, begin, end)
            os.pwrite(fd, content(number, begin, end), begin)
            if r.random() < 0.3:
                r.choice([os.fsync, os.fdatasync])(fd)
                mark("kept", rewritten)
        os.close(fd)

    changed = f"a-{prefix[-1]}"  # its owner, mode and times change
    with open(f"{directory}/{changed}", "wb") as file:
        file.write(content(0, 0, REWRITTEN_SIZE))
        file.flush()
        os.fchmod(file.fileno(), 0o600)
        os.utime(file.fileno(), ns=(10**18, 10**18))
        os.fsync(file.fileno())
    mark("attributes", changed, 0o600, 0, 0, 10**18)  # nothing was promised of it before the fsync
    mark("fixed", changed)
    attributes = [0o600, 0, 0, 10**18]

    def change_attributes(number: int) -> None:
        path = f"{directory}/{changed}"
        for _ in range(r.randrange(1, 4)):
            what = r.choice(["mode", "owner", "times"])
            if what == "mode":
                attributes[0] = r.choice([0o600, 0o640, 0o444, 0o755, 0o4711])
            elif what == "owner":
                attributes[1:3] = r.choice([0, 1234, 2345]), r.choice([0, 4321])
                attributes[0] &= 0o777  # a chown takes the set-id bits
            else:
                attributes[3] = (10**9 + number) * 10**9 + r.randrange(10**9)
            mark("attributes", changed, *attributes)
            if what == "mode":
                os.chmod(path, attributes[0])
            elif what == "owner":
                os.chown(path, *attributes[1:3])
            else:
                os.utime(path, ns=(10**18, attributes[3]))
        if r.random() < 0.6:
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
            mark("fixed", changed)

    for number in range(1, int(count) + 1):
        if r.random() < 0.3:
            rewrite(number)
            continue
        if r.random() < 0.25:
            change_attributes(number)
            continue
        what = r.choice(["make", "make", "make", "extend", "extend", "replace", "cut", "remove"])
        if what == "make" or len(files) < 3:
            path = f"{directory}/{prefix}{next_tag + 1}"
            files[make(path, r.random() < 0.5)] = path
            continue
        tag, path = r.choice(sorted(files.items()))
        if what == "extend":
            end = sizes[tag] + r.choice([10, 4096, 100_000])
            if r.random() < 0.5:
                fd = append(path, tag, sizes[tag], end)
            else:
                fd = os.open(path, os.O_RDWR)
                write(fd, tag, sizes[tag], end)
            sizes[tag] = end
            if r.random() < 0.5:
                os.fsync(fd)
                mark("synced", tag, end)
            os.close(fd)
        elif what == "cut":
            size = r.randrange(sizes[tag] + 1)
            mark("cutting", tag)
            os.truncate(path, size)
            sizes[tag] = size
            fd = os.open(path, os.O_RDWR)
            os.fsync(fd)
            os.close(fd)
            mark("synced", tag, size)
        elif what == "replace":
            new = make(path + ".new", True)
            mark("gone", tag)
            os.rename(path + ".new", path)
            del files[tag]
            files[new] = path
        else:
            mark("gone", tag)
            os.unlink(path)
            del files[tag]
    os.close(mark_fd)


if __name__ == "__main__":
    main()
