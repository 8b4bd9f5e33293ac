"""libgraphlane.so exports the names of calls.def, and nothing else."""

import re
import subprocess

from harness import BUILD, ROOT, run

LIBRARY = BUILD / "lib/libgraphlane.so"


def table_names():
    text = (ROOT / "shim/hooks/calls.def").read_text()
    return set(re.findall(r"^CALL\(\w+, [^,]+, (\w+),", text, re.MULTILINE))


def exported_names():
    lines = run("nm", "-D", "--defined-only", LIBRARY).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_exports_are_the_table():
    assert exported_names() == table_names()
    assert len(table_names()) > 60


def test_every_name_is_one_of_libc():
    """A misspelt name would be a hook that is never called."""
    libc = next(line.split()[2] for line in run("ldd", LIBRARY).stdout.splitlines()
                if "libc.so" in line)
    known = {line.split()[-1].split("@")[0]
             for line in run("nm", "-D", "--defined-only", libc).stdout.splitlines()}
    # libc keeps __xstat and its kin for old programs. closefrom and close_range came with glibc
    # 2.34.
    assert table_names() <= known


def test_no_cxx_runtime_is_needed():
    needed = run("readelf", "-d", LIBRARY).stdout
    libraries = set(re.findall(r"\(NEEDED\).*\[(.+)\]", needed))
    assert libraries <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, libraries


def test_no_thread_is_cancelled_inside_the_library():
    """Threads are cancelled only where a hook allows it, as a cancelled thread releases no lock.
    A hook looks up by name what it calls for the program."""
    called = {line.split()[-1].split("@")[0]
              for line in run("nm", "-D", "--undefined-only", LIBRARY).stdout.splitlines()}
    points = re.compile(r"accept4?|close|connect|creat|fcntl|fdatasync|fsync|getrandom|lockf|msync|(clock_)?nanosleep|"
                        r"open(at)?|p?poll|p?select|pause|p?(read|write)v?2?|recv(m?msg|from)?|send(m?msg|to)?|"
                        r"u?sleep|wait(3|4|id|pid)?|epoll_p?wait|pthread_(join|cond_wait|cond_timedwait)|sem_wait|"
                        r"(posix_)?fallocate|sync_file_range|syncfs|splice|tee|vmsplice|f(read|write|close|open|flush)|"
                        r"f?printf|dprintf|opendir|readdir|syslog|system")
    assert {name for name in called if points.fullmatch(name.replace("64", ""))} == set()


def test_a_program_without_striped_files_is_left_alone():
    plain = subprocess.run(["ls", "-l", "/usr"], capture_output=True, check=True)
    preloaded = subprocess.run(["ls", "-l", "/usr"], capture_output=True, check=True,
                               env={"LD_PRELOAD": str(LIBRARY), "GRAPHLANE_REPORT": "1"})
    assert preloaded.stdout == plain.stdout
    assert preloaded.stderr == b""
