"""`graphlane serve`: several preloaded programs without a mount, or with a private one each,
read common data from the devices once. None of them depends on the server
(iomgr/server/volume_server.h)."""

import errno
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from harness import BUILD, PRELOADED, run, wait_until
from readers import BLOCK, SIZE, Reader, SharedFile, found, taken

pytestmark = pytest.mark.usefixtures("kept_caches")

COUNTS_REQUEST = struct.pack("<II16x", 0x31434c47, 0)
SHARE_REQUEST = struct.pack("<II16x", 0x31534c47, 0)
MIB = 1 << 20
NOBODY = 65534
# Opens argv[1] to write. For each line it writes that letter argv[2] times at block 1.
WRITER = f"""
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
for line in sys.stdin:
    os.pwrite(fd, line.strip().encode() * int(sys.argv[2]), {BLOCK})
    print("written", flush=True)
"""


class Served(SharedFile):
    """A file of a volume without a mount, and the statistics of the volume's server."""

    options = ("--no-mount",)

    def __init__(self, graphlane, made):
        super().__init__(graphlane, made, made.path / "data")
        self.run_directory = made.path / ".graphlane/run"

    def stats(self) -> dict:
        return json.loads(self.graphlane("stat", "--json", self.made.path).stdout)

    def counts(self) -> dict:
        return self.stats()["shared"]

    def assert_read_once(self) -> None:
        """Three readers of the whole file read it from the devices once."""
        self.wait_for_found(2 * SIZE - BLOCK)
        stats = self.stats()
        once = SIZE + MIB + taken(stats["shared"])
        assert stats["shared"]["fetched_bytes"] <= once
        assert sum(device["bytes_read"] for device in stats["devices"]) <= once

    def process(self) -> int:
        """The server's process id."""
        with self.connect() as connection:
            return struct.unpack("iii", connection.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(10)
        with self.address() as address:
            connection.connect(address)
        return connection

    @contextmanager
    def address(self):
        """A path short enough for a socket, wherever the volume is."""
        directory = os.open(self.run_directory, os.O_PATH)
        try:
            yield f"/proc/self/fd/{directory}/server"
        finally:
            os.close(directory)

    def ask(self, fd) -> tuple[int, list[int]]:
        """The errno and the descriptors in the reply to a client that shows `fd`."""
        with self.connect() as connection:
            socket.send_fds(connection, [SHARE_REQUEST], [fd])
            reply, fds, _, _ = socket.recv_fds(connection, 1 << 16, 65)
        return struct.unpack_from("<Ii", reply)[1], fds

    def is_settled(self, path=None) -> bool:
        """Whether the next change shows. A file changed just now is not shared."""
        return time.time() - (path or self.path).stat().st_ctime > 0.05

    def is_served(self) -> bool:
        with suppress(OSError):
            self.connect().close()
            return True
        return False

    @contextmanager
    def server(self, *options):
        self.graphlane("serve", "-o", "cache=64M", *options, self.made.path)
        try:
            yield
        finally:
            self.graphlane("serve", "--stop", self.made.path, check=False)

    @contextmanager
    def writer(self, count):
        """write(letter) writes the letter `count` times."""
        process = subprocess.Popen(
            [self.graphlane.program, "run", "--no-mount", "--", sys.executable, "-c", WRITER,
             self.path, str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def write(letter: str) -> None:
            process.stdin.write(letter + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "written\n"
            self.replace(BLOCK, letter.encode() * count)

        try:
            yield write
        finally:
            process.communicate()


@pytest.fixture
def file(graphlane, volume, tmp_path):
    made = volume(depth="1M", stripe=["data"])
    served = Served(graphlane, made)
    source = tmp_path / "data"
    source.write_bytes(served.content)
    graphlane("import", source, made.path)
    wait_until(served.is_settled)
    return served


@pytest.fixture
def served(file):
    with file.server():
        yield file


def devices_read(path) -> int:
    """The bytes that the programs with these reports read from the devices."""
    reports = [json.loads(line) for line in path.read_text().splitlines()]
    return sum(device["bytes_read"] for report in reports for device in report["devices"])


def test_each_byte_is_read_from_the_devices_once(served, tmp_path):
    report = tmp_path / "report"
    with served.readers(3, GRAPHLANE_REPORT=str(report)) as readers:
        served.read_all(readers)
        served.assert_read_once()
        assert served.counts()["resident_bytes"] <= 64 * MIB
    assert devices_read(report) <= 2 * BLOCK  # a single reader reads by itself


def test_without_a_server_each_program_reads_for_itself(file, tmp_path):
    report = tmp_path / "report"
    with file.readers(3, GRAPHLANE_REPORT=str(report)) as readers:
        file.read_all(readers)
    assert devices_read(report) >= 3 * SIZE


def test_a_single_reader_shares_nothing(served):
    with served.readers(1) as readers:
        served.read_all(readers)
        assert served.counts()["fetched_bytes"] == 0


def test_share_no_shares_nothing(served):
    with served.readers(2, GRAPHLANE_SHARE="no") as readers:
        served.read_all(readers)
        assert served.counts()["fetched_bytes"] == 0 and served.counts()["scan_count"] == 0


def test_all_readers_see_a_write(served):
    with served.readers(2) as readers:
        served.read_all(readers)
        with served.writer(1000) as write:
            for letter in "abc":
                write(letter)
                for reader in readers:
                    assert reader.read(1) == served.expected(1), f"{letter}, while it is open"
        for _ in range(2):
            served.read_all(readers)


def test_all_readers_see_a_write_by_a_mount(served, mount):
    with served.readers(2) as readers:
        served.read_all(readers)
        with mount(served.made) as at:
            fd = os.open(at / "data", os.O_WRONLY)
            os.pwrite(fd, b"x" * BLOCK, BLOCK)
            served.replace(BLOCK, b"x" * BLOCK)
            for reader in readers:
                assert reader.read(1) == served.expected(1), "while it is open"
            os.close(fd)
            served.read_all(readers)
        served.read_all(readers)


@pytest.fixture
def by_private_mounts(served, fuse):
    """Each program has a private mount over the volume, as by default."""
    served.options = ()
    return served


def test_programs_in_private_mounts_share_with_one_another(by_private_mounts):
    with by_private_mounts.readers(3) as readers:
        by_private_mounts.read_all(readers)
        by_private_mounts.assert_read_once()


@pytest.fixture
def unserved(file, fuse):
    """As by_private_mounts, but no user has started a server."""
    file.options = ()
    return file


def is_locked(directory) -> bool:
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def test_the_last_program_ends_an_automatic_server(unserved):
    with unserved.readers(3) as readers:
        unserved.read_all(readers)
        unserved.assert_read_once()
        readers.pop(0).end()  # the one that started the server
        before = found(unserved.counts())
        unserved.read_all(readers)
        unserved.wait_for_found(before + 2 * SIZE - BLOCK)
    assert not is_locked(unserved.run_directory) and not unserved.is_served()


def test_a_program_starts_a_server_after_the_last_one_ended(unserved):
    for _ in range(10):
        runs = [subprocess.Popen([unserved.graphlane.program, "run", "--", "cat", unserved.path],
                                 stdout=subprocess.PIPE) for _ in range(3)]
        assert all(each.communicate()[0] == unserved.content for each in runs)
        wait_until(lambda: not is_locked(unserved.run_directory))  # one of the others may have started it


def test_an_automatic_server_ends_when_its_programs_are_killed(unserved):
    with unserved.readers(2) as readers:
        assert unserved.is_served()
        for reader in readers:
            reader.process.kill()
    wait_until(lambda: not is_locked(unserved.run_directory))


def test_a_server_started_by_a_user_outlives_its_clients(by_private_mounts):
    with by_private_mounts.readers(2) as readers:
        by_private_mounts.read_all(readers)
    assert by_private_mounts.is_served()


def test_share_no_starts_no_server(unserved):
    with unserved.readers(1, GRAPHLANE_SHARE="no"):
        assert not is_locked(unserved.run_directory)


def test_programs_in_one_private_mount_share(by_private_mounts, tmp_path):
    """Both programs are a shell's children; the shell has the mount."""
    reader = f"""
import mmap, os, sys
room = memoryview(mmap.mmap(-1, {BLOCK}))
fd = os.open(sys.argv[1], os.O_RDONLY)
os.preadv(fd, [room], 0)
open(sys.argv[2], "w").close()  # it has begun
while not os.path.exists(sys.argv[3]):
    pass
for at in range(0, {SIZE}, {BLOCK}):
    os.preadv(fd, [room], at)
"""
    served = by_private_mounts
    one, two = tmp_path / "one", tmp_path / "two"
    run(served.graphlane.program, "run", "--io=direct", "--", "sh", "-c",
        '"$1" -c "$2" "$3" "$4" "$5" & "$1" -c "$2" "$3" "$5" "$4" & wait', "sh",
        sys.executable, reader, served.path, one, two)
    served.wait_for_found(SIZE - BLOCK)


def test_programs_share_with_and_without_a_mount(served, mount):
    with mount(served.made) as at:
        readers = [Reader(served.graphlane, at / "data"),
                   Reader(served.graphlane, served.path, "--no-mount")]
        try:
            for block in served.blocks:
                for reader in readers:
                    assert reader.read(block) == served.expected(block)
            served.wait_for_found(SIZE - 2 * BLOCK)
        finally:
            for reader in readers:
                reader.end()


def test_all_readers_see_a_write_in_a_private_mount(by_private_mounts):
    served = by_private_mounts
    with served.readers(2) as readers:
        served.read_all(readers)
        piece = b"x" * BLOCK
        served.graphlane("run", "--", sys.executable, "-c",
                         f"import os; fd = os.open({str(served.path)!r}, os.O_WRONLY); "
                         f"os.pwrite(fd, b'x' * {BLOCK}, {BLOCK})")
        served.replace(BLOCK, piece)
        for _ in range(2):
            for reader in readers:
                reader.ask("open")
            served.read_all(readers)


def test_private_mounts_read_on_when_the_server_dies(by_private_mounts):
    served = by_private_mounts
    with served.readers(2) as readers:
        served.read_all(readers)
        os.kill(served.process(), signal.SIGKILL)
        served.read_all(readers)


def test_a_changed_file_is_shared_again(served):
    with served.readers(2) as readers:
        served.read_all(readers)
        os.chmod(served.path, 0o640)  # changes the ctime
        wait_until(served.is_settled)
        before = served.counts()
        served.read_all(readers)
        served.wait_for_found(found(before) + SIZE - BLOCK)
        assert served.counts()["scan_count"] == before["scan_count"]


def test_readers_go_on_with_an_unlinked_file(served):
    with served.readers(2) as readers:
        served.read_all(readers)
        served.graphlane("run", "--no-mount", "--", "rm", served.path)
        for _ in range(2):
            served.read_all(readers)
            time.sleep(0.05)  # after this time the server would be asked again


def test_readers_outlive_the_server_and_use_the_next_one(served):
    with served.readers(2) as readers:
        for reader in readers:
            assert reader.read(1) == served.expected(1)
        os.kill(served.process(), signal.SIGKILL)
        served.read_all(readers)
        wait_until(lambda: not served.is_served())
        assert "server" in os.listdir(served.run_directory)  # a stale socket does no harm
        served.graphlane("serve", "-o", "cache=64M", served.made.path)
        for reader in readers:
            reader.ask("open")
            assert reader.read(0) == served.expected(0)
        served.read_all(readers)
        served.wait_for_found(SIZE - 2 * BLOCK)


def test_a_stopped_server_is_asked_once(served):
    server = served.process()
    os.kill(server, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        with served.readers(1) as readers:
            served.read_all(readers)
            for _ in range(20):
                readers[0].ask("open")
                assert readers[0].read(0) == served.expected(0)
        assert time.monotonic() - begun < 25  # the server was asked once
    finally:
        os.kill(server, signal.SIGCONT)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stopped_reader_delays_no_other(served, how):
    with served.readers(3) as readers:
        victim, *others = readers
        victim.ask(1)
        victim.process.send_signal(how)
        for _ in range(2):
            served.read_all(others)


def test_a_volume_has_one_server(served):
    again = served.graphlane("serve", served.made.path, check=False)
    assert again.returncode == 1 and again.stderr.count("\n") == 1
    assert f"served already, by process {served.process()}" in again.stderr
    assert served.is_served()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_foreground_server_without_leftovers(file, number):
    left = os.listdir(file.run_directory)
    server = subprocess.Popen([file.graphlane.program, "serve", "-f", file.made.path])
    wait_until(file.is_served)
    with file.readers(2) as readers:
        file.read_all(readers)
        server.send_signal(number)
        assert server.wait(timeout=30) == 0
        assert os.listdir(file.run_directory) == left
        file.read_all(readers)


def test_stop_says_whether_there_was_one(file):
    with file.server():
        process = file.process()
        file.graphlane("serve", "--stop", file.made.path)
        assert not os.path.exists(f"/proc/{process}/exe")
    stopped = file.graphlane("serve", "--stop", file.made.path, check=False)
    assert stopped.returncode == 1 and "nobody serves it" in stopped.stderr


@pytest.mark.parametrize("words, said", [
    (["-o", "cache=0"], "cache=0"),
    (["-o", "io=direct"], "unknown option"),
    (["-o", "cache=much"], "cache=much: expected"),
])
def test_impossible_options_are_refused(file, words, said):
    refused = file.graphlane("serve", *words, file.made.path, check=False)
    assert refused.returncode == 1 and said in refused.stderr and refused.stderr.count("\n") == 1
    assert not file.is_served()


def test_a_directory_that_is_no_volume_is_refused(graphlane, tmp_path):
    refused = graphlane("serve", tmp_path, check=False)
    assert refused.returncode == 1 and "not a Graphlane volume" in refused.stderr


def test_serving_needs_write_permission_on_the_volume(file, root, open_tmp):
    refused = run("setpriv", f"--reuid={NOBODY}", "--clear-groups", file.graphlane.program, "serve",
                  file.made.path, check=False)
    assert refused.returncode == 1 and "cannot serve the volume: only root may" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_stat_shows_the_servers_counters(served):
    with served.readers(2) as readers:
        served.read_all(readers)
        assert "\nshared: " in served.graphlane("stat", served.made.path).stdout
        metrics = served.graphlane("stat", "--prometheus", served.made.path).stdout
    assert f'graphlane_shared_fetched_bytes_total{{mount="{served.made.path}"}} ' in metrics


# ---- rights


def test_a_reader_of_a_file_gets_its_frames_read_only(served):
    fd = os.open(served.path, os.O_RDONLY)
    error, (frames,) = served.ask(fd)
    assert error == 0
    assert os.readlink(f"/proc/self/fd/{frames}").startswith("/memfd:graphlane-shared")
    with pytest.raises(PermissionError):
        mmap.mmap(frames, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    os.close(frames)
    os.close(fd)


@pytest.mark.parametrize("what, error", [
    ("place", errno.EACCES), ("write-only", errno.EACCES), ("plain", errno.ESTALE),
    ("directory", errno.EXDEV), ("elsewhere", errno.EXDEV), ("another's parts", errno.EIO),
])
def test_nothing_else_is_shared(served, what, error, root):
    def show():
        if what == "place":
            return os.open(served.path, os.O_PATH)
        if what == "write-only":
            return os.open(served.path, os.O_WRONLY)
        if what == "directory":
            return os.open(served.made.path, os.O_RDONLY)
        if what == "elsewhere":
            return os.open("/proc/self/status", os.O_RDONLY)
        if what == "plain":
            other = served.made.path / "other"
            other.write_bytes(bytes(4096))
            return os.open(other, os.O_RDONLY)
        copy = served.made.path / "copy"  # any user can write 4096 bytes that name the parts
        copy.write_bytes(served.path.read_bytes())
        os.chown(copy, NOBODY, NOBODY)
        wait_until(lambda: served.is_settled(copy))  # until then nothing is shared (EAGAIN)
        return os.open(copy, os.O_RDONLY)

    fd = show()
    assert served.ask(fd) == (error, [])
    os.close(fd)


@pytest.mark.parametrize("maker, user, is_asked", [
    (0, 0, True), (0, NOBODY, False), (NOBODY, 0, False), (NOBODY, NOBODY, False)])
def test_a_server_of_another_user_is_not_asked(file, root, maker, user, is_asked):
    """That holds whether another user listened on the socket or created it."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with file.address() as address:
        listening.bind(address)
    os.chown(file.run_directory / "server", maker, maker)
    os.seteuid(user)  # the server is the process that called listen()
    try:
        listening.listen()
    finally:
        os.seteuid(0)
    listening.settimeout(10)
    with file.readers(1) as readers:
        readers[0].ask(1)
        if maker == 0:  # otherwise no client even connects
            for request in COUNTS_REQUEST, SHARE_REQUEST:
                connection, _ = listening.accept()
                assert connection.recv(24) == (request if is_asked else b"")
                connection.close()
        assert readers[0].answer() == file.expected(1)
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
        listening.close()


WRITES = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(fd, b"w" * 100_000, 5_000)
os.pwrite(fd, b"w" * 100_000, os.fstat(fd).st_size)
if len(sys.argv) > 2:
    print("written", flush=True)
    sys.stdin.read()
"""


def preloaded(file, *words) -> list:
    """A program with the library and without `graphlane run`."""
    return ["env", f"LD_PRELOAD={BUILD}/lib/libgraphlane.so", sys.executable, "-c", WRITES, file.path, *words]


def state_of(file) -> int:
    """1: open, 2: closed."""
    return struct.unpack_from("<I", file.path.read_bytes(), 72)[0]


def test_a_server_closes_what_preloaded_programs_wrote_when_it_ends(served):
    run(*preloaded(served), env=os.environ | PRELOADED)
    assert state_of(served) == 1
    served.graphlane("serve", "--stop", served.made.path)
    assert state_of(served) == 2
    assert "no problems" in served.graphlane("check", "--scrub", served.made.path).stdout


def test_a_server_closes_what_preloaded_programs_wrote_while_it_runs(served):
    run(*preloaded(served), env=os.environ | PRELOADED)
    wait_until(lambda: state_of(served) == 2)
    assert "no problems" in served.graphlane("check", "--scrub", served.made.path).stdout


def test_a_server_leaves_a_file_that_is_still_written_alone(served):
    writer = subprocess.Popen(preloaded(served, "wait"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, env=os.environ | PRELOADED)
    assert writer.stdout.readline() == "written\n"
    served.graphlane("serve", "--stop", served.made.path)
    assert state_of(served) == 1
    writer.communicate()
    assert writer.returncode == 0
    assert served.graphlane("check", "--repair", served.made.path, check=False).returncode == 1
    assert state_of(served) == 2
