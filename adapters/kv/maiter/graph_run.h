// GraphRun: a graph that is open, and a run of an operator on it, in this process or by workers.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "adapters/kv/maiter/run_workers.h"

namespace graphlane::maiter {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class GraphRun {
 public:
  GraphRun(std::string_view algorithm, const RunRequest& request)
      : algorithm_(algorithm),
        request_(request),
        threads_(graphfmt::usable_threads(request.threads)) {}

  // With workers, each of them opens the graph: here only its index is loaded, and no thread is
  // started.
  Outcome<void> open(bool wants_in) {
    const auto begin = std::chrono::steady_clock::now();
    if (request_.kv.workers > 1) {
      auto pages = graphfmt::Pages::open(request_.graph);
      if (!pages) return pages.error();
      pages_ = std::move(*pages);
      return {};
    }
    auto graph = kv::KvGraph::open(request_.graph, kv_options(request_, threads_), wants_in);
    if (!graph) return graph.error();
    graph_ = std::move(*graph);
    open_seconds_ = seconds_since(begin);
    return {};
  }

  uint64_t vertex_count() const { return graph_ ? graph_->vertex_count() : pages_->vertex_count(); }

  template <class Op>
  Outcome<Finished> run(const Op& op, double tolerance, bool scales) {
    const auto begin = std::chrono::steady_clock::now();
    const RunOptions options{
        .request = request_, .name = algorithm_.data(), .tolerance = tolerance, .scales = scales};
    auto finished = graph_ ? run_here(op, options) : run_by_workers(op, *pages_, options);
    if (!finished) return finished.error();
    finished->stats.open_seconds = open_seconds_;
    finished->stats.run_seconds = seconds_since(begin);
    return finished;
  }

 private:
  template <class Op>
  Outcome<Finished> run_here(const Op& op, const RunOptions& options) {
    WorkerPool pool(threads_);
    auto finished = run_alone(op, *graph_, pool, options);
    if (!finished) return finished.error();
    const PagedFiles::Moved moved = graph_->moved();
    finished->stats.device_reads = moved.io_count;
    finished->stats.device_bytes = moved.bytes;
    return finished;
  }

  const std::string_view algorithm_;
  const RunRequest& request_;
  const unsigned threads_;
  std::unique_ptr<kv::KvGraph> graph_;      // without workers
  std::unique_ptr<graphfmt::Pages> pages_;  // with workers
  double open_seconds_ = 0;
};

inline AlgorithmResult result_of(const Finished& finished) {
  AlgorithmResult result;
  result.stats = finished.stats;
  result.summary = {{"rounds", finished.stats.iterations}};
  kv::KvCounts before;
  for (const RoundEnd& round : finished.rounds) {
    result.iterations.push_back(
        {{"seconds", round.seconds},
         {"left", round.left},
         {"gets", round.counts.gets - before.gets},
         {"cache_hits", round.counts.cache_hits - before.cache_hits},
         {"buffer_hits", round.counts.buffer.hits - before.buffer.hits},
         {"requests", round.counts.buffer.requests - before.buffer.requests}});
    before = round.counts;
  }
  return result;
}

inline void add_counts(const kv::KvCounts& counts, AlgorithmResult& result) {
  result.summary["gets"] = counts.gets;
  result.summary["cache_hits"] = counts.cache_hits;
  result.summary["buffer_hits"] = counts.buffer.hits;
  result.summary["requests"] = counts.buffer.requests;
}

}  // namespace graphlane::maiter
