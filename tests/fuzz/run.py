#!/usr/bin/env python3
"""run.py PROGRAM: every target of tests/fuzz for $FUZZ_SECONDS (30), two at a time, beginning with
tests/fuzz/corpus. Crashing inputs stay in build/crashes; exit status 1. $FUZZ_SEED says which inputs
are made; without it they are others each time. $FUZZ_COUNT is for a part of the targets: so many, from
the one with the number $FUZZ_FIRST on."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
AT_ONCE = 2
SPARE_SECONDS = 60


def targets() -> list[str]:
    """The targets, one for each folder of the corpus."""
    names = sorted(path.name for path in CORPUS.iterdir())
    first = int(os.environ.get("FUZZ_FIRST", "0")) % len(names)
    count = int(os.environ.get("FUZZ_COUNT", len(names)))
    return (names[first:] + names[:first])[:count]


def fuzz(program: str, target: str, seconds: float, seed: int, crashes: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1",
                   "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1"}
    words = [program, target, str(seconds), str(seed), str(CORPUS / target), str(crashes)]
    return subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment,
                          timeout=seconds + SPARE_SECONDS)


def main() -> int:
    program = sys.argv[-1]
    seconds = float(os.environ.get("FUZZ_SECONDS", "30"))
    seed = int(os.environ.get("FUZZ_SEED", random.randrange(1, 1 << 31)))
    crashes = ROOT / "build/crashes"
    crashes.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, {seconds:g} s each, {AT_ONCE} at a time", flush=True)
    failed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        names = targets()
        for name, done in zip(names, pool.map(
                lambda name: fuzz(program, name, seconds, seed, crashes), names), strict=True):
            said = done.stdout.strip().splitlines()
            print(f"{name:14} {'ok' if done.returncode == 0 else 'FAILED'}  {said[-1] if said else ''}", flush=True)
            if done.returncode != 0:
                failed += 1
                print(done.stderr[-4000:], flush=True)
    if failed:
        print(f"{failed} failed; the inputs are in {crashes}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
