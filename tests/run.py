#!/usr/bin/env python3
"""Runs all tests. pytest runs over tests/, with two files more at once than there are cores, because tests
wait a good deal. Beside it run the GoogleTest programs of $GRAPHLANE_BUILD/tests, each in three parts, one after
another, or two at once after pytest has ended. `make test` builds them first and calls this.

The last line is "N passed, N failed, N skipped". Exit status 1: a test failed, or there was nothing
to run. With CI=true a skipped test counts as failed unless its reason starts with "not applicable":
CI must not skip tests in silence.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BINARY_SECONDS_MAX = 1200
GTEST_SHARDS = 3  # of each program, so that no long one runs alone at the end
PYTEST_SECONDS_MAX = 1800
TAIL_LINES = 40
SLOWEST_COUNT = 20  # files of pytest that are named at the end
WORKERS_MAX = 4  # of pytest: a test may have a gigabyte to itself

# The text rather than gtest's JSON: only the text has the reason of a skip, and
# a program that crashes has not written its JSON yet.
GTEST_EVENT = re.compile(r"\[( RUN      |       OK |  SKIPPED |  FAILED  )\] (\S+?)(?:, where .*)?(?: \((\d+) ms\))?$")


@dataclass
class Tally:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # name -> reason

    def add(self, other: "Tally") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped |= other.skipped

    def count(self) -> int:
        return self.passed + len(self.failed) + len(self.skipped)


groups: set[int] = set()  # that have not ended


def kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_group(command: list[str], seconds_max: int, **kwargs) -> tuple[int | None, str]:
    """Runs a command as a process group that is gone afterwards, whatever it
    started. The exit status, None when it took too long, and what it printed."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, text=True, errors="replace",
        start_new_session=True, **kwargs)
    groups.add(process.pid)
    try:
        output, _ = process.communicate(timeout=seconds_max)
        return process.returncode, output or ""
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        output, _ = process.communicate()
        return None, output or ""
    finally:
        kill_group(process.pid)
        groups.discard(process.pid)


def ending(status: int | None) -> str:
    if status is None:
        return "took too long"
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"exited with status {status}"


def parse_gtest(program: str, output: str, status: int | None) -> tuple[Tally, str]:
    """The result of every test, and the output of the failed ones."""
    tally = Tally()
    failures = []
    running = None  # the running test
    lines: list[str] = []
    for line in output.splitlines():
        event = GTEST_EVENT.search(line)
        if not event:
            lines.append(line)
            continue
        kind, name, milliseconds = event.groups()
        if kind.strip() == "RUN":
            running, lines = name, []
            continue
        if milliseconds is None or name != running:
            continue  # the summary at the end
        running = None
        if kind.strip() == "OK":
            tally.passed += 1
        elif kind.strip() == "SKIPPED":
            tally.skipped[f"{program}: {name}"] = lines[-1].strip() if lines else ""
        else:
            tally.failed.append(f"{program}: {name}")
            failures.append("\n".join([name, *lines]))
    if status != 0 and not failures:
        # A crash, a sanitizer's report at exit, or no test at all.
        tally.failed.append(f"{program}: {running or 'program'} {ending(status)}")
        failures.append("\n".join(output.splitlines()[-TAIL_LINES:]))
    elif running:
        tally.failed.append(f"{program}: {running} {ending(status)}")
        failures.append("\n".join(lines[-TAIL_LINES:]))
    return tally, "\n".join(failures)


