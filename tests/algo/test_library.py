"""The installed libgraphlane-graph: its C interface, its C++ interface, and the tutorial's vertex program."""

import os
import re

import numpy as np
import pytest

from algo import stored_graphs as graphs
from harness import BUILD, ROOT, run

TUTORIAL = ROOT / "adapters/tutorial/degrees.cc"
GRAPH = graphs.StoredGraph("library", 1 << 12, graphs.rmat_pairs(12, 60_000, 21))

READS = r"""
#include <graphlane_graph.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(int error) { printf("%d %s\n", error, graphlane_graph_error()); return 1; }

int main(int argc, char **argv) {
  struct graphlane_graph_options options = {.cache_bytes = 4 << 20, .in_memory = argc > 2};
  graphlane_graph *graph;
  int error = graphlane_graph_open(argv[1], &options, &graph);
  if (error) return failed(error);
  uint64_t n = graphlane_graph_vertex_count(graph), count = 0;
  printf("%" PRIu64 " %" PRIu64 " %d\n", n, graphlane_graph_arc_count(graph), graphlane_graph_is_directed(graph));
  uint32_t *list = malloc(4 * graphlane_graph_arc_count(graph) + 4);
  for (int side = 0; side < 2; ++side) {
    for (uint64_t v = 0; v < n; v += 17) {
      if ((error = graphlane_graph_neighbors(graph, side, v, list, n * n, &count))) return failed(error);
      if (count != graphlane_graph_degree(graph, side, v)) return 2;
      for (uint64_t i = 0; i < count; ++i) printf("%d %" PRIu64 " %" PRIu32 "\n", side, v, list[i]);
    }
  }
  uint64_t *vertices = malloc(8 * n), *offsets = malloc(8 * (n + 1));
  for (uint64_t i = 0; i < n; ++i) vertices[i] = n - 1 - i;
  if (graphlane_graph_multi_neighbors(graph, GRAPHLANE_IN, vertices, n, offsets, NULL, 0)) return 3;
  if (graphlane_graph_multi_neighbors(graph, GRAPHLANE_IN, vertices, n, offsets, list, offsets[n])) return 4;
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t at = offsets[i]; at < offsets[i + 1]; ++at) printf("m %" PRIu64 " %" PRIu32 "\n", vertices[i], list[at]);
  }
  printf("%d ", graphlane_graph_neighbors(graph, GRAPHLANE_OUT, n, list, 1, &count));
  printf("%s\n", graphlane_graph_error());
  graphlane_graph_close(graph);
  return 0;
}
"""

SAMPLES = r"""
#include <graphlane_graph.hpp>
#include <iostream>

int main(int, char** argv) try {
  const graphlane::GraphReader graph(argv[1]);
  const auto many = graph.multi_neighbors({5, 3, 5}, GRAPHLANE_IN);
  if (many.offsets[1] != graph.degree(5, GRAPHLANE_IN)) return 2;
  for (const auto u : graph.neighbors(3, GRAPHLANE_IN)) std::cout << u << ' ';
  std::cout << "| ";
  for (auto i = many.offsets[1]; i < many.offsets[2]; ++i) std::cout << many.list[i] << ' ';
} catch (const graphlane::GraphError& error) {
  std::cout << error.code << ' ' << error.what();
}
"""


