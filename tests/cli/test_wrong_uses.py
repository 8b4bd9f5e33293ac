"""A wrong use of any command gives one line, which names the user's input and a remedy, and the
right status."""

import os
import random
import shutil
import subprocess

import pytest

from harness import run

PARSER_WORDS = ["subcommand", "not expected", "not in range", "not in {", "Could not convert", "TEXT", "requires", "nobody"]

# Words, status and message. "x" stands for a directory that is no volume, "f" for a file that "vol"
# has too, "e.txt" for an edge list.
USAGE = [
    ("", 2, "no command given (see graphlane --help)"),
    ("-v", 2, "unknown option -v (see graphlane --help)"),
    ("--bogus", 2, "unknown option --bogus (see graphlane --help)"),
    ("help nonsense", 2, "nonsense: no such command (see graphlane --help)"),
    ("creat vol2", 2, "creat: no such command; did you mean create? (see graphlane --help)"),
    ("imprt a b", 2, "imprt: no such command; did you mean import? (see graphlane --help)"),
    ("unmount vol", 2, "unmount: no such command; did you mean umount? (see graphlane --help)"),
    ("create v --devices d0,d1", 2, "unknown option --devices; did you mean --device? (see graphlane create --help)"),
    ("create v -d", 2, "--device needs a value (see graphlane create --help)"),
    ("create v -d d0 -d d1 --stripe-depth x", 2,
     "--stripe-depth: 'x': not a size (write 4096, 64K, 12M, 1G, 10MB) (see graphlane create --help)"),
    ("import f", 2, "DST is required (see graphlane import --help)"),
    ("export vol/f g h", 2, "h: one argument too many (see graphlane export --help)"),
    ("mount vol mnt -o bogus", 2, 'unknown mount option "bogus" (see graphlane mount --help)'),
    ("mount vol mnt -o cache=lots", 2,
     "option cache=lots: expected auto, 0 or a size (64M, 2G) (see graphlane mount --help)"),
    ("stat -i 0 vol", 2, "--interval: 0: not a number from 0.01 to 86400 (see graphlane stat --help)"),
    ("stat -i x -w vol", 2, "--interval: x: not a number from 0.01 to 86400 (see graphlane stat --help)"),
    ("stat -i 1 vol", 2, "--interval needs --watch (see graphlane stat --help)"),
    ("export vol/f -", 2, "-: export makes files: graphlane run -- cat vol/f prints one"),
    ("import - vol/g", 2,
     "-: import takes files and directories: … | graphlane run -- sh -c 'cat > vol/g'"),
    ("run --report=- -- true", 2,
     "--report=-: a file is expected; --report alone prints to stderr (see graphlane run --help)"),
    ("run", 2, "CMD is required (see graphlane run --help)"),
    ("run --bogus true", 2, "unknown option --bogus (see graphlane run --help)"),
    ("run --io fast -- true", 2, "--io: fast: not one of auto, direct, buffered (see graphlane run --help)"),
    ("run --cache lots -- true", 2, "--cache: lots: not auto, 0 or a size (see graphlane run --help)"),
    ("convert e.txt g --partitions 0", 2,
     "--partitions: 0: not a number from 1 to 2048 (see graphlane convert --help)"),
    ("convert e.txt g -p 100000", 2, "--partitions: 100000: not a number from 1 to 2048 (see graphlane convert --help)"),
    ("convert e.txt b.txt -p 4", 2, "-p is for grids, shards and dual (see graphlane convert --help)"),
    ("convert e.txt b.csv.gz", 2,
     "b.csv.gz: convert does not compress: --to csv - | gzip does (see graphlane convert --help)"),
    ("gen", 2, "one of rmat is required (see graphlane gen --help)"),
    ("gen kron out", 2, "kron: not one of rmat (see graphlane gen --help)"),
    ("gen rmat --scale 0 out", 2, "--scale: 0: not a number from 1 to 30 (see graphlane gen rmat --help)"),
    ("explain", 2, "PROGRAM is required (see graphlane explain --help)"),
    ("algo pagerank --iterations -1 g", 2, "--iterations: -1: not a number (see graphlane algo --help)"),
    ("algo pagerank --tolerance x g", 2, "--tolerance: x: not a number from 0 on (see graphlane algo --help)"),
    ("algo pagerank --portion 5 g", 2, "--portion: 5: not a number from 1e-09 to 1 (see graphlane algo --help)"),
    ("convert --vertices -2 e.txt g", 2, "--vertices: -2: not a number (see graphlane convert --help)"),
]
FAILURES = [
    ("create vol -d d0 -d d1", 1, "vol: is a Graphlane volume already"),
    ("create v -d d0 -d nodir", 1, "nodir: cannot open the device: No such file or directory"),
    ("create v -d d0 -d f", 1, "f: not a directory (a device is a directory on it, so make a filesystem and mount it)"),
    ("import nofile vol", 1, "nofile: cannot open: No such file or directory"),
    ("import f novol", 1, "novol: no such file or directory, and not in a Graphlane volume"),
    ("import f x", 1, "x: not in a Graphlane volume"),
    ("import e.txt f vol/new", 1, "vol/new: no directory, and 2 things are to go there"),
    ("destroy vol", 1, "vol: destroys all files in it, and asks on a terminal only: --yes"),
    ("destroy x", 1, "x: not a Graphlane volume (no .graphlane/volume.json)"),
    ("import f vol", 1, "vol/f: exists already (--overwrite replaces it)"),
    ("export vol/nofile out", 1, "vol/nofile: cannot read: No such file or directory"),
    ("export vol/f f", 1, "f: exists already (--overwrite replaces it)"),
    ("ls nodir", 1, "nodir: no such file or directory, and not in a Graphlane volume"),
    ("rm vol", 1, "vol: is the volume itself, not a file in it"),
    ("mount vol nodir", 1, "nodir: no such directory (mkdir nodir makes one)"),
    ("mount x mnt", 1, "x: not a Graphlane volume (no .graphlane/volume.json)"),
    ("mount mnt vol", 1, "mnt: not a volume, but vol is: graphlane mount vol mnt"),
    ("umount mnt", 1, "mnt: no Graphlane volume is mounted there"),
    ("stat vol", 1, "vol: neither mounted nor served (graphlane mount vol, or graphlane serve vol)"),
    ("stat x", 1, "x: not a Graphlane volume, nor in one"),
    ("explain f", 1, "f: no such program in $PATH (./f is one here)"),
    ("explain nosuch", 1, "nosuch: no such program in $PATH"),
    ("run --volume x -- true", 125, "x: not in a Graphlane volume"),
    ("run -- nosuch", 127, "nosuch: No such file or directory"),
    ("run -- ./f", 126, "./f: Permission denied"),
]


