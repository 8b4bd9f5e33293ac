// The semi-external engine: vertex programs over a graph whose lists are on the devices
// (FlashGraph, §3). Vertex state is the program's own, in arrays by vertex.
//
// A program is a class with some of these; `ctx` is an Engine<Program>::Context:
//
//   run(ctx, v)                       once in an iteration for each active vertex. Sees its own state; asks
//                                     for lists with ctx.request_vertices()
//   run_on_vertex(ctx, v, list)       a list that v has asked for is there (ListView)
//   run_on_message(ctx, v, message)   for `using Message`; also for vertices that are not active
//   run_on_iteration_end(ctx, v)      for vertices that asked for it with ctx.notify_iteration_end(v)
//   begin_iteration(engine)           by one thread, before each: kActive, kAll (every vertex runs), kSelected or kStop
//   selected(i)                       for kSelected: bit b of it says whether vertex 64 i + b runs
//   end_iteration(engine)             by one thread, after each
//
//   iteration:  begin_iteration ─► run, run_on_vertex, run_on_message, in any order over vertices
//               ─► run_on_message of what is left ─► run_on_iteration_end ─► end_iteration
//   The run ends when no vertex was activated, or begin_iteration says so.
//
// Threads: a range has 2^r vertices, and each worker has its ranges (range % workers). A worker
// that has finished its own steals ranges of others. All lists of a vertex come to the worker that
// runs it. With messages, one worker at a time runs, or delivers to, the vertices of a range: their
// state needs no atomics. A program that writes to the state of other vertices itself uses atomics.
// With an order of its own (options), messages arrive at the iteration's end. An iteration sees all
// that the one before wrote.
//
// Vertical parts (§3.8): an iteration runs every active vertex once for each of P parts, all of
// part 0 first. The part asks for the neighbours from ctx.part_begin() to part_end().
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "adapters/graph/equal_parts.h"
#include "adapters/graph/graph.h"
#include "adapters/graph/progress.h"
#include "adapters/graph/run_stats.h"
#include "adapters/graph/worker_pool.h"
#include "adapters/semiext/active_set.h"
#include "adapters/semiext/list_loader.h"
#include "adapters/semiext/message_bins.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::semiext {

enum class Next { kActive, kAll, kSelected, kStop };

struct EngineOptions {
  // Lists that a worker waits for at once; FlashGraph found no gain above 4000. Vertices that ask
  // for their own list alone, in run(), are not counted: nothing has to be kept of them.
  uint32_t running_max = 4000;
  // Every second iteration runs from the last vertex to the first, so that it finds in the cache
  // what the one before read last.
  bool alternates = true;
  uint32_t vertical_parts = 1;
  // Not empty: vertices run in this order, as far as they are active.
  std::vector<VertexId> order = {};
};

template <class Program>
concept HasMessages = requires { typename Program::Message; };

struct NoMessage {};
template <class Program>
struct MessageOf {
  using Type = NoMessage;
};
template <HasMessages Program>
struct MessageOf<Program> {
  using Type = typename Program::Message;
};

template <class Program>
class Engine {
 public:
  using Message = typename MessageOf<Program>::Type;
  static constexpr bool kHasMessages = HasMessages<Program>;

  class Context;

  // All of it outlives the engine. `program` may be asked by all workers at once.
  Engine(const Graph& graph, WorkerPool& pool, Program& program, EngineOptions options = {});

  const Graph& graph() const { return graph_; }
  WorkerPool& pool() { return pool_; }
  VertexId vertex_count() const { return graph_.vertex_count(); }
  uint64_t iteration() const { return iteration_; }
  uint64_t active_count() const { return active_.count(); }

  // Call it before run(), or from begin_iteration() and end_iteration(), for the iteration to come.
  void activate_vertices(std::span<const VertexId> vertices) {
    for (const VertexId v : vertices) active_.activate(v, 0);
  }
  void activate_all() { active_.activate_all(); }

