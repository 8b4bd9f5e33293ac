"""The order in which changes become durable, seen in the daemon's system calls."""

import os

from mounts import mounted, parts_of, striped, traced  # noqa: F401, fixtures


def test_a_bound_is_durable_before_any_part_is_cut(root, striped, mounted):
    """Otherwise a power failure could keep some parts cut, others long, and no bound: the holes
    between would be read as zeros."""
    volume, _ = striped(size=100_000)
    with mounted(volume) as at, open(at / "data", "r+b", buffering=0) as file:
        file.seek(0, os.SEEK_END)
        file.write(b"more")  # from here on the stub says `open`
        with traced(volume, at, "fdatasync", "ftruncate", "pwrite64") as calls:
            os.truncate(file.fileno(), 10_000)
        assert [name for name, _ in calls] == ["pwrite64", "fdatasync", *["ftruncate"] * 4]
        assert all(path.endswith("/data") for _, path in calls[:2])
        assert os.fstat(file.fileno()).st_size == 10_000


def test_a_bound_is_lifted_after_the_cut_parts_are_durable(root, striped, mounted):
    """Otherwise a power failure could restore some parts to their old length."""
    volume, _ = striped(size=100_000)
    with mounted(volume) as at, open(at / "data", "r+b", buffering=0) as file:
        os.truncate(file.fileno(), 10_000)
        file.seek(0, os.SEEK_END)
        with traced(volume, at, "fsync", "fdatasync", "pwrite64") as calls:
            file.write(b"more")
            os.fstat(file.fileno())
        *synced, (name, path) = calls[:5]
        assert {name for name, _ in synced} <= {"fsync", "fdatasync"}
        assert {path for _, path in synced} == {str(part) for part in parts_of(volume)}
        assert name == "pwrite64" and path.endswith("/data")
