"""graphlane explain."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys

import pytest

from harness import run

READS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
char buffer[4096];
int main(int argc, char** argv) {
  int fd = open(argv[argc - 1], O_RDONLY);
  if (pread(fd, buffer, sizeof buffer, 0) < 0) return 1;
  void* map = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  return syscall(SYS_read, fd, buffer, 10) < 0 || map == MAP_FAILED;
}
"""
SHOWS = """
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char buffer[4];
  return read(open(argv[1], O_RDONLY), buffer, 4) != 4 || write(1, buffer, 4) != 4;
}
"""
STREAM = "#include <stdio.h>\nint main(void) { return getc(stdin); }\n"
NOTHING = "int main(void) { return 0; }\n"


@pytest.fixture
def compiled(tmp_path):
    """compiled(SOURCE, "-static", …): returns the path of a program."""
    made = 0

    def compile_it(source, *options, name=None):
        nonlocal made
        made += 1
        path = tmp_path / (name or f"program{made}")
        run("gcc", "-O1", "-x", "c", "-", "-o", path, *options, input=source, stdin=None)
        return path

    return compile_it


@pytest.fixture
def explained(graphlane):
    def explain(program, **kwargs):
        return json.loads(graphlane("explain", "--json", program, **kwargs).stdout)

    return explain


def by_way(one) -> dict[str, set[str]]:
    names = {}
    for call in one["calls"]:
        names.setdefault(call["way"], set()).update(call["names"])
    return names


def test_calls_are_grouped_by_path(compiled, explained):
    about = explained(compiled(READS))
    assert about["preload"] and about["reason"] is None
    assert by_way(about["executable"]) == {
        "devices": {"pread"}, "fuse": {"mmap"}, "no data": {"open", "syscall"}}
    assert about["verdict"] == "the preload library takes its reads to the devices"


def test_calls_by_number_are_reported(compiled, graphlane):
    said = graphlane("explain", compiled(READS)).stdout
    assert "by number: system calls by number go as the functions of those names do" in said


def test_a_program_of_stdio_alone_is_left_to_the_mount(compiled, explained):
    about = explained(compiled(STREAM))
    assert by_way(about["executable"]) == {"fuse": {"getc"}}
    assert about["verdict"] == "the preload library leaves its reads to a mount"


def test_a_program_without_reads(compiled, explained):
    assert explained(compiled(NOTHING))["verdict"] == "it calls nothing itself that reads files"


@pytest.mark.parametrize("options", [
    ["-O2", "-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64"], ["-s"], ["-no-pie"]])
def test_any_build_is_explained(compiled, explained, options):
    about = explained(compiled(READS, *options))
    assert "devices" in by_way(about["executable"])


def test_calls_of_its_libraries_are_found(compiled, explained, tmp_path):
    compiled("#include <unistd.h>\nint get(void) { char c; return read(0, &c, 1); }\n",
             "-shared", "-fPIC", name="libget.so")
    program = compiled("int get(void);\nint main(void) { return get(); }\n", f"-L{tmp_path}", "-lget",
                       "-Wl,-rpath,$ORIGIN")
    about = explained(program)
    (library,) = about["libraries"]
    assert library["path"] == str(tmp_path / "libget.so")
    assert by_way(library) == {"devices": {"read"}}
    (tmp_path / "libget.so").unlink()
    assert explained(program)["libraries_missing"] == ["libget.so"]


