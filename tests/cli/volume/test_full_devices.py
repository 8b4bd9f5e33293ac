"""A device that is full, or read-only: what can be done is done, and nothing is lost or left over."""

import os

import pytest

from harness import is_mounted, run

CONTENT = os.urandom(300_000)


@pytest.fixture
def made(root, graphlane, tmp_path):
    """A volume with a striped file. Its second device has a filesystem of its own, of 1 MiB."""
    devices = [tmp_path / "d0", tmp_path / "d1"]
    for path in devices:
        path.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", devices[1], check=False).returncode != 0:
        pytest.skip("not applicable: tmpfs cannot be mounted here")
    try:
        made = graphlane.create_on(tmp_path / "vol", devices, depth="64K", stripe=["*"])
        (tmp_path / "data").write_bytes(CONTENT)
        graphlane("import", tmp_path / "data", made.path)
        yield made
    finally:
        run("umount", "-l", devices[1], check=False)


def parts_of(made) -> list:
    return [part for device in made.devices for part in device.glob("*/parts/*/*")]


def fill(made) -> None:
    try:
        with open(made.devices[1] / "filler", "wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
    except OSError:
        pass


# The volume's epoch is written before the first change: a new file for it has no room.
@pytest.mark.parametrize("how", ["rm", "mount", "--no-mount", "check --repair"])
def test_a_full_device_gives_space_back(graphlane, made, mount, how):
    fill(made)
    if how == "mount":
        with mount(made) as at:
            (at / "data").unlink()
    elif how == "rm":
        graphlane("rm", made.path / "data")
    elif how == "--no-mount":
        graphlane("run", "--no-mount", "--", "rm", made.path / "data")
    else:
        assert "no problems" in graphlane("check", "--repair", made.path).stdout
        return
    assert parts_of(made) == []
    assert "no problems" in graphlane("check", made.path).stdout


@pytest.mark.parametrize("how", ["rm", "mount"])
def test_a_file_on_a_read_only_device_stays_whole(graphlane, fuse, made, mount, how):
    before = len(parts_of(made))
    run("mount", "-o", "remount,ro", made.devices[1])
    try:
        if how == "mount":
            with mount(made) as at:
                (at / "plain").mkdir()
                for change in (lambda: (at / "data").unlink(), lambda: (at / "plain").rename(at / "data"),
                               lambda: os.rename(at / "data", at / "moved") or os.rename(at / "moved", at / "data")):
                    try:
                        change()
                    except OSError:
                        pass
                assert (at / "data").read_bytes() == CONTENT
        else:
            said = graphlane("rm", made.path / "data", check=False)
            assert said.returncode == 1 and "Read-only file system" in said.stderr
        assert len(parts_of(made)) == before
    finally:
        run("mount", "-o", "remount,rw", made.devices[1])
    assert "no problems" in graphlane("check", made.path).stdout
    graphlane("export", made.path / "data", made.path.parent / "out")
    assert (made.path.parent / "out").read_bytes() == CONTENT


LIMITED = ["bash", "-c", 'ulimit -f 100; exec "$@"', "limited"]  # files of at most 100 KiB


@pytest.mark.parametrize("words", [["import", "{data}", "{vol}/b"], ["restripe", "--stripe-depth", "128K", "{vol}/data"],
                                   ["export", "{vol}/data", "{data}2"]], ids=lambda words: words[0])
def test_a_limit_of_file_sizes_is_an_error_and_nothing_is_left(graphlane, volume, tmp_path, words):
    made = volume(depth="64K", device_count=2)
    (tmp_path / "data").write_bytes(CONTENT)
    graphlane("import", tmp_path / "data", made.path)
    words = [word.format(vol=made.path, data=tmp_path / "data") for word in words]
    said = run(*LIMITED, graphlane.program, *words, check=False)
    assert said.returncode == 1 and "File too large" in said.stdout + said.stderr
    assert "no problems" in graphlane("check", "--scrub", made.path).stdout
    assert len(parts_of(made)) == 2
    graphlane("export", "-f", made.path / "data", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_a_mount_outlives_the_limit_of_file_sizes_of_its_shell(graphlane, volume, fuse, tmp_path):
    made = volume(depth="64K", device_count=2, stripe=["*"])
    at = tmp_path / "at"
    at.mkdir()
    run("bash", "-c", 'ulimit -f 500; exec "$@"', "limited", graphlane.program, "mount", made.path, at)
    try:
        with pytest.raises(OSError, match="File too large"):
            (at / "data").write_bytes(5 * CONTENT)
        (at / "small").write_bytes(CONTENT[:100_000])
        assert (at / "small").read_bytes() == CONTENT[:100_000]
    finally:
        graphlane("umount", at)
    assert graphlane("check", "--repair", made.path, check=False).returncode in (0, 1)


def test_a_mount_that_the_limit_forbids_says_so(graphlane, volume, fuse, tmp_path):
    (tmp_path / "at").mkdir()
    said = run("bash", "-c", 'ulimit -f 8; exec "$@"', "limited", graphlane.program, "mount", volume().path, tmp_path / "at",
               check=False)
    assert said.returncode != 0 and said.stderr.count("File too large") == 1, said
    assert not is_mounted(tmp_path / "at")


def test_a_program_keeps_its_signal_of_the_limit(graphlane, volume):
    done = run(*LIMITED, graphlane.program, "run", "--no-mount", "--", "dd", "if=/dev/zero", f"of={volume().path}/plain",
               "bs=200K", "count=2", check=False)
    assert done.returncode == 128 + 25 or done.returncode == -25
