"""Emulated devices are removed when they should be, in every case."""

import json
import os
import signal
import stat
import tempfile
from pathlib import Path

import pytest
from commands import experiments, start, traces, wait_for_steps, wait_gone

from harness import processes

from experiments.devices import emulated
from experiments.devices.cgroup import blkio_group
from experiments.devices.journal import THROTTLES, Journal, loop_of
from experiments.workspace import StepFailed, interrupt, signals_held, stop_on_signals

SMALL = ["--count", "2", "--size", "256M"]


def test_up_makes_devices_and_down_leaves_nothing(kind, at):
    said = experiments("devices", "up", "--kind", kind, *SMALL, "--dilate", "4", "--at", at)
    made = json.loads((at / "devices.json").read_text())["devices"]
    assert said.stdout.splitlines() == [f"/dev/{d['loop']}  {d['filesystem']}" for d in made]
    for device in made:
        queue = Path("/sys/block", device["loop"], "queue")
        assert (queue / "rotational").read_text().strip() == str(int(kind == "hdd"))
        scheduler = "[none]" if kind == "ssd" else "[mq-deadline]"
        assert scheduler in (queue / "scheduler").read_text()
        assert Path(f"/dev/{device['loop']}p2").is_block_device()
        Path(device["filesystem"], "file").write_bytes(b"x" * 5000)
        assert os.getxattr(device["file"], "user.disk_model.speed") == b"model"
    experiments("devices", "down", "--at", at)
    wait_gone(at)
    assert not at.exists()


def limits_of(numbers):
    """The blkio limits of these devices, 'MAJOR:MINOR', in the group of this process."""
    group = blkio_group()
    return {name: [line for line in (group / name).read_text().splitlines()
                   if line.split()[0] in numbers] for name in THROTTLES}


def test_flash_devices_are_limited_by_blkio_until_they_are_taken_down(at):
    experiments("devices", "up", "--kind", "flash", *SMALL, "--dilate", "4", "--at", at)
    loops = [d["loop"] for d in json.loads((at / "devices.json").read_text())["devices"]]
    numbers = [Path(f"/sys/block/{loop}/dev").read_text().strip() for loop in loops]
    queues = [Path("/sys/block", loop, "queue") for loop in loops]
    assert all("[none]" in (queue / "scheduler").read_text() for queue in queues)
    for name, lines in limits_of(numbers).items():
        rate = 35_000_000 if "bps" in name else 3_500
        assert sorted(lines) == sorted(f"{number} {rate}" for number in numbers)
    experiments("devices", "down", "--at", at)
    wait_gone(at)
    assert not any(limits_of(numbers).values())


@pytest.mark.parametrize("lines", [1, 3, 5, 7, 9, 11, 13, 16])
def test_down_cleans_up_after_a_sigkill_at_any_step(kind, at, lines):
    process = start("devices", "up", "--kind", kind, *SMALL, "--at", at)
    wait_for_steps(process, at, lambda steps: steps.count("\n") >= lines)
    process.kill()
    process.communicate()
    assert (at / "undo.jsonl").exists()
    experiments("devices", "down", "--at", at)
    wait_gone(at)


def states_of_children(pid: int) -> list[str]:
    states = []
    for _, status in processes("stat"):
        state, parent, *_ = status.rpartition(b")")[2].decode().split()
        states += [state] if int(parent) == pid else []
    return states