  // Calls each(v) for all vertices, by all workers: initial state, or a query.
  template <class Each>
  void for_all_vertices(const Each& each) {
    pool_.for_blocks(vertex_count(), 1 << 14, [&](uint64_t begin, uint64_t end, unsigned) {
      for (uint64_t v = begin; v < end; ++v) each(static_cast<VertexId>(v));
    });
  }

  // Called at each iteration's end; outlives the run.
  void set_progress(RunProgress* progress) { progress_ = progress; }

  // Runs until no vertex is active. The error names the file that could not be read; EINTR:
  // interrupted.
  Outcome<void> run();

  RunStats stats() const;

 private:
  // Up to this many active vertices the caller runs alone: to wake the other workers would take
  // longer.
  static constexpr uint64_t kAloneMax = 128;
  static constexpr uint64_t kInFlightBytesMax = 8 << 20;
  // Lists in flight where running_max does not count.
  static constexpr size_t kInFlightListsMax = 256 << 10;
  static constexpr uint64_t kOrderChunk = 64;
  // vertices that run between two looks whether the run failed
  static constexpr uint64_t kCheckCount = 64;

  static EngineOptions in_order_of(const Graph& graph, EngineOptions options);
  static unsigned range_shift_of(uint64_t vertex_count, unsigned workers);
  static uint64_t in_flight_bytes(const Graph& graph, unsigned workers);
  static std::vector<uint64_t> part_bounds(const Graph& graph, uint32_t parts);

  Next ask_program();
  void run_iteration(Next next);
  void run_part(Next which, unsigned worker, bool alone);
  void run_vertices(Context& ctx, Next which, bool alone);
  bool next_range(unsigned worker, uint64_t* range);
  void run_range(Context& ctx, uint64_t range, Next which);
  uint64_t word_to_run(Next which, uint64_t word) const;
  bool runs(Next which, VertexId v) const {
    return which == Next::kAll ||
           (word_to_run(which, v / ActiveSet::kWordBits) >> v % ActiveSet::kWordBits & 1) != 0;
  }
  void deliver_rest(bool alone);
  void end_vertices();
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  std::optional<Error> first_error();

  const Graph& graph_;
  WorkerPool& pool_;
  Program& program_;
  const EngineOptions options_;
  const std::vector<uint64_t> part_bounds_;  // where the vertical parts begin, and the end
  const unsigned range_shift_;
  const uint64_t range_count_;
  ActiveSet active_;
  MessageBins<Message> bins_;
  std::vector<std::unique_ptr<Context>> contexts_;
  RunProgress* progress_ = nullptr;
  uint64_t iteration_ = 0;
  uint32_t part_ = 0;
  struct alignas(64) NextRange {
    std::atomic<uint64_t> taken{0};
  };
  std::vector<NextRange> next_ranges_;  // of each worker's ranges
  std::atomic<uint64_t> next_in_order_{0};
  std::atomic<bool> failed_{false};
};

// The requests that vertex programs can make; one context for each worker.
template <class Program>
class Engine<Program>::Context final : private ListLoader::Sink {
 public:
  Context(Engine& engine, unsigned worker)
      : engine_(engine),
        worker_(worker),
        loader_(engine.graph_, *this, in_flight_bytes(engine.graph_, engine.pool_.size())) {
    // A range that is held is always in the list: nothing may throw between the two.
    if constexpr (kHasMessages) held_.reserve(engine.range_count_);
  }

  const Graph& graph() const { return engine_.graph_; }
  uint64_t iteration() const { return engine_.iteration_; }
  unsigned worker() const { return worker_; }
  // Whether v runs in this iteration because it was activated.
  bool is_active(VertexId v) const { return engine_.active_.is_active(v); }

  // Neighbours in [part_begin(), part_end()) are this vertical part's.
  uint32_t part() const { return engine_.part_; }
  VertexId part_begin() const { return part_bound(engine_.part_); }
  VertexId part_end() const { return part_bound(engine_.part_ + 1); }
  uint32_t part_of(VertexId v) const {
    const auto& bounds = engine_.part_bounds_;
    return static_cast<uint32_t>(std::ranges::upper_bound(bounds, v) - bounds.begin() - 1);
  }

