// A run by several worker processes, each with a part of the vertices (Maiter's workers, on one
// machine).
//
// Each part is a range of vertices; all parts have about as many pages. A worker takes rounds on
// its part and sends deltas for other parts (exchange.h). It takes in the deltas that it gets
// between rounds, and while it waits for room.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "adapters/kv/maiter/exchange.h"
#include "adapters/kv/maiter/run.h"

namespace graphlane::maiter {

// Where the parts begin, and the end of the last one.
inline std::vector<uint64_t> part_bounds(const PageStore& store, uint64_t vertex_count,
                                         unsigned workers) {
  std::vector<uint64_t> bounds = {0};
  for (unsigned w = 1; w < workers; ++w) {
    const uint64_t page = store.page_count() * w / workers;
    const uint64_t key = page < store.page_count() ? store.index().first_keys[page] : vertex_count;
    bounds.push_back(std::clamp(key, bounds.back(), vertex_count));
  }
  bounds.push_back(vertex_count);
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
        boxes_(exchange.worker_count()) {}

  // The process's exit status.
  int run() {
    Exchange::Worker& self = exchange_.worker(self_);
    const Outcome<void> done = or_no_memory([&] { return work(); });
    if (done) return 0;
    self.error_code = done.error().code;
    std::strncpy(self.error_text, done.error().text.c_str(), sizeof self.error_text - 1);
    return 1;
  }

 private:
  static constexpr size_t kBoxDeltas = 512;

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
      const bool got_any = receive();
      answer(engine);
      const auto went_on = engine.run_round();
      if (!went_on) return went_on.error();
      for (unsigned to = 0; to < boxes_.size(); ++to) flush(to);
      if (!*went_on && !got_any) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    Exchange::Worker& self = exchange_.worker(self_);
    self.stats = engine.stats();
    self.counts = engine.counts();
    self.io_count = (*graph)->moved().io_count;
    self.io_bytes = (*graph)->moved().bytes;
    return {};
  }

  // All that was put into boxes has been sent when this is called.
  void answer(const Engine<Op>& engine) {
    Exchange::Worker& self = exchange_.worker(self_);
    const uint64_t wave = exchange_.parent().wave.load(std::memory_order_acquire);
    if (wave == self.answered.load(std::memory_order_relaxed)) return;
    self.answer = {.sent = sent_, .received = received_, .left = engine.left()};
    self.answered.store(wave, std::memory_order_release);
  }

  bool receive() {
    size_t count = 0;
    for (unsigned from = 0; from < boxes_.size(); ++from) {
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
    const auto to = static_cast<unsigned>(std::upper_bound(bounds_.begin(), bounds_.end(), v) -
                                          bounds_.begin() - 1);
    boxes_[to].push_back({v, delta});
    if (boxes_[to].size() >= kBoxDeltas) flush(to);
  }

  // Waits while the ring is full. Meanwhile it takes in deltas of others, so that they do not wait
  // for it.
  void flush(unsigned to) {
    std::span<const Delta> box = boxes_[to];
    while (!box.empty()) {
      const size_t count = exchange_.ring(self_, to).write(box);
      sent_ += count;
      box = box.subspan(count);
      if (box.empty() || exchange_.parent().stops.load(std::memory_order_relaxed)) break;
      if (count == 0 && !receive()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    boxes_[to].clear();
  }

  const Op& op_;
  Exchange& exchange_;
  const unsigned self_;
  const std::vector<uint64_t> bounds_;
  const RunOptions& options_;
  StateTable table_;
  std::vector<std::vector<Delta>> boxes_;  // by worker
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
};

// The whole table begins in this process; then the workers are forked. No other thread may run.
template <class Op>
Outcome<Finished> run_by_workers(const Op& op, const Pages& pages, const RunOptions& options) {
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
  const std::vector<uint64_t> bounds = part_bounds(pages.store(Direction::kOut), count, workers);
  const double left_at_first = table.left(0, count);
  Termination termination(options.tolerance);
  uint64_t wave = 0;
  const auto tick = [&]() -> Outcome<void> {
    WaveAnswer sum;
    for (unsigned w = 0; w < workers; ++w) {
      const Exchange::Worker& worker = exchange->worker(w);
      if (worker.answered.load(std::memory_order_acquire) != wave) return {};
      sum.sent += worker.answer.sent;
      sum.received += worker.answer.received;
      sum.left += worker.answer.left;
    }
    if (wave > 0 && termination.add_wave(sum)) {
      exchange->parent().stops.store(true, std::memory_order_release);
    }
    if (!(sum.left < 1e6 * (1 + left_at_first))) {
      return make_error(EINVAL, "{}: does not converge: a smaller --alpha does", options.name);
    }
    exchange->parent().wave.store(++wave, std::memory_order_release);
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
