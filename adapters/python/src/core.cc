// graphlane._core: stored graphs as Python reads them. The package wraps this; it checks and
// documents arguments.
//
// Numbers go straight into arrays of numpy. The interpreter's lock is free while lists are read,
// and Ctrl-C is looked for between pieces of kPieceArcs neighbours.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "adapters/graph/kit/list_reader.h"
#include "adapters/python/src/bv_reader.h"
#include "adapters/python/src/dual_rows.h"
#include "adapters/python/src/page_graph.h"
#include "graphfmt/graph_directory.h"

namespace nb = nanobind;

namespace graphlane::python {

constexpr uint64_t kPieceArcs = 4 << 20;

struct GraphFailed : std::exception {
  explicit GraphFailed(Error failed) : error(std::move(failed)) {}
  const char* what() const noexcept override { return error.text.c_str(); }
  Error error;
};

template <class T>
T value_of(Outcome<T>&& outcome) {
  if (!outcome) throw GraphFailed(outcome.error());
  return std::move(*outcome);
}
void check(const Outcome<void>& outcome) {
  if (!outcome) throw GraphFailed(outcome.error());
}

// The bytes of an object with the buffer protocol, of one dimension and contiguous.
class Bytes {
 public:
  Bytes(nb::handle object, bool writable, Py_ssize_t item_bytes) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) {
      throw nb::python_error();
    }
    if (view_.itemsize != item_bytes || view_.ndim > 1) {
      PyBuffer_Release(&view_);
      throw nb::type_error("an array of one dimension and another type is expected");
    }
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  size_t count() const { return static_cast<size_t>(view_.len / view_.itemsize); }
  template <class T>
  T* as() const {
    return static_cast<T*>(view_.buf);
  }

 private:
  Py_buffer view_;
};

// numpy.empty and the types of its arrays, looked up once.
struct Numpy {
  nb::object empty, uint32, uint64, float64;
  nb::object make(size_t count, const nb::object& type) const { return empty(count, type); }
};
Numpy* numpy = nullptr;

template <class T>
nb::object array_of(const std::vector<T>& numbers, const nb::object& type) {
  nb::object array = numpy->make(numbers.size(), type);
  const Bytes to(array, true, sizeof(T));
  std::copy(numbers.begin(), numbers.end(), to.as<T>());
  return array;
}

// Another thread may change the caller's array while lists are read.
std::vector<uint64_t> copy_of(nb::handle ids) {
  const Bytes from(ids, false, sizeof(uint64_t));
  return {from.as<const uint64_t>(), from.as<const uint64_t>() + from.count()};
}

// How often this process, or one that it is a child of, was forked since the module was loaded.
std::atomic<uint64_t> forks{0};

// A reader of a file that belongs to the process that opened it: after fork() its threads are
// gone, and its queues are the parent's. A child opens its own at the first use, and never touches
// the parent's again.
//
// Threads: get() and the destructor are called with the interpreter's lock, which makes a child's
// first use one thread's.
template <class Reader>
class PerProcess {
 public:
  using Open = std::function<std::unique_ptr<Reader>()>;

  explicit PerProcess(Open open) : open_(std::move(open)), opened_at_(forks) {
    nb::gil_scoped_release release;
    reader_ = open_();
  }
  ~PerProcess() {
    if (is_foreign()) (void)reader_.release();
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // For headers and tables in memory, which a fork does not change.
  const Reader& peek() const { return *reader_; }
  Reader& get() {
    if (is_foreign()) {
      std::unique_ptr<Reader> own = open_();
      (void)reader_.release();
      reader_ = std::move(own);
      opened_at_ = forks;
    }
    return *reader_;
  }

 private:
  bool is_foreign() const { return opened_at_ != forks; }

  const Open open_;
  uint64_t opened_at_;
  std::unique_ptr<Reader> reader_;
};

EdgeSide edge_side(int side) { return side == 0 ? EdgeSide::kOut : EdgeSide::kIn; }

// A graph of the format `lists`.
class ListGraph {
 public:
  ListGraph(const std::string& path, uint64_t cache_bytes, bool in_memory, bool weights)
      : opened_([=] {
          return std::make_unique<Opened>(value_of(Graph::open(
              path, {.cache_bytes = cache_bytes, .in_memory = in_memory, .weights = weights})));
        }),
        has_weights_(weights && graph().is_weighted()) {}

