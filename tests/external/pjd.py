"""pjd's C suite: POSIX rules for names, modes, owners and times (as root).

Built by its README: autoreconf -ifs && ./configure && make pjdfstest
"""

import re
from pathlib import Path

from tests.conformance.bench import Bench, BenchError, run
from tests.conformance.result import SuiteResult
from tests.external.folder import require, version_of

SECONDS_MAX = 3600
COUNTED = re.compile(r"^Files=\d+, Tests=(\d+),", re.MULTILINE)
FILE = re.compile(r"^\S*?/tests/(\S+\.t)\s+\(Wstat: (\d+)?.* Failed: (\d+)\)$")
NUMBERS = re.compile(r"^\s+Failed tests?:\s+([\d, -]+)$")


def _numbers(text: str) -> list[int]:
    """'1, 3-5' -> 1, 3, 4, 5."""
    found = []
    for word in text.replace(" ", "").split(","):
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _prove(folder: Path, directory: Path) -> tuple[int, set[str]]:
    """The number of tests, and the failed ones, as `chown/00.t 17`."""
    ran = run("prove", "-rQ", folder / "tests", cwd=directory, seconds_max=SECONDS_MAX)
    count = COUNTED.search(ran.output)
    if count is None:
        raise BenchError(f"prove: {ran.tail()}")
    failed, file = set(), ""
    for line in ran.output.splitlines():
        if match := FILE.match(line):
            file = match[1]
            if match[2] not in (None, "0") and match[3] == "0":
                failed.add(file)  # not a single test: the file's exit status
        elif match := NUMBERS.match(line):
            failed |= {f"{file} {number}" for number in _numbers(match[1])}
    return int(count[1]), failed


def suite(bench: Bench, folder: Path, _options) -> SuiteResult:
    require(folder / "pjdfstest")
    count, failed = _prove(folder, bench.mount)
    on_host = _prove(folder, bench.native)[1] if failed else set()
    result = SuiteResult("pjdfstest (C)", version_of(folder), setting=bench.setting)
    result.passed = count - len(failed)
    for test in sorted(failed):
        if test in on_host:
            result.not_applicable[test] = "fails on the host's filesystem, too"
        else:
            result.failed[test] = "failed"
    return result
