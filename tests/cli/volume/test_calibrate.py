"""graphlane calibrate. A fake fio gives known results, so that the outcome can be checked. One
test runs fio itself."""

import json
import os
import shutil
import signal
import sys
import textwrap

import pytest

from harness import Job, run, snapshot

SIZE = "64M"

# A fake fio that reports the speed of a device of some kind.
FIO = """\
#!{python} -S
import json, os, sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit(print("fio-3.33"))
asked = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
streams = int(asked["numjobs"])
depth = int(asked["iodepth"]) * streams
small = asked["rw"] == "randread"
with open({log!r}, "a+") as log:
    print(json.dumps(asked), file=log)
    log.seek(0)
    call = len(log.readlines())
os.stat(asked["filename"])
{model}
rate = ios * 4096 if small else speed
print("note: as the real one writes before its result")
print(json.dumps({{"jobs": [{{"read": {{"bw_bytes": rate, "iops": rate / int(asked["bs"])}}}}]}}))
"""

DISK = """
speed = 200e6 * (1 if streams == 1 else 0.84)
ios = 100 + 10 * depth
"""
SSD = """
speed = min(500e6, 150e6 * depth)
ios = min(90_000, 6_000 * depth)
"""
# Another program used the device in the first round.
SSD_BUSY = SSD + """
if call <= 12: speed, ios = speed / (call % 5 + 1), ios / (call % 3 + 1)
"""
# Large reads get slower where small ones get faster.
NETWORK = """
speed = 300e6 if depth <= 4 else 200e6
ios = 1_000 * depth
"""
# Only several streams saturate it.
STRIPED = """
speed = 100e6 * min(depth, 8) * min(streams, 4)
ios = 1_000
"""
MODELS = {"disk": (DISK, 1, 1), "ssd": (SSD, 16, 1), "busy ssd": (SSD_BUSY, 16, 1),
          "network": (NETWORK, 4, 1), "striped": (STRIPED, 8, 4)}


@pytest.fixture
def fio(tmp_path, tmp_path_factory, monkeypatch):
    """fio(MODEL): makes `fio` that model from now on. Returns the log of the requests to it."""
    probe = tmp_path / "probe"
    probe.touch()
    try:
        os.close(os.open(probe, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("not applicable: no direct I/O on the filesystem of the tests")
    finally:
        probe.unlink()
    directory = tmp_path_factory.mktemp("fio")

    def install(model: str):
        log = directory / "log"
        program = directory / "fio"
        program.write_text(FIO.format(python=sys.executable, log=str(log),
                                      model=textwrap.dedent(model)))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        return log

    return install


def device_json(device):
    return next(device.glob("graphlane-*")) / "device.json"


@pytest.mark.parametrize("kind", MODELS)
def test_the_calibration_follows_fios_results(graphlane, volume, fio, kind):
    model, depth, streams = MODELS[kind]
    log = fio(model)
    made = volume()
    path = device_json(made.devices[1])
    before = json.loads(path.read_text()) | {"later": {"kept": True}}
    path.write_text(json.dumps(before))
    names = set(made.devices[1].rglob("*"))
    graphlane("calibrate", "--size", SIZE, "--runtime", "0.05", made.devices[1])

    after = json.loads(path.read_text())
    calibration = after.pop("calibration")
    assert after == before
    assert (calibration["depth"], calibration["streams"]) == (depth, streams)
    assert set(made.devices[1].rglob("*")) == names, "nothing else is left"
    shown = json.loads(graphlane("info", "--json", made.path).stdout)["devices"]
    assert (shown[1]["depth"], shown[1]["depth_from"]) == (depth, "calibration")
    assert shown[0]["depth_from"] in ["disk", "default"]
    assert f"{depth} I/Os at once (calibration)" in graphlane("info", made.path).stdout
    asked = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(asked) == 28
    assert {word["runtime"] for word in asked} == {"50ms"}
    if kind == "striped":
        by_streams = [word for word in asked if word["numjobs"] != "1"]
        assert {int(word["iodepth"]) * int(word["numjobs"]) for word in by_streams} == {depth}, (
            "as many in flight, however many streams")


def test_a_dry_run_prints_and_keeps_nothing(graphlane, volume, fio):
    fio(SSD)
    made = volume()
    before = snapshot(*made.devices)
    text = graphlane("calibrate", "--dry-run", "--size", SIZE, made.devices[0]).stdout
    assert "depth 16" in text and "not kept" in text
    told = json.loads(graphlane("calibrate", "-n", "--json", "--size", SIZE, *made.devices[:2]).stdout)
    assert snapshot(*made.devices) == before
    assert [device["path"] for device in told] == [str(path) for path in made.devices[:2]]
    assert told[0]["depth"] == 16 and told[0]["kept_in"] == []
    large = {point["depth"]: point["bytes_per_second"] for point in told[0]["measured"]["large"]}
    assert large == {1: 150e6, 2: 300e6, 4: 500e6, 8: 500e6, 16: 500e6, 32: 500e6}


def test_a_calibration_reaches_all_volumes_on_a_device(graphlane, volume, fio, tmp_path):
    log = fio(SSD)
    made = volume()
    graphlane.create_on(tmp_path / "other", made.devices)
    graphlane("-q", "calibrate", "--size", SIZE, made.devices[2])
    assert len(log.read_text().splitlines()) == 28, "measured once"
    kept = [json.loads(path.read_text())["calibration"]["depth"]
            for path in made.devices[2].glob("graphlane-*/device.json")]
    assert kept == [16, 16]
    # The preload library reads these files too.
    (tmp_path / "data").write_bytes(os.urandom(100_000))
    graphlane("import", tmp_path / "data", tmp_path / "other")
    graphlane("run", "--no-mount", "--", "cmp", tmp_path / "other/data", tmp_path / "data")
    graphlane("check", tmp_path / "other")


def test_a_calibration_by_root_belongs_to_the_devices_owner(graphlane, root, volume, fio):
    fio(DISK)
    made = volume()
    path = device_json(made.devices[0])
    os.chown(path, 65534, 65534)
    graphlane("calibrate", "--size", SIZE, made.devices[0])
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) == (
        65534, 65534, 0o644)


def test_without_fio(refused, volume, monkeypatch, tmp_path):
    made = volume()
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    refused("calibrate", made.devices[0], naming="install the package fio")


def test_a_fio_that_fails(refused, volume, fio):
    fio("sys.exit('fio: engine libaio not loadable')")
    made = volume()
    line = refused("-q", "calibrate", "--size", SIZE, made.devices[0], naming=made.devices[0])
    assert "engine libaio not loadable" in line


def test_a_fio_with_unexpected_output(refused, volume, fio):
    fio("sys.exit(print('{\"jobs\": 7'))")
    made = volume()
    refused("-q", "calibrate", "--size", SIZE, made.devices[0], naming=made.devices[0])


def test_a_path_that_is_no_device_is_refused(refused, volume, tmp_path):
    made = volume()
    refused("calibrate", made.path, naming="is a volume")
    refused("calibrate", tmp_path, naming="holds no device")
    refused("calibrate", tmp_path / "none", naming=tmp_path / "none")
    (tmp_path / "file").write_text("x")
    refused("calibrate", tmp_path / "file", naming=tmp_path / "file")


def test_a_damaged_device_is_reported_before_any_measurement(refused, volume, fio):
    log = fio(SSD)
    made = volume()
    device_json(made.devices[1]).write_text("{}")
    refused("calibrate", *made.devices, naming=device_json(made.devices[1]))
    assert not log.exists()


def test_a_damaged_calibration_is_reported_and_measured_again(graphlane, refused, volume, fio):
    fio(SSD)
    made = volume()
    path = device_json(made.devices[0])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"calibration": {"depth": 1000}}))
    refused("info", made.path, naming=path)
    graphlane("-q", "calibrate", "--size", SIZE, made.devices[0])
    graphlane("info", made.path)


