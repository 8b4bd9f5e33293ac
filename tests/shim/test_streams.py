"""stdio on striped files: some forty functions, including wide and unlocked ones."""

import os
import random
import subprocess
import sys

import pytest

from harness import BUILD, run

PROGRAM = BUILD / "engines/streams"


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    """A text of 3 MB with multibyte letters, plain and striped."""
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


WIDE = r"""
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>
static int fails(int result) { int fails = result < 0 && errno == ENOTSUP; errno = 0; return fails; }
static int v(int (*f)(const wchar_t*, va_list), const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  int result = f(format, values);
  va_end(values);
  return result;
}
static int vf(const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  int result = vfwprintf(stdout, format, values);
  va_end(values);
  return result;
}
int main(void) {
  setlocale(LC_ALL, "C.UTF-8");
  wchar_t room[10];
  int count = 0;
  count += fails((int)getwchar()) + fails((int)getwchar_unlocked()) + fails(wscanf(L"%9ls", room));
  count += fails(v(vwscanf, L"%9ls", room)) + (ferror(stdin) != 0) + !feof(stdin);
  count += fails((int)putwchar(L'\u00e9')) + fails((int)putwchar_unlocked(L'\u00e9'));
  count += fails((int)putwc(L'\u00e9', stdout)) + fails((int)fputwc(L'\u00e9', stdout));
  count += fails((int)putwc_unlocked(L'\u00e9', stdout)) + fails((int)fputwc_unlocked(L'\u00e9', stdout));
  count += fails(fputws(L"\u00e9", stdout)) + fails(fputws_unlocked(L"\u00e9", stdout));
  count += fails(wprintf(L"%ls", L"\u00e9")) + fails(fwprintf(stdout, L"%ls", L"\u00e9"));
  count += fails(v(vwprintf, L"%ls", L"\u00e9")) + fails(vf(L"%ls", L"\u00e9")) + (ferror(stdout) != 0);
  fprintf(stderr, "refused: %d\n", count);
  return 0;
}
"""


@pytest.mark.parametrize("fortified", ["-D_FORTIFY_SOURCE=0", "-D_FORTIFY_SOURCE=2"])
def test_wide_characters_of_standard_streams_are_refused(volume, graphlane, tmp_path, fortified):
    made = volume(depth="64K", stripe=["*.dat"])
    source, program = tmp_path / "wide.c", tmp_path / "wide"
    source.write_text(WIDE)
    run("gcc", "-O2", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", fortified, "-o", program, source)
    script = f"echo é > {made.path}/in.dat; {program} < {made.path}/in.dat > {made.path}/out.dat; wc -c < {made.path}/out.dat"
    said = run(graphlane.program, "run", "--no-mount", "--", "bash", "-c", script)
    assert said.stdout.strip() == "0"
    assert "refused: 19\n" in said.stderr and said.stderr.count("wide characters") == 1
    said = run("bash", "-c", f"echo é | {program}")
    assert said.stderr == "refused: 0\n" and said.stdout.count("é") == 12


def test_a_closed_standard_stream_is_recreated(volume, graphlane, tmp_path):
    made = volume(depth="64K", stripe=["*.dat"])
    program = tmp_path / "program"
    program.write_text(f"""
import ctypes, os
libc = ctypes.CDLL(None)
def stdout():
    return ctypes.c_void_p.in_dll(libc, "stdout")
for name in ["1.dat", "2.dat"]:
    libc.fputs(b"before " + name.encode(), stdout())
    libc.fclose(stdout())
    assert os.open({str(made.path)!r} + "/" + name, os.O_WRONLY | os.O_CREAT) == 1
libc.fputs(b"the last", stdout())
""")
    # A freed stream is no stream any more.
    environment = os.environ | {"MALLOC_PERTURB_": "165"}
    script = f"{sys.executable} {program} > {made.path}/0.dat; cd {made.path}; head *.dat"
    said = run(graphlane.program, "run", "--no-mount", "--", "bash", "-c", script, env=environment)
    assert said.stdout.split("==>")[1:] == [" 0.dat <==\nbefore 1.dat\n", " 1.dat <==\nbefore 2.dat\n",
                                            " 2.dat <==\nthe last"]


LIBRARY = """
#include <iostream>
int of_the_library() { return std::cin.good(); }
"""
CXX_STREAMS = """
#include <iostream>
#include <string>
int of_the_library();
int main(int argc, char**) {
  if (argc > 1) std::ios::sync_with_stdio(false);
  std::cout << "begin " << of_the_library() << "\\n";
  char first = 0;
  std::cin.get(first).unget();
  std::string line;
  while (std::getline(std::cin, line)) std::cout << line << "\\n";
  std::cout << "end\\n" << std::flush;
  return std::cout.good() ? 0 : 1;
}
"""


@pytest.mark.parametrize("words", [[], ["not synchronized"]])
def test_a_cxx_library_that_is_initialized_before_the_hooks(pair, graphlane, tmp_path, words):
    """libstdc++ of gcc 13, and any library that includes <iostream>, sets std::cin up before the
    library is asked."""
    plain, made = pair
    (tmp_path / "library.cc").write_text(LIBRARY)
    (tmp_path / "program.cc").write_text(CXX_STREAMS)
    run("g++", "-shared", "-fPIC", "-o", tmp_path / "libearly.so", tmp_path / "library.cc")
    run("g++", "-O1", "-o", tmp_path / "program", tmp_path / "program.cc", tmp_path / "libearly.so",
        f"-Wl,-rpath,{tmp_path}")
    graphlane("import", plain, made.path / "out")
    with open(made.path / "text") as stdin, open(made.path / "out", "r+") as stdout:
        subprocess.run([graphlane.program, "run", "--no-mount", "--", tmp_path / "program", *words], check=True,
                       stdin=stdin, stdout=stdout, timeout=100)
    graphlane("export", made.path / "out", tmp_path / "back")
    want = b"begin 1\n" + plain.read_bytes() + b"end\n"
    assert (tmp_path / "back").read_bytes() == want
