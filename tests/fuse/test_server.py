"""The mount's server: which clients get which parts, and when the generation changes
(iomgr/server/server_protocol.h)."""

import array
import errno
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys
from contextlib import suppress

import pytest

from harness import run, wait_until
from mounts import mounted, striped  # noqa: F401, fixtures

READ, WRITE, SHARE, MAP = 0x32514c47, 0x32574c47, 0x31534c47, 0x314d4c47
TICKET = 0x8050b747  # the ioctl
GRANT = struct.Struct("<42s6x16s16s")
REQUEST = struct.Struct("<II16s")
PROOF = struct.Struct("<II16s")
REPLY = struct.Struct("<IiQII")
STUB_SIZE = 4096
DESCRIPTORS_MAX = 65
NOBODY = 65534
COUNTERS = 8192  # generations, and as many read counters


class Answer:
    """The server's answer about a descriptor."""

    def __init__(self, reply: bytes, fds: list[int]):
        magic, self.error, self.generation, self.index, self.device_count = \
            REPLY.unpack_from(reply)
        assert magic == 0x32524c47
        self.stub = reply[REPLY.size:REPLY.size + STUB_SIZE]
        self.directories = reply[REPLY.size + STUB_SIZE:].split(b"\0")[:-1]
        # The user's page of counters may follow the parts.
        self.counters, self.parts = (fds[0] if fds else None), fds[1:1 + self.device_count]

    def counter(self) -> int:
        return self.number(self.index)

    def served(self) -> int:
        return self.number(COUNTERS + self.index)

    def number(self, index: int) -> int:
        with mmap.mmap(self.counters, 0, prot=mmap.PROT_READ) as view:
            return struct.unpack_from("<Q", view, 8 * index)[0]


def connect(name: bytes) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(10)
    connection.connect(b"\0" + name)
    return connection


def get_ticket(fd: int) -> tuple[bytes, bytes, bytes]:
    """The server's name, a ticket and its secret."""
    return GRANT.unpack(fcntl.ioctl(fd, TICKET, bytes(GRANT.size)))


def ask_by(connection, ticket: bytes, question=READ, shown=()) -> tuple[bytes, bytes, list[int]]:
    """The proof, the reply, and the descriptors sent with it. b"" stands for a connection that
    the server closed without a reply."""
    socket.send_fds(connection, [REQUEST.pack(question, 0, ticket)], shown)
    try:
        first = connection.recv(1 << 20)
        if len(first) != PROOF.size:
            return b"", first, []
        reply, fds, _, _ = socket.recv_fds(connection, 1 << 20, DESCRIPTORS_MAX)
    except ConnectionError:
        return b"", b"", []
    return PROOF.unpack(first)[2], reply, fds


def peer(connection) -> int:
    return struct.unpack("iii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def open_files(process: int) -> list[str]:
    paths = []
    for link in os.scandir(f"/proc/{process}/fd"):
        with suppress(FileNotFoundError):
            paths.append(os.readlink(link))
    return paths


@pytest.fixture
def asking(striped, mounted):
    """The volume, its mount, its content, and ask(fd)."""
    volume, content = striped(size=1_000_003, stripe=["data", "s*"])
    with mounted(volume) as at:
        name = os.getxattr(at / "data", "user.graphlane.server")

        def ask(fd: int, question=READ) -> Answer:
            named, ticket, secret = get_ticket(fd)
            with connect(named) as connection:
                proof, reply, fds = ask_by(connection, ticket, question)
            assert (named, proof) == (name, secret)
            opened.extend(fds)
            return Answer(reply, fds)

        opened = []
        ask.name = name
        yield volume, at, content, ask
        for fd in opened:
            os.close(fd)


def test_a_reader_gets_the_parts_for_reading(asking):
    volume, at, content, ask = asking
    with open(at / "data", "rb") as file:
        answer = ask(file.fileno())
    assert answer.error == 0
    assert answer.stub == (volume.path / "data").read_bytes()
    assert [os.path.dirname(path.decode()) for path in answer.directories] == \
        [str(device) for device in volume.devices]
    assert sum(os.fstat(part).st_size for part in answer.parts) == len(content)
    assert os.pread(answer.parts[answer.stub[0x3c]], 1000, 0) == content[:1000]
    for part in answer.parts:
        with pytest.raises(OSError) as raised:
            os.write(part, b"x")
        assert raised.value.errno == errno.EBADF


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR])
def test_a_writer_gets_the_parts_for_writing_only(asking, flags):
    """Permission to write a file does not imply permission to read it."""
    volume, at, _, ask = asking
    fd = os.open(at / "data", flags)
    answer = ask(fd, WRITE)
    os.close(fd)
    assert answer.error == 0 and len(answer.parts) == len(volume.devices)
    for part in answer.parts:
        assert os.write(part, b"") == 0
        with pytest.raises(OSError) as raised:
            os.read(part, 1)
        assert raised.value.errno == errno.EBADF


