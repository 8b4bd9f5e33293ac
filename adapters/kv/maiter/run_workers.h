// A run by several worker processes, each with a part of the vertices (Maiter's workers, on one
// machine).
//
// Each part is a range of vertices; all parts have about as many pages. A worker takes a round on
// its part. Deltas for other parts are added up by vertex meanwhile, and sent after it (exchange.h).
// The next round begins when all workers' deltas of this one are there: a worker that goes on
// without them takes small deltas one by one, and needs two to four times as many in all.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "adapters/graph/equal_parts.h"
#include "adapters/kv/maiter/exchange.h"
#include "adapters/kv/maiter/run.h"

namespace graphlane::maiter {

// Where the parts begin, and the end of the last one. Parts cost about as much: a vertex as much as
// kVertexBytes of lists. A get costs some 200 ns, and the arcs of a list 2 to 3 ns a byte.
inline std::vector<uint64_t> part_bounds(const graphfmt::PageStore& store, uint64_t vertex_count,
                                         unsigned workers) {
  constexpr uint64_t kVertexBytes = 80;
  const std::span<const uint64_t> first_keys = store.index().first_keys;
  const auto first_key = [&](uint64_t page) {
    return page < first_keys.size() ? std::min(first_keys[page], vertex_count) : vertex_count;
  };
  std::vector<uint64_t> bounds = equal_parts(store.page_count(), workers, [&](uint64_t page) {
    return page * store.page_bytes() + first_key(page) * kVertexBytes;
  });
  std::ranges::transform(bounds, bounds.begin(), first_key);
  bounds.front() = 0;
  return bounds;
}

template <class Op>
class WorkerRun final : private Outbox {
 public:
  WorkerRun(const Op& op, Exchange& exchange, unsigned self, std::vector<uint64_t> bounds,
            const RunOptions& options)
      : op_(op),
        exchange_(exchange),
        self_(self),
        bounds_(std::move(bounds)),
        options_(options),
        table_(exchange.values(), exchange.deltas(), Op::kIsSum),
        pending_(exchange.deltas().size(), kNothing),
        is_pending_((pending_.size() + kBlock - 1) / kBlock) {}

  // The process's exit status.
  int run() {
    Exchange::Worker& self = exchange_.worker(self_);
    const Outcome<void> done = graphfmt::or_no_memory([&] { return work(); });
    if (done) return 0;
    self.error_code = done.error().code;
    std::strncpy(self.error_text, done.error().text.c_str(), sizeof self.error_text - 1);
    return 1;
  }

 private:
  static constexpr size_t kBoxDeltas = 512;
  static constexpr size_t kBlock = 512;  // vertices
  static constexpr double kNothing = Op::kIsSum ? 0 : kNothingYet;

