"""Calls on a plain and on a striped file give the same result, errno and bytes.

parity.cc makes the calls. This file runs it on every path to a striped file.
"""

import os
import random
import subprocess

import pytest

from harness import BUILD, run

SIZE = 30_000_123  # not a multiple of a page, a unit, or a row of units


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    """A plain file and its striped twin in a volume."""
    plain = tmp_path / "plain"
    plain.write_bytes(random.Random(1).randbytes(SIZE))
    striped_volume = volume(depth="1M")
    graphlane("import", plain, striped_volume.path)
    return plain, striped_volume


def parity(plain, striped, *options, prefix=(), environment=None):
    seed = random.randrange(1 << 32)
    result = subprocess.run(
        [*map(str, prefix), BUILD / "engines/parity", plain, striped, str(seed), *options],
        capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})})
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 differences" in result.stdout


def test_the_probe_agrees_with_itself_and_can_fail(tmp_path):
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_bytes(b"\1" * 3_000_000)
    other.write_bytes(b"\1" * 2_999_999 + b"\2")
    parity(plain, plain, "--map")
    assert run(BUILD / "engines/parity", plain, other, 1, check=False).returncode == 1


@pytest.mark.parametrize("backend", ["io_uring", "libaio", "threads"])
@pytest.mark.parametrize("io", ["direct", "buffered"])
def test_preloaded_on_stubs(pair, graphlane, backend, io):
    plain, striped = pair
    parity(plain, striped.path / "plain",
           prefix=[graphlane.program, "run", "--no-mount", "--"],
           environment={"GRAPHLANE_BACKEND": backend, "GRAPHLANE_IO": io})


def test_mounted(pair, mount):
    plain, striped = pair
    with mount(striped) as at:
        parity(plain, at / "plain", "--map")


@pytest.mark.parametrize("io", ["auto", "direct"])
def test_preloaded_over_a_mount(pair, mount, graphlane, io):
    plain, striped = pair
    with mount(striped) as at:
        parity(plain, at / "plain", "--map", prefix=[graphlane.program, "run", "--"],
               environment={"GRAPHLANE_IO": io})


def test_preloaded_over_a_private_mount(pair, fuse, graphlane):
    plain, striped = pair
    parity(plain, striped.path / "plain", "--map", prefix=[graphlane.program, "run", "--"])
