"""The results of a suite, and the known reasons of its failures."""

import json
import re
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CARD = ROOT / "fuse/CONFORMANCE.md"

DESCRIPTORS = ("opens as many files at once as the daemon may have descriptors, whose limit this "
               "machine's root may not raise")

# Suite, test (a glob), and the reason: no FUSE filesystem can do it, the machine lacks something,
# or docs/limits.md names the limit. Any other failure makes the command fail.
KNOWN_FAILURES: list[tuple[str, str, str]] = [
    ("LTP", "creat05", DESCRIPTORS),
    ("LTP", "fcntl12*", DESCRIPTORS),
    ("LTP, all striped", "setxattr03", "chattr +a and +i are refused for striped files"),
    ("xfstests generic/quick", "generic/003",
     "strictatime is refused: a read from FUSE's page cache moves no access time"),
    ("xfstests generic/quick", "generic/394", "raises ulimit -f: this machine's root may not"),
    ("xfstests generic/quick", "generic/424",
     "statx(2) shows no flags of chattr: FUSE does not ask for them"),
    ("xfstests generic/quick", "generic/451",
     "the kernel keeps pages that were read while an asynchronous O_DIRECT write was under way"),
    ("xfstests generic/quick", "generic/564", "raises ulimit -f: this machine's root may not"),
]

INTRODUCTION = """\
# Conformance

Results of public test suites on a mount. The first ones are run by `make conformance` ([how](../tests/conformance/README.md)), those
that you have built yourself by [`tests/external/run`](../tests/external/README.md). A test that also fails on the
host's filesystem counts as not applicable. The project's own tests of each promise:
[`tests/trust/PROMISES.md`](../tests/trust/PROMISES.md).

"""
TABLE_HEAD = "| suite | version | passed | failed | not applicable | on |\n|---|---|---|---|---|---|\n"


@dataclass
class SuiteResult:
    suite: str
    version: str
    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)          # test -> its message
    not_applicable: dict[str, str] = field(default_factory=dict)  # test -> why
    setting: str = ""  # what it ran on
    verifies: bool = False     # with verify=read: a row of its own
    stripes_all: bool = False  # every file is striped: a row of its own, too

    @property
    def name(self) -> str:
        return (self.suite + (", all striped" if self.stripes_all else "") +
                (", verify=read" if self.verifies else ""))

    def reason(self, test: str) -> str | None:
        """The known reason of the failure, or None."""
        suites = (self.suite, f"{self.suite}, all striped") if self.stripes_all else (self.suite,)
        for suite, pattern, reason in KNOWN_FAILURES:
            if suite in suites and fnmatchcase(test, pattern):
                return reason
        return None

    def unknown(self) -> list[str]:
        return [test for test in self.failed if self.reason(test) is None]

    def line(self) -> str:
        return (f"{self.name} {self.version}: {self.passed} passed, {len(self.failed)} failed, "
                f"{len(self.not_applicable)} not applicable")


def report(result: SuiteResult) -> None:
    """For the terminal: the failures with their messages, and the count."""
    for test, said in result.failed.items():
        reason = result.reason(test)
        print(f"FAILED {result.name}: {test}: {f'known: {reason}' if reason else said}")
    print(result.line(), flush=True)


def _row(result: SuiteResult) -> str:
    return (f"| {result.name} | {result.version} | {result.passed} | {len(result.failed)} | "
            f"{len(result.not_applicable)} | {result.setting} |\n")


def _by_reason(tests: dict[str, str]) -> str:
    """`- reason: test, test`, because hundreds share a reason."""
    grouped: dict[str, list[str]] = {}
    for test, reason in tests.items():
        grouped.setdefault(reason, []).append(test)
    return "".join(f"- {reason}: {', '.join(names)}\n" for reason, names in sorted(grouped.items()))


def _section(result: SuiteResult, of_suite: str) -> str:
    """`of_suite`: the section of the same suite without options. Its tests are not repeated."""
    text = f"\n## {result.name}\n"
    if result.failed:
        reasons = {test: result.reason(test) or f"**unknown** ({said})"
                   for test, said in result.failed.items()}
        text += f"\nFailed:\n\n{_by_reason(reasons)}"
    told = set(re.findall(r"[\w:/-]+", of_suite)) if result.name != result.suite else set()
    others = {test: why for test, why in result.not_applicable.items() if test not in told}
    if others:
        beside = f", beside those of {result.suite}" if told else ""
        text += f"\nNot applicable{beside}:\n\n{_by_reason(others)}"
    return text if result.failed or others else ""


def write_card(results: list[SuiteResult], card: Path = CARD) -> None:
    """Puts these suites' results into the card, and keeps those of the others."""
    mine = {result.name for result in results}
    rows, sections = [], []
    if card.exists():
        head, *others = card.read_text().split("\n## ")
        rows = [line + "\n" for line in head.splitlines()
                if line.startswith("| ") and line.split("|")[1].strip() not in mine | {"suite"}]
        sections = ["\n## " + other.rstrip("\n") + "\n" for other in others
                    if other.splitlines()[0].strip() not in mine]
    rows += map(_row, results)
    for result in sorted(results, key=lambda result: result.name):
        of_suite = [text for text in sections if text.startswith(f"\n## {result.suite}\n")]
        sections.append(_section(result, "".join(of_suite)))
    card.write_text(INTRODUCTION + TABLE_HEAD + "".join(sorted(rows)) + "".join(sorted(sections)))


def write_json(results: list[SuiteResult], path: Path) -> None:
    found = [asdict(result) | {"unknown": result.unknown()} for result in results]
    path.write_text(json.dumps(found, indent=2) + "\n")