@pytest.fixture
def place(graphlane, volume, tmp_path):
    """A working directory with the files of the tables."""
    for name in ("d0", "d1", "x", "mnt"):
        (tmp_path / name).mkdir()
    (tmp_path / "f").write_bytes(random.Random(1).randbytes(300_000))
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    graphlane("create", "vol", "-d", "d0", "-d", "d1", "--stripe-depth", "64K", cwd=tmp_path)
    graphlane("import", "f", "vol", cwd=tmp_path)
    return tmp_path


def check(graphlane, place, words, status, line):
    result = graphlane(*words.split(), check=False, cwd=place)
    assert (result.returncode, result.stderr) == (status, f"graphlane: {line}\n"), words
    assert not any(word in result.stderr for word in PARSER_WORDS), result.stderr


def test_usage_errors(graphlane, place):
    for words, status, line in USAGE:
        check(graphlane, place, words, status, line)


def test_options_that_exclude_each_other(graphlane, place):
    result = graphlane("stat", "--json", "--prometheus", "vol", check=False, cwd=place)
    assert result.returncode == 2
    assert result.stderr.endswith(" exclude each other (see graphlane stat --help)\n"), result.stderr


def test_failures(graphlane, fuse, place):
    for words, status, line in FAILURES:
        check(graphlane, place, words, status, line)


def test_an_absolute_path_is_printed_as_given(graphlane, place):
    check(graphlane, place, f"import {place}/f {place}/vol", 1, f"{place}/vol/f: exists already (--overwrite replaces it)")


def test_help_and_version(graphlane):
    for words in (["help"], ["help", "run"], ["run", "--help"], ["-V"], ["--version"]):
        result = graphlane(*words)
        assert result.stdout and not result.stderr
    assert graphlane("help", "run").stdout == graphlane("run", "--help").stdout


OF_ANOTHER_USER = [
    ("import mine VOL/g", 1, "VOL: cannot write to the volume: only root may"),
    ("convert e.txt VOL/g", 1, "VOL: cannot write to the volume: only root may"),
    ("check VOL", 8, "VOL: cannot lock the volume: only root may"),
    ("adopt VOL", 1, "VOL: cannot lock the volume: only root may"),
    ("serve VOL", 1, "VOL: cannot serve the volume: only root may"),
    ("rm VOL/f", 1, "VOL/f: cannot remove: Permission denied"),
    ("export VOL/f /etc/x", 1, "/etc/x: cannot create: Permission denied"),
    ("create v -d VOL/../d0 -d VOL/../d1", 1, "VOL/../d0: cannot make a directory in it: Permission denied"),
    ("mount VOL mnt", 1, "/dev/fuse: Permission denied (graphlane run --no-mount reads without a mount)"),
    ("explain /root/x", 1, "/root/x: cannot open: Permission denied"),
]


def test_refusals_for_an_ordinary_user(graphlane, root, place, open_tmp):
    if shutil.which("setpriv") is None:
        pytest.skip("not applicable: setpriv is missing")
    if os.stat("/root").st_mode & 0o005:
        pytest.skip("not applicable: all users may enter /root")
    volume = open_tmp / "place"
    volume.mkdir(mode=0o755)
    for name in ("d0", "d1"):
        (volume / name).mkdir(mode=0o755)
    graphlane("create", volume / "vol", "-d", volume / "d0", "-d", volume / "d1", "--stripe-depth", "64K")
    graphlane("import", place / "f", volume / "vol")
    home = open_tmp / "home"
    (home / "mnt").mkdir(parents=True)
    (home / "mine").write_bytes(b"mine")
    (home / "e.txt").write_text("0 1\n")
    program = home / "bin/graphlane"
    program.parent.mkdir()
    shutil.copy(graphlane.program, program)
    for path in [home, *home.rglob("*")]:
        os.chown(path, 65534, 65534)
    for words, status, line in OF_ANOTHER_USER:
        if "/dev/fuse" in line and run("setpriv", "--reuid=65534", "--clear-groups", "test", "-w", "/dev/fuse",
                                       check=False).returncode == 0:
            continue
        given = words.replace("VOL", str(volume / "vol")).split()
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, *given],
                                capture_output=True, text=True, cwd=home, timeout=60, stdin=subprocess.DEVNULL)
        want = line.replace("VOL/../", f"{volume}/").replace("VOL", str(volume / "vol"))
        assert (result.returncode, result.stderr) == (status, f"graphlane: {want}\n"), words