def test_the_mount_can_be_unmounted_after_the_answer(asking):
    """The daemon holds no descriptor opened through the mount."""
    _, at, _, ask = asking
    with connect(ask.name) as connection:
        daemon = peer(connection)
    with open(at / "data", "rb") as file:
        for _ in range(200):
            assert ask(file.fileno()).error == 0
            assert str(at / "data") not in open_files(daemon)


def test_reads_by_the_kernel_are_counted(asking):
    volume, at, content, ask = asking
    with open(at / "data", "rb", buffering=0) as file:
        answer = ask(file.fileno())
        before = answer.served()
        assert file.read() == content
        asked = answer.served()
        assert asked > before
        assert os.pread(file.fileno(), 4096, 0) == content[:4096]
        assert answer.served() == asked, "the kernel had it"


def test_the_counters_cannot_be_written_or_cut(asking):
    _, at, _, ask = asking
    with open(at / "data", "rb") as file:
        counters = ask(file.fileno()).counters
    for call in (lambda: os.ftruncate(counters, 0), lambda: os.pwrite(counters, b"x", 0),
                 lambda: mmap.mmap(counters, 0, prot=mmap.PROT_READ | mmap.PROT_WRITE)):
        with pytest.raises(OSError):
            call()


APPEND_BEGIN = struct.Struct("<IIQQ")
WRITE_REPLY = struct.Struct("<IiQ")
GRANTED = 1 << 63


def test_the_end_of_one_link_hides_no_append_of_another(asking):
    """Two processes may share a descriptor. The kernel must ask for the size while either appends."""
    _, at, content, _ = asking
    fd = os.open(at / "data", os.O_WRONLY)
    links, opened = [], [fd]
    for _ in range(2):
        name, ticket, _ = get_ticket(fd)
        links.append(connect(name))
        reply, fds = ask_by(links[-1], ticket, WRITE)[1:]
        page = fds[1 + REPLY.unpack_from(reply)[4]]  # behind the counters and the parts
        opened.extend(fds)
    links[1].send(APPEND_BEGIN.pack(0x31414c47, 0, 1 << 20, 0))
    magic, error, size = WRITE_REPLY.unpack(links[1].recv(100))
    assert (magic, error, size) == (0x31594c47, 0, len(content))
    links[0].close()
    with mmap.mmap(page, 0) as view:
        for more in range(1, 20):
            assert struct.unpack_from("<Q", view)[0] == GRANTED | len(content) + more - 1
            struct.pack_into("<Q", view, 0, GRANTED | len(content) + more)
            assert os.stat(at / "data").st_size == len(content) + more
        with open(at / "data", "rb") as file:  # which ends the append
            assert os.fstat(file.fileno()).st_size == len(content) + 19
            assert struct.unpack_from("<Q", view)[0] == 0
    links[1].close()
    for one in opened:
        os.close(one)


