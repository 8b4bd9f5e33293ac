"""LTP: its `fs` list, and the tests on files of its `syscalls` list.

FOLDER is the source tree, built in place (./configure && make -C lib, then make in
testcases/kernel/fs and in the folders of testcases/kernel/syscalls that you want). It may also be
the result of `make install`: rwtest finds its programs only there, in FOLDER/testcases/bin. The
lists lie in FOLDER/runtest.
"""

import os
import re
from pathlib import Path

from tests.conformance.bench import Bench, BenchError, Ran, run
from tests.conformance.result import SuiteResult

TEST_SECONDS_MAX = 300

SYSCALLS = ("mmap", "munmap", "msync", "copy_file_range", "preadv", "pwritev", "statx", "openat",
            "close_range", "lseek", "llseek", "open", "creat", "read", "write", "pread", "pwrite",
            "fallocate", "truncate", "ftruncate", "rename", "link", "symlink", "unlink", "mkdir",
            "rmdir", "mknod", "chmod", "fchmod", "chown", "fchown", "utime", "flock", "fcntl",
            "getxattr", "setxattr", "fsetxattr", "listxattr", "removexattr", "getdents", "statfs",
            "fstatfs", "statvfs", "sendfile", "splice", "fsync", "fdatasync", "name_to_handle_at",
            "open_by_handle_at", "readahead", "posix_fadvise", "sync_file_range", "stat", "lstat",
            "fstat", "access", "faccessat", "readlink")

# Bits of LTP's exit status. 0 is passed; several bits can be set.
FAILED, BROKEN, WARNING, NOT_FOR_HERE = 1, 2, 4, 32
NOT_FOUND = 127  # the shell's
NO_DEVICE = re.compile(r"TBROK: (mkfs\.|.*is not a block device)")

ELSEWHERE = {
    "isofs": "makes filesystems of its own",
    "fs_fill": "fills every filesystem of a list, each on a device of its own",
    "quota_remount_test01": "quota of a device",
    "binfmt_misc01": "binfmt_misc", "binfmt_misc02": "binfmt_misc",
    "proc01": "/proc", "read_all_proc": "/proc", "read_all_sys": "/sys", "read_all_dev": "/dev",
    "squashfs01": "squashfs", "df01_sh": "a device", "mkfs01_sh": "a device",
}


def _programs(folder: Path) -> dict[str, Path]:
    """Name -> directory of each built test."""
    found = {}
    for top in (folder / "testcases/bin", folder / "testcases/kernel", folder / "testcases/lib"):
        for directory, _, names in os.walk(top):
            for name in names:
                path = Path(directory, name)
                if path.suffix not in (".c", ".h", ".o") and os.access(path, os.X_OK):
                    found.setdefault(name, Path(directory))
    return found


def _list(folder: Path, name: str) -> dict[str, str]:
    """Test -> command line."""
    path = folder / "runtest" / name
    if not path.exists():
        raise BenchError(f"{path}: not there: is {folder} LTP?")
    lines = [line.split(None, 1) for line in path.read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    return {words[0]: words[1] for words in lines if len(words) == 2}


def _is_about_files(test: str) -> bool:
    return test.rstrip("0123456789_ABCDEFGHIJ").removesuffix("at") in SYSCALLS or \
        test.rstrip("0123456789_ABCDEFGHIJ") in SYSCALLS


class Ltp:
    def __init__(self, bench: Bench, folder: Path):
        self.folder = folder
        self.programs = _programs(folder)
        if not self.programs:
            raise BenchError(f"{folder}: nothing built in testcases/")
        directories = dict.fromkeys(map(str, self.programs.values()))
        self.environment = os.environ | {
            "PATH": ":".join([*directories, os.environ["PATH"]]), "LTPROOT": str(folder),
            "KCONFIG_SKIP_CHECK": "1", "LTP_COLORIZE_OUTPUT": "n",
            # Tests that format a dozen filesystems in turn on devices of their own end at once.
            "LTP_DEV": "/dev/null"}
        self.setting = bench.setting

    def run(self, command: str, directory: Path) -> Ran:
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
        return run("sh", "-c", command, seconds_max=TEST_SECONDS_MAX, cwd=directory,
                   env=self.environment | {"TMPDIR": str(directory), "TMP": str(directory)})


def _passed(ran: Ran) -> bool:
    return ran.status is not None and ran.status & ~(WARNING | NOT_FOR_HERE) == 0


def _said(ran: Ran, mark: str) -> str:
    lines = [line for line in ran.output.splitlines() if mark in line]
    return lines[0].split(mark, 1)[1].strip(": ")[:160] if lines else ran.tail()


def suite(bench: Bench, folder: Path, options) -> SuiteResult:
    ltp = Ltp(bench, folder)
    version = (folder / "VERSION").read_text().strip() if (folder / "VERSION").exists() else "?"
    result = SuiteResult("LTP", version, setting=bench.setting)
    tests = _list(folder, "fs")
    tests |= {test: command for test, command in _list(folder, "syscalls").items()
              if _is_about_files(test)}
    for test, command in tests.items():
        if options.tests and test not in options.tests:
            continue
        if test in ELSEWHERE:
            result.not_applicable[test] = ELSEWHERE[test]
            continue
        ran = ltp.run(command, bench.mount / "ltp")
        if ran.status == NOT_FOUND:
            result.not_applicable[test] = "not built"
        elif NO_DEVICE.search(ran.output):
            result.not_applicable[test] = "formats a device of its own"
        elif ran.status == NOT_FOR_HERE:
            result.not_applicable[test] = _said(ran, "TCONF")
        elif _passed(ran):
            result.passed += 1
        elif not _passed(ltp.run(command, bench.native / "ltp")):
            result.not_applicable[test] = "fails on the host's filesystem, too"
        else:
            result.failed[test] = _said(ran, "TFAIL" if ran.status and ran.status & FAILED else "TBROK")
    return result
