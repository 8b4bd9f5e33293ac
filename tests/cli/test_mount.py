"""graphlane mount, umount, stat. tests/fuse covers the filesystem's behaviour."""

import json
import mmap
import os
import pty
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from cli.striped_data import STRIPED_BYTES as SIZE
from harness import Job, is_mounted


def test_stat_counts_reads(graphlane, striped, mount, tmp_path):
    with mount(striped) as at:
        assert (at / "data").read_bytes() == (tmp_path / "data").read_bytes()
        for path in [striped.path, at]:
            stats = json.loads(graphlane("stat", "--json", path).stdout)
            assert [d["path"] for d in stats["devices"]] == [str(d) for d in striped.devices]
            assert sum(d["bytes_read"] for d in stats["devices"]) >= SIZE
        lines = graphlane("stat", at).stdout.splitlines()
        names = [line.split()[-1] for line in lines[2:7]]
        assert names[-1] == "total"
        for name, device in zip(names, striped.devices, strict=False):
            assert str(device).endswith(name.removeprefix("..")), (name, device)
        assert any(line.startswith("cache: ") for line in lines)
        assert max(map(len, lines)) <= 60, lines


def read_past_page_cache(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        return os.preadv(fd, [mmap.mmap(-1, 1 << 20)], 0)
    finally:
        os.close(fd)


def test_stat_as_prometheus(graphlane, striped, mount):
    with mount(striped) as at:
        time.sleep(0.05)  # files that may be changing are not cached
        assert read_past_page_cache(at / "data") == 1 << 20
        said = json.loads(graphlane("stat", "--json", at).stdout)
        lines = graphlane("stat", "--prometheus", at).stdout.splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    for device in striped.devices:
        labels = f'mount="{at}",device="{device}"'
        calls = int(samples[f"graphlane_device_ios_total{{{labels}}}"])
        merged = int(samples[f"graphlane_device_merged_ios_total{{{labels}}}"])
        assert calls > 0
        for name, count in (("service", calls), ("wait", calls + merged)):
            name = f"graphlane_device_{name}_seconds"
            buckets = [int(value) for key, value in samples.items()
                       if key.startswith(f"{name}_bucket{{{labels},le=")]
            assert buckets == sorted(buckets)
            assert buckets[-1] == int(samples[f"{name}_count{{{labels}}}"]) == count
    cache = {name: int(samples[f'graphlane_cache_{name}{{mount="{at}"}}'])
             for name in ("fetched_bytes_total", "bypassed_bytes_total", "budget_bytes")}
    assert cache["fetched_bytes_total"] + cache["bypassed_bytes_total"] >= 1 << 20
    assert cache["budget_bytes"] > 0
    for of, key, name in [("cache", "prefetched_frames", "prefetched_frames_total"),
                          ("cache", "prefetched_used_frames", "prefetched_used_frames_total"),
                          ("cache", "prefetched_unused_frames", "prefetched_unused_frames_total"),
                          ("cache", "prefetch_bytes", "prefetch_bytes"),
                          ("shared", "stalled_ns", "stalled_ns_total"),
                          *(("sweeps", f"{what}_bytes", f"{what}_bytes_total")
                            for what in ["prefetched", "used", "unused"])]:
        assert int(samples[f'graphlane_{of}_{name}{{mount="{at}"}}']) == said[of][key]


def test_stat_again_and_again(graphlane, striped, mount):
    with mount(striped) as at:
        watch = subprocess.Popen([graphlane.program, "stat", "-w", "-i", "0.05", "--json", at],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = json.loads(watch.stdout.readline())
        (at / "data").read_bytes()
        while True:  # until it shows
            after = json.loads(watch.stdout.readline())
            if sum(d["bytes_read"] for d in after["devices"]) >= SIZE:
                break
        assert [d["path"] for d in before["devices"]] == [str(d) for d in striped.devices]
    _, said = watch.communicate(timeout=20)
    assert watch.returncode == 1 and said.count("\n") == 1
    assert graphlane("stat", "-w", "--prometheus", striped.path, check=False).returncode == 2


def next_table(terminal: int) -> list[list[str]]:
    """The next whole table on a terminal, with a row for each device."""
    text = ""
    while text.count("\x1b[J") < 2:
        text += os.read(terminal, 1 << 16).decode()
    _, rows = text.split("\x1b[J")[1].split("device\r\n")
    lines = rows.splitlines()
    total = next(number for number, line in enumerate(lines) if line.endswith(" total"))
    return [line.split() for line in lines[:total]]


@contextmanager
def watched(graphlane, at: Path):
    """`graphlane stat --watch` on a terminal: the process, and the file to read from."""
    terminal, its_end = pty.openpty()
    process = subprocess.Popen([graphlane.program, "stat", "-w", at], stdout=its_end)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(its_end)


def test_stat_goes_on_with_another_server(graphlane, striped, tmp_path, fuse):
    """The new server's counters are smaller: no rate is negative."""
    at = tmp_path / "mnt"
    at.mkdir()
    graphlane("mount", striped.path, at)
    (at / "data").read_bytes()
    with watched(graphlane, at) as (watch, terminal):
        for row, device in zip(next_table(terminal), striped.devices, strict=True):
            assert str(device).endswith(row[-1].removeprefix(".."))
        watch.send_signal(signal.SIGSTOP)
        graphlane("umount", at)
        with graphlane.mounted(striped, at):
            read_past_page_cache(at / "data")
            watch.send_signal(signal.SIGCONT)
            for ios, read, *_ in next_table(terminal):
                assert int(ios) < 1_000_000 and read != "0"


def test_stat_of_an_unmounted_volume(refused, striped, tmp_path):
    refused("stat", striped.path, naming=f"{striped.path}: neither mounted nor served")
    refused("stat", tmp_path / "none", naming=tmp_path / "none")


def test_commands_accept_the_mountpoint_as_the_volume(graphlane, striped, mount, tmp_path):
    with mount(striped) as at:
        assert "64K x 4" in graphlane("ls", at).stdout
        graphlane("check", at)
        graphlane("import", tmp_path / "data", at / "second")
        graphlane("export", at / "second", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / "data").read_bytes()
        assert (at / "second").stat().st_size == SIZE


def test_commands_see_beneath_a_mount_over_the_volume(graphlane, striped, root, tmp_path):
    graphlane("mount", striped.path)
    try:
        assert (striped.path / "data").stat().st_size == SIZE
        assert "64K x 4" in graphlane("ls", striped.path).stdout
        graphlane("import", tmp_path / "data", striped.path / "second")
        assert (striped.path / "second").stat().st_size == SIZE
        graphlane("rm", striped.path / "second")
        graphlane("check", striped.path)
    finally:
        graphlane("umount", striped.path)
    assert (striped.path / "data").stat().st_size == 4096


def test_in_the_foreground_until_interrupted(graphlane, striped, tmp_path):
    """That includes a signal that comes before the mount answers its first request."""
    at = tmp_path / "mnt"
    at.mkdir()
    for answers in [lambda: is_mounted(at), lambda: (at / "data").exists()]:
        job = Job(graphlane.program, "mount", "-f", striped.path, at)
        job.wait_until(answers)
        assert job.stop(signal.SIGINT) == ""
        assert job.process.returncode == 0
        assert not is_mounted(at)


def test_umount_goes_on_after_an_unmounted_path(graphlane, striped, tmp_path, fuse):
    at = tmp_path / "mnt"
    at.mkdir()
    graphlane("mount", striped.path, at)
    result = graphlane("umount", tmp_path, at, check=False)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert not is_mounted(at)


def test_mounting_anything_but_a_volume_is_refused(refused, striped, tmp_path):
    refused("mount", striped.path, tmp_path / "none", naming=tmp_path / "none")
    refused("mount", tmp_path, naming=tmp_path)
    (tmp_path / "mnt").mkdir()
    refused("mount", "-o", "frobnicate", striped.path, tmp_path / "mnt", naming="frobnicate", status=2)
    refused("umount", tmp_path / "mnt", naming=tmp_path / "mnt")
    assert not is_mounted(tmp_path / "mnt")
