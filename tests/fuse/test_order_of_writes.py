"""What has to be on a device before something else changes, by the daemon's system calls."""

import os
import re
import signal
import subprocess

from harness import run
from mounts import mounted, striped  # noqa: F401, fixtures


def calls_of(volume, at, log, names, change):
    """The daemon's calls while `change` is done, as (name, arguments)."""
    (daemon,) = run("pgrep", "-f", f"mount {volume.path} {at}$").stdout.split()
    with subprocess.Popen(["strace", "-f", "-y", "-p", daemon, "-o", log, "-e", "trace=" + names],
                          stderr=subprocess.PIPE, text=True) as strace:
        assert "attached" in strace.stderr.readline()
        change()
        strace.send_signal(signal.SIGINT)  # detaches
    return re.findall(r"^\d+ +(\w+)\((.*)", log.read_text(), re.MULTILINE)


def test_a_bound_is_durable_before_any_part_is_cut(root, striped, mounted, tmp_path):
    """Else a power failure could keep some parts cut, others long, and no bound: the holes between
    would be read as zeros."""
    volume, _ = striped(size=100_000)
    with mounted(volume) as at, open(at / "data", "r+b", buffering=0) as file:
        file.seek(0, os.SEEK_END)
        file.write(b"more")  # from here on the stub says `open`
        calls = calls_of(volume, at, tmp_path / "calls", "fdatasync,ftruncate,pwrite64",
                         lambda: os.truncate(file.fileno(), 10_000))
        names = [name for name, _ in calls]
        assert names[:2] == ["pwrite64", "fdatasync"] and names[2:] == ["ftruncate"] * 4
        assert calls[0][1].split(">")[0].endswith("/data")
        assert os.fstat(file.fileno()).st_size == 10_000