@pytest.mark.parametrize(("words", "status"), [
    (["--runtime", "0"], 2), (["--runtime", "x"], 2), (["--size", "x"], 2), (["--size", "63M"], 1)])
def test_impossible_options(refused, volume, words, status):
    made = volume()
    refused("calibrate", *words, made.devices[0], naming=words[0], status=status)


def test_a_device_without_room(graphlane, refused, small_device_volume, fio):
    fio(SSD)
    made = small_device_volume("4M")
    line = refused("calibrate", "--size", SIZE, made.devices[2], naming=made.devices[2])
    assert "free" in line and "--size" in line


def test_a_read_only_device(refused, small_device_volume, fio):
    fio(SSD)
    made = small_device_volume("4M")
    run("mount", "-o", "remount,ro", made.devices[2])
    line = refused("calibrate", "--size", SIZE, made.devices[2], naming=made.devices[2])
    assert "Read-only file system" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_fio_and_leaves_nothing(graphlane, volume, fio, number):
    log = fio("time.sleep(60)")
    made = volume()
    before = snapshot(*made.devices)
    job = Job(graphlane.program, "calibrate", "--size", SIZE, made.devices[0])
    job.wait_until(lambda: log.exists() and log.read_text().endswith("\n"))
    asked = json.loads(log.read_text())["filename"]
    assert os.path.exists(asked)
    assert job.stop(number).splitlines()[-1] == "graphlane: interrupted"
    assert job.process.returncode == -number
    assert snapshot(*made.devices) == before
    assert not any(asked.encode() in line for line in command_lines()), "fio has ended too"


def command_lines() -> list[bytes]:
    lines = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                lines.append(file.read())
        except OSError:
            pass  # it has just ended
    return lines


def test_fio_itself(graphlane, volume, fio):
    """Only the first read of each kind runs fio; the others reuse its answer. All 28 would take
    ten seconds."""
    real = shutil.which("fio")
    if real is None:
        pytest.skip("not applicable: fio is missing")
    log = fio(f"""
        import subprocess
        answer = f"{{__file__}}.{{streams}}.{{small}}"
        if not os.path.exists(answer):
            with open(answer, "wb") as file:
                subprocess.run([{real!r}, *sys.argv[1:]], stdout=file, check=True)
        sys.exit(print(open(answer).read()))
    """)
    made = volume()
    told = json.loads(graphlane("calibrate", "--json", "--size", SIZE, "--runtime", "0.1",
                                made.devices[0]).stdout)[0]
    assert len(log.read_text().splitlines()) == 28
    assert told["depth"] == 1, "whatever the depth, the same answer"
    for points in told["measured"].values():
        assert all(point["bytes_per_second"] > 0 for point in points)
    assert told["measured"]["small"][0]["ios_per_second"] == pytest.approx(
        told["measured"]["small"][0]["bytes_per_second"] / 4096, rel=0.01)
