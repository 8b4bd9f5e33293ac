"""calls.def decides on every name of the running libc through which a program can reach a file's
data, size, name or descriptor. A libc with a new name fails here until the table decides on it."""

import re

from harness import BUILD, ROOT, run

# A name of libc reaches files if one of these matches it after bare().
FILE_NAMES = [re.compile(pattern) for pattern in [
    r"p?(read|write)v?", r"p(read|write)vv?2", r"readahead", r"getdents|getdirentries",
    r"(f|fd|fre)?open(at)?\d?", r"creat", r"open_(by_handle_at|tree|memstream|wmemstream)",
    r"fmemopen", r"fopencookie", r"name_to_handle_at", r"tmpfile", r"mk(o?)stemps?",
    r"(f|p)?close(_range|from|dir)?", r"fcloseall", r"dup\d?", r"fcntl", r"ioctl", r"flock", r"lockf",
    r"pidfd_getfd", r"(send|recv)m?msg",
    r"l?lseek", r"f(seek|tell)o?", r"rewind", r"f[gs]etpos",
    r"[fl]?x?statx?(at)?", r"[fu]?statv?fs", r"ustat", r"f?accessat|e?access|euidaccess",
    r"fts_.*|n?ftw|glob.*|scandir(at)?",
    r"chdir|(fd)?opendir|(read|rewind|seek|tell|close)dir(_r)?",
    r"f?truncate", r"(posix_)?(fallocate|fadvise|spawnp?)", r"posix_spawn_file_actions_addopen",
    r"f(data)?sync|sync(fs|_file_range)?|msync",
    r"mmap\d?|mremap|munmap|remap_file_pages|mincore|(posix_|process_)?madvise|mlock2?|munlock",
    r"copy_file_range|sendfile|v?msplice|splice|tee|process_vm_(read|write)v",
    r"(aio|lio)_.*|io_.*|syscall",
    r"fwide|fgetw?[cs]|getw?c|getw|getw?char|gets|get(line|delim)|ungetw?c", r"f?putwc|putwchar|fputws|v?f?wprintf|f?put[cs]|fflush",
    r"f(read|write)", r"v?fw?scanf|v?w?scanf|isoc\d\d_v?f?w?scanf", r"v?dprintf", r"w?u(nder)?flow|wunderflow",
    r"file_(attach|close|fopen|open|read|write|seek|seekoff|stat|sync|underflow|xsputn)",
    r"wfile_(underflow|seekoff)|getline_info|seek(off|pos)|sgetn",
    r"rename(at2?)?|remove|(un|sym)?link(at)?|readlink(at)?",
    r"f?chmod(at)?|[fl]?chown(at)?",
    r"v?fork(pty)?|clone\d?|exec[lv]p?e?|f?execve(at)?|p?popen|pclose|system",
]]

def bare(name: str) -> str:
    """The plain name: fgets for __fgets_unlocked_chk, openat for __openat64_2."""
    name = re.sub(r"^_+(IO_)?", "", name)
    name = re.sub(r"(_chk|_2)$", "", name)
    name = re.sub(r"_unlocked$", "", name)
    return name.replace("64", "").lower()


def reaches_files(name: str) -> bool:
    return any(p.fullmatch(bare(name)) for p in FILE_NAMES)


def libc_functions() -> set[str]:
    """The names that programs may call, without those that libc's parts share (GLIBC_PRIVATE)."""
    libraries = run("ldd", BUILD / "lib/libgraphlane.so").stdout.splitlines()
    libc = next(line.split()[2] for line in libraries if "libc.so" in line)
    symbols = [line.split()[-2:] for line in run("nm", "-D", "--defined-only", libc).stdout.splitlines()]
    return {name.split("@")[0] for kind, name in symbols
            if kind in "TWi" and not name.endswith("GLIBC_PRIVATE")}


def table() -> dict[str, str]:
    """name -> group"""
    text = (ROOT / "shim/hooks/calls.def").read_text()
    calls = re.findall(r"^CALL\((\w+), [^,]+, (\w+),", text, re.MULTILINE)
    left = re.findall(r"^LEFT\((\w+), (\w+)\)", text, re.MULTILINE)
    names = [name for _, name in calls + left]
    assert len(names) == len(set(names)), "a name stands twice"
    return {name: group for group, name in calls + left}


def test_every_name_of_libc_that_reaches_files_is_decided_on():
    undecided = {name for name in libc_functions() if reaches_files(name)} - set(table())
    assert undecided == set()


def test_the_patterns_match_the_table():
    """A pattern that is lost or never matches is noticed."""
    assert {name for name in table() if not reaches_files(name)} == set()
    names = {bare(name) for name in libc_functions()} | {bare(name) for name in table()}
    idle = [p.pattern for p in FILE_NAMES if not any(p.fullmatch(name) for name in names)]
    assert idle == []


def test_every_group_has_a_phrase():
    text = (ROOT / "shim/hooks/calls.def").read_text()
    groups = dict(re.findall(r'^GROUP\((\w+), (?:fast|fuse|blind|none), "(.+)"\)', text, re.MULTILINE))
    assert set(groups) == set(table().values())
    assert len(set(groups.values())) == len(groups)
