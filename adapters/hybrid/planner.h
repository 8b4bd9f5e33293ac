// Planner: for each block of an iteration push or pull, whichever the devices make cheaper, and the
// chunks to read (§3.7).
//
//   arcs i → j     push: the lists of active vertices in block (i, j) of the sources' side
//                  pull: the lists of block (j, i) of the targets' side: all, or those of targets that can still change
//
// Each iteration reads exactly one of the two, whatever is chosen for other blocks. (Algorithm 1
// chooses for an interval; with i pushing and j pulling it would apply arcs i → j twice and j → i
// never.)
//
// Cost: exact pages of the active lists and of the weights beside them, as far as they are not in
// the cache, and of indexes that are not in memory.
//
// Threads: one, while no sweep runs.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "adapters/graph/device_model.h"
#include "adapters/hybrid/block_sweep.h"
#include "adapters/hybrid/frontier.h"

namespace graphlane::hybrid {

// kRandom is for tests: any choice gives the same result.
enum class Model { kHybrid, kPush, kPull, kRandom };

// The way of values: along out-arcs (forward), or against them.
struct Flow {
  graphfmt::DualSide sources = graphfmt::DualSide::kOut;  // its lists are those of sources
  graphfmt::DualSide targets = graphfmt::DualSide::kIn;   // its lists are those of targets
};
inline constexpr Flow kForward{graphfmt::DualSide::kOut, graphfmt::DualSide::kIn};
inline constexpr Flow kBackward{graphfmt::DualSide::kIn, graphfmt::DualSide::kOut};

// A chunk's tag.
enum ChunkTag : uint32_t { kPushChunk = 0, kPullChunk = 1 };

struct PlanReport {
  uint64_t pushed = 0;  // blocks
  uint64_t pulled = 0;
  ReadCost cost;
  double seconds = 0;  // predicted
};

class Planner {
 public:
  Planner(DualGraph& graph, WorkerPool& pool, const DeviceModel& device, Model model)
      : graph_(graph), pool_(pool), device_(device), model_(model) {}

  // Sets the bits of the interval's vertices that can still get another value, vertex v's in word
  // v / 64. Any worker may call it.
  using CanChange = std::function<void(uint32_t interval, std::span<uint64_t> bits)>;
  // Adds to the plan what the active vertices of these intervals need along the flows. Empty
  // `can_change`: all vertices can.
  Outcome<void> add_active(std::span<const uint32_t> sources, std::span<const uint32_t> targets,
                           std::span<const Flow> flows, const Frontier& frontier,
                           const CanChange& can_change, SweepPlan& plan);
  // Whether there are arcs between two intervals.
  bool has_arcs(uint32_t source, uint32_t target, std::span<const Flow> flows) const;
  // Adds all arcs from the intervals, in their order, into the interval of targets, as a group of
  // this number, with a step for each block. Descending, an iteration begins with what the one
  // before has left in the cache.
  Outcome<void> add_all_into(uint32_t targets, std::span<const uint32_t> sources, const Flow& flow,
                             bool ascends, SweepPlan& plan);

  // The computing time of a pulled arc, as a share of that of a pushed one.
  void set_pull_share(double share) { pull_share_ = share; }

  PlanReport take_report() { return std::exchange(report_, {}); }
  Model model() const { return model_; }

 private:
  struct Choice {
    Flow flow;
    uint32_t source = 0;  // intervals
    uint32_t target = 0;
    bool pushes = false;
    bool is_known = false;     // whether it pushes
    BlockIndexPtr index = {};  // of the block that the items are of
    bool is_costly = false;    // a push that may cost more than to pull what can change
    // Lists of active vertices, or those to pull of targets that can change. Of a pull without
    // them: all lists.
    bool has_items = false;
    std::vector<SweepItem> items = {};
    ReadCost cost = {};
    SweepPlan part = {};  // its chunks

    void keep(const ReadCost& of_items, std::vector<SweepItem> chosen) {
      cost = of_items;
      items = std::move(chosen);
      has_items = true;
    }
  };
  // Bits of vertices, by interval.
  using Bits = std::vector<std::vector<uint64_t>>;
  BlockId push_block(const Choice& c) const { return {c.flow.sources, c.source, c.target}; }
  BlockId pull_block(const Choice& c) const { return {c.flow.targets, c.target, c.source}; }
  const graphfmt::DualBlock& about(const BlockId& block) const {
    return graph_.dual().block(block.side, block.own, block.other);
  }

  // Calls `body` for each choice, on all workers.
  template <class Body>  // void (Choice&)
  void for_each_choice(std::span<Choice> choices, const Body& body) {
    pool_.for_blocks(choices.size(), 1, [&](uint64_t i, uint64_t, unsigned) { body(choices[i]); });
  }
  void guess(Choice& choice, const Frontier& frontier);
  void decide(Choice& choice, const Frontier& frontier, bool may_select) const;
  // The vertices of these intervals that can change.
  Bits changeable(std::span<const uint32_t> targets, const CanChange& can_change);
  Outcome<void> reconsider(std::span<Choice> choices, const Frontier& frontier, const Bits& can);
  Outcome<void> load_for(std::span<Choice> choices, bool pushes);
  ReadCost range_cost(const BlockId& block) const;
  double decoding_seconds(const Choice& choice) const;
  uint64_t pulled_arcs(uint64_t arcs) const {
    return static_cast<uint64_t>(static_cast<double>(arcs) * pull_share_);
  }
  // Gives the choice the active vertices' lists as items, and their cost; false: they cost more
  // seconds than `limit`, and nothing changes. Precondition: `index` is the pushed block's.
  bool select_sources(Choice& choice, const Frontier& frontier, double limit) const;
  // As select_sources(), with the targets that can change, if they cost less than the choice does.
  bool select_targets(Choice& choice, const Bits& can) const;
  void cut_into_chunks(Choice& choice) const;
  void add_report(const Choice& choice);
  bool coin() { return (random_() & 1) != 0; }

  DualGraph& graph_;
  WorkerPool& pool_;
  const DeviceModel device_;
  const Model model_;
  double pull_share_ = 1;
  std::mt19937 random_{7};
  PlanReport report_;
};

}  // namespace graphlane::hybrid
