// Exchange: the memory that the worker processes of a run share: values, a ring of deltas for each
// pair of workers, and what each worker tells of itself.
//
//   worker i ── ring (i, j) ──▶ worker j      one writer, one reader
//   worker i ── answer of each round ──▶ parent: sent, received, left
//
// Workers take their rounds together (run_workers.h), so answers of one round are of one state of
// the whole run. It has ended (Mattern's four counters) when two rounds in a row say that all that
// was sent was received, and that what is left is within the tolerance.
//
// It is mapped before the workers are forked. Nothing in it is a pointer of one process.
//
// Threads: one a process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "adapters/graph/run_stats.h"
#include "adapters/kv/kv_reader.h"
#include "graphfmt/buffer.h"

namespace graphlane::maiter {

struct Delta {
  uint32_t vertex;
  double delta;
};

// Deltas from one worker to another.
class DeltaRing {
 public:
  // `slots` is a power of two.
  struct Ends {
    alignas(64) std::atomic<uint64_t> written{0};
    alignas(64) std::atomic<uint64_t> read{0};
  };
  DeltaRing(Ends& ends, std::span<Delta> slots) : ends_(&ends), slots_(slots) {}

  // How many of them fitted.
  size_t write(std::span<const Delta> deltas) {
    const uint64_t begin = ends_->written.load(std::memory_order_relaxed);
    const uint64_t room = slots_.size() - (begin - ends_->read.load(std::memory_order_acquire));
    const size_t count = std::min<uint64_t>(room, deltas.size());
    for (size_t i = 0; i < count; ++i) slots_[(begin + i) & (slots_.size() - 1)] = deltas[i];
    ends_->written.store(begin + count, std::memory_order_release);
    return count;
  }

  // Calls take(delta) for all that are there. Returns how many.
  template <class Take>
  size_t read(const Take& take) {
    const uint64_t begin = ends_->read.load(std::memory_order_relaxed);
    const uint64_t end = ends_->written.load(std::memory_order_acquire);
    for (uint64_t i = begin; i < end; ++i) take(slots_[i & (slots_.size() - 1)]);
    ends_->read.store(end, std::memory_order_release);
    return end - begin;
  }

 private:
  Ends* ends_;
  std::span<Delta> slots_;
};

// A worker's counts at the end of a round, or the sum of all workers'.
struct RoundAnswer {
  uint64_t sent = 0;
  uint64_t received = 0;
  double left = 0;
};

class Exchange {
 public:
  static Outcome<Exchange> create(unsigned workers, uint64_t vertex_count);

  // The answer to one round; `round` is 0 while it is being written.
  struct Answer {
    std::atomic<uint64_t> round{0}, sent{0}, received{0};
    std::atomic<double> left{0};
  };
  static constexpr uint64_t kAnswers = 4;
  struct Worker {
    std::atomic<uint64_t> rounds{0};    // rounds with all deltas sent
    std::atomic<uint64_t> answered{0};  // the latest round
    Answer answers[kAnswers];           // of round r at r % kAnswers
    std::atomic<bool> has_ended{false};
    RunStats stats;
    kv::KvCounts counts;
    uint64_t io_count = 0;
    uint64_t io_bytes = 0;
    int error_code = 0;
    char error_text[500] = "";
  };
  struct Parent {
    std::atomic<bool> stops{false};
  };

  unsigned worker_count() const { return worker_count_; }
  Parent& parent() { return *parent_; }
  Worker& worker(unsigned w) { return workers_[w]; }
  // Round 1 and so on, by worker w at the end of each.
  void answer(unsigned w, uint64_t round, const RoundAnswer& answer);
  // The latest round that all workers have answered; 0: none.
  uint64_t answered_round() const;
  // The sum of their answers. Empty: some have gone on by kAnswers rounds meanwhile.
  std::optional<RoundAnswer> sum_of(uint64_t round) const;
  DeltaRing ring(unsigned from, unsigned to) {
    const size_t place = size_t{from} * worker_count_ + to;
    return {ends_[place], slots_.subspan(place * ring_slots_, ring_slots_)};
  }
  std::span<double> values() { return values_; }
  std::span<double> deltas() { return deltas_; }

 private:
  unsigned worker_count_ = 0;
  size_t ring_slots_ = 0;
  graphfmt::Buffer memory_;
  Parent* parent_ = nullptr;
  Worker* workers_ = nullptr;
  DeltaRing::Ends* ends_ = nullptr;
  std::span<Delta> slots_;
  std::span<double> values_;
  std::span<double> deltas_;
};

// Termination compares the answers of one round with those of the one before.
class Termination {
 public:
  explicit Termination(double tolerance) : tolerance_(tolerance) {}
  // True: the run has ended.
  bool add_round(const RoundAnswer& sum) {
    const bool is_quiet = sum.sent == sum.received && sum.left <= tolerance_;
    return std::exchange(was_quiet_, is_quiet) && is_quiet;
  }

 private:
  const double tolerance_;
  bool was_quiet_ = false;
};

// Forks `count` processes, each of which runs body(worker) and ends. Waits for all; meanwhile calls
// tick() every few milliseconds. A worker that ends by a signal, or with an error, ends the others:
// the error names it. `describe(w)`: the error that worker w left, if any.
struct WorkerProcesses {
  unsigned count = 0;
  std::function<int(unsigned worker)> body;  // its exit status
  std::function<Outcome<void>()> tick;
  std::function<std::optional<Error>(unsigned worker)> describe;
};
Outcome<void> run_processes(const WorkerProcesses& processes);

}  // namespace graphlane::maiter