def test_a_client_without_read_permission_gets_nothing(asking, tmp_path):
    _, at, _, ask = asking
    (at / "plain").write_bytes(b"plain")
    (tmp_path / "outside").touch()
    for path, flags, error in [(at / "data", os.O_PATH, errno.EBADF),
                               (at / "plain", os.O_RDONLY, errno.ENODATA),
                               (at, os.O_RDONLY, errno.ENOTTY),
                               (at / ".graphlane/volume.json", os.O_RDONLY, errno.ENODATA),
                               (tmp_path / "outside", os.O_RDONLY, errno.ENOTTY)]:
        fd = os.open(path, flags)
        with pytest.raises(OSError) as raised:
            get_ticket(fd)
        os.close(fd)
        assert raised.value.errno == error, path
    for flags, question in [(os.O_WRONLY, READ), (os.O_WRONLY, SHARE), (os.O_WRONLY, MAP),
                            (os.O_RDONLY, WRITE)]:
        fd = os.open(at / "data", flags)
        answer = ask(fd, question)
        os.close(fd)
        assert (answer.error, answer.parts, answer.counters) == (errno.EACCES, [], None)


def test_a_ticket_is_good_once(asking):
    _, at, _, ask = asking
    with open(at / "data", "rb") as file:
        name, ticket, secret = get_ticket(file.fileno())
        answers = []
        for _ in range(2):
            with connect(name) as connection:
                proof, reply, fds = ask_by(connection, ticket)
            answers.append((proof, REPLY.unpack_from(reply)[1], bool(fds)))
            for fd in fds:
                os.close(fd)
    assert answers == [(secret, 0, True), (b"", errno.EACCES, False)]


def test_a_ticket_goes_with_its_descriptor(asking):
    _, at, _, ask = asking
    fd = os.open(at / "data", os.O_RDONLY)
    copy = os.dup(fd)
    name, ticket, secret = get_ticket(fd)
    os.close(fd)
    with connect(name) as connection:
        assert ask_by(connection, ticket)[0] == secret, "the file is still open"
    late = get_ticket(copy)[1]
    os.close(copy)

    def is_refused() -> bool:  # the daemon hears of it a moment later
        with connect(name) as connection:
            return ask_by(connection, late)[:1] == (b"",)

    wait_until(is_refused)


def test_a_made_up_ticket_is_refused(asking):
    with connect(asking[3].name) as connection:
        proof, reply, fds = ask_by(connection, os.urandom(16))
    assert (proof, REPLY.unpack_from(reply)[1], fds) == (b"", errno.EACCES, [])


def test_a_shown_descriptor_gets_no_reply(asking):
    _, at, _, ask = asking
    with open(at / "data", "rb") as file:
        name, ticket, _ = get_ticket(file.fileno())
        with connect(name) as connection:
            assert ask_by(connection, ticket, shown=[file.fileno()]) == (b"", b"", [])
        assert ask(file.fileno()).error == 0


