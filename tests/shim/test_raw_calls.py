"""System calls by number through libc's syscall(2), as Node.js, Julia and users of libaio make
them."""

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
def test_raw_calls_agree_on_striped_and_plain_files(request, graphlane, raw_calls, striped, tmp_path, way):
    if way == "mount":
        request.getfixturevalue("fuse")
    words = ["run", *([way] if way.startswith("-") else []), "--", raw_calls]
    plain = told(run(raw_calls, tmp_path / "data", tmp_path / "scratch").stdout)
    found = graphlane(*words, striped.path / "data", tmp_path / "scratch2")
    assert told(found.stdout) == plain
    assert len(plain) > 25
    assert (tmp_path / "scratch").read_bytes() == (tmp_path / "scratch2").read_bytes()


def test_raw_reads_go_to_the_devices(graphlane, raw_calls, striped, fuse, tmp_path):
    said = graphlane("run", "--report", "--", raw_calls, striped.path / "data", tmp_path / "scratch").stderr
    count = int(re.search(r"data: (\d+) reads, \d+ bytes from the devices, over the mount", said).group(1))
    assert count > 8


def test_io_submit_by_number(graphlane, raw_calls, striped, fuse, tmp_path):
    plain = run(raw_calls, tmp_path / "data", tmp_path / "scratch", "submit").stdout
    assert plain.startswith("io_submit: 4096")
    over = graphlane("run", "--", raw_calls, striped.path / "data", tmp_path / "scratch", "submit")
    assert over.stdout == plain
    # Without a mount io_setup(2) fails: the program falls back, or reports it.
    without = graphlane("run", "--no-mount", "--", raw_calls, striped.path / "data", tmp_path / "scratch", "submit")
    assert without.stdout == "io_setup: Function not implemented\n"


def test_io_submit_on_an_earlier_context_is_refused(graphlane, raw_calls, striped, tmp_path):
    """A context made before: io_submit fails with EIO, and one line reports it."""
    library = BUILD / "lib/libgraphlane.so"
    said = run("env", f"LD_PRELOAD={library}", raw_calls, striped.path / "data", tmp_path / "scratch", "submit")
    assert said.stdout == "io_submit: Input/output error\n"
    (line,) = said.stderr.splitlines()
    assert "io_submit" in line


def test_calls_that_return_twice_leave_no_stack_frame():
    """clone(2) and vfork(2) return twice: the library's stack frame would be gone the second
    time."""
    if shutil.which("objdump") is None:
        pytest.skip("not applicable: no objdump")
    code = run("objdump", "-d", "--no-show-raw-insn", "--disassemble=syscall", BUILD / "lib/libgraphlane.so").stdout
    body = re.search(r"<syscall>:\n(.*?)(\n\n|$)", code, re.DOTALL).group(1)
    assert "jmp" in body or "br" in body
    assert not re.search(r"\b(call|push|pop|sub|stp|bl)\b", body), body