  Outcome<void> work() {
    RunRequest request = options_.request;
    request.cache_bytes /= exchange_.worker_count();
    auto graph =
        kv::KvGraph::open(request.graph, kv_options(request, 1), Op::kAlong == Along::kBoth);
    if (!graph) return graph.error();
    WorkerPool pool(1);
    EngineOptions engine_options = maiter::engine_options(options_, (*graph)->vertex_count());
    engine_options.outbox = this;
    Engine<Op> engine(**graph, op_, table_, bounds_[self_], bounds_[self_ + 1], pool,
                      engine_options);
    while (!exchange_.parent().stops.load(std::memory_order_acquire)) {
      const auto went_on = engine.run_round();
      if (!went_on) return went_on.error();
      const bool got_any = end_round(engine);
      if (!*went_on && !got_any) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    Exchange::Worker& self = exchange_.worker(self_);
    self.stats = engine.stats();
    self.counts = engine.counts();
    self.io_count = (*graph)->moved().io_count;
    self.io_bytes = (*graph)->moved().bytes;
    return {};
  }

  // Waits until all workers have sent their deltas of this round, and takes them in. Whether there
  // were any.
  bool end_round(const Engine<Op>& engine) {
    const uint64_t round =
        exchange_.worker(self_).rounds.fetch_add(1, std::memory_order_release) + 1;
    bool got_any = false;
    for (unsigned w = 0; w < exchange_.worker_count(); ++w) {
      while (exchange_.worker(w).rounds.load(std::memory_order_acquire) < round &&
             !exchange_.parent().stops.load(std::memory_order_acquire)) {
        if (receive()) {
          got_any = true;
        } else {
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
      }
    }
    got_any = receive() || got_any;
    exchange_.answer(self_, round, {.sent = sent_, .received = received_, .left = engine.left()});
    return got_any;
  }

  bool receive() {
    size_t count = 0;
    for (unsigned from = 0; from < exchange_.worker_count(); ++from) {
      if (from == self_) continue;
      count += exchange_.ring(from, self_).read([this](const Delta& delta) {
        double& to = table_.delta(delta.vertex);
        to = Op::kIsSum ? to + delta.delta : std::min(to, delta.delta);
      });
    }
    received_ += count;
    return count > 0;
  }

  void send(VertexId v, double delta) override {
    is_pending_[v / kBlock] = 1;
    double& to = pending_[v];
    to = Op::kIsSum ? to + delta : std::min(to, delta);
  }

  void exchange() override {
    send_pending();
    receive();
  }

  void send_pending() {
    std::vector<Delta> box;
    unsigned to = 0;  // the receiver of the box
    for (size_t block = 0; block < is_pending_.size(); ++block) {
      if (std::exchange(is_pending_[block], 0) == 0) continue;
      const size_t end = std::min((block + 1) * kBlock, pending_.size());
      for (size_t v = block * kBlock; v < end; ++v) {
        const double delta = std::exchange(pending_[v], kNothing);
        if (delta == kNothing) continue;
        if (box.size() == kBoxDeltas || v >= bounds_[to + 1]) {
          write(to, box);
          box.clear();
          while (v >= bounds_[to + 1]) ++to;
        }
        box.push_back({static_cast<VertexId>(v), delta});
      }
    }
    write(to, box);
  }

  // Waits while the ring is full. Meanwhile it takes in deltas of others, so that they do not wait
  // for it.
  void write(unsigned to, std::span<const Delta> box) {
    while (!box.empty() && !exchange_.parent().stops.load(std::memory_order_relaxed)) {
      const size_t count = exchange_.ring(self_, to).write(box);
      sent_ += count;
      box = box.subspan(count);
      if (count == 0 && !receive()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const Op& op_;
  Exchange& exchange_;
  const unsigned self_;
  const std::vector<uint64_t> bounds_;
  const RunOptions& options_;
  StateTable table_;
  std::vector<double> pending_;      // not sent yet, by vertex of other parts
  std::vector<uint8_t> is_pending_;  // by block of vertices: 1 if any is
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
};

// The whole table begins in this process; then the workers are forked. No other thread may run.
template <class Op>
Outcome<Finished> run_by_workers(const Op& op, const graphfmt::Pages& pages,
                                 const RunOptions& options) {
  const unsigned workers = options.request.kv.workers;
  const uint64_t count = pages.vertex_count();
  auto exchange = Exchange::create(workers, count);
  if (!exchange) return exchange.error();
  StateTable table(exchange->values(), exchange->deltas(), Op::kIsSum);
  begin_state(op, table);
  if constexpr (Op::kIsSum) {
    if (!options.request.kv.init.empty()) {
      auto graph = kv::KvGraph::open(options.request.graph, {}, false);
      if (!graph) return graph.error();
      WorkerPool pool(1);
      Engine<Op> engine(**graph, op, table, 0, count, pool, engine_options(options, count));
      const auto values = read_init(options.request.kv.init, count);
      if (!values) return values.error();
      if (auto warm = warm_start(op, table, engine, *values, options.scales); !warm) {
        return warm.error();
      }
    }
  }
  const std::vector<uint64_t> bounds =
      part_bounds(pages.store(graphfmt::Direction::kOut), count, workers);
  const double left_at_first = table.left(0, count);
  Termination termination(options.tolerance);
  uint64_t seen = 0;
  const auto tick = [&]() -> Outcome<void> {
    const uint64_t round = exchange->answered_round();
    const auto sum = round > seen ? exchange->sum_of(round) : std::nullopt;
    if (!sum) return {};
    seen = round;
    if (termination.add_round(*sum)) {
      exchange->parent().stops.store(true, std::memory_order_release);
    }
    if (!(sum->left < 1e6 * (1 + left_at_first))) {
      return make_error(EINVAL, "{}: does not converge: a smaller --alpha does", options.name);
    }
    return {};
  };
  const auto describe = [&](unsigned w) -> std::optional<Error> {
    const Exchange::Worker& worker = exchange->worker(w);
    if (worker.error_code == 0) return std::nullopt;
    return make_error(worker.error_code, "worker {}: {}", w, worker.error_text);
  };
  const auto body = [&](unsigned w) {
    return WorkerRun<Op>(op, *exchange, w, bounds, options).run();
  };
  const auto done =
      run_processes({.count = workers, .body = body, .tick = tick, .describe = describe});
  if (!done) return done.error();
  Finished finished;
  finished.values.assign(exchange->values().begin(), exchange->values().end());
  for (unsigned w = 0; w < workers; ++w) {
    const Exchange::Worker& worker = exchange->worker(w);
    const uint64_t rounds = std::max(finished.stats.iterations, worker.stats.iterations);
    finished.stats += worker.stats;
    finished.stats.iterations = rounds;  // of the worker that took most
    finished.stats.device_reads += worker.io_count;
    finished.stats.device_bytes += worker.io_bytes;
    finished.counts += worker.counts;
  }
  return finished;
}

}  // namespace graphlane::maiter
