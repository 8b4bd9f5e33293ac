"""xfstests: generic/quick for FUSE, on two volumes (TEST and SCRATCH).

Built by its README (make). Needs the users fsgqa, fsgqa2 and 123456-fsgqa, as
its README says.
"""

import os
import pwd
import shutil
from pathlib import Path
from xml.etree import ElementTree

from tests.conformance.bench import (
    Bench,
    BenchError,
    Ran,
    installed,
    make_volume,
    new_filesystem,
    run,
)
from tests.conformance.result import SuiteResult
from tests.external.folder import require, version_of

SECONDS_MAX = 4 * 3600
USERS = ["fsgqa", "fsgqa2", "123456-fsgqa"]
LEFT_OUT = "dangerous,shutdown,soak,swap,stress"

# xfstests knows FUSE by names like "non1" that are no paths, and by the type "fuse".
# umount(8) takes no source that is a directory, and df(1) shows our subtype.
UMOUNT = """\
#!/bin/sh
case $1 in
  "$TEST_DEV") set -- "$TEST_DIR" ;;
  "$SCRATCH_DEV") set -- "$SCRATCH_MNT" ;;
esac
exec umount "$@"
"""
DF = """\
#!/bin/sh
df -T -P "$@" | sed 's/fuse\\.graphlane/fuse/'
"""


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def _check_users() -> None:
    known = {user.pw_name for user in pwd.getpwall()}
    if missing := [name for name in USERS if name not in known]:
        raise BenchError(f"xfstests: missing users: useradd -m {' && useradd -m '.join(missing)}")


def _config(bench: Bench, top: Path, scratch_host: Path) -> dict[str, str]:
    test, scratch = (make_volume(host, name, bench.verifies, bench.striped_names)
                     for host, name in ((bench.host, "test"), (scratch_host, "scratch")))
    points = [top / "mnt-test", top / "mnt-scratch"]
    for point in points:
        point.mkdir()
    return {
        "FSTYP": "fuse", "FUSE_SUBTYP": ".graphlane",
        "TEST_DEV": str(test), "TEST_DIR": str(points[0]),
        "SCRATCH_DEV": str(scratch), "SCRATCH_MNT": str(points[1]),
        "MOUNT_OPTIONS": "-odev", "TEST_FS_MOUNT_OPTS": "-odev",
        "UMOUNT_PROG": str(_script(top / "umount", UMOUNT)),
        "DF_PROG": str(_script(top / "df", DF)),
        "RESULT_BASE": str(top / "results"),
    }


def _read(report: Path, result: SuiteResult, places: list[Path]) -> None:
    """Drops the paths in `places` from a message: they differ between machines."""

    def said(element, otherwise: str) -> str:
        text = " ".join((element.get("message") or otherwise).split())
        for place in places:
            text = text.replace(f"{place}/", "")
        return text

    for case in ElementTree.parse(report).iter("testcase"):
        test = case.get("name", "?")
        if (failure := case.find("failure")) is not None:
            result.failed[test] = said(failure, "failed")
        elif (skipped := case.find("skipped")) is not None:
            result.not_applicable[test] = said(skipped, "not run")
        else:
            result.passed += 1


def _run(folder: Path, config: dict[str, str], top: Path, tests: list[str]) -> Ran:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # xfstests reads from a file what the environment does not set.
    local = top / "local.config"
    local.write_text("".join(f'export {name}="{value}"\n' for name, value in config.items()))
    environment["HOST_OPTIONS"] = str(local)
    tests = tests or ["-g", "generic/quick", "-x", LEFT_OUT]
    return run(*installed("./check", "-R", "xunit", *tests), cwd=folder, env=environment,
               seconds_max=SECONDS_MAX)


def suite(bench: Bench, folder: Path, options) -> SuiteResult:
    require(folder / "check")
    require(folder / "src/lstat64")
    _check_users()
    top = bench.host.parent
    # A filesystem of its own: tests fill SCRATCH and leave it full, and the next ones write to TEST.
    with new_filesystem(bench.filesystem, top / "scratch-image", top / "scratch-host") as scratch:
        ran = _run(folder, _config(bench, top, scratch), top, options.tests)
    report = top / "results/result.xml"
    if not report.exists():
        raise BenchError(f"xfstests: {ran.tail()}")
    result = SuiteResult("xfstests generic/quick", version_of(folder), setting=bench.setting)
    _read(report, result, [folder, top])
    if options.keep:
        shutil.copytree(top / "results", options.keep, dirs_exist_ok=True)
    return result
