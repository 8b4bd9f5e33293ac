"""The library is loaded beside others, before other constructors, more than once, and into
children with an environment of their own."""

import os
import random
import subprocess

import pytest

from harness import BUILD, run

LIBRARY = BUILD / "lib/libgraphlane.so"
# Reads $EARLY in its constructor: before main(), and possibly before the library's own constructor.
EARLY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
__attribute__((constructor)) static void early(void) {
  const char* path = getenv("EARLY");
  static char bytes[1 << 20];
  int fd = open(path, O_RDONLY);
  ssize_t n = pread(fd, bytes, sizeof bytes, 4321);
  unsigned long sum = 0;
  for (ssize_t i = 0; i < n; ++i) sum = sum * 31 + (unsigned char)bytes[i];
  struct stat st;
  fstat(fd, &st);
  char line[100];
  dprintf(2, "%zd %lu %lld\n", n, sum, (long long)st.st_size);
  close(fd);
}
"""
# A malloc() that reads $EARLY on its first call, as an allocator reads its settings.
ALLOCATOR = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <dlfcn.h>
extern char** environ;
extern void* __libc_malloc(size_t);
static int looked;
void* malloc(size_t size) {
  if (!looked && environ != 0 && getenv("EARLY") != 0) {
    looked = 1;
    char byte;
    int fd = open(getenv("EARLY"), O_RDONLY);
    if (fd < 0 || pread(fd, &byte, 1, 70000) != 1 || byte == 0) _exit(99);
    close(fd);
  }
  return __libc_malloc(size);
}
"""
MAIN = "#include <stdlib.h>\nint main(void) { return malloc(10) == 0; }\n"


@pytest.fixture
def pair(volume, graphlane, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(random.Random(6).choices(range(1, 256), k=1_500_000)))
    made = volume(depth="64K")
    graphlane("import", plain, made.path)
    return plain, made


@pytest.fixture
def compiled(tmp_path):
    def compile_it(source, name, *options):
        run("gcc", "-O1", "-x", "c", "-", "-o", tmp_path / name, *options, input=source, stdin=None)
        return tmp_path / name

    return compile_it


def early(path, *libraries, command=("true",)):
    result = subprocess.run(command, capture_output=True, text=True, timeout=60,
                            env={"PATH": os.environ["PATH"], "EARLY": str(path),
                                 "LD_PRELOAD": ":".join(map(str, libraries))})
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_a_constructor_reads_before_or_after_ours(pair, compiled):
    plain, made = pair
    other = compiled(EARLY, "early.so", "-shared", "-fPIC")
    native = early(plain, other)
    assert native.endswith(" 1500000\n")
    for libraries in ([LIBRARY, other], [other, LIBRARY]):
        assert early(made.path / "plain", *libraries) == native


def test_an_allocator_reads_when_it_is_first_called(pair, compiled):
    plain, made = pair
    allocator = compiled(ALLOCATOR, "allocator.so", "-shared", "-fPIC", "-fno-builtin")
    program = compiled(MAIN, "program")
    for path, libraries in [(plain, [allocator]), (made.path / "plain", [LIBRARY, allocator]),
                            (made.path / "plain", [allocator, LIBRARY])]:
        early(path, *libraries, command=[program])


def test_twice_in_the_list(pair):
    plain, made = pair
    result = subprocess.run(["cmp", made.path / "plain", plain], capture_output=True, text=True,
                            env={**os.environ, "LD_PRELOAD": f"{LIBRARY}:{LIBRARY}"})
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_children_inherit_it_also_with_an_empty_environment(pair, graphlane):
    plain, made = pair
    striped = made.path / "plain"
    words = [graphlane.program, "run", "--no-mount", "--", "sh", "-c"]
    assert run(*words, f"sh -c 'wc -c < {striped}'").stdout.strip() == "1500000"
    assert run(*words, f"env -i /usr/bin/wc -c {striped}").stdout.split()[0] == "1500000"
    assert run(*words, f"cat {striped} | cmp - {plain} && ! cat {striped}.none 2>/dev/null").stdout == ""