def run_gtest(binary: Path, pattern: str | None, shard: int) -> tuple[Tally, str]:
    """The results of one of GTEST_SHARDS shards of a program's tests, and the lines to print about them."""
    command = [str(binary), "--gtest_color=no"]
    if pattern:
        command.append(f"--gtest_filter=*{pattern}*")
    start = time.monotonic()
    environment = os.environ | {"GTEST_TOTAL_SHARDS": str(GTEST_SHARDS), "GTEST_SHARD_INDEX": str(shard)}
    status, output = run_group(
        command, BINARY_SECONDS_MAX, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    tally, failures = parse_gtest(binary.name, output, status)
    if tally.count() == 0:
        return tally, ""
    word = "FAILED" if tally.failed else "ok"
    skipped = f", {len(tally.skipped)} skipped" if tally.skipped else ""
    return tally, (f"{word:6} {binary.name}, part {shard + 1} of {GTEST_SHARDS}: {tally.count()} tests{skipped}, "
                   f"{time.monotonic() - start:.1f} s\n{failures}").rstrip() + "\n"


def tell_slowest(seconds: Counter) -> None:
    """Prints where the time goes, as a run has a time limit."""
    slowest = [f"{name} {took:.0f} s" for name, took in seconds.most_common(SLOWEST_COUNT)]
    if len(seconds) > SLOWEST_COUNT:
        print(f"slowest files, of {sum(seconds.values()):.0f} s: {', '.join(slowest)}", flush=True)


def run_pytest(pattern: str | None, paths: list[str], without: list[str]) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-rN", f"--junitxml={report}",
                   f"--numprocesses={min(os.cpu_count() + 2, WORKERS_MAX)}", "--dist=loadfile",
                   "--no-loadscope-reorder"]
        if pattern:
            command += ["-k", pattern]
        command += [f"--ignore={path}" for path in without]
        status, _ = run_group([*command, *(paths or ["tests"])], PYTEST_SECONDS_MAX)
        seconds = Counter()  # of each file
        if report.exists():
            for case in ElementTree.parse(report).iter("testcase"):
                seconds[case.get("classname")] += float(case.get("time"))
                name = f"{case.get('classname')}: {case.get('name')}"
                if case.find("failure") is not None or case.find("error") is not None:
                    tally.failed.append(name)
                elif (skip := case.find("skipped")) is not None:
                    tally.skipped[name] = skip.get("message") or ""
                else:
                    tally.passed += 1
        tell_slowest(seconds)
    nothing_collected = status == 5
    if status != 0 and not nothing_collected and not tally.failed:
        tally.failed.append(f"pytest {ending(status)}")
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="Run Graphlane's tests.")
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose name has PATTERN")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--gtest", action="store_true", help="only the GoogleTest programs")
    kinds.add_argument("--pytest", action="store_true", help="only pytest")
    parser.add_argument("--without", metavar="FILE", action="append", default=[],
                        help="not these files or folders of pytest")
    parser.add_argument("paths", nargs="*", metavar="FILE", help="only these files of pytest")
    arguments = parser.parse_args()

    build = Path(os.environ.get("GRAPHLANE_BUILD", ROOT / "build/release"))
    binaries = [binary for binary in (build / "tests").glob("*")
                if binary.is_file() and os.access(binary, os.X_OK)]
    binaries.sort(key=lambda binary: binary.stat().st_size, reverse=True)  # roughly by run time
    if arguments.pytest or arguments.paths:
        binaries = []
    tally = Tally()
    with ThreadPoolExecutor(2) as two:
        try:
            pytest = None if arguments.gtest else two.submit(
                run_pytest, arguments.k, arguments.paths, arguments.without)
            gtests = [two.submit(run_gtest, binary, arguments.k, shard)
                      for binary in binaries for shard in range(GTEST_SHARDS)]
            if pytest:
                tally.add(pytest.result())
            for gtest in gtests:
                found, said = gtest.result()
                tally.add(found)
                print(said, end="", flush=True)
        except BaseException:  # a signal ends the run
            two.shutdown(wait=False, cancel_futures=True)
            for group in list(groups):
                kill_group(group)
            raise

    for name, reason in tally.skipped.items():
        print(f"skipped {name}: {reason}")
    if os.environ.get("CI") == "true":
        for name, reason in list(tally.skipped.items()):
            if not reason.startswith("not applicable"):
                del tally.skipped[name]
                tally.failed.append(f"{name}: skipped, and CI must not skip")
    for name in tally.failed:
        print(f"FAILED {name}")
    if tally.count() == 0:
        print("There was no test to run.")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 1 if tally.failed or tally.count() == 0 else 0


if __name__ == "__main__":
    # make and CI stop us with SIGTERM: then the tests' processes are to go too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # nohup(1) and background jobs ignore these signals. Programs that the tests stop by them would
    # inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.exit(main())