def test_the_next_run_removes_leftovers_of_a_killed_one(loops, dropped_caches, at, monkeypatch, capsys):
    """A running program's devices stay."""
    at.parent.joinpath("tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(at.parent / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(at.parent / "tmp"))
    process = start("limits", "--kind", "hdd", *SMALL)
    directory = Path(process.stderr.readline().removeprefix("devices in ").strip())
    assert directory.parent == at.parent / "tmp"
    wait_for_steps(process, directory, lambda steps: '"loop"' in steps)
    emulated.remove_leftovers()
    assert traces(directory) and capsys.readouterr() == ("", "")
    process.send_signal(signal.SIGSTOP)
    while any(state != "Z" for state in states_of_children(process.pid)):
        pass  # a starting command would do its step after the undo
    process.kill()
    process.communicate()
    emulated.remove_leftovers()
    assert capsys.readouterr().err == f"{directory}: left by a run that was killed, and now removed\n"
    wait_gone(directory)
    directory.parent.rmdir()


def test_files_on_dead_devices_are_gone(kind, at):
    experiments("devices", "up", "--kind", kind, *SMALL, "--at", at)
    with emulated.open_journal(at) as journal:
        journal.note("tree", path=str(at / "model-0/tree"))
        journal.note("file", path=str(at / "model-1/file"))
    for pid, words in processes("cmdline"):
        if b"disk_model" in words and str(at).encode() in words:
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(OSError):
        os.stat(at / "model-0/tree")
    experiments("devices", "down", "--at", at)
    wait_gone(at)


@pytest.fixture
def hangups():
    """Started programs heed these signals, even where the terminal's are ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_down_half_made_devices(loops, hangups, at, number):
    process = start("devices", "up", "--kind", "hdd", "--count", 8, "--size", "256M", "--at", at)
    wait_for_steps(process, at, lambda steps: steps.count("\n") >= 5)
    process.send_signal(number)
    complaint = process.communicate(timeout=60)[1]
    assert process.returncode == 130, complaint
    wait_gone(at)
    assert not at.exists()


def test_signals_ignored_by_nohup_stay_ignored(hangups):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = signal.getsignal(signal.SIGTERM)
    stop_on_signals()
    assert signal.getsignal(signal.SIGTERM) == interrupt
    signal.signal(signal.SIGTERM, before)
    with signals_held():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_missing_nodes_are_made_and_removed(root, tmp_path):
    """The test removes the nodes, as in a container without udev."""
    name, number = next((path.name, path.joinpath("dev").read_text().strip())
                        for path in Path("/sys/class/block").iterdir())
    journal = Journal(tmp_path, create=True)
    emulated.make_node(journal, name, tmp_path)
    made = os.stat(tmp_path / name)
    assert stat.S_ISBLK(made.st_mode)
    assert f"{os.major(made.st_rdev)}:{os.minor(made.st_rdev)}" == number
    emulated.make_node(journal, name, tmp_path)
    journal.undo()
    journal.close()
    assert not any(tmp_path.iterdir())


def test_a_busy_device_stays_until_it_is_idle(kind, at):
    experiments("devices", "up", "--kind", kind, *SMALL, "--at", at)
    with open(at / "d-0/file", "w"):
        failed = experiments("devices", "down", "--at", at, check=False)
        assert failed.returncode == 1
        assert "busy" in failed.stderr and failed.stderr.count("\n") == 1
    experiments("devices", "down", "--at", at)
    wait_gone(at)


def test_a_directory_of_the_user_stays_with_its_files(loops, at):
    at.mkdir()
    (at / "his").write_text("x")
    experiments("devices", "up", "--kind", "hdd", *SMALL, "--at", at)
    experiments("devices", "down", "--at", at)
    assert [path.name for path in at.iterdir()] == ["his"]
    (at / "his").unlink()


@pytest.mark.parametrize("name", ["store/his", "d-1"])
def test_a_directory_of_the_user_is_not_removed(loops, at, name):
    """It was once removed; or, as it was not empty, nothing could be taken down any more."""
    (at / name).mkdir(parents=True)
    before = traces(at)
    failed = experiments("devices", "up", "--kind", "hdd", *SMALL, "--at", at, check=False)
    assert failed.returncode == 1 and "is there already" in failed.stderr
    assert (at / name).is_dir() and traces(at) == before
    for path in (at / name, *(at / name).parents):
        if path != at.parent and at in (path, *path.parents):
            path.rmdir()


def test_second_up_is_refused_and_harms_nothing(loops, at):
    experiments("devices", "up", "--kind", "hdd", *SMALL, "--at", at)
    again = experiments("devices", "up", "--kind", "hdd", *SMALL, "--at", at, check=False)
    assert again.returncode == 1 and "there are devices already" in again.stderr
    (at / "d-1/file").write_text("still there")
    experiments("devices", "down", "--at", at)


def test_journal_in_use_is_refused(tmp_path):
    journal = Journal(tmp_path, create=True)
    with pytest.raises(StepFailed, match="in use by another process"):
        Journal(tmp_path)
    journal.close()
    with pytest.raises(StepFailed, match="no devices were set up there"):
        Journal(tmp_path)


def test_a_torn_last_line_is_a_step_not_begun(tmp_path):
    journal = Journal(tmp_path, create=True)
    journal.make_directory(tmp_path / "made")
    journal.file.write(b'{"step": "dire')
    journal.file.close()
    again = Journal(tmp_path)
    again.undo()
    again.close()
    assert list(tmp_path.iterdir()) == []


def test_section_undoes_its_own_steps_only(tmp_path):
    journal = Journal(tmp_path, create=True)
    journal.make_directory(tmp_path / "before")
    with pytest.raises(ZeroDivisionError), journal.section():
        journal.make_directory(tmp_path / "inside")
        raise ZeroDivisionError
    assert (tmp_path / "before").exists() and not (tmp_path / "inside").exists()
    journal.undo()
    journal.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spec, said", [
    ({"size": 64 << 20}, "needs 256M or more"),
    ({"filesystem": "xfs", "size": 512 << 20}, "needs 640M or more"),
    ({"kind": "hdd", "seek_min": 0.005}, "seek times must not fall")])
def test_impossible_devices_are_refused_before_any_step(spec, said):
    with pytest.raises(StepFailed, match=said):
        emulated.Spec(**spec).check()


def test_a_file_without_a_loop_device_has_none(tmp_path):
    assert loop_of(tmp_path / "file") is None