@pytest.mark.parametrize("options, reason", [
    (["-static"], "statically linked"), (["-static-pie"], "statically linked"),
    (["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], "linked to musl")])
def test_programs_that_cannot_be_preloaded(compiled, graphlane, explained, options, reason):
    program = compiled(READS, *options)
    about = explained(program)
    assert not about["preload"] and about["reason"].startswith(reason)
    said = graphlane("explain", program).stdout
    assert said.startswith(f"{program}: everything goes through a mount") and reason in said


def test_a_static_program_is_not_run_without_a_mount(compiled, graphlane, volume, tmp_path):
    """`graphlane run` refuses it, as the explanation says."""
    (tmp_path / "data").write_bytes(b"data" * 30_000)
    made = volume(depth="64K")
    graphlane("import", tmp_path / "data", made.path)
    for options, status, shown in [(["-static"], 125, b""), ([], 0, b"data")]:
        program = compiled(SHOWS, *options)
        result = subprocess.run([graphlane.program, "run", "--no-mount", "--", program,
                                 made.path / "data"], capture_output=True, timeout=60)
        assert (result.returncode, result.stdout) == (status, shown)


def test_go(explained, graphlane, tmp_path):
    if shutil.which("go") is None:
        pytest.skip("not applicable: no Go compiler")
    (tmp_path / "main.go").write_text('package main\nimport "os"\nfunc main() { os.ReadFile("x") }\n')
    run("go", "build", "-o", tmp_path / "program", "main.go", cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    assert explained(tmp_path / "program")["reason"].startswith("a Go program")


@pytest.mark.parametrize("bit", [0o4000, 0o2000])
def test_set_id(compiled, explained, root, bit):
    program = compiled(READS)
    program.chmod(0o755 | bit)
    assert explained(program)["preload"], "root's own: nothing changes for root"
    os.chown(program, 12345, 12345)
    program.chmod(0o755 | bit)
    assert explained(program)["reason"].startswith("set-user-ID or set-group-ID")


def test_scripts_are_followed_to_their_interpreter(compiled, explained, tmp_path):
    reader = compiled(READS, name="reader")
    script = tmp_path / "script"
    script.write_text(f"#! {reader} -x\nanything\n")
    outer = tmp_path / "outer"
    outer.write_text("#!/usr/bin/env -S script -y\n")
    for path in (script, outer):
        path.chmod(0o755)
    about = explained(outer, env={"PATH": f"{tmp_path}:/usr/bin"})
    assert [one["path"] for one in about["scripts"]] == [str(outer), str(script)]
    assert about["scripts"][1]["line"] == f"{reader} -x"
    assert about["executable"]["path"] == str(reader)
    bare = tmp_path / "bare"
    bare.write_text("echo\n")
    assert explained(bare)["executable"]["path"] == "/bin/sh"


# The whole file was once read for its first line.
def test_a_large_data_file_is_refused_at_once(graphlane, tmp_path):
    large = tmp_path / "large"
    large.touch(mode=0o755)
    os.truncate(large, 256 << 20)
    measure = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    said = run(sys.executable, "-c", measure, graphlane.program, "explain", large).stdout
    assert "/bin/sh" in said
    assert int(said.split()[-1]) << 10 < 128 << 20


def test_a_name_is_searched_in_the_path(compiled, explained, tmp_path):
    compiled(READS, name="reader")
    assert explained("reader", env={"PATH": f"/nowhere:{tmp_path}"})["executable"]["path"] == str(
        tmp_path / "reader")


def test_refusals(compiled, refused, tmp_path):
    refused("explain", tmp_path / "missing", naming="missing")
    refused("explain", "no-such-name", naming="in $PATH")
    refused("explain", tmp_path, naming="not a program")
    refused("explain", compiled(NOTHING, "-shared", "-fPIC"), naming="a library")
    loop = tmp_path / "loop"
    loop.write_text(f"#!{loop}\n")
    refused("explain", loop, naming="too many #! lines")
    lost = tmp_path / "lost"
    lost.write_text("#!/no/such/interpreter\n")
    refused("explain", lost, naming="/no/such/interpreter")
    empty = tmp_path / "env"
    empty.write_text("#!/usr/bin/env\n")
    refused("explain", empty, naming="names no program")


def test_a_damaged_file_is_an_error_or_an_answer_but_no_crash(compiled, graphlane, tmp_path):
    whole = compiled(READS).read_bytes()
    broken = tmp_path / "broken"
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for length in [4, 5, 16, 63, 64, 100, 1000, len(whole) // 2, len(whole) - 1]:
        broken.write_bytes(whole[:length])
        assert graphlane("explain", broken, check=False).returncode in (0, 1), length
    places = [chance.randrange(64) for _ in range(20)]
    (table,) = struct.unpack_from("<Q", whole, 0x28)  # the section table
    places += [chance.randrange(table, len(whole)) for _ in range(40)]
    for at in places:
        broken.write_bytes(whole[:at] + bytes([whole[at] ^ chance.randrange(1, 256)]) + whole[at + 1:])
        result = graphlane("explain", "--json", broken, check=False)
        assert result.returncode in (0, 1), f"seed {seed}, byte {at}: {result.stderr}"


def test_the_report_uses_the_same_words(compiled, graphlane, explained, volume, fuse, tmp_path):
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(100_000))
    made = volume(depth="64K")
    graphlane("import", tmp_path / "data", made.path)
    program = compiled(READS)
    graphlane("run", f"--report={tmp_path}/report", "--", program, made.path / "data")
    (file,) = json.loads((tmp_path / "report").read_text())["files"]
    assert file["reads"] == 2  # one of them by number
    foretold = {call["why"]: call["way"] for call in explained(program)["executable"]["calls"]}
    (left,) = file["left_to_fuse"]
    assert left["calls"] == 1 and foretold[left["why"]] == "fuse"
    assert "mapping" in left["why"]
    said = graphlane("run", "--report", "--", program, made.path / "data").stderr
    assert f"left to FUSE, 1 call: {left['why']}\n" in said


def test_a_library_loaded_at_run_time_is_examined(compiled, explained, graphlane, tmp_path):
    compiled("#include <unistd.h>\nint get(void) { char c; return pread(0, &c, 1, 0); }\n", "-shared", "-fPIC",
             name="libplugin.so")
    source = ('#include <dlfcn.h>\nint main(void) {{ void* l = dlopen("{}", RTLD_LAZY); '
              'return !l || ((int (*)(void))dlsym(l, "get"))() < 0; }}\n')
    program = compiled(source.format("libplugin.so"), "-Wl,-rpath,$ORIGIN")
    about = explained(program)
    assert about["dlopen"] and about["libraries"] == []
    (named,) = about["libraries_named"]
    assert named["path"] == str(tmp_path / "libplugin.so") and by_way(named) == {"devices": {"pread"}}
    said = graphlane("explain", program).stdout
    assert f"      {tmp_path}/libplugin.so: pread\n" in said and "graphlane run --report tells" in said
    # A library name that does not exist; and a program that loads nothing.
    assert explained(compiled(source.format("libabsent.so"), "-Wl,-rpath,$ORIGIN"))["libraries_named"] == []
    nothing = compiled('#include <stdio.h>\nint main(void) { return puts("libplugin.so"); }\n')
    about = explained(nothing)
    assert about["libraries_named"] == [] and not about["dlopen"]


def test_each_reading_library_is_named(compiled, graphlane, tmp_path):
    compiled("#include <stdio.h>\nint get(void) { char c; return fread(&c, 1, 1, stdin); }\n"
             "int put(void) { return fwrite(\"x\", 1, 1, stdout); }\n", "-shared", "-fPIC", name="libget.so")
    compiled("#include <stdio.h>\nint other(void) { return fwrite(\"x\", 1, 1, stdout); }\n", "-shared", "-fPIC",
             name="libput.so")
    program = compiled("int get(void), other(void);\nint main(void) { return get() + other(); }\n", f"-L{tmp_path}",
                       "-lget", "-lput", "-Wl,-rpath,$ORIGIN")
    said = graphlane("explain", program).stdout
    assert f"      {tmp_path}/libget.so: fread\n" in said and f"{tmp_path}/libput.so: " not in said


def test_io_uring_by_system_calls_of_its_own(compiled, explained, graphlane):
    if os.uname().machine != "x86_64":
        pytest.skip("not applicable: looked for on x86-64")
    source = """
int main(void) {
  long result;
  __asm__ volatile("mov $425, %%eax\\n\\txor %%edi, %%edi\\n\\txor %%esi, %%esi\\n\\tsyscall"
                   : "=a"(result) : : "rdi", "rsi", "rcx", "r11", "memory");
  return result != -22;
}
"""
    program = compiled(source)
    assert explained(program)["io_uring_itself"] == [str(program)]
    assert "not seen: io_uring by system calls of its own" in graphlane("explain", program).stdout
    assert explained(compiled(NOTHING))["io_uring_itself"] == []
