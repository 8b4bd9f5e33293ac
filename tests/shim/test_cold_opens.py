"""The first open of a striped file reads from all disks at once, but only in programs that have threads."""

import ctypes
import random
import subprocess
import sys

import pytest

from harness import run

PROGRAM = """
import os, sys, threading
if sys.argv[2] == "threads":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
with open(sys.argv[1], "rb") as file:
    sys.stdout.buffer.write(file.read())
tasks = (open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task"))
sys.stderr.write("".join(sorted(tasks)))
sys.stdout.flush()
os._exit(0)
"""
WORKER = "iou-wrk"
SYS_IO_URING_SETUP = 425
BYTES = random.Random(5).randbytes(300_000)


@pytest.fixture
def stub(disks, graphlane, tmp_path):
    """A striped file on two disks; nothing of the parts is in memory."""
    plain = tmp_path / "plain"
    plain.write_bytes(BYTES)
    made = graphlane.create_on(tmp_path / "vol", disks, depth="64K")
    graphlane("import", plain, made.path)
    for at in disks:
        device = run("findmnt", "-n", "-o", "SOURCE", at).stdout.strip()
        run("umount", at)
        run("mount", device, at)
    return made.path / "plain"


def tasks_of(graphlane, stub, kind, environment=()):
    """The program's tasks after it has read the file."""
    done = subprocess.run(["env", *environment, graphlane.program, "run", "--no-mount", "--",
                           sys.executable, "-c", PROGRAM, stub, kind],
                          capture_output=True, timeout=100, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == BYTES
    return done.stderr.decode().splitlines()


def test_a_program_with_threads_asks_all_disks_at_once(graphlane, stub):
    if ctypes.CDLL(None).syscall(SYS_IO_URING_SETUP, 1, ctypes.create_string_buffer(120)) < 0:
        pytest.skip("not applicable: no io_uring here")
    assert any(name.startswith(WORKER) for name in tasks_of(graphlane, stub, "threads"))


def test_a_program_of_one_thread_stays_so(graphlane, stub):
    assert len(tasks_of(graphlane, stub, "alone")) == 1


def test_without_io_uring_no_ring_is_made(graphlane, stub):
    tasks = tasks_of(graphlane, stub, "threads", ["GRAPHLANE_BACKEND=threads"])
    assert len(tasks) == 2, tasks
