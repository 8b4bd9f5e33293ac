"""graphlane check, after each event that can stop an import."""

import ctypes
import os
import random
import resource
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from harness import SANITIZED, Job, limited_to, run, snapshot


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Large enough to be interrupted in the middle."""
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
    assert result.stdout == ("scrubbed: 49152 blocks match their checksums, 0 do not, 0 have none that holds\n"
                             f"{made.path}: 1 striped file (192M), 0 plain files, no problems\n")


def test_scrub_reads_the_devices(graphlane, volume, large):
    """Cached pages do not count as read from the devices."""
    made = volume()
    if run("stat", "-f", "-c", "%T", made.path).stdout.strip() == "tmpfs":
        pytest.skip("not applicable: files in memory have no device")
    graphlane("import", large, made.path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    graphlane("check", "--scrub", made.path)
    read = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
    assert read >= large.stat().st_size


def test_a_problem_is_one_line_for_any_file_name(graphlane, volume, large):
    made = volume()
    graphlane("import", large, made.path / "\x1b[2J\nproblem: none")
    part = next(part for device in made.devices for part in device.glob("*/parts/*/" + 32 * "?"))
    part.unlink()
    result = graphlane("check", made.path, check=False)
    assert result.returncode == 4
    problem, summary = result.stdout.splitlines()
    assert f"{made.path}/?[2J?problem: none: part " in problem


def test_an_interrupted_scrub_prints_its_repairs(graphlane, volume, large, tmp_path):
    made = volume()
    (tmp_path / "lost").write_bytes(bytes(100_000))
    graphlane("import", tmp_path / "lost", made.path)
    (made.path / "lost").unlink()
    graphlane("import", large, made.path)
    job = Job(graphlane.program, "check", "--repair", "--scrub", made.path)
    job.wait_until(lambda: (made.path / "lost+found").exists() and any((made.path / "lost+found").iterdir()))
    job.process.send_signal(signal.SIGINT)
    said, told = job.process.communicate(timeout=60)
    assert said.count("repaired: ") == 1
    assert job.process.returncode == 1 or told == "graphlane: interrupted\n"


def test_an_interrupted_removal_leaves_no_parts(graphlane, volume, tmp_path):
    made = volume(depth="4K", stripe=["*"])
    (tmp_path / "tree").mkdir()
    for n in range(1000):
        (tmp_path / f"tree/{n}").write_bytes(b"x" * 100)
    for _ in range(5):  # a removal may end before the signal comes: then once more
        graphlane("import", tmp_path / "tree", made.path)
        job = Job(graphlane.program, "rm", "-r", made.path / "tree")
        with suppress(FileNotFoundError):
            while job.process.poll() is None and len(os.listdir(made.path / "tree")) == 1000:
                time.sleep(0.001)
        told = job.stop(signal.SIGINT)
        assert "no problems" in graphlane("check", made.path).stdout
        if job.process.returncode != 0:
            break
    assert told == "graphlane: interrupted\n" and job.process.returncode == -signal.SIGINT or not told


def parts_of(made) -> list:
    return sorted(path for device in made.devices for path in device.glob("*/parts/*/" + 32 * "?"))


def test_problems_are_status_4_and_change_nothing(graphlane, volume, large):
    made = volume()
    graphlane("import", large, made.path)
    (made.path / "large").unlink()
    before = {path: info[0] for path, info in snapshot(*made.devices).items()}
    result = graphlane("check", made.path, check=False)
    assert result.returncode == 4
    assert result.stdout.count("no stub names this part") == 1
    repaired = graphlane("check", "--repair", made.path, check=False)
    assert repaired.returncode == 1 and repaired.stdout.count("repaired: ") == 1
    assert graphlane("check", made.path).stdout.startswith(
        f"1 orphan, 192M, oldest less than a minute, readable in lost+found; "
        f"to delete: graphlane check --delete-orphans {made.path}\n")
    assert {path: info[0] for path, info in snapshot(*made.devices).items()} == before


def test_a_repair_keeps_the_parts_of_a_folder_moved_out(graphlane, volume, large, tmp_path):
    """A folder that was moved out returns later: nothing of it is lost."""
    made = volume()
    (made.path / "folder").mkdir()
    graphlane("import", large, made.path / "folder/large")
    (made.path / "folder").rename(tmp_path / "away")
    assert graphlane("check", "--repair", made.path, check=False).returncode == 1
    (tmp_path / "away").rename(made.path / "folder")
    graphlane("export", made.path / "folder/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large.read_bytes()
    assert graphlane("check", made.path).stdout.endswith("no problems\n")
    assert graphlane("check", "--repair", made.path, check=False).returncode == 1
    assert not any((made.path / "lost+found").iterdir())


def test_a_repair_of_a_copied_directory_deletes_nothing(graphlane, volume, large, tmp_path):
    """The copy is of yesterday: newer files have no stub in it."""
    made = volume()
    graphlane("import", large, made.path / "old")
    run("cp", "-a", made.path, tmp_path / "copy")
    graphlane("import", large, made.path / "new")
    before = parts_of(made)
    for words in ["--repair"], ["--delete-orphans", "--older-than", "1d", "--yes"]:
        graphlane("check", *words, tmp_path / "copy", check=False)
    assert parts_of(made) == before
    graphlane("export", made.path / "new", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large.read_bytes()


def test_a_repair_keeps_the_parts_of_an_unmounted_filesystem(root, graphlane, volume, large, tmp_path,
                                                                     small_filesystem):
    made = volume()
    (made.path / "sub").mkdir()
    elsewhere = small_filesystem(tmp_path / "elsewhere", "1M")
    run("mount", "--bind", elsewhere, made.path / "sub")
    try:
        graphlane("import", large, made.path / "large")
        run("mv", made.path / "large", made.path / "sub/large")
    finally:
        run("umount", made.path / "sub")
    before = parts_of(made)
    assert before
    graphlane("check", "--repair", made.path, check=False)
    assert parts_of(made) == before


def delete(graphlane, made, *words, **kwargs):
    return graphlane("check", "--delete-orphans", *words, made.path, check=False, **kwargs)


def test_orphans_are_deleted_on_request(graphlane, volume, large):
    made = volume()
    graphlane("import", large, made.path / "lost")
    graphlane("import", large, made.path / "kept")
    (made.path / "lost").unlink()
    both = parts_of(made)
    refused = delete(graphlane, made)  # stdin is at its end
    assert refused.returncode == 4 and "nothing was deleted" in refused.stdout
    assert f": {len(made.devices)} parts, 192M, new\n" in refused.stdout
    assert delete(graphlane, made, "--older-than", "1s", "--yes").returncode == 4  # not noted yet
    assert graphlane("check", "--repair", made.path, check=False).returncode == 1
    assert delete(graphlane, made, "--older-than", "1d", "--yes").returncode == 0
    assert parts_of(made) == both
    read, write = os.pipe()
    os.write(write, b"yes\n")
    os.close(write)
    with open(read) as answer:
        done = delete(graphlane, made, stdin=answer)
    assert done.returncode == 1 and "Nothing brings them back. [y/N]" in done.stdout
    assert len(parts_of(made)) == len(made.devices)
    assert delete(graphlane, made, "--yes").returncode == 0
    assert graphlane("check", made.path).stdout.endswith("no problems\n")


def test_exit_statuses_are_those_of_fsck(graphlane, volume, large, tmp_path):
    made = volume()
    graphlane("import", large, made.path)
    fsck = tmp_path / "fsck.fuse.graphlane"
    fsck.symlink_to(graphlane.program)
    for words in [], ["-n"], ["-a"], ["-p"], ["-y"]:
        assert run(fsck, *words, made.path, check=False).returncode == 0
    assert graphlane("check", tmp_path / "none", check=False).returncode == 8
    for wrong in ["--no-such"], ["--older-than", "7d"], ["--delete-orphans", "--older-than", "soon"], ["-n", "-y"]:
        assert graphlane("check", *wrong, made.path, check=False).returncode == 16, wrong
    (made.path / "large").unlink()
    assert run(fsck, "-n", made.path, check=False).returncode == 4
    damaged = made.path / "damaged"
    damaged.write_bytes(b"\x89GLSTUB\n" + bytes(100))
    assert run(fsck, "-a", made.path, check=False).returncode == 5
    damaged.unlink()
    assert run(fsck, "-a", made.path, check=False).returncode == 0


def test_an_open_file_is_no_problem(graphlane, volume, large):
    made = volume(stripe=["s-*"])
    graphlane("run", "--no-mount", "--", "cp", large, made.path / "s-large")
    result = graphlane("check", made.path)
    assert result.stdout == (
        f"open: {made.path}/s-large: not closed; its parts make 192M\n"
        f"1 file is not closed: a mount closes a file when it opens it, or graphlane check --repair {made.path}\n"
        f"{made.path}: 1 striped file (192M), 0 plain files, no problems\n")
    assert graphlane("check", "--repair", made.path, check=False).returncode == 1
    assert graphlane("check", made.path).stdout == f"{made.path}: 1 striped file (192M), 0 plain files, no problems\n"


def test_no_directory_tree_of_a_user_stops_a_check_by_root(root, graphlane, volume, large, open_tmp):
    made = volume()
    graphlane("import", large, made.path / "large")
    users = made.path / "users"
    users.mkdir()
    users.chmod(0o1777)
    script = ("import os\n"
              f"os.chdir({str(users)!r})\n"
              "for _ in range(1500): os.mkdir('deep'); os.chdir('deep')\n")
    run("python3", "-c", script, user=65534, group=65534)
    assert graphlane("check", made.path).stdout.endswith("no problems\n")
    graphlane("restripe", "--stripe-depth", "64K", made.path)
    graphlane("rm", "-r", users)
    assert not users.exists()
    graphlane("rm", made.path / "large")
    assert not has_parts(made)


def test_no_filesystem_of_a_user_stops_a_check_by_root(root, fuse, graphlane, volume, large):
    """A FUSE filesystem that root may not read: the kernel refuses without asking its server."""
    made = volume()
    graphlane("import", large, made.path / "large")
    users = made.path / "users"
    users.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=65534,group_id=65534".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mount(b"users", os.fsencode(users), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
    try:
        result = graphlane("check", made.path, check=False)
        assert result.returncode == 4
        assert result.stdout.startswith(f"problem: {users}: cannot read: Permission denied; not checked\n")
        assert graphlane("check", "--repair", made.path, check=False).returncode == 4
        graphlane("restripe", "--stripe-depth", "64K", made.path, check=False)
        graphlane("rm", made.path / "large")
        assert not has_parts(made)
    finally:
        run("umount", "-l", users, check=False)
        os.close(server)


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
    assert graphlane("check", made.path, check=False).returncode == 4
    assert graphlane("check", "--repair", made.path, check=False).returncode == 1
    graphlane("check", made.path)
    graphlane("check", "--delete-orphans", "--yes", made.path, check=False)
    assert not has_parts(made)
    assert (made.path / "plain").read_text() == "mine"
    assert not any((made.path / ".graphlane/tmp").iterdir())


def test_an_import_killed_at_any_time_loses_nothing(graphlane, volume, large, tmp_path):
    """The old file is whole until the new one is."""
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
        graphlane("check", "--repair", made.path, check=False)
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
    assert result.returncode == 8
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


def test_parts_with_possibly_hidden_stubs_are_kept(root, graphlane, volume, large):
    made = volume()
    (made.path / "sub").mkdir()
    graphlane("import", large, made.path / "sub/large")
    subprocess.run(["mount", "-t", "tmpfs", "none", made.path / "sub"], check=True)
    try:
        assert graphlane("check", "--repair", made.path, check=False).returncode == 1
        result = graphlane("check", "--delete-orphans", "--yes", made.path, check=False)
    finally:
        subprocess.run(["umount", made.path / "sub"], check=True)
    assert result.returncode == 4 and has_parts(made)
    assert f"no orphan is deleted: what is mounted at {made.path}/sub may hide their stubs" in result.stdout
    assert graphlane("check", made.path).stdout.endswith("no problems\n")


# chmod by a program without the library, in the volume's directory; or one that a crash interrupted.
@pytest.mark.parametrize("of_stub", [True, False])
def test_rights_of_parts_that_differ_are_told_and_mended(graphlane, volume, tmp_path, of_stub):
    (tmp_path / "a").write_bytes(bytes(300_000))
    made = volume(depth="64K")
    graphlane("import", tmp_path / "a", made.path)
    parts = [part for device in made.devices for part in device.glob("*/parts/*/" + 32 * "?")]
    os.chmod(made.path / "a" if of_stub else parts[0], 0o600)
    mode = os.stat(made.path / "a").st_mode & 0o777
    problems = graphlane("check", made.path, check=False)
    assert problems.returncode == 4 and f"and the file {mode:o}" in problems.stdout
    assert graphlane("check", "--repair", made.path, check=False).returncode == 1
    assert {os.stat(part).st_mode & 0o777 for part in parts} == {mode}
    assert "no problems" in graphlane("check", made.path).stdout


def test_files_in_a_set_group_directory_have_its_group(graphlane, volume, mount, root, tmp_path):
    made = volume(depth="64K", stripe=["a"])
    with mount(made) as at:
        (at / "shared").mkdir()
        os.chown(at / "shared", -1, 65533)
        os.chmod(at / "shared", 0o2775)
        (at / "shared/a").write_bytes(bytes(300_000))
    assert "no problems" in graphlane("check", made.path).stdout


def owned_parts(graphlane, volume, tmp_path, mode):
    """A volume with a striped file of this mode, and its parts."""
    (tmp_path / "a").write_bytes(bytes(1_300_000))
    os.chmod(tmp_path / "a", mode)
    made = volume(depth="64K")
    graphlane("import", tmp_path / "a", made.path)
    return made, [part for device in made.devices for part in device.glob("*/parts/*/" + 32 * "?")]


@pytest.mark.parametrize("of_stub", [False, True])
def test_an_interrupted_chown_is_finished(graphlane, volume, root, tmp_path, of_stub):
    """The record of a part names the stub, and only the part's owner can have written it."""
    made, parts = owned_parts(graphlane, volume, tmp_path, 0o644)
    for path in [made.path / "a"] if of_stub else parts[:2]:
        os.chown(path, 65533, 65533)
    if not of_stub:
        os.chown(parts[2].parents[2] / "sums" / parts[2].parent.name / f"{parts[2].name}.sum", 65533, -1)
    assert graphlane("export", made.path / "a", tmp_path / "out", check=False).returncode == 1
    said = graphlane("check", made.path, check=False)
    assert said.returncode == 4 and "does not own the part" in said.stdout
    said = graphlane("check", "--repair", made.path, check=False)
    assert said.returncode == 1 and "a chown was interrupted" in said.stdout
    owner = os.stat(made.path / "a").st_uid
    assert {os.stat(part).st_uid for part in parts} == {owner} == {65533 if of_stub else 0}
    sums = [sum for device in made.devices for sum in device.glob("*/sums/*/*.sum")]
    assert {os.stat(sum).st_uid for sum in sums} == {owner}
    assert "no problems" in graphlane("check", "--scrub", made.path).stdout
    assert graphlane("export", made.path / "a", tmp_path / "out").returncode == 0


