"""graphlane-share-coordinator refuses unknown options and values."""

import subprocess

import pytest

from harness import BUILD


@pytest.mark.parametrize("word, says", [("--idle-ms=1K", "not a number of milliseconds"), ("--idle-ms=", "not a number of milliseconds"),
                                        ("--budget=lots", "lots")])
def test_wrong_options_are_refused(word, says):
    done = subprocess.run([BUILD / "bin/graphlane-share-coordinator", word], capture_output=True, text=True)
    assert done.returncode != 0 and says in done.stderr
