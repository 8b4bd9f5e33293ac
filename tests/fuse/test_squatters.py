"""A process that squats on a server's name learns nothing, receives no descriptor, and is not
believed (iomgr/server/server_protocol.h, "Authentication")."""

import array
import os
import socket
import subprocess
import sys

import pytest

from harness import BUILD, is_mounted, run
from mounts import striped  # noqa: F401, a fixture

USER, OTHER = 65533, 65532
SECONDS_MAX = 60

# Binds the abstract name argv[1], and does argv[2] to each client. Prints one line per client with
# what arrived. Its replies carry a descriptor of its own, of a file that says "stolen".
SQUATTER = """
import array, os, socket, struct, sys
name, how, user = sys.argv[1].encode(), sys.argv[2], int(sys.argv[3])
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(b"\\0" + name)
listening.listen(16)
print("listens", flush=True)
kept = []
fake = os.memfd_create("fake")
os.write(fake, b"stolen" * 20_000)
while True:
    connection, _ = listening.accept()
    message, ancillary, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(64 * 4))
    print(len(message), sum(len(data) // 4 for _, _, data in ancillary), flush=True)
    fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fake] * 3))]
    if how == "silent":
        kept.append(connection)
    elif how == "proves":  # as well as it can
        connection.sendmsg([struct.pack("<II16s", 0x314f4c47, 0, message[8:24])], fds)
    elif how == "answers":
        connection.sendmsg([struct.pack("<IiQII", 0x32524c47, 0, 0, 0, 2) + bytes(4096) + b"a\\0b\\0"], fds)
    else:
        connection.close()
"""


@pytest.fixture
def elsewhere(root, graphlane, fuse, striped, open_tmp):
    """A mount with its daemon in another network namespace, a file that only USER may read, and
    its content. The file's pages have been dropped."""
    volume, content = striped(size=3_000_000)
    at = open_tmp / "elsewhere"
    at.mkdir()
    run("unshare", "-n", graphlane.program, "mount", volume.path, at)
    try:
        os.chown(at / "data", USER, USER)
        os.chmod(at / "data", 0o600)
        yield at, content
    finally:
        graphlane("umount", at, check=False, timeout=SECONDS_MAX)
        if is_mounted(at):
            run("umount", "-l", at, check=False)


def squat(name: str, how: str, user: int = OTHER) -> subprocess.Popen:
    squatter = subprocess.Popen([sys.executable, "-c", SQUATTER, name, how, str(user)],
                                stdout=subprocess.PIPE, text=True)
    assert squatter.stdout.readline() == "listens\n"
    return squatter


def preloaded(*words, user: int = USER) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], capture_output=True, timeout=SECONDS_MAX, user=user,
                          group=user, extra_groups=[],
                          env={**os.environ, "LD_PRELOAD": str(BUILD / "lib/libgraphlane.so"),
                               "GRAPHLANE_IO": "direct"})


@pytest.mark.parametrize("how", ["silent", "proves", "answers", "hangs up"])
def test_a_squatter_in_another_namespace_gets_nothing(elsewhere, how):
    at, content = elsewhere
    name = os.getxattr(at, "user.graphlane.server").decode()
    with squat(name, how) as squatter:
        try:
            result = preloaded("dd", f"if={at}/data", "bs=1M", "status=none")
            assert result.stdout == content
            asked = squatter.stdout.readline().split()
            assert asked == ["24", "0"], "a ticket, and no descriptor"
        finally:
            squatter.kill()


@pytest.mark.parametrize("how", ["silent", "proves"])
def test_a_writer_shows_a_squatter_nothing(elsewhere, how):
    at, content = elsewhere
    name = os.getxattr(at, "user.graphlane.server").decode()
    with squat(name, how) as squatter:
        try:
            result = preloaded("dd", "if=/dev/zero", f"of={at}/data", "bs=1M", "count=2", "conv=notrunc",
                               "status=none")
            assert result.returncode == 0, result.stderr
            assert (at / "data").read_bytes() == bytes(2 << 20) + content[2 << 20:]
            assert squatter.stdout.readline().split() == ["24", "0"]
        finally:
            squatter.kill()


def test_a_squatter_does_not_delay_an_unmount(elsewhere, graphlane):
    at, _ = elsewhere
    name = os.getxattr(at, "user.graphlane.server").decode()
    with squat(name, "silent") as squatter:
        try:
            graphlane("umount", at, timeout=SECONDS_MAX)
            assert squatter.poll() is None
        finally:
            squatter.kill()


# Runs as another user. Relays what it receives to the real server, in the server's network
# namespace.
RELAY = """
import ctypes, os, socket, sys
name, daemon, user = sys.argv[1].encode(), int(sys.argv[2]), int(sys.argv[3])
here, there = (os.open(f"/proc/{of}/ns/net", os.O_RDONLY) for of in ("self", daemon))
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(b"\\0" + name)
listening.listen(16)
assert ctypes.CDLL(None).setns(there, 0) == 0
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
print("listens", flush=True)
connection, _ = listening.accept()
question = connection.recv(4096)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(b"\\0" + name)
    server.send(question)
    proof, fds, _, _ = socket.recv_fds(server, 1 << 20, 65)
print(len(proof), len(fds), flush=True)
connection.send(proof)
message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 65)
print(len(message), len(fds), flush=True)
"""


def test_a_relay_to_the_real_server_gets_nothing(elsewhere):
    at, content = elsewhere
    name = os.getxattr(at, "user.graphlane.server").decode()
    daemon, = run("pgrep", "-f", f"mount .* {at}$").stdout.split()
    with subprocess.Popen([sys.executable, "-c", RELAY, name, daemon, str(OTHER)], stdout=subprocess.PIPE,
                          text=True) as relay:
        try:
            assert relay.stdout.readline() == "listens\n"
            assert preloaded("dd", f"if={at}/data", "bs=1M", "status=none").stdout == content
            length, fds = relay.stdout.readline().split()
            assert int(length) > 24 and fds == "0", "a refusal, and no proof"
            assert relay.stdout.readline().split() == ["0", "0"]
        finally:
            relay.kill()


# Inside a user namespace all unmapped users look alike.
def test_a_server_of_an_unmapped_user_is_not_asked(root, graphlane, volume, open_tmp):
    made = volume(device_count=2, depth="64K", stripe=["data"])
    source = open_tmp / "data"
    source.write_bytes(os.urandom(3_000_000))
    source.chmod(0o644)
    graphlane("import", source, made.path)
    at = made.path / ".graphlane/run"
    directory = os.open(at, os.O_PATH)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listening.bind(f"/proc/self/fd/{directory}/server")
    finally:
        os.close(directory)
    os.chown(at / "server", OTHER, OTHER)
    os.chmod(at / "server", 0o666)
    os.seteuid(OTHER)
    try:
        listening.listen()
    finally:
        os.seteuid(0)
    listening.setblocking(False)
    words = ["unshare", "-U", "dd", f"if={made.path}/data", "bs=1M", "status=none"]
    if subprocess.run(["unshare", "-U", "true"], user=USER, group=USER).returncode != 0:
        pytest.skip("no user namespaces for ordinary users here")
    assert preloaded(*words).stdout == source.read_bytes()
    try:
        connection, _ = listening.accept()
    except BlockingIOError:
        return
    connection.settimeout(10)
    message, ancillary, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(64 * array.array("i").itemsize))
    assert not message and not ancillary
