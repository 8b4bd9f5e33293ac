"""The suites that cargo installs, into build/tools."""

import re
import shutil

from tests.conformance.bench import BenchError, run
from tests.conformance.result import ROOT

TOOLS = ROOT / "build/tools"
VERSIONS = {"fsx": "0.3.2", "pjdfstest": "0.2.2"}
CARGO_MIN = (1, 85)  # needed by pjdfstest
INSTALL_SECONDS_MAX = 1800


def _check_cargo() -> None:
    advice = f"{'.'.join(map(str, CARGO_MIN))} or newer (Debian 13's, or https://rustup.rs)"
    if shutil.which("cargo") is None:
        raise BenchError(f"cargo is missing: install {advice}")
    said = run("cargo", "--version", seconds_max=60).output
    version = re.search(r"cargo (\d+)\.(\d+)", said)
    if version is None or tuple(map(int, version.groups())) < CARGO_MIN:
        raise BenchError(f"{said.strip()} is too old: install {advice}")


def install(name: str) -> None:
    """Installs the suite unless it is there already."""
    program, version = TOOLS / "bin" / name, VERSIONS[name]
    stamp = TOOLS / f".{name}-{version}"
    if program.exists() and stamp.exists():
        return
    _check_cargo()
    print(f"conformance: installing {name} {version} into {TOOLS.relative_to(ROOT)}", flush=True)
    ran = run("cargo", "install", "--quiet", "--locked", "--force", "--root", TOOLS,
              f"{name}@{version}", seconds_max=INSTALL_SECONDS_MAX)
    if ran.status != 0:
        raise BenchError(f"cargo install {name}@{version}: {ran.tail()}")
    stamp.touch()


def program(name: str) -> str:
    install(name)
    return str(TOOLS / "bin" / name)
