"""stress-ng: its filesystem stressors, one after another, with --verify."""

import re

from tests.conformance.bench import Bench, BenchError, Ran, run
from tests.conformance.result import SuiteResult

STRESSOR_SECONDS = 2
STRESSOR_SECONDS_MAX = 120

# Stressors of the class "filesystem" that never touch the mount.
ELSEWHERE = {
    "bind-mount": "mounts /, not the directory under test",
    "binderfs": "a filesystem of its own",
    "eventfd": "descriptors without a filesystem",
    "procfs": "/proc",
}

PASSED, NO_RESOURCE, NOT_IMPLEMENTED = 0, 3, 4  # exit statuses


def stressors() -> list[str]:
    said = run("stress-ng", "--class", "filesystem?", seconds_max=60).output
    match = re.search(r"stressors: (.*)", said)
    if match is None:
        raise BenchError("stress-ng: cannot list the stressors of its class filesystem")
    return match[1].split()


def _stress(directory, stressor: str) -> Ran:
    return run("stress-ng", f"--{stressor}", 2, "-t", STRESSOR_SECONDS, "--verify",
               "--temp-path", directory, seconds_max=STRESSOR_SECONDS_MAX)


def _said(ran: Ran, stressor: str) -> str:
    """The stressor's own message, without the frame around it."""
    found = re.findall(rf"\] {stressor}: (.*)", ran.output)
    return found[0] if found else ran.tail()


def suite(bench: Bench, _options) -> SuiteResult:
    version = re.search(r"version (\S+)", run("stress-ng", "--version", seconds_max=60).output)
    if version is None:
        raise BenchError("stress-ng is missing: apt-get install stress-ng")
    result = SuiteResult("stress-ng filesystem", version[1], setting=bench.setting)
    for stressor in stressors():
        if stressor in ELSEWHERE:
            result.not_applicable[stressor] = ELSEWHERE[stressor]
            continue
        ran = _stress(bench.mount, stressor)
        if ran.status in (NO_RESOURCE, NOT_IMPLEMENTED) or "skipping" in ran.output:
            result.not_applicable[stressor] = _said(ran, stressor)
        elif ran.status == PASSED:
            result.passed += 1
        elif _stress(bench.native, stressor).status == ran.status:
            result.not_applicable[stressor] = "fails on the host's filesystem, too"
        else:
            result.failed[stressor] = _said(ran, stressor)
    return result
