"""fio: writes files at random with each of its engines, and verifies every block's checksum. It
also reads striped files written in another way."""

import os
from pathlib import Path

from tests.conformance.bench import GRAPHLANE, PRELOAD, Bench, run, step
from tests.conformance.result import SuiteResult

ENGINES = ["psync", "pvsync2", "libaio", "io_uring", "mmap", "posixaio"]
# Engines that the preload library sees. The others make their system calls by themselves.
PRELOADED_ENGINES = ["psync", "pvsync2", "posixaio"]
SIZE = "64M"
SECONDS_MAX = 300

CHECKS = ["--verify=crc32c", "--verify_fatal=1", "--do_verify=1"]
SHAPE = ["--bsrange=4k-256k", "--blockalign=4k", f"--size={SIZE}", "--iodepth=8"]


def _job(bench: Bench, path: Path, engine: str, direct: int, *words, preloaded=False):
    environment = {"LD_PRELOAD": str(PRELOAD)} if preloaded else {}
    return run("fio", "--name=verify", f"--filename={path}", f"--ioengine={engine}",
               f"--direct={direct}", "--thread", "--minimal", *CHECKS, *words,
               env=os.environ | environment, cwd=bench.host, seconds_max=SECONDS_MAX)


class Fio:
    def __init__(self, bench: Bench, options):
        self.bench = bench
        version = step("fio", "--version").strip().removeprefix("fio-")
        self.result = SuiteResult("fio --verify", version, setting=bench.setting)
        self.seed = f"--randseed={options.seed}"

    def count(self, test: str, ran) -> None:
        if ran.status == 0:
            self.result.passed += 1
        else:
            said = [line for line in ran.output.splitlines() if line.startswith(("verify:", "fio:"))]
            self.result.failed[test] = said[0] if said else f"status {ran.status}"

    def writes(self, name: str, file: str, engine: str, direct: int, preloaded=False) -> None:
        path = self.bench.mount / file
        self.count(name, _job(self.bench, path, engine, direct, "--rw=randwrite", *SHAPE,
                              self.seed, preloaded=preloaded))
        path.unlink(missing_ok=True)

    def reads(self, name: str, engine: str, direct: int, preloaded=False) -> None:
        """`written.striped`, written by fio as a plain file and imported striped."""
        self.count(name, _job(self.bench, self.bench.mount / "written.striped", engine, direct,
                              "--rw=read", "--bs=256k", f"--size={SIZE}", "--verify_only",
                              preloaded=preloaded))

    def prepare_striped(self) -> None:
        source = self.bench.native / "written.striped"
        written = run("fio", "--name=verify", f"--filename={source}", "--ioengine=psync",
                      "--rw=write", "--bs=256k", f"--size={SIZE}", *CHECKS,
                      cwd=self.bench.host, seconds_max=SECONDS_MAX)
        assert written.status == 0, written.output
        step(GRAPHLANE, "--quiet", "import", source, self.bench.mount)
        source.unlink()


def suite(bench: Bench, options) -> SuiteResult:
    fio = Fio(bench, options)
    fio.prepare_striped()
    for engine in ENGINES:
        for direct in (0, 1):
            how = f"{engine}, direct={direct}"
            fio.writes(f"plain file, {how}", "fio", engine, direct)
            fio.reads(f"imported file, {how}", engine, direct)
            fio.writes(f"striped file, {how}", "fio.striped", engine, direct)
            if engine in PRELOADED_ENGINES:
                fio.reads(f"imported file, {how}, preloaded", engine, direct, preloaded=True)
                fio.writes(f"striped file, {how}, preloaded", "fio.striped", engine, direct, True)
    return fio.result
