"""Readers of untrusted bytes survive damaged ones: the corpus, and some seconds of mutated inputs. `make fuzz`
runs longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import BUILD

sys.path.insert(0, str(Path(__file__).parent))
from run import CORPUS, fuzz  # noqa: E402

PROGRAM = str(BUILD / "fuzz/fuzz")
SECONDS = float(os.environ.get("FUZZ_SECONDS", "3"))


def names() -> list[str]:
    return sorted(path.name for path in CORPUS.iterdir())


def test_every_target_has_a_corpus():
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True, timeout=60)
    assert sorted(listed.stdout.split()) == names()


@pytest.mark.parametrize("name", names())
def test_damaged_input_is_refused(name, tmp_path):
    seed = int.from_bytes(os.urandom(4), "little")
    done = fuzz(PROGRAM, name, SECONDS, seed, tmp_path)
    crashed = {path.name: path.read_bytes()[:2000] for path in tmp_path.iterdir()}
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3000:]} {crashed}"
    assert int(done.stdout.split()[0]) > 0
