// Engine: delta-based accumulative computation over a store of adjacency lists (Maiter, MaiterStore
// §2.1).
//
//   round    StateTable::select ─▶ vertices of the highest priority, in the table's order
//            get(v, hotness) of each, many at once ─▶ v ← v ⊕ Δ; Δ of its neighbours ← … ⊕ g(Δ)
//
// A delta that arrives while a round runs is taken in it, if its vertex is still to come. A vertex
// of another worker's part gets its delta by the Outbox.
//
// Threads: run_round() from one; it uses the pool's. With more than one, deltas are added by
// atomics.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "adapters/graph/run_stats.h"
#include "adapters/graph/worker_pool.h"
#include "adapters/kv/kv_graph.h"
#include "adapters/kv/maiter/operators.h"
#include "adapters/kv/maiter/state_table.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::maiter {

// Deltas for vertices of other workers.
class Outbox {
 public:
  virtual void send(VertexId v, double delta) = 0;
  // Called a few times in a round: what was sent until now goes, and what has come is taken in.
  virtual void exchange() = 0;

 protected:
  ~Outbox() = default;
};

// Told of every get, in the order of the gets (experiments).
class GetTrace {
 public:
  virtual void get(VertexId v, float priority, float accumulated) = 0;

 protected:
  ~GetTrace() = default;
};

// The hotness of a list that the cache is told.
enum class HotnessFrom : uint8_t {
  kPriority,     // of this get: the paper's
  kAccumulated,  // of a sum: all that the vertex has got so far
  kGets,         // how often the list was asked for so far
};

struct EngineOptions {
  double portion = 1;  // of the table that a round takes, at most
  double least = 0;    // no delta of this size or less is taken
  HotnessFrom hotness = HotnessFrom::kGets;
  kv::BufferOptions buffer = {};
  Outbox* outbox = nullptr;   // of one thread
  GetTrace* trace = nullptr;  // of one thread
};

template <class Op>
class Engine {
 public:
  // The part [begin, end) of the table is this worker's.
  Engine(kv::KvGraph& graph, const Op& op, StateTable& table, uint64_t begin, uint64_t end,
         WorkerPool& pool, const EngineOptions& options)
      : graph_(graph),
        op_(op),
        table_(table),
        begin_(begin),
        end_(end),
        pool_(pool),
        options_(options),
        without_list_(end - begin),
        gets_(end - begin) {
    for (unsigned w = 0; w < pool.size(); ++w) runs_.push_back(std::make_unique<Run>(*this));
  }

