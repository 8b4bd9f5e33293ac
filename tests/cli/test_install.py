"""`make install` installs the command, completions, and mount(8)'s helper. `make uninstall`
removes all of it."""

import os
import subprocess

from harness import BUILD_WORDS, ROOT


def make(*words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "-s", *BUILD_WORDS, *words], cwd=ROOT, check=True, env=environment)


def test_the_installation_works_and_is_uninstalled(tmp_path):
    where = [f"DESTDIR={tmp_path}", "PREFIX=/usr"]
    make("install", *where)
    usr = tmp_path / "usr"
    said = subprocess.run([usr / "bin/graphlane", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("graphlane 0.")
    assert (usr / "sbin/mount.graphlane").resolve() == usr / "bin/graphlane"
    for name in ["lib/graphlane/libgraphlane.so", "lib/graphlane/grid_engine", "share/man/man1/graphlane.1", "share/man/man1/graphlane-mount.1",
                 "share/bash-completion/completions/graphlane", "share/zsh/site-functions/_graphlane",
                 "share/fish/vendor_completions.d/graphlane.fish", "lib/systemd/system/graphlane-serve@.service"]:
        assert (usr / name).stat().st_size > 0, name
    assert "@" not in (usr / "lib/systemd/system/graphlane-serve@.service").read_text().replace("serve@", "")
    make("uninstall", *where)
    assert [path for path in usr.rglob("*") if not path.is_dir()] == []


def test_mount_graphlane_accepts_the_options_of_mount8(graphlane, volume, tmp_path, fuse):
    """mount(8) passes -n, -v and -t TYPE on. -f is a dry run, which mounts nothing."""
    helper = tmp_path / "mount.graphlane"
    helper.symlink_to(graphlane.program)
    place = tmp_path / "at"
    place.mkdir()
    path = volume().path
    subprocess.run([helper, path, place, "-fnv", "-o", "ro"], check=True)
    assert not place.is_mount()
    subprocess.run([helper, path, place, "-n", "-t", "graphlane", "-o", "rw,nofail"], check=True)
    assert place.is_mount()
    subprocess.run(["umount", place], check=True)
