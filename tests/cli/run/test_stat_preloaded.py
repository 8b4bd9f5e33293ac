"""`graphlane stat` counts reads of preloaded programs that bypass the server. No user can change
another's counts."""

import json
import subprocess
import time

from cli.striped_data import STRIPED_BYTES as SIZE


def preloaded(graphlane, path) -> dict[str, int]:
    stats = json.loads(graphlane("stat", "--json", path).stdout)
    return {key: sum(device["preloaded"][key] for device in stats["devices"])
            for key in ("ios", "bytes_read", "bytes_written")}


def test_of_a_mount(graphlane, striped, mount, tmp_path):
    with mount(striped) as at:
        assert preloaded(graphlane, at) == {"ios": 0, "bytes_read": 0, "bytes_written": 0}
        assert "preloaded" not in graphlane("stat", at).stdout
        for reads in (1, 2):
            graphlane("run", "--", "sh", "-c", f"cat {at}/data | cmp - {tmp_path}/data")
            assert preloaded(graphlane, at)["bytes_read"] == reads * SIZE
        for device in json.loads(graphlane("stat", "--json", at).stdout)["devices"]:
            assert 0 < device["preloaded"]["bytes_read"] < 2 * SIZE, "each device has a part"
        lines = graphlane("stat", at).stdout.splitlines()
        told = lines.index("of which preloaded programs, as they say:")
        assert " 5.72 MiB " in lines[told + 1]
        assert max(map(len, lines)) <= 60, lines
        name = f'graphlane_device_preloaded_read_bytes_total{{mount="{at}",device='
        samples = [line for line in graphlane("stat", "--prometheus", at).stdout.splitlines() if line.startswith(name)]
        assert sum(int(line.split()[-1]) for line in samples) == 2 * SIZE


def test_of_a_volume_that_run_mounts(graphlane, fuse, striped, tmp_path):
    """Each program has a private mount. The volume's server adds them up while any of them runs."""
    keeper = subprocess.Popen([graphlane.program, "run", "--", "sh", "-c", f"cat {striped.path}/data > /dev/null; cat"],
                              stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            result = graphlane("stat", "--json", striped.path, check=False)
            if result.returncode == 0 and preloaded(graphlane, striped.path)["bytes_read"] == SIZE:
                break
            time.sleep(0.05)
        assert preloaded(graphlane, striped.path)["bytes_read"] == SIZE
        graphlane("run", "--", "cp", f"{striped.path}/data", tmp_path / "copy")
        assert preloaded(graphlane, striped.path)["bytes_read"] == 2 * SIZE
    finally:
        keeper.communicate(timeout=60)
    assert graphlane("stat", striped.path, check=False).returncode == 1, "no program runs, and no server"


def test_of_programs_without_a_mount(graphlane, striped, tmp_path):
    """They count for the server that runs, and for the next one."""
    run = ("run", "--no-mount", "--")
    graphlane(*run, "wc", f"{striped.path}/data")  # no server yet
    for server in (1, 2):
        graphlane("serve", striped.path)
        try:
            assert preloaded(graphlane, striped.path)["bytes_read"] == 0
            graphlane(*run, "cmp", f"{striped.path}/data", tmp_path / "data")
            assert preloaded(graphlane, striped.path)["bytes_read"] == SIZE, server
        finally:
            graphlane("serve", "--stop", striped.path)


READS = """
import sys
for line in sys.stdin:
    print(len(open(sys.argv[1], "rb").read()), flush=True)
"""


def test_a_program_without_a_mount_notices_a_server(graphlane, striped):
    """By the next file that it opens, a second later."""
    program = subprocess.Popen([graphlane.program, "run", "--no-mount", "--", "python3", "-c", READS, f"{striped.path}/data"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        print(file=program.stdin, flush=True)
        assert int(program.stdout.readline()) == SIZE

    read()
    graphlane("serve", striped.path)
    try:
        deadline = time.monotonic() + 60
        while preloaded(graphlane, striped.path)["bytes_read"] == 0 and time.monotonic() < deadline:
            read()
            time.sleep(0.1)
        assert preloaded(graphlane, striped.path)["bytes_read"] == SIZE
    finally:
        program.communicate(timeout=60)
        graphlane("serve", "--stop", striped.path)
