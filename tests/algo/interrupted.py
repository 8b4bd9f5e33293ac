"""A run of `graphlane algo` that is interrupted."""

import signal
import subprocess
import time
from pathlib import Path

from harness import BUILD, catches, wait_until


def check_interrupt_leaves_nothing(graph: Path, directory: Path) -> None:
    """PageRank on the graph, with its result in the empty directory."""
    command = [BUILD / "bin/graphlane", "algo", "pagerank", "--iterations", "1000000", "--out", directory / "out.npy", graph]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: catches(job.pid, signal.SIGINT))
    time.sleep(0.3)
    job.send_signal(signal.SIGINT)
    out, error = job.communicate(timeout=60)
    assert job.returncode == -signal.SIGINT, error
    assert out == "" and "interrupted" in error.splitlines()[-1]
    assert not list(directory.iterdir())