@pytest.mark.parametrize("reason", ["others may write it", "another stub", "a second name"])
def test_a_part_of_another_owner_is_not_given_away(graphlane, volume, root, tmp_path, reason):
    """A user that may write a part may write its record, too."""
    made, parts = owned_parts(graphlane, volume, tmp_path, 0o664 if reason.startswith("others") else 0o644)
    part = parts[1]
    if reason == "another stub":
        (tmp_path / "b").write_bytes(bytes(1_300_000))
        graphlane("import", tmp_path / "b", made.path)
        stub = (made.path / "b").read_bytes()[32:48].hex()
        other = next(made.devices[1].glob(f"*/parts/*/{stub}"))
        os.setxattr(part, "user.graphlane", os.getxattr(other, "user.graphlane"))
    if reason == "a second name":
        os.link(part, tmp_path / "second")
    os.chown(part, 65533, -1)
    said = graphlane("check", "--repair", made.path, check=False)
    assert said.returncode == 4 and f"chown --reference={made.path}/a" in said.stdout
    assert os.stat(part).st_uid == 65533


@pytest.mark.skipif(SANITIZED, reason="not applicable: a sanitizer needs address space without end")
def test_a_scrub_without_memory_fails_by_its_status(graphlane, volume, tmp_path):
    made = volume(depth="64K", stripe=["*"])
    (tmp_path / "f").write_bytes(random.Random(1).randbytes(3_000_000))
    graphlane("import", tmp_path / "f", made.path)
    seen = set()
    for mib in range(12, 64, 2):
        done = run(graphlane.program, "check", "--scrub", made.path, check=False, preexec_fn=limited_to(mib << 20))
        if done.returncode != 127:  # otherwise the program could not be loaded
            assert (done.returncode, done.stderr.count("\n")) in ((0, 0), (8, 1)), f"{mib} MiB: {done}"
            seen.add(done.returncode)
    assert 0 in seen
