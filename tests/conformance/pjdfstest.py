"""pjdfstest (Rust, as root): POSIX rules for names, modes, owners and times."""

import grp
import pwd
import re
from pathlib import Path

from tests.conformance.bench import Bench, BenchError, installed, run
from tests.conformance.result import SuiteResult
from tests.conformance.tools import VERSIONS, program

SECONDS_MAX = 600
LINE = re.compile(r"^(\S+::\S+)\s+(ok|skipped|FAILED)$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

CONFIG = """\
[features]
posix_fallocate = {{}}
rename_ctime = {{}}
utime_now = {{}}
utimensat = {{}}

[settings]
naptime = 0.02
allow_remount = true

[dummy_auth]
entries = [{entries}]
"""


def two_users() -> list[tuple[str, str]]:
    """(user, group) of two users without special rights."""
    found = []
    for user in pwd.getpwall():
        group = grp.getgrgid(user.pw_gid).gr_name
        if user.pw_name in ("nobody", "daemon"):
            found.append((user.pw_name, group))
    if len(found) < 2:
        raise BenchError("pjdfstest: the users nobody and daemon are needed")
    return found


def outcomes(directory: Path, other_filesystem: Path, config: Path,
             tests: list[str]) -> dict[str, tuple[str, str]]:
    """Test -> (ok, skipped or FAILED; the next line, which gives the reason)."""
    ran = run(*installed(program("pjdfstest"), "-c", config, "-p", directory,
                         "-s", other_filesystem, *tests), seconds_max=SECONDS_MAX)
    lines = COLOUR.sub("", ran.output).splitlines()
    found = {}
    for line, following in zip(lines, lines[1:] + [""]):
        if match := LINE.match(line):
            found[match[1]] = (match[2], following.strip())
    if not found or ran.status is None:
        raise BenchError(f"pjdfstest: {ran.tail()}")
    return found


def names_of(found: dict[str, tuple[str, str]], status: str) -> list[str]:
    return [test for test, (became, _) in found.items() if became == status]


def suite(bench: Bench, _options) -> SuiteResult:
    config = bench.host / "pjdfstest.toml"
    entries = ", ".join(f'["{user}", "{group}"]' for user, group in two_users())
    config.write_text(CONFIG.format(entries=entries))
    here = outcomes(bench.mount, bench.native, config, [])
    # Some tests leave files open, so that a later one cannot remount. Each of those gets a process
    # of its own.
    if failed := names_of(here, "FAILED"):
        here |= outcomes(bench.mount, bench.native, config, failed)
    failed = names_of(here, "FAILED")
    on_host = outcomes(bench.native, bench.mount, config, failed) if failed else {}
    result = SuiteResult("pjdfstest", VERSIONS["pjdfstest"], setting=bench.setting)
    for test, (status, said) in here.items():
        if status == "ok":
            result.passed += 1
        elif status == "skipped":
            result.not_applicable[test] = said
        elif on_host.get(test, ("",))[0] == "FAILED":
            result.not_applicable[test] = "fails on the host's filesystem, too"
        else:
            result.failed[test] = said
    return result