  // run_on_vertex(running, list) comes once for each owner, in any order.
  void request_vertices(VertexId running, std::span<const VertexId> owners, EdgeSide side,
                        bool weights = false) {
    for (const VertexId owner : owners) request_vertex(running, owner, side, weights);
  }
  void request_vertex(VertexId running, VertexId owner, EdgeSide side, bool weights = false) {
    if (running == owner && !weights) return loader_.ask_own(owner, side);
    loader_.ask({.running = running, .owner = owner, .side = side, .weights = weights});
  }
  // The neighbours [first, first + count) of each list, as far as there are any. kBoth is not
  // allowed.
  struct Partial {
    VertexId owner;
    uint64_t first;
    uint64_t count;
  };
  void request_partial_vertices(VertexId running, std::span<const Partial> parts, EdgeSide side,
                                bool weights = false) {
    for (const Partial& part : parts) {
      loader_.ask({.running = running,
                   .owner = part.owner,
                   .side = side,
                   .weights = weights,
                   .first = part.first,
                   .count = part.count});
    }
  }

  // Activates them for the next iteration.
  void activate_vertices(std::span<const VertexId> vertices) {
    for (const VertexId v : vertices) engine_.active_.activate(v, worker_);
  }
  void activate_vertex(VertexId v) { engine_.active_.activate(v, worker_); }

  void send_msg(VertexId target, const Message& message) { multicast_msg({&target, 1}, message); }
  void multicast_msg(std::span<const VertexId> targets, const Message& message) {
    static_assert(kHasMessages);
    full_ |= engine_.bins_.send(worker_, targets, message);
  }

  // Ends the run with this error, soon.
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
    engine_.failed_.store(true, std::memory_order_relaxed);
  }

  // run_on_iteration_end(v) at the end of this iteration, once for each call.
  void notify_iteration_end(VertexId v) { notified_.push_back(v); }

 private:
  friend class Engine;

  VertexId part_bound(uint32_t part) const {
    return static_cast<VertexId>(engine_.part_bounds_[part]);
  }

  void on_list(VertexId running, const ListView& list) override {
    engine_.program_.run_on_vertex(*this, running, list);
  }

  void run_vertex(VertexId v) {
    ++run_count_;
    engine_.program_.run(*this, v);
    if (loader_.has_asked()) read_asked();
    if constexpr (kHasMessages) {
      if (full_) deliver_full();
    }
  }

  void read_asked() {
    if (loader_.has_in_memory()) {
      loader_.give_from_memory([this](VertexId running, const ListView& list) {
        engine_.program_.run_on_vertex(*this, running, list);
      });
    }
    if (loader_.should_begin()) pump();
  }

  // Begins requested lists, and takes lists that have come while too many are in flight.
  void pump() {
    loader_.begin();
    while ((!loader_.has_room() || waits_for_many()) && take()) {
    }
    check();
  }
  bool waits_for_many() const {
    const bool keeps_nothing = loader_.list_count() > 0 && !loader_.asks_while_giving();
    const size_t counted = keeps_nothing ? loader_.begun_single_count() : loader_.begun_count();
    return counted >= engine_.options_.running_max || loader_.begun_count() >= kInFlightListsMax;
  }
  bool take() {
    if (loader_.error() || !loader_.wait()) return false;
    if constexpr (kHasMessages) {
      if (full_) deliver_full();
    }
    return true;
  }
  void finish_lists() {
    do {
      pump();
      while (take()) {
      }
    } while (loader_.asked_count() > 0 && !loader_.error());
    check();
  }
  void check() {
    if (loader_.error() || interrupt_requested.load(std::memory_order_relaxed)) {
      engine_.failed_.store(true, std::memory_order_relaxed);
    }
  }

  // Delivers full bundles: to the ranges that this worker holds, and to those that no worker holds.
  void deliver_full() {
    full_ = false;
    if (!engine_.options_.order.empty()) return;  // only at the iteration's end
    for (const uint64_t range : held_) drain(range);
    std::vector<uint32_t> posted;
    posted.swap(engine_.bins_.posted(worker_));
    for (const uint32_t range : posted) {
      if (!engine_.bins_.try_hold(range)) continue;
      held_.push_back(range);
      drain(range);
      engine_.bins_.release(range);
      held_.pop_back();
    }
  }
  bool drain(uint64_t range) {
    return engine_.bins_.drain(range, [this](VertexId target, const Message& message) {
      ++message_count_;
      if constexpr (kHasMessages) engine_.program_.run_on_message(*this, target, message);
    });
  }
  void release_held() {
    for (const uint64_t range : held_) engine_.bins_.release(range);
    held_.clear();
  }

  Engine& engine_;
  const unsigned worker_;
  ListLoader loader_;
  std::optional<Error> error_;  // by fail()
  std::vector<VertexId> notified_;
  std::vector<uint64_t> held_;  // ranges with vertices that wait for lists
  bool full_ = false;           // some bundle
  uint64_t run_count_ = 0;
  uint64_t message_count_ = 0;
};

