"""`make conformance` runs public test suites, which it installs itself, on a mount.

Exit status 1: a test failed for an unknown reason (KNOWN_FAILURES in result.py has the known ones),
or a suite could not run.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from tests.conformance import fio, fsx, pjdfstest, stress_ng
from tests.conformance.bench import FILESYSTEMS, BenchError, bench
from tests.conformance.result import CARD, report, write_card, write_json

SUITES = {"pjdfstest": pjdfstest, "fsx": fsx, "fio": fio, "stress-ng": stress_ng}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__.split("\n")[0])
    parser.add_argument("--ops", type=int, default=20_000, help="operations of fsx (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (default: %(default)s)")
    parser.add_argument("--filesystem", choices=FILESYSTEMS, default="ext4",
                        help="of the host (default: %(default)s)")
    parser.add_argument("--verify", choices=["read", "scrub"], default="scrub",
                        help="of the volumes; read has rows of its own on the card (default: %(default)s)")
    parser.add_argument("--card", type=Path, default=CARD, help="where to write the results down")
    parser.add_argument("--json", type=Path, metavar="FILE", help="… and for programs")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"only these: {', '.join(SUITES)}")
    options = parser.parse_intermixed_args()
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(unknown)}")
    return options


def main() -> int:
    options = parse()
    if os.geteuid() != 0:
        print("conformance: run as root (suites mount and switch users)", file=sys.stderr)
        return 1
    results = []
    for name in options.suites or SUITES:
        try:
            # Each suite has a filesystem of its own: none inherits another's files.
            with bench(options.filesystem, options.verify == "read") as place:
                results.append(SUITES[name].suite(place, options))
        except BenchError as error:
            print(f"conformance: {error}", file=sys.stderr)
            return 1
        results[-1].verifies = options.verify == "read"
        report(results[-1])
    write_card(results, options.card)
    if options.json:
        write_json(results, options.json)
    return 1 if any(result.unknown() for result in results) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