STORE_IN_C = r"""
#include <graphlane_kv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int total = 0;
static void done(void *context, uint64_t key, int error, const void *data, size_t size) {
  (void)data;
  printf("%s %d %d %d; ", (const char *)context, (int)key, error, (int)size);
}
static int visit(void *context, uint64_t key, const void *data, size_t size) {
  (void)context; (void)data;
  total += (int)key + (int)size;
  return key == 300 ? ECANCELED : 0;
}

int main(int argc, char **argv) {
  graphlane_kv_writer *writer;
  char value[20000];
  memset(value, 'v', sizeof value);
  if (argc != 2 || graphlane_kv_create(argv[1], 4096, &writer)) return 1;
  for (int key = 0; key < 500; key += 2) if (graphlane_kv_put(writer, key, value, key == 100 ? sizeof value : (size_t)(key % 7))) return 2;
  printf("%d ", graphlane_kv_put(writer, 498, "", 0));
  printf("%d ", graphlane_kv_put(writer, 497, "", 0));
  if (graphlane_kv_sync(writer) || graphlane_kv_writer_key_count(writer) != 250) return 3;
  graphlane_kv_writer_close(writer);
  if (graphlane_kv_append(argv[1], &writer) || graphlane_kv_put(writer, 500, "last", 4) || graphlane_kv_finish(writer)) return 4;
  graphlane_kv_writer_close(writer);
  struct graphlane_kv_options options = {.cache_bytes = 1 << 20, .cache_policy = "sieve", .prefetch_pages = 3};
  graphlane_kv *store;
  graphlane_kv_reader *reader;
  if (graphlane_kv_open(argv[1], &options, &store) || graphlane_kv_reader_open(store, &reader)) return 5;
  graphlane_kv_value got;
  for (int round = 0; round < 2; ++round) {
    if (graphlane_kv_get(reader, 100, 1, &got) || got.size != sizeof value || memcmp(got.data, value, got.size)) return 6;
    graphlane_kv_release(&got);
  }
  printf("%d %s\n", graphlane_kv_get(reader, 99, 1, &got), graphlane_kv_error());
  const uint64_t keys[] = {6, 7, 0, 500};
  if (graphlane_kv_multi_get(reader, keys, NULL, 4, done, "many")) return 7;
  if (graphlane_kv_submit(reader, 8, 1, done, "one")) return 8;
  while (graphlane_kv_wait(reader)) {}
  const int walked = graphlane_kv_each(reader, 290, visit, NULL);
  printf("%d %d\n", walked, total);
  struct graphlane_kv_counts counts;
  graphlane_kv_reader_counts(reader, &counts);
  printf("%d %d\n", (int)counts.gets, (int)counts.cache_hits);
  graphlane_kv_reader_close(reader);
  graphlane_kv_close(store);
  options.cache_policy = "best";
  printf("%d", graphlane_kv_open(argv[1], &options, &store));
  return 0;
}
"""