  // Whether there was anything to do. The error names the file.
  Outcome<bool> run_round() {
    const double wanted = options_.portion * static_cast<double>(end_ - begin_);
    table_.select(begin_, end_, std::max<uint64_t>(1, static_cast<uint64_t>(wanted)),
                  options_.least, chosen_);
    if (chosen_.empty()) return false;
    const size_t pieces = options_.outbox != nullptr ? kExchanges : 1;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t begin = chosen_.size() * i / pieces;
      const size_t end = chosen_.size() * (i + 1) / pieces;
      if (Outcome<void> done = run_on(std::span(chosen_).subspan(begin, end - begin)); !done) {
        return done.error();
      }
      if (options_.outbox != nullptr) options_.outbox->exchange();
    }
    ++rounds_;
    return true;
  }

  // Adds what v sends, for a value that it begins with (warm starts). Call it before the first
  // round.
  Outcome<void> send_all(const std::function<double(VertexId)>& delta_of) {
    return runs_[0]->send_all(delta_of, begin_, end_);
  }

  double left() const { return table_.left(begin_, end_); }
  RunStats stats() const {
    RunStats stats{.iterations = rounds_};
    for (const auto& run : runs_) {
      stats.vertices_run += run->vertices;
      stats.lists_given += run->lists;
      stats.messages += run->sent;
    }
    return stats;
  }
  kv::KvCounts counts() const {
    kv::KvCounts counts;
    for (const auto& run : runs_) run->add_to(counts);
    return counts;
  }

 private:
  static constexpr size_t kExchanges = 4;  // with other workers, in a round

  Outcome<void> run_on(std::span<const uint32_t> chosen) {
    std::atomic<size_t> next{0};
    const size_t block = std::clamp<size_t>(chosen.size() / (8 * pool_.size()), 1, 4096);
    if (chosen.size() < 256) {
      runs_[0]->run(chosen, next, chosen.size(), false);
    } else {
      pool_.run(
          [&](unsigned worker) { runs_[worker]->run(chosen, next, block, pool_.size() > 1); });
    }
    for (const auto& run : runs_) {
      if (run->error) return *run->error;
    }
    return {};
  }

  // One thread's gets.
  class Run final : public kv::GetTask {
   public:
    explicit Run(Engine& engine)
        : engine_(engine),
          out_(engine.graph_.store(graphfmt::Direction::kOut), engine.options_.buffer) {
      if (Op::kAlong == Along::kBoth && engine.graph_.has_in()) {
        in_ = std::make_unique<kv::KvReader>(engine.graph_.store(graphfmt::Direction::kIn),
                                             engine.options_.buffer);
      }
    }

    void run(std::span<const uint32_t> chosen, std::atomic<size_t>& next, size_t block,
             bool is_shared) {
      is_shared_ = is_shared;
      for (size_t at;
           !error && (at = next.fetch_add(block, std::memory_order_relaxed)) < chosen.size();) {
        const auto these = chosen.subspan(at, std::min(block, chosen.size() - at));
        for (size_t i = 0; i < these.size() && !error; ++i) {
          out_.prefetch_cached(these.subspan(i));
          submit(these[i]);
        }
        if (Outcome<void> go_on = check_interrupt(); !go_on) error = go_on.error();
      }
      drain();
    }

    Outcome<void> send_all(const std::function<double(VertexId)>& delta_of, uint64_t begin,
                           uint64_t end) {
      return out_.for_each(begin,
                           [&](uint64_t key, std::span<const uint8_t> value) -> Outcome<void> {
                             if (key >= end) return {};
                             const auto list = engine_.graph_.decode(key, value, scratch_);
                             if (!list) return list.error();
                             const double delta = delta_of(static_cast<VertexId>(key));
                             if (delta != 0) send(static_cast<VertexId>(key), *list, delta);
                             return error ? Outcome<void>(*error) : Outcome<void>();
                           });
    }

    void add_to(kv::KvCounts& counts) const {
      counts += out_.counts();
      if (in_ != nullptr) counts += in_->counts();
    }

    std::optional<Error> error;
    uint64_t vertices = 0;
    uint64_t lists = 0;
    uint64_t sent = 0;

   private:
    static constexpr size_t kWaitingMax = 1024;

    void submit(VertexId v) {
      ++vertices;
      if (in_ == nullptr && engine_.without_list_[v - engine_.begin_] != 0) {
        take(v);
        return;
      }
      const auto priority = static_cast<float>(engine_.table_.shared_priority(v));
      const float accumulated =
          Op::kIsSum ? static_cast<float>(std::abs(engine_.table_.value(v))) + priority : priority;
      uint16_t& gets = engine_.gets_[v - engine_.begin_];
      if (gets < UINT16_MAX) ++gets;
      const HotnessFrom from = engine_.options_.hotness;
      const float hotness = from == HotnessFrom::kGets       ? gets
                            : from == HotnessFrom::kPriority ? priority
                                                             : accumulated;
      if (engine_.options_.trace != nullptr) engine_.options_.trace->get(v, priority, accumulated);
      // With two lists, both get what v has now: what comes between them is for another round.
      const double delta = in_ != nullptr ? take(v) : 0;
      submitted_.push_back({v, delta});
      out_.submit(v, hotness, *this);
      while (out_.waiting_count() >= kWaitingMax || out_.is_full()) out_.wait();
      if (in_ == nullptr) return;
      in_submitted_.push_back({v, delta});
      in_->submit(v, hotness, *this);
      takes_in_ = true;
      while (in_->waiting_count() >= kWaitingMax || in_->is_full()) in_->wait();
      takes_in_ = false;
    }

    void drain() {
      while (out_.wait()) {
      }
      if (in_ == nullptr) return;
      takes_in_ = true;
      while (in_->wait()) {
      }
      takes_in_ = false;
    }

    // The oldest get's list.
    void done(Outcome<kv::PinnedValue> value) override {
      std::deque<Submitted>& queue = takes_in_ ? in_submitted_ : submitted_;
      const auto [v, taken] = queue.front();
      queue.pop_front();
      if (error) return;
      if (!value) {
        error = value.error();
        return;
      }
      if (!*value) {
        if (in_ != nullptr) return;
        engine_.without_list_[v - engine_.begin_] = 1;
        take(v);
        return;
      }
      ++lists;
      const auto list = engine_.graph_.decode(v, value->bytes(), scratch_);
      if (!list) {
        error = list.error();
        return;
      }
      const double delta = in_ != nullptr ? taken : take(v);
      if (Op::kIsSum ? delta != 0 : delta < kNothingYet) send(v, *list, delta);
    }

    // v ← v ⊕ Δ. What is to be sent.
    double take(VertexId v) {
      double& delta = engine_.table_.delta(v);
      double& value = engine_.table_.value(v);
      if constexpr (Op::kIsSum) {
        const double taken = is_shared_
                                 ? std::atomic_ref(delta).exchange(0, std::memory_order_relaxed)
                                 : std::exchange(delta, 0);
        value += taken;
        return taken;
      } else {
        const double now =
            is_shared_ ? std::atomic_ref(delta).load(std::memory_order_relaxed) : delta;
        if (now < value) value = now;
        return value;
      }
    }

    void send(VertexId v, const kv::KvGraph::List& list, double delta) {
      const size_t degree = list.neighbours.size();
      sent += degree;
      if constexpr (Op::kHasWeights) {
        for (size_t i = 0; i < degree; ++i) {
          const double weight = engine_.graph_.weight(list, i);
          if (!(weight >= 0)) {
            error = make_error(EINVAL,
                               "{}: the arc from {} to {} has the weight {}: shortest paths need "
                               "weights from 0 on",
                               engine_.graph_.path(), v, list.neighbours[i], weight);
            return;
          }
          give(list.neighbours[i], engine_.op_.send(delta, degree, weight));
        }
      } else {
        const double share = engine_.op_.send(delta, degree, 1);
        for (const VertexId u : list.neighbours) give(u, share);
      }
    }

    void give(VertexId u, double delta) {
      if (u - engine_.begin_ >= engine_.end_ - engine_.begin_) {
        return engine_.options_.outbox->send(u, delta);
      }
      double& to = engine_.table_.delta(u);
      if (!is_shared_) {
        to = Op::kIsSum ? to + delta : std::min(to, delta);
        return;
      }
      std::atomic_ref shared(to);
      double now = shared.load(std::memory_order_relaxed);
      while ((Op::kIsSum || delta < now) &&
             !shared.compare_exchange_weak(now, Op::kIsSum ? now + delta : delta,
                                           std::memory_order_relaxed)) {
      }
    }

    Engine& engine_;
    kv::KvReader out_;
    std::unique_ptr<kv::KvReader> in_;  // of a directed graph, if deltas go along all arcs
    struct Submitted {
      VertexId v;
      double taken;  // with two lists
    };
    std::deque<Submitted> submitted_;
    std::deque<Submitted> in_submitted_;
    bool takes_in_ = false;  // what is done is a get of in_
    bool is_shared_ = false;
    std::vector<uint32_t> scratch_;
  };

  kv::KvGraph& graph_;
  const Op& op_;
  StateTable& table_;
  const uint64_t begin_;
  const uint64_t end_;
  WorkerPool& pool_;
  const EngineOptions options_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<uint32_t> chosen_;
  std::vector<uint8_t> without_list_;  // 1: the vertex has no out-arcs
  std::vector<uint16_t> gets_;         // of each vertex
  uint64_t rounds_ = 0;
};

}  // namespace graphlane::maiter
