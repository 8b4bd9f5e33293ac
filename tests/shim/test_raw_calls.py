"""System calls by number, which libc's syscall(2) makes for programs (Node.js, Julia, libaio's users)."""

import random
import re
import shutil

import pytest

from harness import BUILD, ROOT, run

SIZE = 1_000_003


@pytest.fixture(scope="session")
def raw_calls(tmp_path_factory):
    program = tmp_path_factory.mktemp("raw") / "raw_calls"
    run("gcc", "-O1", "-o", program, ROOT / "tests/shim/raw_calls.c")
    return program


@pytest.fixture
def striped(graphlane, volume, tmp_path):
    made = volume(depth="64K")
    (tmp_path / "data").write_bytes(random.Random(3).randbytes(SIZE))
    graphlane("import", tmp_path / "data", made.path)
    return made


def told(text) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines())


@pytest.mark.parametrize("way", ["--no-mount", "mount"])
def test_they_say_of_a_striped_file_what_they_say_of_another(request, graphlane, raw_calls, striped, tmp_path, way):
    if way == "mount":
        request.getfixturevalue("fuse")
    words = ["run", *([way] if way.startswith("-") else []), "--", raw_calls]
    plain = told(run(raw_calls, tmp_path / "data", tmp_path / "scratch").stdout)
    found = graphlane(*words, striped.path / "data", tmp_path / "scratch2")
    assert told(found.stdout) == plain
    assert len(plain) > 25
    assert (tmp_path / "scratch").read_bytes() == (tmp_path / "scratch2").read_bytes()


def test_their_reads_go_to_the_devices(graphlane, raw_calls, striped, fuse, tmp_path):
    said = graphlane("run", "--report", "--", raw_calls, striped.path / "data", tmp_path / "scratch").stderr
    count = int(re.search(r"data: (\d+) reads, \d+ bytes from the devices, over the mount", said).group(1))
    assert count > 8


def test_what_is_submitted_by_number(graphlane, raw_calls, striped, fuse, tmp_path):
    plain = run(raw_calls, tmp_path / "data", tmp_path / "scratch", "submit").stdout
    assert plain.startswith("io_submit: 4096")
    over = graphlane("run", "--", raw_calls, striped.path / "data", tmp_path / "scratch", "submit")
    assert over.stdout == plain
    # Without a mount there is no io_setup(2): the program falls back, or says so.
    without = graphlane("run", "--no-mount", "--", raw_calls, striped.path / "data", tmp_path / "scratch", "submit")
    assert without.stdout == "io_setup: Function not implemented\n"


def test_where_it_cannot_be_switched_off_it_is_refused(graphlane, raw_calls, striped, tmp_path):
    """A context from before: io_submit is EIO, and one line tells."""
    library = BUILD / "lib/libgraphlane.so"
    said = run("env", f"LD_PRELOAD={library}", raw_calls, striped.path / "data", tmp_path / "scratch", "submit")
    assert said.stdout == "io_submit: Input/output error\n"
    (line,) = said.stderr.splitlines()
    assert "io_submit" in line


def test_what_is_not_answered_leaves_no_frame():
    """clone(2) and vfork(2) return twice: a frame of ours would be gone the second time."""
    if shutil.which("objdump") is None:
        pytest.skip("not applicable: no objdump")
    code = run("objdump", "-d", "--no-show-raw-insn", "--disassemble=syscall", BUILD / "lib/libgraphlane.so").stdout
    body = re.search(r"<syscall>:\n(.*?)(\n\n|$)", code, re.DOTALL).group(1)
    assert "jmp" in body or "br" in body
    assert not re.search(r"\b(call|push|pop|sub|stp|bl)\b", body), body