STORE_IN_CPP = r"""
#include <graphlane_kv.hpp>
#include <iostream>
#include <sstream>

using List = std::vector<uint32_t>;
class Links : public graphlane::KvStore<int32_t, List> {
  void parseKV(const std::string& line, int32_t* vid, List* list) override {
    std::istringstream words(line);
    words >> *vid;
    for (uint32_t neighbour; words >> neighbour;) list->push_back(neighbour);
  }
};

int main(int, char** argv) try {
  std::istringstream lines("-3 1 2\n0\n7 5 5 9\n");
  Links links;
  links.create(argv[1]);
  std::cout << links.load(lines) << ' ';
  links.finish();
  links.open(argv[1]);
  std::cout << links.key_count() << ' ' << links.get(-3).size() << links.get(0).size() << links.get(7, 0.5)[2] << ' ';
  const auto pin = links.pin(7);
  for (const uint32_t* n = pin.begin<uint32_t>(); n != pin.end<uint32_t>(); ++n) std::cout << *n;
  std::cout << ' ' << bool(links.pin(1)) << bool(links.pin(0)) << ' ';
  links.each(0, [](int32_t vid, const List& list) { std::cout << vid << ':' << list.size() << ' '; });
  graphlane::KvStore<uint64_t, double> numbers;
  numbers.create(std::string(argv[1]) + "2");
  numbers.put(~0ull, 2.5);
  numbers.finish();
  numbers.open(std::string(argv[1]) + "2");
  std::cout << numbers.get(~0ull) << '\n';
  links.get(1);
} catch (const graphlane::KvError& error) {
  std::cout << error.code << ' ' << error.what();
}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run("make", "-s", "-C", ROOT, "install-graph", f"VARIANT={BUILD.name.removesuffix('-by-files')}",
        f"DESTDIR={root}", "PREFIX=/usr", env=environment, umask=0o077, timeout=1200)
    return root


@pytest.fixture(scope="module")
def built(installed, tmp_path_factory):
    """built(source, compiler, name, *flags): a program linked to the shared library."""
    environment = os.environ | {"PKG_CONFIG_PATH": f"{installed}/usr/lib/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": str(installed)}
    directory = tmp_path_factory.mktemp("built")

    def build(source, compiler, name, *flags):
        path = directory / name
        path.write_text(source)
        linked = run("pkg-config", "--cflags", "--libs", "graphlane-graph", env=environment).stdout.split()
        run(compiler, *flags, "-Wall", "-Wextra", "-Werror", "-O1", path, "-o", path.with_suffix(""), *linked,
            f"-Wl,-rpath,{installed}/usr/lib", timeout=600)
        return path.with_suffix("")

    return build


@pytest.fixture(scope="module")
def path(graphlane, tmp_path_factory):
    return GRAPH.store(graphlane, tmp_path_factory.mktemp("graph"), "varint")


def sorted_lists(side):
    """For each vertex, its neighbours ascending."""
    own, other = GRAPH.arcs[:, side], GRAPH.arcs[:, 1 - side]
    order = np.lexsort([other, own])
    return np.split(other[order], np.searchsorted(own[order], np.arange(1, GRAPH.vertex_count)))


@pytest.mark.parametrize("memory", [[], ["memory"]])
def test_the_c_interface_reads_every_list(built, path, memory):
    reads = built(READS, "gcc", "reads.c", "-std=c99", "-pedantic-errors")
    lines = run(reads, path, *memory).stdout.splitlines()
    n = GRAPH.vertex_count
    lists = [sorted_lists(0), sorted_lists(1)]
    want = [f"{n} {len(GRAPH.edges)} 1"]
    want += [f"{side} {v} {u}" for side in range(2) for v in range(0, n, 17) for u in lists[side][v].tolist()]
    want += [f"m {v} {u}" for v in range(n - 1, -1, -1) for u in lists[1][v].tolist()]
    assert lines[:-1] == want
    assert lines[-1] == f"34 {path}: has no vertex {n}: its {n} vertices begin with 0"


def test_an_error_names_the_file(built, path, tmp_path):
    samples = built(SAMPLES, "g++", "samples.cc", "-std=c++17")
    lists = sorted_lists(1)
    row = lambda v: "".join(f"{u} " for u in lists[v].tolist())  # noqa: E731
    assert run(samples, path).stdout == f"{row(3)}| {row(3)}"
    said = run(samples, tmp_path / "none").stdout
    assert said.startswith("2 ") and str(tmp_path / "none") in said


def test_the_store_in_c(built, tmp_path):
    store = tmp_path / "store.pages"
    program = built(STORE_IN_C, "gcc", "store.c", "-std=c99", "-pedantic-errors")
    keys = range(290, 301, 2)
    total = sum(key + key % 7 for key in keys)
    assert run(program, store).stdout.splitlines() == [
        f"17 22 2 {store}: does not have the key 99", f"many 6 0 6; many 7 2 0; many 0 0 0; many 500 0 4; one 8 0 1; 125 {total}",
        "8 1", "22"]


def test_the_store_in_cpp(built, tmp_path):
    store = tmp_path / "links.pages"
    program = built(STORE_IN_CPP, "g++", "store.cc", "-std=c++17")
    missing = 1 ^ 1 << 63
    assert run(program, store).stdout == f"3 3 209 559 01 0:0 7:3 2.5\n2 {store}: does not have the key {missing}"


def test_the_tutorials_program_counts_degrees(built, path):
    program = built(TUTORIAL.read_text(), "g++", "degrees.cc", "-std=c++20")
    distinct = np.unique(GRAPH.arcs, axis=0)
    degrees, counts = np.unique(np.bincount(distinct[:, 0], minlength=GRAPH.vertex_count), return_counts=True)
    want = "".join(f"{degree} {count}\n" for degree, count in zip(degrees, counts))
    assert run(program, path).stdout == want
    missing = run(program, path / "none", check=False)
    assert missing.returncode == 1 and missing.stderr.startswith(f"degrees: {path}/none") and missing.stderr.count("\n") == 1


def test_the_tutorial_shows_the_program_that_is_tested():
    assert "{{ file adapters/tutorial/degrees.cc }}" in (ROOT / "docs/howto/engines.md").read_text()
    assert len(TUTORIAL.read_text().splitlines()) <= 40


def test_the_shared_library_exports_its_interface(installed):
    names = run("nm", "-D", "--defined-only", "-C", installed / "usr/lib/libgraphlane-graph.so").stdout
    exported = {line.split(" ", 2)[2] for line in names.splitlines()}
    declared = set()
    for kind in ("graph", "kv"):
        header = (ROOT / f"adapters/graph/kit/graphlane_{kind}.h").read_text()
        declared |= set(re.findall(rf"\b(graphlane_{kind}_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    assert {name for name in exported if name.startswith(("graphlane_graph_", "graphlane_kv_"))} == declared
    assert all("graphlane" in name for name in exported)


def test_uninstall_leaves_nothing(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for target in ["install-graph", "uninstall-graph"]:
        run("make", "-s", "-C", ROOT, target, f"VARIANT={BUILD.name.removesuffix('-by-files')}", f"DESTDIR={tmp_path}",
            "PREFIX=/usr", env=environment)
    assert [path for path in tmp_path.rglob("*") if path.is_symlink() or not path.is_dir()] == []
