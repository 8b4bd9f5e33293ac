"""A .graphlane that a user plants in a shared folder has no effect on other users
(iomgr/volume/found_volume.h)."""

import json
import os
import shutil
import subprocess

import pytest

from harness import run

OTHER, USER = 65532, 65533
CONTENT = os.urandom(1_500_000)


def as_user(user, *words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], user=user, group=user, extra_groups=[],
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL, **options)


@pytest.fixture
def shared(root, graphlane, volume, open_tmp):
    """Root's volume with a folder for all, `pub`. There OTHER has planted a .graphlane of the
    same volume, on devices of its own. Returns both folders, and those devices."""
    made = volume(device_count=2, depth="64K", stripe=["*.col"])
    (open_tmp / "a.col").write_bytes(CONTENT)
    pub = made.path / "pub"
    graphlane("import", open_tmp / "a.col", made.path)
    pub.mkdir()
    pub.chmod(0o1777)
    for device in made.devices:  # ordinary users make parts here
        for path in (device, *device.glob("*"), *device.glob("*/parts"), *device.glob("*/parts/*")):
            path.chmod(0o1777)
    planted = [open_tmp / f"planted{number}" for number in range(2)]
    for real, own in zip(made.devices, planted, strict=True):
        shutil.copytree(real, own)
        for part in own.glob("*/parts/*/" + 32 * "?"):
            part.unlink()
    shutil.copytree(made.path / ".graphlane", pub / ".graphlane", ignore=shutil.ignore_patterns("server"))
    record = json.loads((pub / ".graphlane/volume.json").read_text())
    record["devices"] = [str(path) for path in planted]
    (pub / ".graphlane/volume.json").write_text(json.dumps(record))
    for tree in (pub / ".graphlane", *planted):
        for path in (tree, *tree.rglob("*")):
            os.chown(path, OTHER, OTHER)
            path.chmod(path.stat().st_mode | 0o777)
    return made, pub, planted


def parts_in(devices) -> int:
    return sum(1 for device in devices for part in device.glob("*/parts/*/" + 32 * "?") if part.is_file())


@pytest.mark.parametrize("user", [0, USER])
def test_files_below_a_planted_graphlane_go_to_the_volumes_own_devices(graphlane, shared, user):
    made, pub, planted = shared
    before = parts_in(made.devices)
    result = as_user(user, graphlane.program, "run", "--no-mount", "--", "sh", "-c",
                     'head -c 200000 /dev/zero > "$1"', "sh", pub / "new.col")
    assert parts_in(planted) == 0
    if result.returncode == 0:
        assert parts_in(made.devices) == before + 2


def test_root_imports_into_the_real_volume(graphlane, shared, open_tmp):
    made, pub, planted = shared
    before = parts_in(made.devices)
    graphlane("import", open_tmp / "a.col", pub / "imported.col")
    assert (parts_in(planted), parts_in(made.devices)) == (0, before + 2)
    graphlane("export", pub / "imported.col", open_tmp / "back")
    assert (open_tmp / "back").read_bytes() == CONTENT
    read = as_user(0, graphlane.program, "run", "--no-mount", "--", "cat", pub / "imported.col")
    assert read.stdout == CONTENT


def test_a_link_to_another_graphlane_is_no_volume(graphlane, shared, open_tmp):
    made, pub, planted = shared
    shutil.move(pub / ".graphlane", open_tmp / "moved")
    (pub / ".graphlane").symlink_to(open_tmp / "moved")
    os.chown(pub / ".graphlane", OTHER, OTHER, follow_symlinks=False)
    graphlane("import", open_tmp / "a.col", pub / "imported.col")
    assert parts_in(planted) == 0


def test_a_volume_works_for_its_creator_and_the_folders_owner(graphlane, volume, root, open_tmp):
    """A user's own volume, and root's in a user's folder."""
    made = volume(device_count=2, depth="64K", stripe=["*.col"])
    (open_tmp / "a.col").write_bytes(CONTENT)
    for owner in (made.path, made.path / ".graphlane"):
        os.chown(owner, USER, USER)
        graphlane("import", "-f", open_tmp / "a.col", made.path / "a.col")
        assert run(graphlane.program, "run", "--no-mount", "--", "cmp", open_tmp / "a.col",
                   made.path / "a.col").returncode == 0
