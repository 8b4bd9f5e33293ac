"""fsx in C, of xfstests (FOLDER/ltp/fsx). It has what the one in Rust lacks: O_DIRECT,
asynchronous I/O and fallocate's modes."""

import os
from pathlib import Path

from tests.conformance.bench import PRELOAD, Bench, BenchError, run
from tests.conformance.result import SuiteResult
from tests.external.folder import require, version_of

OPS_PER_SECOND_MIN = 50

# -S seed, -r and -w alignment, -Z O_DIRECT, -W no writes by maps, -A libaio,
# -U io_uring, -l length of the file, -o length of an operation, -c one in so many closes the file.
DIRECT = ["-Z", "-r", "4096", "-w", "4096"]
KINDS = {
    "buffered": [],
    "O_DIRECT": DIRECT,
    "O_DIRECT, no maps": [*DIRECT, "-W"],
    "libaio": ["-A"],
    "libaio, O_DIRECT": ["-A", *DIRECT],
    "io_uring": ["-U"],
    "io_uring, O_DIRECT": ["-U", *DIRECT],
    "long operations": ["-l", "8388608", "-o", "2097152"],
    # Each close computes block checksums, which later reads verify with verify=read.
    "closed often": ["-l", "4194304", "-o", "524288", "-c", "10"],
    "closed often, O_DIRECT": ["-l", "4194304", "-o", "524288", "-c", "10", *DIRECT],
}


def suite(bench: Bench, folder: Path, options) -> SuiteResult:
    program = folder / "ltp/fsx"
    require(program)
    if unknown := set(options.tests) - set(KINDS):
        raise BenchError(f"fsx: no such kind: {', '.join(unknown)}; there are: {', '.join(KINDS)}")
    result = SuiteResult("fsx (C)", version_of(folder),
                         setting=f"{bench.setting}; {options.ops} operations each")
    for file, preloaded in (("plain", False), ("plain", True), ("fsx.striped", False),
                            ("fsx.striped", True)):
        for kind, words in KINDS.items():
            if options.tests and kind not in options.tests:
                continue
            test = f"{file}{', preloaded' if preloaded else ''}, {kind}"
            environment = {"LD_PRELOAD": str(PRELOAD)} if preloaded else {}
            path = bench.mount / file
            ran = run(program, "-q", "-N", options.ops, "-S", options.seed, "-P", bench.host,
                      *words, path, env=os.environ | environment,
                      seconds_max=60 + options.ops / OPS_PER_SECOND_MIN)
            path.unlink(missing_ok=True)
            if ran.status == 0:
                result.passed += 1
            else:
                result.failed[test] = ran.tail()
    return result