template <class Program>
Engine<Program>::Engine(const Graph& graph, WorkerPool& pool, Program& program,
                        EngineOptions options)
    : graph_(graph),
      pool_(pool),
      program_(program),
      options_(in_order_of(graph, std::move(options))),
      part_bounds_(part_bounds(graph, options_.vertical_parts)),
      range_shift_(range_shift_of(graph.vertex_count(), pool.size())),
      range_count_((uint64_t{graph.vertex_count()} + (uint64_t{1} << range_shift_) - 1) >>
                   range_shift_),
      active_(graph.vertex_count(), pool.size()),
      bins_(kHasMessages ? range_count_ : 0, pool.size(), range_shift_),
      next_ranges_(pool.size()) {
  for (unsigned worker = 0; worker < pool.size(); ++worker) {
    contexts_.push_back(std::make_unique<Context>(*this, worker));
  }
}

// A random order, where the graph was opened for one and the program has none of its own.
template <class Program>
EngineOptions Engine<Program>::in_order_of(const Graph& graph, EngineOptions options) {
  if (!graph.variant().random_order || !options.order.empty()) return options;
  options.order.resize(graph.vertex_count());
  std::iota(options.order.begin(), options.order.end(), VertexId{0});
  std::shuffle(options.order.begin(), options.order.end(), std::mt19937_64(1));
  return options;
}

// The size of a range: at least as many vertices as run at once, several ranges for each worker,
// few enough for bins.
template <class Program>
unsigned Engine<Program>::range_shift_of(uint64_t vertex_count, unsigned workers) {
  unsigned shift = 12;
  while (shift < 18 && vertex_count >> shift > uint64_t{workers} * 64) ++shift;
  while (vertex_count >> shift >= MessageBins<Message>::kRangesMax) ++shift;
  while (shift > 6 && vertex_count >> shift < uint64_t{workers} * 4) --shift;
  return shift;
}

// All workers together pin half of the cache at most.
template <class Program>
uint64_t Engine<Program>::in_flight_bytes(const Graph& graph, unsigned workers) {
  if (graph.is_in_memory()) return kInFlightBytesMax;
  return std::min(kInFlightBytesMax,
                  std::max<uint64_t>(graph.cache_bytes() / (4 * workers), 64 << 10));
}

// Each part has about as many bytes of lists, of both directions.
template <class Program>
std::vector<uint64_t> Engine<Program>::part_bounds(const Graph& graph, uint32_t parts) {
  return equal_parts(graph.vertex_count(), parts, [&](uint64_t v) {
    const uint64_t out = graph.side(EdgeSide::kOut).index->offset(v);
    return graph.is_directed() ? out + graph.side(EdgeSide::kIn).index->offset(v) : out;
  });
}

template <class Program>
Next Engine<Program>::ask_program() {
  if constexpr (requires { program_.begin_iteration(*this); }) {
    return program_.begin_iteration(*this);
  } else {
    return active_.count() > 0 ? Next::kActive : Next::kStop;
  }
}

