// Algorithms: the request of `graphlane algo` to an engine, and the result. Each engine has one
// AlgorithmEngine; cli/graph/command_algo.cc lists them and takes the one of the graph's format.
//
// Threads: one run at a time for a request; a result is its owner's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/graph/graph.h"
#include "adapters/graph/run_stats.h"
#include "graphfmt/graph_header.h"
#include "iomgr/base/error.h"
#include "iomgr/base/json.h"

namespace graphlane {

// Where the rank of vertices without out-arcs goes: nowhere, so that the sum falls below 1, or to
// all vertices in equal shares.
enum class Dangling { kNone, kUniform };

struct AlgorithmOptions {
  std::vector<uint64_t> sources = {};       // none: vertex 0, or as the algorithm says
  std::optional<uint64_t> iterations = {};  // none: as the algorithm says
  std::optional<double> tolerance = {};     // PageRank: stop when ranks together move less
  double damping = 0.85;
  Dangling dangling = Dangling::kUniform;
};

// Options that only the engine kv takes.
struct KvRunOptions {
  double portion = 1;                // of the state table that a round takes, above 0, at most 1
  unsigned workers = 1;              // processes
  std::string init = {};             // FILE.npy: values to begin with
  std::optional<double> alpha = {};  // Katz; none: one that converges
  std::string cache_policy = "hot";  // "hot-last", or as kv::parse_policy() has them
  uint32_t buffer_pages = 64;        // of each thread's prefetching buffer
  uint32_t prefetch_pages = 0;
};

struct RunRequest {
  std::string graph;  // its path
  AlgorithmOptions options = {};
  unsigned threads = 0;  // 0: as many as there are cores
  uint64_t cache_bytes = 64 << 20;
  bool in_memory = false;
  // The largest gap between lists that semiext and hybrid read through; none: measured.
  std::optional<uint64_t> gap_bytes = {};
  // The next three are for the engine hybrid. Memory for vertices' values; none: half of what is
  // available.
  std::optional<uint64_t> value_memory_bytes = {};
  bool accumulates = false;   // values pass on in the next iteration only
  std::string model = {};     // hybrid, push, pull or random
  bool wants_values = false;  // of each vertex; else only the summary counts
  ReadVariant variant = {};
  KvRunOptions kv = {};
};

// A value for each vertex.
struct ResultColumn {
  std::string name;
  std::variant<std::vector<int32_t>, std::vector<int64_t>, std::vector<uint32_t>,
               std::vector<uint64_t>, std::vector<double>>
      values;
};

struct AlgorithmResult {
  // The first column is the algorithm's own; empty where no values were wanted.
  std::vector<ResultColumn> columns = {};
  // Takes the values, which may be most of the memory: a list in braces would copy them.
  template <class T>
  void add_column(std::string name, std::vector<T> values) {
    columns.push_back({std::move(name), std::move(values)});
  }
  // The text for -1 and infinity in text files, in the first column. Empty: the number.
  std::string unreached = {};
  Json summary = Json::object();    // the members' order is the one to print
  Json iterations = Json::array();  // for --explain: an object each; empty: the engine tells none
  RunStats stats = {};
};

struct AlgorithmInfo {
  std::string_view name;
  std::string_view description;
};

struct AlgorithmEngine {
  std::string_view name;
  graphfmt::GraphKind format;
  std::span<const AlgorithmInfo> algorithms;
  // EINVAL: an option or a source that does not suit the graph. Errors name the file.
  Outcome<AlgorithmResult> (*run)(std::string_view algorithm, const RunRequest& request);
};

// EINVAL: a source that is no vertex. `graph` is what the error calls it.
Outcome<std::vector<uint32_t>> sources_of(const AlgorithmOptions& options, uint64_t vertex_count,
                                          const std::string& graph);

// The ten largest values, each with its vertex; the lower vertex first where they are equal.
class TopTen {
 public:
  // Takes the values of the vertices from `first` on. Calls come in the order of the vertices.
  void add(uint64_t first, std::span<const double> values);
  Json json() const;

 private:
  std::vector<std::pair<double, uint64_t>> top_;  // the largest first
};
Json top_ten(std::span<const double> values);

}  // namespace graphlane
