"""The fixtures of tests that run whole programs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import BUILD, Graphlane, Volume  # noqa: E402


@pytest.fixture(scope="session")
def graphlane() -> Graphlane:
    return Graphlane(BUILD / "bin/graphlane")


@pytest.fixture(scope="session")
def engines() -> Path:
    return BUILD / "engines"


@pytest.fixture(scope="session")
def fuse() -> None:
    """Skips where this user cannot mount."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    if shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is missing")


@pytest.fixture
def volume(graphlane, tmp_path):
    """Makes volumes: volume(depth="64K", stripe=["column"])."""
    made = 0

    def make(**options) -> Volume:
        nonlocal made
        made += 1
        return graphlane.create(tmp_path / f"volume{made}", **options)

    return make


@pytest.fixture
def mount(graphlane, fuse, tmp_path):
    """`with mount(volume) as path:` ends with the volume unmounted."""
    return lambda volume: graphlane.mounted(volume, tmp_path / "mnt")
