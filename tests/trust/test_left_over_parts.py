"""`check --repair` removes the parts that a killed import, removal or restriping left. It keeps
every part that a stub may name somewhere else."""

import os
import random
import shutil

import pytest

from harness import BUILD, PRELOADED, run
from stubs import change_record, flags_of, parts_of_file

CONTENT = random.Random(5).randbytes(700_001)
MAKING, REMOVED = 1, 4


@pytest.fixture
def made(graphlane, volume, tmp_path):
    """A volume with the striped file a."""
    made = volume(device_count=3, depth="64K")
    (tmp_path / "a").write_bytes(CONTENT)
    graphlane("import", tmp_path / "a", made.path)
    return made


def parts_left(made) -> int:
    return sum(path.suffix != ".sum" for device in made.devices for path in device.glob("*/parts/*/*"))


def killed_at(call: str, number: int, *words, **kwargs):
    """Runs a program and kills it at the start of its N-th system call. Returns False if it made
    fewer of them."""
    if shutil.which("strace") is None:
        pytest.skip("strace is missing: apt-get install strace")
    done = run("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
               "-e", f"inject={call}:signal=KILL:when={number}", *words, check=False, **kwargs)
    if "Operation not permitted" in done.stderr:
        pytest.skip("not applicable: strace may not trace here")
    return done.returncode in (-9, 137)


def assert_repaired(graphlane, made, files: int) -> None:
    assert graphlane("check", "--repair", made.path, check=False).returncode in (0, 1)
    said = graphlane("check", made.path)
    assert "no problems" in said.stdout and "orphan" not in said.stdout, said.stdout
    assert not list((made.path / "lost+found").glob("*")), "an orphan was noted"
    assert parts_left(made) == files * len(made.devices)
    assert files > 0 or not [path for device in made.devices for path in device.glob("*/parts/*/*")]


@pytest.mark.parametrize("call, number", [
    ("fsetxattr", 1), ("fsetxattr", 2), ("fsetxattr", 3), ("fsetxattr", 4), ("fsetxattr", 7), ("fsetxattr", 9),
    ("ftruncate", 2), ("pwritev", 4), ("syncfs", 1), ("fsync", 1), ("fsync", 2), ("renameat", 1), ("renameat2", 1)])
def test_a_killed_import(graphlane, made, tmp_path, call, number):
    (tmp_path / "b").write_bytes(CONTENT)
    was_killed = killed_at(call, number, graphlane.program, "import", tmp_path / "b", made.path)
    arrived = (made.path / "b").exists()
    assert arrived or was_killed
    assert_repaired(graphlane, made, 1 + arrived)
    if arrived:
        assert flags_of(parts_of_file(made, made.path / "b")[0]) & (MAKING | REMOVED) == 0
    graphlane("export", made.path / "a", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_a_killed_import_that_replaced_a_file(graphlane, made, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a").write_bytes(CONTENT[::-1])
    assert killed_at("syncfs", 2, graphlane.program, "import", "-f", tmp_path / "new/a", made.path)
    assert_repaired(graphlane, made, 1)


@pytest.mark.parametrize("call, number", [("unlinkat", 2), ("unlinkat", 3), ("unlinkat", 5), ("syncfs", 1)])
def test_a_killed_removal(graphlane, made, call, number):
    assert killed_at(call, number, graphlane.program, "rm", made.path / "a")
    assert not (made.path / "a").exists() and parts_left(made) > 0
    told = graphlane("check", made.path, check=False)
    assert told.returncode == 4 and "killed" in told.stdout
    assert_repaired(graphlane, made, 0)


def test_a_preloaded_program_that_is_killed_while_it_removes(graphlane, made):
    # The calls inside the library are direct unlinkat calls; rm's own is the first.
    assert killed_at("unlinkat", 3, "env", f"LD_PRELOAD={BUILD}/lib/libgraphlane.so", "rm", made.path / "a",
                     env={**os.environ, **PRELOADED})
    assert not (made.path / "a").exists() and parts_left(made) > 0
    assert_repaired(graphlane, made, 0)


@pytest.mark.parametrize("call, number", [("fsync", 1), ("fdatasync", 1), ("pwrite64", 1), ("unlinkat", 1), ("unlinkat", 2)])
def test_a_killed_restriping(graphlane, made, tmp_path, call, number):
    killed_at(call, number, graphlane.program, "restripe", "--stripe-depth", "128K", made.path / "a")
    assert_repaired(graphlane, made, 1)
    graphlane("export", made.path / "a", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_a_mark_of_another_boot_proves_nothing(graphlane, made, tmp_path):
    """A power failure may have restored the name, in a folder that is away now."""
    for part in parts_of_file(made, made.path / "a"):
        change_record(part, REMOVED, boot_tag=12345)
    os.rename(made.path / "a", made.path.parent / "away")
    graphlane("check", "--repair", made.path, check=False)
    assert parts_left(made) == 3
    os.rename(made.path.parent / "away", made.path / "a")
    graphlane("check", "--repair", made.path, check=False)
    assert all(flags_of(part) & REMOVED == 0 for part in parts_of_file(made, made.path / "a"))
    graphlane("export", made.path / "a", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


@pytest.mark.parametrize("flag", [MAKING, REMOVED])
def test_an_existing_stub_keeps_its_parts(graphlane, made, tmp_path, flag):
    for part in parts_of_file(made, made.path / "a"):
        change_record(part, flag)
    graphlane("check", "--repair", made.path, check=False)
    graphlane("export", made.path / "a", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_parts_with_a_whole_one_among_them_are_an_orphan(graphlane, made):
    first, *_ = parts_of_file(made, made.path / "a")
    change_record(first, MAKING)
    os.rename(made.path / "a", made.path.parent / "away")
    graphlane("check", "--repair", made.path, check=False)
    assert parts_left(made) == 3
    os.rename(made.path.parent / "away", made.path / "a")
    assert graphlane("check", "--repair", made.path, check=False).returncode in (0, 1)


@pytest.mark.parametrize("call, number", [
    ("mkdir", 1), ("mkdir", 2), ("mkdir", 3), ("mkdir", 5), ("mkdir", 7), ("renameat", 1), ("renameat", 2),
    ("renameat", 3), ("renameat", 5), ("chmod", 4), ("fsync", 4)])
def test_a_killed_create_is_made_again(graphlane, tmp_path, call, number):
    devices = [tmp_path / f"d{i}" for i in range(3)]
    for device in devices:
        device.mkdir()
    words = ["create", tmp_path / "vol", *(word for device in devices for word in ("--device", device))]
    if not killed_at(call, number, graphlane.program, *words):
        shutil.rmtree(tmp_path / "vol")
        pytest.skip("not applicable: create makes fewer of these calls here")
    if (tmp_path / "vol/.graphlane/volume.json").exists():
        assert "no problems" in graphlane("check", tmp_path / "vol").stdout
        return
    graphlane(*words)
    assert all(len(list(device.iterdir())) == 1 for device in devices)
    assert sorted(path.name for path in (tmp_path / "vol/.graphlane").iterdir()) == ["run", "tmp", "volume.json"]
    assert "no problems" in graphlane("check", tmp_path / "vol").stdout


def test_a_create_leaves_a_volume_that_lost_its_volume_json_alone(graphlane, volume):
    made = volume()
    (made.path / ".graphlane/volume.json").unlink()
    said = graphlane("create", made.path, *(word for device in made.devices for word in ("--device", device)), check=False)
    assert said.returncode == 1 and "not empty" in said.stderr
    assert all(list(device.glob("*/device.json")) for device in made.devices)
