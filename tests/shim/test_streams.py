"""stdio on striped files: some forty functions, wide and unlocked ones too."""

import os
import random
import subprocess

import pytest

from harness import BUILD

PROGRAM = BUILD / "engines/streams"


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    """A text of 3 MB with words of several bytes a letter, plain and striped."""
    chance = random.Random(4)
    words = ["edge", "vertex", "größe", "степень", "€", "節點"]
    plain = tmp_path / "text"
    plain.write_text("".join(f"{chance.randrange(10**6)} {chance.choice(words)}\n"
                             for _ in range(230_000)))
    assert plain.stat().st_size > 3_000_000
    made = volume(depth="64K")
    graphlane("import", plain, made.path)
    return plain, made


def seen(path, other, prefix=()):
    with open(path) as stdin:
        result = subprocess.run([*map(str, prefix), PROGRAM, path, other], capture_output=True,
                                text=True, timeout=100, stdin=stdin, env=os.environ)
    assert result.returncode == 0, result.stdout + result.stderr
    sections = (section.split("\n", 1) for section in result.stdout.split("-- ")[1:])
    return {name: lines for name, lines in sections}


def test_without_a_mount(pair, graphlane):
    plain, made = pair
    striped = seen(made.path / "text", plain, [graphlane.program, "run", "--no-mount", "--"])
    native = seen(plain, plain)
    assert len(native) == 9
    assert striped.pop("wide").startswith("without wide characters: said so\n")
    assert native.pop("wide").count("\n") > 10
    assert striped == native


@pytest.mark.parametrize("preloaded", [False, True])
def test_over_a_mount(pair, graphlane, mount, preloaded):
    plain, made = pair
    with mount(made) as at:
        prefix = [graphlane.program, "run", "--"] if preloaded else []
        assert seen(at / "text", plain, prefix) == seen(plain, plain)
