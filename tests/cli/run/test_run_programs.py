"""Common programs under `graphlane run` print a file's SHA-256 or an error, never the hash of a
stub."""

import hashlib
import os
import shutil
import sys

import pytest

from harness import SANITIZED, run

# A sanitizer's runtime must be loaded first, but the preload library precedes it.
pytestmark = pytest.mark.skipif(SANITIZED, reason="not applicable: a preload library beside a sanitizer")

NODE = """
const fs = require("fs"), hash = (b) => require("crypto").createHash("sha256").update(b).digest("hex");
const path = process.argv[2];
if (fs.statSync(path).size !== fs.readFileSync(path).length) process.exit(3);
fs.promises.readFile(path).then((b) => { if (hash(b) !== hash(fs.readFileSync(path))) process.exit(4);
  const all = require("crypto").createHash("sha256");
  fs.createReadStream(path).on("data", (d) => all.update(d)).on("end", () => console.log(all.digest("hex"))); });
"""
JAVA = """
import java.io.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*; import java.security.*;
public class Main {
  static String hash(ByteBuffer bytes) throws Exception {
    MessageDigest all = MessageDigest.getInstance("SHA-256"); all.update(bytes);
    return java.util.HexFormat.of().formatHex(all.digest());
  }
  public static void main(String[] words) throws Exception {
    String whole = hash(ByteBuffer.wrap(Files.readAllBytes(Path.of(words[0]))));
    try (FileChannel channel = FileChannel.open(Path.of(words[0]))) {
      if (!hash(channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size())).equals(whole)) System.exit(3);
    }
    try (RandomAccessFile file = new RandomAccessFile(words[0], "r")) {
      byte[] bytes = new byte[(int) file.length()]; file.readFully(bytes);
      if (!hash(ByteBuffer.wrap(bytes)).equals(whole)) System.exit(4);
    }
    System.out.println(whole);
  }
}
"""
GO = """
package main
import ("crypto/sha256"; "fmt"; "os")
func main() {
  all, err := os.ReadFile(os.Args[1])
  if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
  fmt.Printf("%x\\n", sha256.Sum256(all))
}
"""
# Reads by io_uring, or by pread(2) where there is none, and prints.
URING = r"""
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static char buffer[65536];
int main(int count, char** words) {
  struct io_uring ring;
  const int fd = open(words[count - 1], O_RDONLY);
  const int none = io_uring_queue_init(8, &ring, 0);
  if (fd < 0) return 1;
  if (none != 0) fprintf(stderr, "no io_uring: %d\n", none);
  for (off_t at = 0;;) {
    ssize_t n;
    if (none == 0) {
      struct io_uring_cqe* cqe;
      io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, sizeof buffer, at);
      if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_wait_cqe(&ring, &cqe) != 0) return 2;
      n = cqe->res;
      io_uring_cqe_seen(&ring, cqe);
    } else {
      n = pread(fd, buffer, sizeof buffer, at);
    }
    if (n < 0) return 3;
    if (n == 0) return 0;
    if (write(1, buffer, n) != n) return 4;
    at += n;
  }
}
"""


def needs(*names):
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"not applicable: no {name}")


def make_node(at):
    needs("node")
    (at / "hash.js").write_text(NODE)
    return ["node", at / "hash.js"]


def make_java(at):
    needs("java", "javac")
    (at / "Main.java").write_text(JAVA)
    if run("javac", "-d", at, at / "Main.java", check=False).returncode != 0:
        pytest.skip("not applicable: an older Java")
    return ["java", "-cp", at, "Main"]


def make_go(at):
    needs("go")
    (at / "main.go").write_text(GO)
    run("go", "build", "-o", at / "go_hash", "main.go", cwd=at,
        env={**os.environ, "HOME": str(at), "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "CGO_ENABLED": "0"})
    return [at / "go_hash"]


def make_busybox(at):
    needs("busybox")
    with open(shutil.which("busybox"), "rb") as file:
        if b"/ld-" in file.read(4096):
            pytest.skip("not applicable: busybox is not static")
    return ["busybox", "sha256sum"]


def make_uring(at):
    made = run("gcc", "-O1", "-x", "c", "-", "-o", at / "uring", "-luring", input=URING, stdin=None, check=False)
    if made.returncode != 0:
        pytest.skip(f"not applicable: no liburing: {made.stderr}")
    return ["sh", "-c", f'{at}/uring "$0" | sha256sum', ]


def make_python(at):
    return [sys.executable, "-c", "import hashlib, mmap, sys; f = open(sys.argv[1], 'rb'); "
            "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); assert f.read() == m[:]; "
            "print(hashlib.sha256(m).hexdigest())"]


MAKERS = {"node": make_node, "java": make_java, "go": make_go, "busybox": make_busybox, "io_uring": make_uring,
          "python": make_python, "sha256sum": lambda at: ["sha256sum"]}
STATIC = ("go", "busybox")


@pytest.fixture(params=MAKERS, scope="module")
def program(request, tmp_path_factory):
    """A program's name and its command, made once: Go's takes 15 s."""
    at = tmp_path_factory.mktemp(request.param)
    return request.param, MAKERS[request.param](at)


def digest(tmp_path) -> str:
    return hashlib.sha256((tmp_path / "data").read_bytes()).hexdigest()


def test_programs_with_the_path_as_an_argument(graphlane, fuse, striped, tmp_path, program):
    _, words = program
    result = graphlane("run", "--", *words, striped.path / "data", cwd="/")
    assert result.stdout.split()[0] == digest(tmp_path)
    assert result.stderr == ""


def test_programs_with_a_path_that_a_shell_computes(graphlane, fuse, striped, tmp_path, program):
    """No word names the volume when the command begins."""
    _, words = program
    (tmp_path / "reversed").write_text(f"{striped.path}/data"[::-1])
    text = f'exec "$@" "$(rev {tmp_path}/reversed)"'
    result = graphlane("run", "--", "sh", "-c", text, "sh", *words, cwd="/")
    assert result.stdout.split()[0] == digest(tmp_path), result.stderr


def test_without_a_mount(graphlane, striped, tmp_path, program):
    """The hash is right, or the program is refused with a line that gives a remedy."""
    name, words = program
    result = graphlane("run", "--no-mount", "--", *words, striped.path / "data", cwd="/", check=False)
    if name in STATIC:
        assert (result.returncode, result.stdout) == (125, "")
        assert "without --no-mount" in result.stderr
    else:
        assert result.returncode == 0, result.stderr
        assert result.stdout.split()[0] == digest(tmp_path)
    if name == "io_uring":
        assert "no io_uring: -38" in result.stderr


def test_a_child_without_a_mount(graphlane, striped, tmp_path, program):
    name, words = program
    result = graphlane("run", "--no-mount", "--", "sh", "-c", '"$@"; echo $?', "sh", *words, striped.path / "data",
                       cwd="/", check=False)
    lines = result.stdout.splitlines()
    if name in STATIC:
        assert lines == ["125"] and "without --no-mount" in result.stderr
    else:
        assert lines[0].split()[0] == digest(tmp_path) and lines[-1] == "0", result.stderr
