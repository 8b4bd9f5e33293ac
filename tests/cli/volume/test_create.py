"""graphlane create, and the command line itself."""

import json
import os
import signal
import struct
import subprocess

import pytest

from harness import Job, run, snapshot


@pytest.fixture
def devices(tmp_path):
    made = [tmp_path / f"d{i}" for i in range(3)]
    for device in made:
        device.mkdir()
    return made


def words(devices, *more):
    return ["create", *more, *(f"--device={device}" for device in devices)]


def test_info_shows_the_requested_volume(graphlane, devices, tmp_path):
    graphlane(*words(devices, tmp_path / "vol"), "--stripe-depth", "64K", "--stripe", "column",
              "--stripe", "*.adj", "--min-size", "10KB")
    info = json.loads(graphlane("info", "--json", tmp_path / "vol").stdout)
    assert info["stripe_depth"] == 65536
    assert info["policy"] == {"stripe": ["column", "*.adj"], "size_min": 10000}
    assert [device["path"] for device in info["devices"]] == [str(d) for d in devices]


def test_devices_may_be_named_from_the_working_directory(graphlane, devices, tmp_path):
    graphlane("create", "-d", "d0", "-d", "./d1/", "-d", "../" + tmp_path.name + "/d2", "vol",
              cwd=tmp_path)
    info = json.loads(graphlane("info", "--json", tmp_path / "vol", cwd="/").stdout)
    assert [device["path"] for device in info["devices"]] == [str(d) for d in devices]


def test_one_device_is_too_few(refused, devices, tmp_path):
    refused(*words(devices[:1], tmp_path / "vol"), naming="at least two devices")


@pytest.mark.parametrize(("depth", "reason"), [
    ("0", "stripe depth 0"), ("1000", "not a multiple of 4096"), ("6K", "not a multiple of 4096"),
    ("2T", "larger than 1T")])
def test_impossible_stripe_depths(refused, devices, tmp_path, depth, reason):
    refused(*words(devices, tmp_path / "vol"), "--stripe-depth", depth, naming=reason)


@pytest.mark.parametrize("depth", ["12X", "-4096", "", "4096 ", "1e6", "99999999999G"])
def test_a_malformed_size_is_a_usage_error(refused, devices, tmp_path, depth):
    refused(*words(devices, tmp_path / "vol"), f"--stripe-depth={depth}", naming="--stripe-depth",
            status=2)


def test_the_same_device_twice(refused, devices, tmp_path):
    (tmp_path / "alias").symlink_to(devices[1])
    refused(*words([*devices, tmp_path / "alias"], tmp_path / "vol"), naming=tmp_path / "alias")


def test_a_device_in_the_volume_and_the_volume_in_a_device(refused, devices, tmp_path):
    refused(*words(devices, devices[0] / "vol"), naming=devices[0])
    (tmp_path / "vol/d").mkdir(parents=True)
    refused(*words([*devices, tmp_path / "vol/d"], tmp_path / "vol"), naming=tmp_path / "vol/d")


@pytest.mark.parametrize("order", [1, -1])
def test_a_device_in_another_device(refused, devices, tmp_path, order):
    (devices[0] / "below/it").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(devices[0] / "below")
    line = refused(*words([devices[1], *[devices[0], tmp_path / "alias/it"][::order]], tmp_path / "vol"),
                   naming=tmp_path / "alias/it")
    assert line.endswith(f"alias/it: device lies inside the device {devices[0]}")


def test_devices_on_one_disk_are_warned_of(root, graphlane, devices, disks, tmp_path):
    warned = graphlane(*words(devices, tmp_path / "vol"))
    assert warned.stderr == (f"graphlane: warning: {devices[0]} and {devices[1]} (and 1 more) are on one disk: "
                             "stripes over them gain nothing\n")
    assert graphlane(*words(disks, tmp_path / "apart")).stderr == ""