template <class Program>
Outcome<void> Engine<Program>::run() {
  for (iteration_ = 0;; ++iteration_) {
    active_.advance();
    const Next next = ask_program();
    if (next == Next::kStop || (next == Next::kActive && active_.count() == 0)) break;
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on.error();
    run_iteration(next);
    if (failed()) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on.error();
      if (const std::optional<Error> error = first_error()) return *error;
    }
    if constexpr (requires { program_.end_iteration(*this); }) program_.end_iteration(*this);
    if (progress_ != nullptr) progress_->iteration_ended();
  }
  return {};
}

template <class Program>
void Engine<Program>::run_iteration(Next next) {
  const bool alone = pool_.size() == 1 ||
                     (next == Next::kActive && active_.is_listed() && active_.count() <= kAloneMax);
  for (part_ = 0; part_ < options_.vertical_parts && !failed(); ++part_) {
    for (NextRange& ranges : next_ranges_) ranges.taken.store(0, std::memory_order_relaxed);
    next_in_order_.store(0, std::memory_order_relaxed);
    if (alone) {
      run_part(next, 0, true);
    } else {
      pool_.run([&](unsigned worker) { run_part(next, worker, false); });
    }
  }
  part_ = 0;
  if constexpr (kHasMessages) deliver_rest(alone);
  end_vertices();
}

// One worker's share. If it throws, the others stop soon, and wait for no range of this one.
template <class Program>
void Engine<Program>::run_part(Next which, unsigned worker, bool alone) {
  Context& ctx = *contexts_[worker];
  try {
    run_vertices(ctx, which, alone);
    if (!failed()) ctx.finish_lists();
  } catch (...) {
    failed_.store(true, std::memory_order_relaxed);
    if constexpr (kHasMessages) ctx.release_held();
    throw;
  }
  if constexpr (kHasMessages) ctx.release_held();
}

template <class Program>
void Engine<Program>::run_vertices(Context& ctx, Next which, bool alone) {
  const bool listed = which == Next::kActive && active_.is_listed();
  if (!options_.order.empty()) {
    const std::span<const VertexId> order(options_.order);
    for (uint64_t at;
         (at = next_in_order_.fetch_add(kOrderChunk, std::memory_order_relaxed)) < order.size();) {
      for (const VertexId v : order.subspan(at, std::min(kOrderChunk, order.size() - at))) {
        if (failed()) break;
        if (runs(which, v)) ctx.run_vertex(v);
      }
    }
  } else if (listed && alone) {
    // No other worker runs: no range has to be held.
    for (const VertexId v : active_.list()) {
      if (failed()) break;
      ctx.run_vertex(v);
    }
  } else {
    for (uint64_t range; !failed() && next_range(ctx.worker_, &range);) {
      if constexpr (kHasMessages) {
        bins_.hold(range);
        ctx.held_.push_back(range);
      }
      run_range(ctx, range, which);
      if constexpr (kHasMessages) {
        if (ctx.loader_.begun_count() + ctx.loader_.asked_count() == 0) ctx.release_held();
      }
    }
  }
}

// The bits of the vertices 64 word to 64 word + 63 that run, where not all do.
template <class Program>
uint64_t Engine<Program>::word_to_run(Next which, uint64_t word) const {
  if constexpr (requires { program_.selected(word); }) {
    if (which == Next::kSelected) return program_.selected(word);
  }
  return active_.word(word);
}

// Takes the worker's own ranges first, then others'; in turn upwards and downwards.
template <class Program>
bool Engine<Program>::next_range(unsigned worker, uint64_t* range) {
  const unsigned workers = pool_.size();
  for (unsigned i = 0; i < workers; ++i) {
    const unsigned owner = (worker + i) % workers;
    const uint64_t count = (range_count_ + workers - 1 - owner) / workers;
    NextRange& next = next_ranges_[owner];
    if (next.taken.load(std::memory_order_relaxed) >= count) continue;
    uint64_t place = next.taken.fetch_add(1, std::memory_order_relaxed);
    if (place >= count) continue;
    if (options_.alternates && iteration_ % 2 == 1) place = count - 1 - place;
    *range = place * workers + owner;
    return true;
  }
  return false;
}

