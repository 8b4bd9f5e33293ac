"""fsx (Rust): random reads, writes, maps, truncations and holes in one file. Every byte is compared
with a copy in memory.

It has no O_DIRECT; the older one in C does: `tests/external/run fsx`.
"""

import os
from dataclasses import dataclass

from tests.conformance.bench import PRELOAD, Bench, run
from tests.conformance.result import SuiteResult
from tests.conformance.tools import VERSIONS, program

OPS_PER_SECOND_MIN = 100
FILE_BYTES = 1 << 20  # 16 stripe units

WEIGHTS = {
    "every call": dict(close_open=1, invalidate=1, mapread=10, mapwrite=10, read=10, write=10,
                       truncate=2, fsync=1, fdatasync=1, posix_fallocate=1, punch_hole=2,
                       sendfile=2, posix_fadvise=1, copy_file_range=2),
    "maps beside calls": dict(close_open=0.1, invalidate=5, mapread=20, mapwrite=20, read=5,
                              write=5, truncate=2, fsync=0.1),
}


@dataclass
class Way:
    name: str
    file: str
    preloaded: bool


WAYS = [Way("plain file", "plain", False), Way("plain file, preloaded", "plain", True),
        Way("striped file", "fsx.striped", False),
        Way("striped file, preloaded", "fsx.striped", True)]


def suite(bench: Bench, options) -> SuiteResult:
    result = SuiteResult("fsx", VERSIONS["fsx"],
                         setting=f"{bench.setting}; {options.ops} operations each")
    tool = program("fsx")
    for kind, weights in WEIGHTS.items():
        config = bench.host / "fsx.toml"
        config.write_text(f"flen = {FILE_BYTES}\n[weights]\n" +
                          "".join(f"{call} = {weight}\n" for call, weight in weights.items()))
        for way in WAYS:
            test = f"{way.name}, {kind}"
            environment = {"LD_PRELOAD": str(PRELOAD)} if way.preloaded else {}
            path = bench.mount / way.file
            ran = run(tool, "-q", "-f", config, "-N", options.ops, "-S", options.seed,
                      "-P", bench.host, path, env=os.environ | environment,
                      seconds_max=60 + options.ops / OPS_PER_SECOND_MIN)
            path.unlink(missing_ok=True)
            if ran.status == 0:
                result.passed += 1
            else:
                result.failed[test] = ran.tail()
    return result
