"""graphlane export --salvage writes what remains of a damaged file, and a list of the missing
ranges."""

import os
import random

import pytest

from harness import run

DEPTH = 64 << 10
SIZE = 3_000_000


@pytest.fixture
def damaged(graphlane, volume, tmp_path):
    """A volume of three devices with two equal files, `whole` and `data`, and their bytes."""
    content = random.Random(7).randbytes(SIZE)
    (tmp_path / "source").write_bytes(content)
    made = volume(device_count=3, depth="64K")
    for name in "data", "whole":
        graphlane("import", tmp_path / "source", made.path / name)
    return made, content


def part(graphlane, made, name, device):
    """The path of a part, and the file offset of each of its units."""
    data = (made.path / name).read_bytes()
    file_id, first = data[32:48].hex(), int.from_bytes(data[60:64], "little")
    (path,) = made.devices[device].glob(f"*/parts/{file_id[:2]}/{file_id}")
    units = [unit for unit in range((SIZE + DEPTH - 1) // DEPTH) if (unit + first) % 3 == device]
    return path, units


def salvage(graphlane, made, name, out, *words):
    return graphlane("export", "--salvage", *words, f"{made.path}/{name}", out, check=False)


def missing_of(path) -> list[tuple[int, int]]:
    lines = path.read_text().splitlines()
    assert lines[0] == "# graphlane salvage 1"
    return [tuple(map(int, line.split()[:2])) for line in lines if not line.startswith("#")]


def check_copy(out, content, missing) -> None:
    copy = out.read_bytes()
    assert len(copy) == len(content)
    wanted = bytearray(content)
    for offset, length in missing:
        wanted[offset:offset + length] = bytes(length)
    assert copy == bytes(wanted)


def ranges(units: list[int]) -> list[tuple[int, int]]:
    return [(unit * DEPTH, min(SIZE, (unit + 1) * DEPTH) - unit * DEPTH) for unit in units]


def test_a_short_part(graphlane, damaged, tmp_path):
    made, content = damaged
    path, units = part(graphlane, made, "data", 1)
    os.truncate(path, 2 * DEPTH + 1000)
    out = tmp_path / "out"
    assert graphlane("export", made.path / "data", out, check=False).returncode == 1
    assert not out.exists()
    result = salvage(graphlane, made, "data", out)
    assert result.returncode == 1 and f"missing: {out}: " in result.stdout and f"{out}.missing" in result.stdout
    missing = missing_of(tmp_path / "out.missing")
    # The block that was cut cannot be compared with its checksum: all of it is missing.
    assert missing == ranges(units[2:])
    assert str(path) in (tmp_path / "out.missing").read_text()
    check_copy(out, content, missing)


def test_several_devices_that_lack_parts(graphlane, damaged, tmp_path):
    made, content = damaged
    gone, gone_units = part(graphlane, made, "data", 0)
    short, short_units = part(graphlane, made, "data", 2)
    gone.unlink()
    os.truncate(short, DEPTH)
    assert salvage(graphlane, made, ".", tmp_path / "out").returncode == 1
    missing = missing_of(tmp_path / "out/data.missing")
    lost = {unit for unit in gone_units + short_units[1:]}
    assert {offset + n for offset, length in missing for n in range(0, length, DEPTH)} == {
        unit * DEPTH for unit in lost}
    check_copy(tmp_path / "out/data", content, missing)
    assert (tmp_path / "out/whole").read_bytes() == content
    assert not (tmp_path / "out/whole.missing").exists()


def test_a_missing_device(graphlane, damaged, tmp_path):
    made, content = damaged
    _, units = part(graphlane, made, "data", 1)
    made.devices[1].rename(tmp_path / "away")
    assert salvage(graphlane, made, "data", tmp_path / "out").returncode == 1
    missing = missing_of(tmp_path / "out.missing")
    assert missing == ranges(units)
    assert "the device is missing" in (tmp_path / "out.missing").read_text()
    check_copy(tmp_path / "out", content, missing)


@pytest.mark.parametrize("damage", ["flipped", "cut short"])
def test_a_damaged_stub(graphlane, damaged, tmp_path, damage):
    made, content = damaged
    stub = made.path / "data"
    if damage == "flipped":
        with open(stub, "r+b") as file:
            file.seek(2000)
            file.write(b"x")
    else:
        os.truncate(stub, 2000)
    assert graphlane("export", stub, tmp_path / "out", check=False).returncode == 1
    assert salvage(graphlane, made, "data", tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_bytes() == content
    assert not (tmp_path / "out.missing").exists()


def test_a_salvage_replaces_nothing_unasked(graphlane, damaged, tmp_path):
    """An existing file is replaced only on request."""
    made, content = damaged
    os.truncate(part(graphlane, made, "data", 1)[0], 0)
    out = tmp_path / "out"
    salvage(graphlane, made, "data", out)
    out.unlink()
    again = salvage(graphlane, made, "data", out)
    assert again.returncode == 1 and "out.missing" in again.stderr
    assert salvage(graphlane, made, "data", out, "--overwrite").stderr == ""


def test_a_salvage_reveals_no_parts_of_another_user(root, graphlane, damaged, tmp_path):
    made, _ = damaged
    os.chown(made.path / "data", 1234, 1234)
    result = salvage(graphlane, made, "data", tmp_path / "out")
    assert result.returncode == 1 and "the stub's owner does not own the parts" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_whole_file_is_exported_as_usual(graphlane, damaged, tmp_path):
    made, content = damaged
    assert salvage(graphlane, made, "data", tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_bytes() == content
    assert run("ls", tmp_path).stdout.count("missing") == 0