template <class Program>
void Engine<Program>::run_range(Context& ctx, uint64_t range, Next which) {
  const uint64_t begin = range << range_shift_;
  const uint64_t end = std::min<uint64_t>(begin + (uint64_t{1} << range_shift_), vertex_count());
  const bool backwards = options_.alternates && iteration_ % 2 == 1 && !graph_.is_in_memory();
  if (which == Next::kAll || (which == Next::kActive && active_.is_all())) {
    for (uint64_t done = 0; done < end - begin && !failed(); done += kCheckCount) {
      const uint64_t count = std::min(kCheckCount, end - begin - done);
      for (uint64_t i = done; i < done + count; ++i) {
        ctx.run_vertex(static_cast<VertexId>(backwards ? end - 1 - i : begin + i));
      }
    }
    return;
  }
  constexpr uint64_t kBits = ActiveSet::kWordBits;
  const uint64_t first_word = begin / kBits;
  const uint64_t word_count = (end + kBits - 1) / kBits - first_word;
  for (uint64_t i = 0; i < word_count; ++i) {
    const uint64_t word = backwards ? first_word + word_count - 1 - i : first_word + i;
    uint64_t bits = word_to_run(which, word);
    while (bits != 0 && !failed()) {
      const unsigned bit = backwards ? 63 - static_cast<unsigned>(std::countl_zero(bits))
                                     : static_cast<unsigned>(std::countr_zero(bits));
      bits &= ~(uint64_t{1} << bit);
      ctx.run_vertex(static_cast<VertexId>(word * kBits + bit));
    }
  }
}

// Delivers until there are no messages: a message may send others.
template <class Program>
void Engine<Program>::deliver_rest(bool alone) {
  const auto each_worker = [&](const auto& body) {
    if (alone) {
      body(0u);
    } else {
      pool_.run([&](unsigned worker) { body(worker); });
    }
  };
  for (std::atomic<bool> any{true}; any && !failed();) {
    any = false;
    std::atomic<uint64_t> next{0};
    for (const auto& ctx : contexts_) {
      if (bins_.flush(ctx->worker_)) any = true;
      bins_.posted(ctx->worker_).clear();
      ctx->full_ = false;
    }
    each_worker([&](unsigned worker) {
      Context& ctx = *contexts_[worker];
      for (uint64_t range; (range = next.fetch_add(1, std::memory_order_relaxed)) < range_count_;) {
        if (ctx.drain(range)) any = true;
      }
      // A handler may have asked for lists.
      if (ctx.loader_.asked_count() > 0) {
        any = true;
        ctx.finish_lists();
      }
    });
  }
}

template <class Program>
void Engine<Program>::end_vertices() {
  if constexpr (requires(Context& ctx) { program_.run_on_iteration_end(ctx, VertexId{}); }) {
    if (failed()) return;
    size_t count = 0;
    for (const auto& ctx : contexts_) count += ctx->notified_.size();
    if (count == 0) return;
    const auto end = [&](unsigned worker) {
      Context& ctx = *contexts_[worker];
      std::vector<VertexId> notified;
      notified.swap(ctx.notified_);
      for (const VertexId v : notified) program_.run_on_iteration_end(ctx, v);
      ctx.finish_lists();
    };
    if (count <= kAloneMax) {
      for (unsigned worker = 0; worker < pool_.size(); ++worker) end(worker);
    } else {
      pool_.run(end);
    }
  }
}

template <class Program>
std::optional<Error> Engine<Program>::first_error() {
  for (const auto& ctx : contexts_) {
    if (ctx->loader_.error()) return ctx->loader_.error();
    if (ctx->error_) return ctx->error_;
  }
  return std::nullopt;
}

template <class Program>
RunStats Engine<Program>::stats() const {
  RunStats stats{.iterations = iteration_};
  for (const auto& ctx : contexts_) {
    stats.vertices_run += ctx->run_count_;
    stats.lists_given += ctx->loader_.list_count();
    stats.ranges_read += ctx->loader_.range_count();
    stats.messages += ctx->message_count_;
  }
  return stats;
}

}  // namespace graphlane::semiext