def as_nobody(work) -> int:
    """Runs the function in a child as an ordinary user. Returns its exit status."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_another_users_ticket_is_refused(root, asking):
    """A relay under the server's name in another namespace carries the tickets to the real
    server."""
    _, at, _, ask = asking
    with open(at / "data", "rb") as file:
        name, ticket, secret = get_ticket(file.fileno())

        def carry() -> int:
            with connect(name) as connection:
                proof, reply, fds = ask_by(connection, ticket)
            return 0 if not proof and not fds and REPLY.unpack_from(reply)[1] == errno.EACCES else 1

        assert as_nobody(carry) == 0
        with connect(name) as connection:
            assert ask_by(connection, ticket)[0] == secret, "its owner can still use it"


def test_many_tickets_of_one_user_evict_only_its_own(root, asking, open_tmp):
    _, at, _, ask = asking
    (at / "data").chmod(0o644)
    with open(at / "data", "rb") as file:
        name, ticket, secret = get_ticket(file.fileno())

        def hoard() -> int:
            with open(at / "data", "rb") as own:
                for _ in range(2000):
                    get_ticket(own.fileno())
            return 0

        assert as_nobody(hoard) == 0
        with connect(name) as connection:
            assert ask_by(connection, ticket)[0] == secret


def test_files_of_a_filesystem_mounted_in_the_volume_are_distinct(
        graphlane, small_filesystem, mounted, tmp_path):
    """The inode numbers there are the same."""
    base = small_filesystem(tmp_path / "outer", "8M")
    volume = graphlane.create(base, stripe=["s*"])
    inner = small_filesystem(volume.path / "inner", "8M")
    with mounted(volume) as at:
        (at / "s").write_bytes(b"secret" * 10_000)
        number = (volume.path / "s").stat().st_ino
        (inner / "d").mkdir()
        while (inner / "same").exists() is False or (inner / "same").stat().st_ino != number:
            (inner / "same").unlink(missing_ok=True)
            (inner / "same").write_bytes(b"another")
            assert (inner / "same").stat().st_ino <= number
        paths = [path for path in at.rglob("*") if ".graphlane" not in path.parts]
        assert {str(path.relative_to(at)) for path in paths} == {"s", "inner", "inner/d", "inner/same"}
        numbers = [path.stat().st_ino for path in (at, *paths)]
        assert len(set(numbers)) == len(numbers)
        assert run("find", at / "inner", "-type", "f").stdout.split() == [str(at / "inner/same")]
        for entry in os.scandir(at / "inner"):
            assert entry.inode() in (os.stat(entry.path).st_ino, 0xffffffff)
        with open(at / "s", "rb") as file:
            name, ticket, _ = get_ticket(file.fileno())
            with connect(name) as connection:
                _, reply, fds = ask_by(connection, ticket)
            for fd in fds:
                os.close(fd)
            assert fds and Answer(reply, []).error == 0
        with open(at / "inner/same", "rb") as file, pytest.raises(OSError):
            get_ticket(file.fileno())


# A process with a FUSE filesystem of its own, with one file. It leaves FLUSH unanswered, so each
# close() of that file blocks. It shows descriptors to the server and prints the replies.
STRANGER = """
import ctypes, os, signal, socket, stat, struct, sys, threading
at, name, path = sys.argv[1:]
GETATTR, OPEN, FLUSH, INIT = 3, 14, 25, 26
UNANSWERED = FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
signal.alarm(60)
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None)
options = f"fd={device},rootmode=100444,user_id=0,group_id=0".encode()
assert libc.mount(b"stranger", at.encode(), b"fuse", 0, options) == 0

def serve():
    attributes = struct.pack("<6Q10I", 1, *[0] * 8, stat.S_IFREG | 0o444, 1, 0, 0, 0, 4096, 0)
    answers = {INIT: struct.pack("<4I2H4I", 7, 31, 4096, 0, 1, 1, 4096, 1, 0, 0) + bytes(24),
               GETATTR: struct.pack("<QII", 1000, 0, 0) + attributes, OPEN: bytes(16)}
    while True:
        opcode, unique = struct.unpack_from("<IQ", os.read(device, 1 << 20), 4)
        body = answers.get(opcode, b"")
        if opcode not in (FLUSH, *UNANSWERED):
            os.write(device, struct.pack("<IiQ", 16 + len(body), 0 if body else -38, unique) + body)

threading.Thread(target=serve, daemon=True).start()
fds = {"strange": os.open(at, os.O_RDONLY), "own": os.open(path, os.O_RDONLY)}
def ask(*shown):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(5)
        connection.connect(b"\\0" + name.encode())
        message, descriptors = struct.pack("<II16x", 0x32514c47, 0), [fds[name] for name in shown]
        socket.send_fds(connection, [message], descriptors)
        try:
            reply = connection.recv(1 << 20)
        except ConnectionError:
            reply = b""
    return struct.unpack_from("<Ii", reply)[1] if reply else None

try:
    for line in sys.stdin:
        print(os.close(fds["own"]) if line.startswith("close") else ask(*line.split()), flush=True)
finally:
    libc.umount2(at.encode(), 1)  # pending calls return ENOTCONN
    os._exit(0)