def test_partitions_of_one_disk_are_warned_of(root, graphlane, tmp_path):
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
        for number in range(2):  # a table of two partitions of 24 MiB
            file.seek(446 + 16 * number)
            file.write(struct.pack("<B3xB3xII", 0, 0x83, 2048 + number * 49152, 49152))
        file.seek(510)
        file.write(b"\x55\xaa")
    made = run("losetup", "--find", "--show", "--partscan", image, check=False)
    if made.returncode != 0:
        pytest.skip("not applicable: no loop devices here")
    disk = made.stdout.strip()
    places = [tmp_path / "p1", tmp_path / "p2"]
    try:
        for number, place in enumerate(places, 1):
            if not os.path.exists(f"{disk}p{number}"):
                pytest.skip("not applicable: no partitions of loop devices here")
            place.mkdir()
            run("mkfs.ext4", "-q", "-F", f"{disk}p{number}")
            run("mount", f"{disk}p{number}", place)
        warned = graphlane(*words(places, tmp_path / "vol"))
        assert f"{places[0]} and {places[1]} are on one disk" in warned.stderr
    finally:
        for place in places:
            if place.exists():
                run("umount", place, check=False)
        run("losetup", "--detach", disk)


def test_a_device_that_is_missing_or_a_file(refused, devices, tmp_path):
    refused(*words([*devices, tmp_path / "none"], tmp_path / "vol"), naming=tmp_path / "none")
    (tmp_path / "file").write_text("x")
    refused(*words([*devices, tmp_path / "file"], tmp_path / "vol"), naming=tmp_path / "file")


def test_a_volume_is_not_made_twice(graphlane, refused, devices, tmp_path):
    graphlane(*words(devices, tmp_path / "vol"))
    refused(*words(devices, tmp_path / "vol"), naming="is a Graphlane volume already")


def test_a_directory_with_something_in_it(refused, devices, tmp_path):
    (tmp_path / "vol").mkdir()
    (tmp_path / "vol/precious").write_text("x")
    refused(*words(devices, tmp_path / "vol"), naming="not empty")


def test_a_read_only_device(refused, devices, small_filesystem, tmp_path):
    device = small_filesystem(tmp_path / "readonly", "1M", ",ro")
    refused(*words([*devices, device], tmp_path / "vol"), naming=device)


def test_a_full_device(refused, devices, small_filesystem, tmp_path):
    device = small_filesystem(tmp_path / "full", "64K")
    try:
        (device / "filler").write_bytes(b"x" * (1 << 20))
    except OSError:
        pass
    line = refused(*words([*devices, device], tmp_path / "vol"), naming=device)
    assert "No space left on device" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_midway_leaves_nothing(graphlane, tmp_path, number):
    devices = [tmp_path / f"d{i}" for i in range(64)]
    for device in devices:
        device.mkdir()
    before = snapshot(tmp_path)
    job = Job(graphlane.program, *words(devices, tmp_path / "vol"))
    job.wait_until(lambda: any(devices[0].iterdir()))
    assert job.stop(number) == "graphlane: interrupted\n"
    assert job.process.returncode == -number
    assert snapshot(tmp_path) == before


def test_a_device_that_we_may_not_write(graphlane, devices, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("not applicable: root may write everywhere")
    devices[2].chmod(0o555)
    result = graphlane(*words(devices, tmp_path / "vol"), check=False)
    devices[2].chmod(0o755)
    assert result.returncode == 1
    assert str(devices[2]) in result.stderr
    assert not (tmp_path / "vol").exists()
    assert list(devices[0].iterdir()) == []


def test_help_and_version(graphlane):
    assert "create" in graphlane("--help").stdout
    assert graphlane("--version").stdout.startswith("graphlane ")
    for command in ["create", "import", "export", "ls", "info", "check", "rm", "convert", "gen",
                    "mount", "umount", "run", "stat", "restripe", "explain", "advise", "calibrate", "serve"]:
        text = graphlane(command, "--help", env={**os.environ, "COLUMNS": "100"}).stdout
        assert f"Usage: graphlane {command}" in text
        assert "Example:" in text
        assert len(text.splitlines()) < 50


@pytest.mark.parametrize("line", [[], ["frobnicate"], ["import"], ["ls", "--colour", "x"],
                                  ["gen"], ["run"], ["run", "--io", "fast", "--", "true"]])
def test_a_wrong_command_line_is_status_2(refused, line):
    refused(*line, naming="--help", status=2)


def test_stdout_that_is_full_is_an_error(graphlane, volume):
    made = volume()
    with open("/dev/full", "w") as full:
        result = subprocess.run([graphlane.program, "info", made.path], stdout=full,
                                stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert "stdout" in result.stderr