  const Graph& graph() const { return *opened_.peek().graph; }
  std::string codec() const { return std::string(name_of(graph().header().codec)); }
  std::string weight_type() const { return std::string(name_of(graph().header().weight)); }

  uint64_t degree(uint64_t vertex, int side) const {
    check(kit::check_vertex(graph(), vertex));
    return graph().degree(static_cast<VertexId>(vertex), edge_side(side));
  }

  // Of the vertices [first, first + count) into `into`, uint64.
  void degrees(uint64_t first, nb::handle into, int side) const {
    const Bytes to(into, true, sizeof(uint64_t));
    if (first > graph().vertex_count() || to.count() > graph().vertex_count() - first) {
      throw nb::index_error();
    }
    nb::gil_scoped_release release;
    for (size_t i = 0; i < to.count(); ++i) {
      to.as<uint64_t>()[i] = graph().degree(static_cast<VertexId>(first + i), edge_side(side));
    }
  }

  nb::object neighbors(uint64_t vertex, int side) {
    const uint64_t offsets[2] = {0, degree(vertex, side)};
    nb::object list = numpy->make(offsets[1], numpy->uint32);
    if (offsets[1] == 0) return list;
    const Bytes to(list, true, sizeof(uint32_t));
    read_unlocked({.side = edge_side(side),
                   .vertices = &vertex,
                   .count = 1,
                   .offsets = offsets,
                   .neighbours = to.as<uint32_t>()});
    return list;
  }

  // (offsets, neighbours), or with weights also those.
  nb::tuple multi_neighbors(nb::handle ids, int side, bool weights) {
    const std::vector<uint64_t> vertices = copy_of(ids);
    nb::object offsets = numpy->make(vertices.size() + 1, numpy->uint64);
    const Bytes at(offsets, true, sizeof(uint64_t));
    fill_offsets(vertices, side, at.as<uint64_t>());
    const uint64_t total = at.as<uint64_t>()[vertices.size()];
    nb::object list = numpy->make(total, numpy->uint32);
    const Bytes to(list, true, sizeof(uint32_t));
    if (!weights) {
      read_pieces(vertices, at.as<uint64_t>(), side, to.as<uint32_t>(), nullptr);
      return nb::make_tuple(offsets, list);
    }
    nb::object values = numpy->make(total, numpy->float64);
    const Bytes values_to(values, true, sizeof(double));
    if (has_weights_) {
      read_pieces(vertices, at.as<uint64_t>(), side, to.as<uint32_t>(), values_to.as<double>());
    } else {
      read_pieces(vertices, at.as<uint64_t>(), side, to.as<uint32_t>(), nullptr);
      std::fill_n(values_to.as<double>(), total, 1.0);
    }
    return nb::make_tuple(offsets, list, values);
  }

 private:
  void fill_offsets(const std::vector<uint64_t>& vertices, int side, uint64_t* offsets) const {
    offsets[0] = 0;
    for (size_t i = 0; i < vertices.size(); ++i) {
      offsets[i + 1] = offsets[i] + degree(vertices[i], side);
    }
  }

  void read_unlocked(const kit::ListReader::Wanted& wanted) {
    kit::ReaderPool& readers = opened_.get().readers;
    nb::gil_scoped_release release;
    check(readers.read(wanted));
  }