"""


def test_a_strangers_blocking_close_delays_no_client(
        root, striped, graphlane, tmp_path):
    volume, _ = striped(size=100_000)
    at, strange = tmp_path / "mnt", tmp_path / "strange"
    at.mkdir()
    strange.touch()
    graphlane("mount", volume.path, at)
    name = os.getxattr(at / "data", "user.graphlane.server").decode()
    with subprocess.Popen([sys.executable, "-c", STRANGER, strange, name, at / "data"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:

        def tell(line: str) -> str:
            stranger.stdin.write(line + "\n")
            stranger.stdin.flush()
            return stranger.stdout.readline().strip()

        try:
            with open(at / "data", "rb") as file:
                def is_answered() -> bool:
                    named, ticket, secret = get_ticket(file.fileno())
                    with connect(named) as connection:
                        return ask_by(connection, ticket)[0] == secret

                for shown in ("strange", "own", "own strange", "strange"):
                    assert tell(shown) == "None"  # no question
                    # It refuses its user a fourth descriptor to be closed, until a thread has closed "own".
                    wait_until(is_answered)
                # The server stops listening to a client that goes on so.
                assert [tell("strange") for _ in range(3)] == ["None"] * 3
            tell("close own")
            graphlane("umount", at, timeout=20)
        finally:
            stranger.stdin.close()
            # The client unmounts by force. Killed before that, it would be waited for without end.
            stranger.wait(timeout=60)
            for mount in (at, strange):
                run("umount", "-l", mount, check=False)


def test_the_first_writer_and_the_last_close_change_the_generation(asking):
    _, at, content, ask = asking
    with open(at / "data", "rb") as reader:
        before = ask(reader.fileno())
        assert before.counter() == before.generation
        with open(at / "data", "r+b", buffering=0) as writer:
            assert before.counter() > before.generation
            written = ask(reader.fileno())
            assert (written.error, written.parts) == (errno.EAGAIN, [])
            assert written.counter() == written.generation
            writer.truncate(2_000_000)
        (at / "data").stat()
        answer = ask_until(ask, reader.fileno(), 0)
        assert written.counter() > written.generation
        assert sum(os.fstat(part).st_size for part in answer.parts) == 2_000_000
        for change in (lambda: os.truncate(at / "data", 5), lambda: (at / "data").write_bytes(b"")):
            change()
            assert answer.counter() > answer.generation
            answer = ask_until(ask, reader.fileno(), 0)


def test_an_open_that_truncates_is_a_truncation(asking):
    """The kernel writes back dirty pages before a truncation, but not while it opens a file."""
    _, at, _, ask = asking
    fd = os.open(at / "data", os.O_RDONLY | os.O_TRUNC)
    answer = ask(fd)
    assert answer.error == 0, "this descriptor is not a writer's"
    assert [os.fstat(part).st_size for part in answer.parts] == [0] * answer.device_count
    assert os.fstat(fd).st_size == 0
    os.close(fd)


def ask_until(ask, fd: int, error: int) -> Answer:
    """The kernel tells the daemon of a close() a moment after it."""
    for _ in range(10_000):
        answer = ask(fd)
        if answer.error == error:
            return answer
    pytest.fail(f"still {errno.errorcode[answer.error]}")


def test_a_new_file_is_readable_after_its_writer_has_closed(asking):
    _, at, _, ask = asking
    with open(at / "s", "wb") as file:
        file.write(b"x" * 300_000)
    with open(at / "s", "rb") as file:
        answer = ask_until(ask, file.fileno(), 0)
    assert sum(os.fstat(part).st_size for part in answer.parts) == 300_000


def test_misbehaving_clients_delay_no_other(asking):
    _, at, _, ask = asking
    with open(at / "data", "rb") as file:
        silent = [connect(ask.name) for _ in range(20)]
        request = REQUEST.pack(READ, 0, bytes(16))
        for message, fds in [(b"", []), (b"x", []), (b"x" * 100_000, []), (request, []),
                             (b"nonsense", [file.fileno()]), (request, [file.fileno()] * 20)]:
            with connect(ask.name) as connection:
                socket.send_fds(connection, [message or b"\0"], fds)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as nested:
            nested.connect(b"\0" + ask.name)
            nested.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                        array.array("i", [nested.fileno()]))])
        assert ask(file.fileno()).error == 0
        for connection in silent:
            connection.close()


def test_the_socket_goes_with_the_mount(striped, mounted):
    volume, _ = striped(size=100_000)
    with mounted(volume) as at:
        name = os.getxattr(at / "data", "user.graphlane.server").decode()
        assert f"@{name}" in run("cat", "/proc/net/unix").stdout
    assert f"@{name}" not in run("cat", "/proc/net/unix").stdout
