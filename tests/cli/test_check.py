"""graphlane check, after all that can stop an import."""

import os
import random
import resource
import signal
import subprocess
import time

import pytest

from harness import Job, run, snapshot


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Large enough to be stopped in the middle."""
    path = tmp_path_factory.mktemp("source") / "large"
    block = random.Random(1).randbytes(1 << 20)
    with open(path, "wb") as file:
        for number in range(192):
            file.write(number.to_bytes(8, "little") + block[8:])
    return path


def has_parts(made) -> bool:
    return any(any(device.glob("*/parts/*/*")) for device in made.devices)


def test_a_good_volume_has_no_problems(graphlane, volume, large):
    made = volume()
    graphlane("import", large, made.path)
    result = graphlane("check", "--scrub", made.path)
    assert result.stdout == f"{made.path}: 1 striped files (192M), 0 plain files, no problems\n"


def test_scrub_reads_the_devices(graphlane, volume, large):
    """What is in memory says nothing of them."""
    made = volume()
    if run("stat", "-f", "-c", "%T", made.path).stdout.strip() == "tmpfs":
        pytest.skip("not applicable: files in memory have no device")
    graphlane("import", large, made.path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    graphlane("check", "--scrub", made.path)
    read = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
    assert read >= large.stat().st_size


def test_a_problem_is_one_line_whatever_the_name(graphlane, volume, large):
    made = volume()
    graphlane("import", large, made.path / "\x1b[2J\nproblem: none")
    part = next(part for device in made.devices for part in device.glob("*/parts/*/*"))
    part.unlink()
    result = graphlane("check", made.path, check=False)
    assert result.returncode == 1
    problem, summary = result.stdout.splitlines()
    assert f"{made.path}/?[2J?problem: none: part " in problem


def test_an_interrupted_scrub_says_what_was_repaired(graphlane, volume, large, tmp_path):
    made = volume()
    (tmp_path / "lost").write_bytes(bytes(100_000))
    graphlane("import", tmp_path / "lost", made.path)
    (made.path / "lost").unlink()
    graphlane("import", large, made.path)
    parts = lambda: sum(1 for device in made.devices for _ in device.glob("*/parts/*/*"))  # noqa: E731
    job = Job(graphlane.program, "check", "--repair", "--scrub", made.path)
    job.wait_until(lambda: parts() == len(made.devices))
    job.process.send_signal(signal.SIGINT)
    said, told = job.process.communicate(timeout=60)
    assert said.count("repaired: ") == len(made.devices)
    assert job.process.returncode == 0 or told == "graphlane: interrupted\n"


def test_an_interrupted_removal_leaves_no_parts(graphlane, volume, tmp_path):
    made = volume(depth="4K", stripe=["*"])
    (tmp_path / "tree").mkdir()
    for n in range(1000):
        (tmp_path / f"tree/{n}").write_bytes(b"x" * 100)
    graphlane("import", tmp_path / "tree", made.path)
    job = Job(graphlane.program, "rm", "-r", made.path / "tree")
    job.wait_until(lambda: len(list((made.path / "tree").iterdir())) < 1000)
    told = job.stop(signal.SIGINT)
    assert told == "graphlane: interrupted\n" and job.process.returncode == -signal.SIGINT or not told
    assert "no problems" in graphlane("check", made.path).stdout


def test_problems_are_status_1_and_change_nothing(graphlane, volume, large):
    made = volume()
    graphlane("import", large, made.path)
    (made.path / "large").unlink()
    before = {path: info[0] for path, info in snapshot(*made.devices).items()}
    result = graphlane("check", made.path, check=False)
    assert result.returncode == 1
    assert result.stdout.count("no stub names this part") == len(made.devices)
    assert {path: info[0] for path, info in snapshot(*made.devices).items()} == before
    assert graphlane("check", "--repair", made.path).stdout.count("repaired: ") == len(made.devices)
    assert not has_parts(made)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_import_cleans_up(graphlane, volume, large, number):
    made = volume()
    before = snapshot(made.path, *made.devices)
    job = Job(graphlane.program, "import", large, made.path)
    job.wait_until(lambda: has_parts(made))
    assert job.stop(number) == "graphlane: interrupted\n"
    assert job.process.returncode == -number
    assert snapshot(made.path, *made.devices) == before


def test_a_killed_import_is_repaired(graphlane, volume, large):
    made = volume()
    (made.path / "plain").write_text("mine")
    job = Job(graphlane.program, "import", large, made.path)
    job.wait_until(lambda: has_parts(made))
    job.stop(signal.SIGKILL)
    assert not (made.path / "large").exists()
    assert graphlane("check", made.path, check=False).returncode == 1
    graphlane("check", "--repair", made.path)
    graphlane("check", made.path)
    assert not has_parts(made)
    assert (made.path / "plain").read_text() == "mine"
    assert not any((made.path / ".graphlane/tmp").iterdir())


def test_an_import_killed_at_any_time_loses_nothing(graphlane, volume, large, tmp_path):
    """The file that was there is whole until the new one is."""
    made = volume()
    old = b"old" * 1_000_000
    (tmp_path / "old").write_bytes(old)
    graphlane("import", tmp_path / "old", made.path / "file")
    start = time.monotonic()
    graphlane("import", large, made.path / "other")
    whole = time.monotonic() - start
    for step in range(8):
        job = Job(graphlane.program, "import", "--overwrite", large, made.path / "file")
        time.sleep(whole * step / 7)
        job.stop(signal.SIGKILL)
        graphlane("check", "--repair", made.path)
        graphlane("check", made.path)
        graphlane("export", "--overwrite", made.path / "file", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() in (old, large.read_bytes())


def test_a_repair_does_not_disturb_a_running_import(graphlane, volume, large):
    made = volume()
    job = Job(graphlane.program, "import", large, made.path)
    job.wait_until(lambda: has_parts(made))
    os.kill(job.process.pid, signal.SIGSTOP)
    try:
        result = graphlane("check", "--repair", made.path, check=False)
    finally:
        os.kill(job.process.pid, signal.SIGCONT)
    assert result.returncode == 1
    assert "busy" in result.stderr
    assert job.process.wait(60) == 0
    graphlane("check", made.path)


def test_imports_run_at_the_same_time(graphlane, volume, large):
    made = volume()
    jobs = [Job(graphlane.program, "import", large, made.path / f"copy{i}") for i in range(4)]
    for job in jobs:
        job.process.communicate(timeout=120)
        assert job.process.returncode == 0
    graphlane("check", made.path)


def test_another_volume_on_the_same_devices_is_left_alone(graphlane, volume, large, tmp_path):
    made = volume()
    words = ["create", tmp_path / "second"]
    for device in made.devices:
        words += ["--device", device]
    graphlane(*words)
    graphlane("import", large, tmp_path / "second")
    graphlane("check", "--repair", made.path)
    graphlane("check", tmp_path / "second")


def test_parts_whose_stubs_something_mounted_may_hide_are_kept(root, graphlane, volume, large):
    made = volume()
    (made.path / "sub").mkdir()
    graphlane("import", large, made.path / "sub/large")
    subprocess.run(["mount", "-t", "tmpfs", "none", made.path / "sub"], check=True)
    try:
        result = graphlane("check", "--repair", made.path, check=False)
    finally:
        subprocess.run(["umount", made.path / "sub"], check=True)
    assert result.returncode == 1 and has_parts(made)
    assert result.stdout.count(f"what is mounted at {made.path}/sub may hide its own") == len(made.devices)
    assert graphlane("check", made.path).stdout.endswith("no problems\n")