  void read_pieces(const std::vector<uint64_t>& vertices, const uint64_t* offsets, int side,
                   uint32_t* list, double* weights) {
    size_t first = 0;
    while (first < vertices.size()) {
      size_t end = first + 1;
      while (end < vertices.size() && offsets[end + 1] - offsets[first] <= kPieceArcs) ++end;
      read_unlocked({.side = edge_side(side),
                     .vertices = vertices.data() + first,
                     .count = end - first,
                     .offsets = offsets + first,
                     .neighbours = list,
                     .weights = weights});
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      first = end;
    }
  }

  struct Opened {
    explicit Opened(std::unique_ptr<Graph> given) : graph(std::move(given)), readers(*graph) {}
    const std::unique_ptr<Graph> graph;
    kit::ReaderPool readers;  // destroyed first
  };

  PerProcess<Opened> opened_;
  const bool has_weights_;
};

// A graph of the format `pages`.
class KeyedGraph {
 public:
  KeyedGraph(const std::string& path, uint64_t cache_bytes, bool in_memory)
      : graph_([=] { return value_of(PageGraph::open(path, cache_bytes, in_memory)); }) {}
  const graphfmt::GraphHeader& header() const { return graph_.peek().header(); }

  // Of all vertices into `into`, uint64.
  void degrees(nb::handle into, int side) {
    const Bytes to(into, true, sizeof(uint64_t));
    if (to.count() != header().vertex_count) throw nb::index_error();
    PageGraph& graph = graph_.get();
    nb::gil_scoped_release release;
    check(graph.degrees(direction(side), {to.as<uint64_t>(), to.count()}));
  }

  nb::tuple multi_neighbors(nb::handle ids, int side, bool weights) {
    const std::vector<uint64_t> vertices = copy_of(ids);
    PageGraph::Lists lists;
    PageGraph& graph = graph_.get();
    {
      nb::gil_scoped_release release;
      check(graph.read(direction(side), vertices, weights, lists));
    }
    nb::object offsets = array_of(lists.offsets, numpy->uint64),
               list = array_of(lists.neighbours, numpy->uint32);
    if (!weights) return nb::make_tuple(offsets, list);
    return nb::make_tuple(offsets, list, array_of(lists.weights, numpy->float64));
  }

 private:
  static graphfmt::Direction direction(int side) {
    return side == 0 ? graphfmt::Direction::kOut : graphfmt::Direction::kIn;
  }

  PerProcess<PageGraph> graph_;
};

// A graph of the format `dual`.
class BlockGraph {
 public:
  explicit BlockGraph(const std::string& path)
      : rows_([=] { return value_of(DualRows::open(path)); }) {}
  const graphfmt::GraphHeader& header() const { return rows_.peek().header(); }
  uint64_t first_vertex(uint32_t row) const { return rows_.peek().first_vertex(row); }

  // (offsets, neighbours, weights or None) of the vertices of an interval.
  nb::tuple row(uint32_t row, int side) {
    if (row >= header().partitions) throw nb::index_error();
    DualRows::Row lists;
    const DualRows& rows = rows_.get();
    {
      nb::gil_scoped_release release;
      check(rows.read(side == 0 ? graphfmt::DualSide::kOut : graphfmt::DualSide::kIn, row, lists));
    }
    const bool weighted = header().weight != graphfmt::WeightKind::kNone;
    return nb::make_tuple(
        array_of(lists.offsets, numpy->uint64), array_of(lists.neighbours, numpy->uint32),
        weighted ? array_of(lists.weights, numpy->float64) : nb::object(nb::none()));
  }

