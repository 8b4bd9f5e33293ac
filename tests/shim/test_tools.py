"""Common programs read striped files right: preloaded over a private mount, preloaded without
one, mounted, and preloaded over that mount."""

import hashlib
import random
import sys

import pytest

from harness import run

SIZE = 20_000_123
MOUNTLESS_FIO = ["psync", "pvsync", "pvsync2", "sync", "vsync"]
# They use raw system calls and maps, which the kernel serves: there must be a mount.
FIO = [*MOUNTLESS_FIO, "libaio", "io_uring", "posixaio", "mmap"]


@pytest.fixture
def files(volume, graphlane, tmp_path):
    """The plain file, the volume, and a file that fio wrote with checksums."""
    plain, checked = tmp_path / "plain", tmp_path / "checked"
    plain.write_bytes(random.Random(2).randbytes(SIZE))
    fio(checked, "psync", [], "--rw=write", "--do_verify=0", cwd=tmp_path)
    made = volume(depth="256K")
    graphlane("import", plain, made.path)
    graphlane("import", checked, made.path)
    return plain, made


def fio(path, engine, prefix, *options, cwd):
    return run(*prefix, "fio", "--name=checked", f"--filename={path}", f"--ioengine={engine}",
               "--bs=64k", "--size=8M", "--verify=crc32c", "--verify_fatal=1",
               "--verify_state_save=0", *options, cwd=cwd)


@pytest.fixture(params=["private mount", "no mount", "mount", "preloaded over a mount"])
def way(request, files, graphlane):
    """Returns (the directory with the striped files, the command prefix, the way)."""
    _, made = files
    prefix = [graphlane.program, "run", "--"]
    if request.param == "no mount":
        yield made.path, [graphlane.program, "run", "--no-mount", "--"], request.param
        return
    request.getfixturevalue("fuse")
    if request.param == "private mount":
        yield made.path, prefix, request.param
        return
    with request.getfixturevalue("mount")(made) as at:
        yield at, prefix if request.param.startswith("preloaded") else [], request.param


def test_coreutils(files, way, tmp_path):
    plain, _ = files
    directory, prefix, _ = way
    striped = directory / "plain"
    content = plain.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert run(*prefix, "sha256sum", striped).stdout.split()[0] == digest
    run(*prefix, "cmp", striped, plain)
    assert run(*prefix, "stat", "-c", "%s", striped).stdout.strip() == str(SIZE)
    assert run(*prefix, "wc", "-c", striped).stdout.split()[0] == str(SIZE)
    for flags in [["iflag=direct", "bs=24M"], ["bs=1000003"], ["bs=4096", "skip=100"]]:
        copy = tmp_path / "copy"
        run(*prefix, "dd", f"if={striped}", f"of={copy}", "status=none", *flags)
        skipped = 4096 * 100 if "skip=100" in flags else 0
        assert copy.read_bytes() == content[skipped:], flags
    (tmp_path / "copy").unlink()
    run(*prefix, "cp", striped, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    run(*prefix, "sh", "-c", f"tail -c 70001 '{striped}' > '{tmp_path}/tail'")
    assert (tmp_path / "tail").read_bytes() == content[-70001:]


def test_numpy(files, way):
    plain, _ = files
    directory, prefix, _ = way
    program = ("import numpy, sys; a, b = (numpy.fromfile(p, 'u1') for p in sys.argv[1:]); "
               "assert (a == b).all() and a.size == " + str(SIZE))
    run(*prefix, sys.executable, "-c", program, directory / "plain", plain)


def test_fio_finds_the_checksums_that_it_wrote(way, tmp_path):
    directory, prefix, name = way
    for engine in MOUNTLESS_FIO if name == "no mount" else FIO:
        for direct in (0, 1):
            fio(directory / "checked", engine, prefix, "--rw=read", "--verify_only",
                "--readonly", f"--direct={direct}", cwd=tmp_path)


def test_fio_would_notice_a_wrong_byte(tmp_path):
    """Shows that the test above can fail."""
    path = tmp_path / "checked"
    fio(path, "psync", [], "--rw=write", "--do_verify=0", cwd=tmp_path)
    with path.open("r+b") as file:
        file.seek(5_000_000)
        byte = file.read(1)
        file.seek(5_000_000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(pytest.fail.Exception):
        fio(path, "psync", [], "--rw=read", "--verify_only", "--readonly", cwd=tmp_path)
