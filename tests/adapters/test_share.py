"""The installed share kit: users compile with it, and run the tutorial's engine."""

import os
import re
import subprocess

import pytest

import graphs
from harness import BUILD, BUILD_WORDS, ROOT, run

TUTORIAL = ROOT / "adapters/tutorial/components.cc"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The kit as `make install` puts it, below /usr of a directory."""
    root = tmp_path_factory.mktemp("installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run("make", "-s", "-C", ROOT, "install-share", *BUILD_WORDS, f"DESTDIR={root}", "PREFIX=/usr",
        env=environment, umask=0o077)
    return root


def test_every_user_can_read_roots_installation(installed):
    """That holds for any umask of root."""
    for path in installed.rglob("*"):
        assert path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o444 == 0o444, path


@pytest.mark.parametrize("destination", ["", "/elsewhere"])
def test_the_loader_finds_the_installed_library(destination):
    said = run("make", "-n", "-C", ROOT, "install-share", f"DESTDIR={destination}").stdout
    assert ("ldconfig" in said) == (not destination)


def test_user_flags_are_added_to_the_kits_own():
    """Flags on the command line once replaced the project's own, and nothing compiled."""
    said = run("make", "-n", "-C", ROOT, "-W", "cli/main.cc", "CXXFLAGS=-O3", "CPPFLAGS=-DMINE", "Q=",
               f"BUILD={BUILD}", f"{BUILD}/obj/cli/main.o").stdout
    assert {"-O3", "-DMINE", "-std=c++20", "-I."} <= set(said.split())


def flags(root, *words) -> list[str]:
    environment = os.environ | {"PKG_CONFIG_PATH": str(root / "usr/lib/pkgconfig"),
                                "PKG_CONFIG_SYSROOT_DIR": str(root)}
    return run("pkg-config", *words, "graphlane-share", env=environment).stdout.split()


@pytest.fixture(scope="module")
def components(installed, tmp_path_factory):
    """The tutorial's engine, linked to the shared library."""
    program = tmp_path_factory.mktemp("engine") / "components"
    run("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", TUTORIAL, "-o", program,
        *flags(installed, "--cflags", "--libs"), f"-Wl,-rpath,{installed}/usr/lib")
    return program


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A grid of many components, and their number."""
    truth = graphs.Truth(graphs.random_edges(20_000, 18_000, seed=7))
    grid = graphs.write_grid(tmp_path_factory.mktemp("graph") / "grid", truth.edges,
                             truth.vertex_count, 5)
    return grid, len(set(truth.labels().tolist()))


def test_the_tutorials_engine_computes_right_beside_others(components, graph):
    grid, count = graph
    jobs = [subprocess.Popen([components, grid], stdout=subprocess.PIPE, text=True) for _ in range(5)]
    for job in jobs:
        assert job.communicate(timeout=60)[0] == f"{count} components\n"


def test_the_tutorials_engine_links_statically(installed, graph, tmp_path):
    grid, count = graph
    library = f"{installed}/usr/lib/libgraphlane-share.a"
    others = [word for word in flags(installed, "--static", "--libs") if "graphlane-share" not in word]
    run("g++", "-std=c++17", "-O1", TUTORIAL, "-o", tmp_path / "components",
        *flags(installed, "--cflags"), library, *others)
    coordinator = installed / "usr/lib/graphlane/graphlane-share-coordinator"
    result = run(tmp_path / "components", grid,
                 env=os.environ | {"GRAPHLANE_SHARE_COORDINATOR": str(coordinator)})
    assert result.stdout == f"{count} components\n"


def test_the_tutorials_engine_steps_over_weights(components, tmp_path):
    truth = graphs.Truth(graphs.random_edges(5000, 6000, seed=3))
    grid = graphs.write_grid(tmp_path / "grid", truth.edges, truth.vertex_count, 3,
                             weights=graphs.np.ones(len(truth.edges)))
    assert run(components, grid).stdout == f"{len(set(truth.labels().tolist()))} components\n"


def test_an_error_is_one_line(components, tmp_path):
    result = run(components, tmp_path, check=False)
    assert result.returncode == 1
    assert result.stderr == f"components: {tmp_path}/meta: cannot open: No such file or directory\n"


def test_the_tutorial_shows_the_engine_that_is_tested():
    assert "{{ file adapters/tutorial/components.cc }}" in (ROOT / "docs/howto/engines.md").read_text()
    assert len(TUTORIAL.read_text().splitlines()) < 50


def test_the_header_is_c(installed, tmp_path):
    source = tmp_path / "engine.c"
    source.write_text("#include <graphlane_share.h>\n"
                      "int main(void) { return graphlane_share_error()[0]; }\n")
    run("gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic-errors", "-Werror", source, "-o",
        tmp_path / "engine", *flags(installed, "--cflags", "--libs"),
        f"-Wl,-rpath,{installed}/usr/lib")
    run(tmp_path / "engine")


def test_the_library_exports_the_c_interface_and_nothing_else(installed):
    names = run("nm", "-D", "--defined-only", installed / "usr/lib/libgraphlane-share.so").stdout
    exported = {line.split()[-1] for line in names.splitlines()}
    header = (ROOT / "adapters/share/client/graphlane_share.h").read_text()
    declared = set(re.findall(r"^(?:int|void|const char ?\*)\s*(graphlane_share_\w+)\(", header, re.M))
    assert exported == declared


def test_an_administrator_finds_the_coordinator(installed):
    link = installed / "usr/bin/graphlane-share-coordinator"
    assert os.readlink(link) == "/usr/lib/graphlane/graphlane-share-coordinator"
    assert os.access(f"{installed}{os.readlink(link)}", os.X_OK)


def test_uninstall_leaves_nothing(installed, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for target in ["install-share", "uninstall-share"]:
        run("make", "-s", "-C", ROOT, target, *BUILD_WORDS, f"DESTDIR={tmp_path}",
            "PREFIX=/usr", env=environment)
    assert [path for path in tmp_path.rglob("*") if path.is_symlink() or not path.is_dir()] == []
