"""The directory that counts as the volume; a volume of format 1; and the effects of `adopt` and
`check --upgrade`."""

import json
import os
import random
import shutil
import subprocess

import pytest

from harness import PRELOADED, Volume, run
from stubs import all_stubs, make_format_1, parts_of_file

CONTENT = random.Random(5).randbytes(1_200_000)


@pytest.fixture
def made(graphlane, volume, tmp_path):
    """A volume with the striped files `a`, of two names, and `d/b`."""
    made = volume(device_count=3, depth="64K", stripe=["[a-c]", "new"])
    source = tmp_path / "source"
    (source / "d").mkdir(parents=True)
    (source / "a").write_bytes(CONTENT)
    (source / "d/b").write_bytes(CONTENT)
    (source / "d/b").chmod(0o444)
    os.link(source / "a", source / "a2")
    graphlane("import", source, made.path / "t")
    graphlane("import", f"{source}/.", made.path)
    return made


def preloaded(graphlane, *command):
    return graphlane("run", "--no-mount", "--", *command, check=False, env={**os.environ, **PRELOADED})


def same(graphlane, made, tmp_path, *names):
    for name in names:
        graphlane("export", "--overwrite", made.path / name, tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == CONTENT, name
        assert preloaded(graphlane, "cmp", made.path / name, tmp_path / "source/a").returncode == 0, name


def assert_refused(graphlane, root, tmp_path):
    for words in (["check", "--repair", root], ["rm", root / "a"], ["export", root / "a", tmp_path / "none"],
                  ["restripe", "--stripe-depth", "4K", root], ["import", tmp_path / "source/a", root / "c"],
                  ["mount", root, tmp_path / "mnt-copy"], ["serve", root], ["run", "--", "cat", root / "a"],
                  ["info", root]):
        (tmp_path / "mnt-copy").mkdir(exist_ok=True)
        result = graphlane(*words, check=False, cwd=tmp_path)
        assert result.returncode != 0, words
        assert "graphlane adopt" in result.stderr, (words, result.stderr)
    result = preloaded(graphlane, "cat", root / "a")
    assert result.returncode != 0 and "adopt" in result.stderr
    preloaded(graphlane, "rm", "-f", root / "a")


@pytest.mark.parametrize("copy", ["cp -a", "tar", "moved away and copied back"])
def test_a_copy_of_the_directory_is_refused_and_harms_nothing(graphlane, made, tmp_path, copy):
    other = made.path.parent / "copy"
    if copy == "cp -a":
        run("cp", "-a", made.path, other)
    elif copy == "tar":
        other.mkdir()
        run("sh", "-c", "tar -C $1 -c . | tar -C $2 -xp", "sh", made.path, other)
    else:
        os.rename(made.path, other)
        run("cp", "-a", other, made.path)
        made, other = Volume(other, made.devices), made.path
    assert_refused(graphlane, other, tmp_path)
    same(graphlane, made, tmp_path, "a", "a2", "d/b", "t/a")


def test_an_adopted_copy_is_the_volume_from_then_on(graphlane, made, tmp_path):
    other = Volume(made.path.parent / "copy", made.devices)
    run("cp", "-a", made.path, other.path)
    before = (other.path / "a").stat()
    said = graphlane("adopt", other.path).stdout
    assert "4 stubs bound" in said, said
    same(graphlane, other, tmp_path, "a", "a2", "d/b", "t/a", "t/d/b")
    assert (other.path / "a").stat().st_mtime_ns == before.st_mtime_ns
    assert (other.path / "d/b").stat().st_mode & 0o777 == 0o444
    assert_refused(graphlane, made.path, tmp_path)
    same(graphlane, other, tmp_path, "a", "d/b")
    graphlane("check", other.path)
    again = graphlane("adopt", other.path).stdout
    assert "0 stubs bound to their parts, 4 were, 0 left" in again


def test_a_volume_whose_attributes_were_lost_is_adopted(graphlane, made, tmp_path):
    """The devices were copied without attributes, as tar and rsync do by default."""
    for stub in all_stubs(made.path):
        for part in parts_of_file(made, stub):
            os.removexattr(part, "user.graphlane") if os.listxattr(part) else None
    assert graphlane("export", made.path / "a", tmp_path / "none", check=False).returncode == 1
    graphlane("adopt", made.path)
    same(graphlane, made, tmp_path, "a", "a2", "d/b", "t/a", "t/d/b")


def test_with_two_candidates_adopt_needs_a_name(graphlane, made, tmp_path):
    other = Volume(made.path.parent / "copy", made.devices)
    run("cp", "-a", made.path, other.path)
    run("cp", "-a", other.path / "d/b", other.path / "d/c")
    result = graphlane("adopt", other.path, check=False)
    assert result.returncode == 1
    assert result.stdout.count("one of 2 stubs that name the same parts") == 2
    same(graphlane, other, tmp_path, "a")
    assert graphlane("export", other.path / "d/b", tmp_path / "none", check=False).returncode == 1
    graphlane("adopt", other.path / "d/c")
    same(graphlane, other, tmp_path, "d/c")
    assert graphlane("export", other.path / "d/b", tmp_path / "none", check=False).returncode == 1
    os.remove(other.path / "d/b")
    same(graphlane, other, tmp_path, "d/c")


def test_adopt_takes_no_parts_of_another_user(graphlane, made, root, tmp_path):
    """A user's file in the backup claims to be root's."""
    other = Volume(made.path.parent / "copy", made.devices)
    run("cp", "-a", made.path, other.path)
    run("cp", "-a", other.path / "d/b", other.path / "theirs")
    os.chown(other.path / "theirs", 65534, 65534)
    result = graphlane("adopt", other.path, check=False)
    assert "does not own the part" in result.stdout
    same(graphlane, other, tmp_path, "a", "d/b")
    assert graphlane("adopt", other.path / "theirs", check=False).returncode == 1
    assert graphlane("export", other.path / "theirs", tmp_path / "none", check=False).returncode == 1


def test_an_older_clone_is_refused(graphlane, made, tmp_path):
    """A clone of the whole filesystem keeps inodes; the epoch shows its age. Here the directory
    itself goes back in time."""
    record = made.path / ".graphlane/volume.json"
    before = record.read_text()
    graphlane("import", tmp_path / "source/a", made.path / "c")
    record.write_text(before)
    for words in (["check", made.path], ["export", made.path / "a", tmp_path / "none"]):
        result = graphlane(*words, check=False)
        assert result.returncode != 0 and "older copy of the directory" in result.stderr, result.stderr
    assert preloaded(graphlane, "cat", made.path / "a").returncode != 0
    graphlane("adopt", made.path)
    same(graphlane, made, tmp_path, "a", "d/b", "c")


def test_every_change_raises_the_epoch_once(graphlane, made, mount, tmp_path):
    def epochs():
        records = [made.path / ".graphlane/volume.json", *(next(d.glob("*/device.json")) for d in made.devices)]
        return {json.loads(record.read_text())["epoch"] for record in records}

    def raised(before):
        after = epochs()
        assert len(after) == 1
        return after.pop() - before.pop()

    before = epochs()
    graphlane("import", tmp_path / "source", made.path / "u")
    assert raised(before) == 1
    before = epochs()
    with mount(made) as at:
        shutil.copyfile(tmp_path / "source/a", at / "new")
        (at / "c").write_bytes(b"x")
    assert raised(before) == 1
    before = epochs()
    graphlane("export", made.path / "a", tmp_path / "out2")
    assert raised(before) == 0
    before = epochs()
    graphlane("rm", "-r", made.path / "u")
    assert raised(before) == 1


@pytest.mark.parametrize("interrupted", ["before", "devices raised alone"])
def test_a_killed_epoch_change_harms_nothing(graphlane, made, tmp_path, interrupted):
    """volume.json is written first. A device that lags by one is valid, and gets repaired."""
    record = made.path / ".graphlane/volume.json"
    content = json.loads(record.read_text())
    content["epoch"] += 1
    record.write_text(json.dumps(content))
    if interrupted == "devices raised alone":
        device = next(made.devices[0].glob("*/device.json"))
        content = json.loads(device.read_text())
        content["epoch"] += 1
        device.write_text(json.dumps(content))
    same(graphlane, made, tmp_path, "a")
    for name in ("c", "d/c"):
        graphlane("import", tmp_path / "source/a", made.path / name)
        same(graphlane, made, tmp_path, "a", name)


def test_format_1_is_read_only_until_it_is_upgraded(graphlane, made, mount, tmp_path):
    make_format_1(made)
    same(graphlane, made, tmp_path, "a", "a2", "d/b")
    for words in (["import", tmp_path / "source/a", made.path / "c"], ["rm", made.path / "a"],
                  ["restripe", "--stripe-depth", "4K", made.path]):
        result = graphlane(*words, check=False)
        assert result.returncode == 1 and "check --upgrade" in result.stderr, words
    result = preloaded(graphlane, "sh", "-c", "echo x >> $1 || echo x > $2", "sh", made.path / "a", made.path / "new")
    assert result.returncode != 0 and result.stderr.count("Read-only file system") == 2, result.stderr
    with mount(made) as at:
        assert (at / "a").read_bytes() == CONTENT
        with pytest.raises(OSError, match="Read-only"):
            (at / "a").open("ab")
    assert "4 stubs bound to their parts, 0 were, 0 left" in graphlane("check", "--upgrade", made.path).stdout
    same(graphlane, made, tmp_path, "a", "a2", "d/b", "t/a", "t/d/b")
    graphlane("check", made.path)
    for device in made.devices:
        for directory in device.glob("*/parts/**/"):
            assert directory.stat().st_mode & 0o777 == 0o711
    with mount(made) as at:
        with open(at / "a", "ab") as file:
            file.write(b"more")
        assert (at / "a").read_bytes() == CONTENT + b"more"
    assert "0 stubs bound" in graphlane("check", "--upgrade", made.path).stdout


def test_an_upgrade_lists_ambiguous_files(graphlane, made, root, tmp_path):
    make_format_1(made)
    run("cp", "-a", made.path / "d/b", made.path / "d/c")
    run("cp", made.path / "a", made.path / "c")  # root copies a file that another user is to own
    os.chown(made.path / "a", 65534, 65534)
    for part in parts_of_file(made, made.path / "a"):
        os.chown(part, 65534, 65534)
    # That holds before the upgrade too: owners must be equal.
    assert graphlane("export", made.path / "c", tmp_path / "none", check=False).returncode == 1
    result = graphlane("check", "--upgrade", made.path, check=False)
    assert result.returncode == 1
    assert result.stdout.count("one of 2 stubs that name the same parts") == 2
    assert f"{made.path}/c: " in result.stdout and "does not own the part" in result.stdout
    same(graphlane, made, tmp_path, "t/a")
    for name in ("d/b", "d/c", "c"):
        assert graphlane("export", made.path / name, tmp_path / "none", check=False).returncode == 1
    graphlane("adopt", made.path / "d/b")
    same(graphlane, made, tmp_path, "d/b", "a")


def test_an_ordinary_users_volume_needs_no_privilege(graphlane, root, open_tmp):
    """create, import, a new file without a mount, rename, check, a refused copy, adopt: all as
    that user."""
    base = open_tmp / "user"
    base.mkdir()
    os.chown(base, 65534, 65534)
    (base / "data").write_bytes(CONTENT)
    (base / "data").chmod(0o444)
    os.chown(base / "data", 65534, 65534)
    g = graphlane.program
    script = (f"set -e; cd {base}; mkdir d0 d1; {g} create vol --device d0 --device d1 --stripe-depth 64K --stripe 'n*'; "
              f"{g} import data vol; {g} run --no-mount -- sh -c 'cat data > vol/new; mv vol/new vol/n2; cmp data vol/n2'; "
              f"{g} check --repair vol || test $? = 1; {g} export vol/data out; cmp data out; cp -a vol copy; ! {g} check copy; {g} adopt copy; "
              f"{g} export copy/n2 out2; cmp data out2; {g} rm copy/data; {g} check copy")
    result = subprocess.run(["sh", "-c", script], user=65534, group=65534, extra_groups=[], capture_output=True,
                            text=True, timeout=120, env={**os.environ, **PRELOADED})
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("kind", ["ramfs"])
def test_a_filesystem_without_attributes_keeps_the_records_beside_the_parts(graphlane, root, tmp_path, kind):
    devices = [tmp_path / f"d{i}" for i in range(2)]
    for device in devices:
        device.mkdir()
    if run("mount", "-t", kind, kind, devices[1], check=False).returncode != 0:
        pytest.skip(f"not applicable: {kind} cannot be mounted here")
    try:
        made = graphlane.create_on(tmp_path / "vol", devices, depth="64K", stripe=["new"])
        (tmp_path / "source").mkdir()
        (tmp_path / "source/a").write_bytes(CONTENT)
        graphlane("import", tmp_path / "source/a", made.path)
        first_bytes = [[path.read_bytes()[:1] for path in device.glob("*/sums/*/*.sum")] for device in devices]
        assert first_bytes == [[b"\0"], [b"\1"]], "the record's version, where there are no attributes"
        same(graphlane, made, tmp_path, "a")
        assert preloaded(graphlane, "cp", tmp_path / "source/a", made.path / "new").returncode == 0
        graphlane("restripe", "--stripe-depth", "128K", made.path)
        graphlane("check", "--repair", made.path)
        same(graphlane, made, tmp_path, "a", "new")
        run("cp", made.path / "a", made.path / "copy")
        assert preloaded(graphlane, "cat", made.path / "copy").returncode != 0
        os.remove(made.path / "copy")
        graphlane("rm", made.path / "a", made.path / "new")
        assert not list(devices[1].glob("*/parts/*/*"))
    finally:
        run("umount", "-l", devices[1], check=False)
