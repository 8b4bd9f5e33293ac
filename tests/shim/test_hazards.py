"""Programs do what preload libraries are known to get wrong, with the same result on a plain
file and on a striped one. README.md lists where each hazard is tested."""

import os
import random
import subprocess

import pytest

from harness import BUILD, run

SIZE = 3_500_017
PROGRAM = BUILD / "engines/hazards"
LIBRARY = BUILD / "lib/libgraphlane.so"
# The names that the program knows, for pytest. test_the_list_of_hazards_is_complete compares the lists.
HAZARDS = [
    "a-vfork-child-closes", "a-vfork-child-comes-first", "all-is-closed", "all-is-closed-by-raw-system-calls",
    "an-exec-that-fails", "by-every-name", "cancelled",
    "cancelled-elsewhere", "errors", "few-descriptors", "fewer-descriptors-later",
    "forked-by-a-raw-system-call", "handlers-leave", "handlers-read",
    "loaded-late", "on-a-small-stack", "received-under-a-known-number",
    "replaced-by-a-raw-system-call", "sent-to-another-process", "spawned",
    "the-environment-is-cleared", "unlinked-and-renamed"]


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    """A plain file and its striped twin with 64K units. New files of the program are striped
    too."""
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(3).randbytes(SIZE))
    made = volume(depth="64K", stripe=["*.made"])
    graphlane("import", plain, made.path)
    return plain, made


def seen(hazard, path, prefix=(), environment=None):
    result = subprocess.run([*map(str, prefix), PROGRAM, hazard, path], capture_output=True,
                            text=True, timeout=100, stdin=subprocess.DEVNULL,
                            env={**os.environ, **(environment or {})})
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_list_of_hazards_is_complete():
    assert run(PROGRAM).stdout.split() == HAZARDS


@pytest.mark.parametrize("backend", ["io_uring", "threads"])
@pytest.mark.parametrize("hazard", HAZARDS)
def test_without_a_mount(pair, graphlane, hazard, backend):
    plain, made = pair
    environment = {"GRAPHLANE_BACKEND": backend}
    if hazard == "loaded-late":  # the program loads it itself
        environment["LIBRARY"] = str(LIBRARY)
        prefix = []
    else:
        prefix = [graphlane.program, "run", "--no-mount", "--"]
    striped = seen(hazard, made.path / "plain", prefix, environment)
    assert striped == seen(hazard, plain)


@pytest.mark.parametrize("hazard", HAZARDS)
def test_over_a_private_mount(pair, graphlane, fuse, hazard):
    plain, made = pair
    striped = seen(hazard, made.path / "plain", [graphlane.program, "run", "--"])
    assert striped == seen(hazard, plain)