 private:
  PerProcess<DualRows> rows_;
};

// (size, stripe depth) of a graph's file; a depth of 0 is a plain file.
nb::tuple look(const std::string& directory, const std::string& name) {
  const graphfmt::GraphFile file =
      value_of(value_of(graphfmt::GraphDirectory::open(directory)).look(name));
  return nb::make_tuple(file.size_bytes, file.stripe_depth_bytes);
}

// One file of a graph, plain or striped in a volume that is not mounted there.
class FileReader {
 public:
  FileReader(const std::string& directory, const std::string& name)
      : file_(value_of(value_of(graphfmt::GraphDirectory::open(directory)).open_file(name))) {}
  uint64_t size() const { return file_.size_bytes(); }
  // Fills `into` from the offset on.
  void read(uint64_t offset, nb::handle into) const {
    const Bytes to(into, true, 1);
    nb::gil_scoped_release release;
    check(file_.read({.offset = offset, .length_bytes = to.count()}, to.as<void>()));
  }

 private:
  graphfmt::OpenGraphFile file_;
};

// A BVGraph in memory, by pieces.
class BvGraph {
 public:
  // `codes`: of degrees, references, block counts, blocks and residuals, as BvCode has them.
  BvGraph(nb::object bits, const std::string& name, uint64_t vertex_count, uint32_t window,
          uint32_t interval_length_min, uint32_t zeta_k, const std::vector<int>& codes)
      : bits_(std::move(bits), false, 1),
        reader_({.vertex_count = vertex_count,
                 .window = window,
                 .interval_length_min = interval_length_min,
                 .zeta_k = zeta_k,
                 .degrees = code(codes, 0),
                 .references = code(codes, 1),
                 .block_counts = code(codes, 2),
                 .blocks = code(codes, 3),
                 .residuals = code(codes, 4)},
                {bits_.as<const uint8_t>(), bits_.count()}, name) {}

  // (sources, targets) of the next vertices, about `count`; empty: the end.
  nb::tuple read(uint64_t count) {
    {
      nb::gil_scoped_release release;
      check(reader_.read(count, arcs_));
    }
    return nb::make_tuple(array_of(arcs_.sources, numpy->uint32),
                          array_of(arcs_.targets, numpy->uint32));
  }

 private:
  static BvCode code(const std::vector<int>& codes, size_t index) {
    return static_cast<BvCode>(codes.at(index));
  }

  const Bytes bits_;
  BvReader reader_;
  BvReader::Arcs arcs_;
};

// "lists", "dual" or "pages".
std::string stored_format(const std::string& path) {
  return std::string(name_of(value_of(graphfmt::read_graph_header(path)).kind));
}

// Errors: IndexError for what is no vertex, MemoryError, or graphlane.Error with `errno`.
void translate(const std::exception_ptr& thrown, void* error_class) {
  try {
    std::rethrow_exception(thrown);
  } catch (const GraphFailed& failed) {
    PyObject* kind = static_cast<PyObject*>(error_class);
    if (failed.error.code == ERANGE) kind = PyExc_IndexError;
    if (failed.error.code == ENOMEM) kind = PyExc_MemoryError;
    PyObject* const error = PyObject_CallFunction(kind, "s", failed.what());
    if (error == nullptr) return;
    if (kind == error_class) {
      const nb::object code = nb::int_(failed.error.code);
      PyObject_SetAttrString(error, "errno", code.ptr());
    }
    PyErr_SetObject(kind, error);
    Py_DECREF(error);
  }
}

}  // namespace graphlane::python

