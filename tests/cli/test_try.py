"""`graphlane try` times a program in four ways, gives a recommendation, and leaves nothing
behind."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import BUILD, snapshot

WAYS = ["where it is", "one disk", "preloaded", "mounted"]


@pytest.fixture
def place(tmp_path):
    """A graph of two files, and two devices."""
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/column").write_bytes(os.urandom(3 << 20))
    (tmp_path / "graph/meta").write_text("0 1 2\n")
    for name in ["d0", "d1"]:
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def tried(graphlane, place):
    def run(*words, check=True):
        return graphlane("try", place / "graph", "-d", place / "d0", "-d", place / "d1", *words, check=check)

    return run


def test_try_times_all_ways_and_leaves_nothing(tried, place, fuse):
    before = snapshot(place)
    said = json.loads(tried("--json").stdout)
    assert [way["way"] for way in said["ways"]] == WAYS
    assert all(way["cold_seconds"] > 0 and way["warm_seconds"] > 0 for way in said["ways"])
    assert said["verdict"].startswith("The page cache holds this graph")
    assert "os_striped_volume" in said
    assert snapshot(place) == before


def test_without_a_command_each_way_reads_every_file(graphlane, place, fuse):
    log = place / "log"
    (place / "bin").mkdir()
    dd = place / "bin/dd"
    dd.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {shutil.which("dd")} "$@"\n')
    dd.chmod(0o755)
    graphlane("try", place / "graph", "-d", place / "d0", "-d", place / "d1",
              env={**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"})
    read = [line.rpartition("/")[2] for line in log.read_text().splitlines()]
    assert sorted(read) == sorted(["column", "meta"] * 2 * len(WAYS))


def test_a_command_of_the_user_sees_the_same_bytes_each_way(tried, fuse):
    said = tried("--", "md5sum", "{}/column", check=False)
    assert "it printed something else" in said.stderr  # the path
    assert tried("--", "sh", "-c", "md5sum < $0/column", "{}").stdout.count("mounted") == 1


@pytest.mark.parametrize("words, said", [
    (["--", "echo", "hi"], "no {} in its words"), (["--", "false", "{}"], "where it is: false: exit status 1"),
    (["--", "no-such-program", "{}"], "no-such-program: cannot run: No such file")])
def test_an_impossible_try_is_one_line(tried, place, words, said):
    before = snapshot(place)
    failed = tried(*words, check=False)
    assert failed.returncode == 1 and said in failed.stderr.splitlines()[-1]
    assert snapshot(place) == before


def test_one_device_is_not_enough(graphlane, place):
    failed = graphlane("try", place / "graph", "-d", place / "d0", check=False)
    assert failed.returncode == 1 and "two or more disks" in failed.stderr


def test_an_interrupt_leaves_nothing(place):
    before = snapshot(place)
    process = subprocess.Popen([BUILD / "bin/graphlane", "try", place / "graph", "-d", place / "d0", "-d",
                                place / "d1", "--", "sh", "-c", "sleep 100; : $0", "{}"], stderr=subprocess.DEVNULL)
    while not any((place / "d1").iterdir()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == -signal.SIGINT
    assert snapshot(place) == before