NB_MODULE(_core, m) {
  using namespace graphlane;
  using namespace graphlane::python;

  pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  const nb::module_ np = nb::module_::import_("numpy");
  const auto type = [&](const char* name) { return np.attr("dtype")(name); };
  numpy = new Numpy{np.attr("empty"), type("uint32"), type("uint64"), type("float64")};

  PyObject* const error = PyErr_NewExceptionWithDoc(
      "graphlane.Error",
      "A graph, a file or a device that cannot be used, in one line. `errno` says what kind.",
      PyExc_RuntimeError, nullptr);
  if (error == nullptr) throw nb::python_error();
  m.attr("Error") = nb::handle(error);
  nb::register_exception_translator(translate, error);

  nb::class_<ListGraph>(m, "ListGraph")
      .def(nb::init<const std::string&, uint64_t, bool, bool>(), nb::arg("path"),
           nb::arg("cache_bytes"), nb::arg("in_memory"), nb::arg("weights"))
      .def_prop_ro("num_vertices", [](const ListGraph& g) { return g.graph().vertex_count(); })
      .def_prop_ro("num_arcs", [](const ListGraph& g) { return g.graph().arc_count(); })
      .def_prop_ro("num_edges", [](const ListGraph& g) { return g.graph().header().edge_count; })
      .def_prop_ro("directed", [](const ListGraph& g) { return g.graph().is_directed(); })
      .def_prop_ro("codec", &ListGraph::codec)
      .def_prop_ro("weight_type", &ListGraph::weight_type)
      .def("degree", &ListGraph::degree, nb::arg("vertex"), nb::arg("side"))
      .def("degrees", &ListGraph::degrees, nb::arg("first"), nb::arg("into"), nb::arg("side"))
      .def("neighbors", &ListGraph::neighbors, nb::arg("vertex"), nb::arg("side"))
      .def("multi_neighbors", &ListGraph::multi_neighbors, nb::arg("ids"), nb::arg("side"),
           nb::arg("weights"));

  nb::class_<KeyedGraph>(m, "KeyedGraph")
      .def(nb::init<const std::string&, uint64_t, bool>(), nb::arg("path"), nb::arg("cache_bytes"),
           nb::arg("in_memory"))
      .def_prop_ro("num_vertices", [](const KeyedGraph& g) { return g.header().vertex_count; })
      .def_prop_ro("num_arcs", [](const KeyedGraph& g) { return g.header().arc_count; })
      .def_prop_ro("directed", [](const KeyedGraph& g) { return g.header().is_directed; })
      .def_prop_ro("weight_type",
                   [](const KeyedGraph& g) { return std::string(name_of(g.header().weight)); })
      .def("degrees", &KeyedGraph::degrees, nb::arg("into"), nb::arg("side"))
      .def("multi_neighbors", &KeyedGraph::multi_neighbors, nb::arg("ids"), nb::arg("side"),
           nb::arg("weights"));

  nb::class_<BlockGraph>(m, "BlockGraph")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def_prop_ro("num_vertices", [](const BlockGraph& g) { return g.header().vertex_count; })
      .def_prop_ro("num_arcs", [](const BlockGraph& g) { return g.header().arc_count; })
      .def_prop_ro("directed", [](const BlockGraph& g) { return g.header().is_directed; })
      .def_prop_ro("weight_type",
                   [](const BlockGraph& g) { return std::string(name_of(g.header().weight)); })
      .def_prop_ro("partitions", [](const BlockGraph& g) { return g.header().partitions; })
      .def("first_vertex", &BlockGraph::first_vertex, nb::arg("row"))
      .def("row", &BlockGraph::row, nb::arg("row"), nb::arg("side"));

  nb::class_<BvGraph>(m, "BvGraph")
      .def(nb::init<nb::object, const std::string&, uint64_t, uint32_t, uint32_t, uint32_t,
                    const std::vector<int>&>(),
           nb::arg("bits"), nb::arg("name"), nb::arg("vertex_count"), nb::arg("window"),
           nb::arg("interval_length_min"), nb::arg("zeta_k"), nb::arg("codes"))
      .def("read", &BvGraph::read, nb::arg("count"));

  nb::class_<FileReader>(m, "FileReader")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("directory"),
           nb::arg("name"))
      .def_prop_ro("size", &FileReader::size)
      .def("read", &FileReader::read, nb::arg("offset"), nb::arg("into"));
  m.attr("__version__") = GRAPHLANE_VERSION;
  m.def("look", &look, nb::arg("directory"), nb::arg("name"));
  m.def("stored_format", &stored_format, nb::arg("path"));
}
