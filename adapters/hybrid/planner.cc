#include "adapters/hybrid/planner.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace graphlane::hybrid {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Whole pages of a range of a file, in memory or not.
ReadCost pages_of(ByteRange range) {
  if (range.length_bytes == 0) return {};
  const uint64_t pages = (range.end() - 1) / kBlockSize - range.offset / kBlockSize + 1;
  return {.reads = 1, .bytes = pages * kBlockSize};
}

// Adds up the pages of ranges that ascend, as far as they are not in the cache: a page counts once,
// and adjacent ones are one read. So are those with a small gap between them, which is read, too.
class PageCount {
 public:
  PageCount(const DualGraph& graph, const OpenPagedFile& file, uint64_t gap_bytes, ReadCost& cost)
      : graph_(graph), file_(file), gap_pages_(gap_bytes / kBlockSize), cost_(cost) {}
  void add(ByteRange range) {
    if (range.length_bytes == 0) return;
    const uint64_t end = (range.end() - 1) / kBlockSize + 1;
    for (uint64_t page = std::max(range.offset / kBlockSize, seen_); page < end; ++page) {
      if (graph_.pages().contains(file_.paged(), page)) continue;
      const bool goes_on = read_ != 0 && page - read_ <= gap_pages_;
      cost_.reads += !goes_on;
      cost_.bytes += (1 + (goes_on ? page - read_ : 0)) * kBlockSize;
      read_ = page + 1;
    }
    seen_ = std::max(seen_, end);
  }

 private:
  const DualGraph& graph_;
  const OpenPagedFile& file_;
  const uint64_t gap_pages_;
  ReadCost& cost_;
  uint64_t seen_ = 0;  // the end of the pages that were looked at
  uint64_t read_ = 0;  // of those that are read
};

// The bytes that are decoded for one more item of a block: none if it has the place of the one
// before, their group's.
uint64_t new_bytes(const SweepPlan& plan, size_t first_item, const ListPlace& place) {
  const bool is_there = plan.items.size() > first_item && plan.items.back().offset == place.offset;
  return is_there ? 0 : place.length_bytes;
}

}  // namespace

ReadCost Planner::range_cost(const BlockId& block) const {
  const DualBlock& b = about(block);
  ReadCost cost;
  PageCount(graph_, graph_.blocks(block.side), device_.gap_bytes, cost).add(b.lists);
  if (!graph_.has_index(block)) cost.bytes += pages_of(b.index).bytes;
  if (graph_.has_weights()) {
    PageCount(graph_, graph_.weights(block.side), device_.gap_bytes, cost)
        .add(graph_.dual().weights(block.side).range(b.first_arc, b.arc_count));
  }
  cost.arcs = pulled_arcs(b.arc_count);
  return cost;
}

bool Planner::settle(Choice& choice, const BlockIndexPtr& index, size_t first_item,
                     const ReadCost& cost, bool is_cheap, SweepPlan& plan) {
  if (!is_cheap) {
    plan.items.resize(first_item);
    return false;
  }
  choice.index = index;
  choice.has_items = true;
  choice.first_item = first_item;
  choice.items_end = plan.items.size();
  choice.cost = cost;
  return true;
}

bool Planner::select_sources(Choice& choice, const Frontier& frontier, double limit,
                             SweepPlan& plan) const {
  const BlockId block = push_block(choice);
  const DualBlock& b = about(block);
  const ListIndex& index = choice.index->index;
  ReadCost cost;
  PageCount lists(graph_, graph_.blocks(block.side), device_.gap_bytes, cost);
  std::optional<PageCount> weights;
  if (graph_.has_weights())
    weights.emplace(graph_, graph_.weights(block.side), device_.gap_bytes, cost);
  const double arcs_a_byte =
      static_cast<double>(b.arc_count) / static_cast<double>(b.lists.length_bytes);
  const size_t first_item = plan.items.size();
  uint64_t bytes = 0, seen = 0;
  bool is_cheap = true;
  frontier.for_each_active(choice.source, [&](uint32_t vertex) {
    const ListPlace place = index.place(vertex);
    if (place.length_bytes == 0) return true;
    bytes += new_bytes(plan, first_item, place);
    plan.items.push_back({place.offset, vertex, static_cast<uint32_t>(place.length_bytes)});
    lists.add({b.lists.offset + place.offset, place.length_bytes});
    if (weights) {
      weights->add(graph_.dual()
                       .weights(block.side)
                       .range(b.first_arc + index.first_arc(vertex), index.arcs(vertex)));
    }
    cost.arcs = static_cast<uint64_t>(static_cast<double>(bytes) * arcs_a_byte);
    if (++seen % 256 == 0) is_cheap = device_.seconds(cost) <= limit;
    return is_cheap;
  });
  is_cheap = is_cheap && device_.seconds(cost) <= limit;
  return settle(choice, choice.index, first_item, cost, is_cheap, plan);
}

// Settles what needs no look at an index: a forced model, few or many active vertices.
void Planner::guess(Choice& choice, const Frontier& frontier) {
  choice.is_known = true;
  if (model_ != Model::kHybrid) {
    choice.pushes = model_ == Model::kPush || (model_ == Model::kRandom && coin());
    return;
  }
  const uint64_t active = frontier.count(choice.source);
  if (active == graph_.geometry().size(choice.source)) return;
  // About as many lists as vertices are active have to be read, each with a read, at most all
  // pages.
  const DualBlock& b = about(push_block(choice));
  const double share =
      static_cast<double>(active) / static_cast<double>(graph_.geometry().size(choice.source));
  const ReadCost all = pages_of(b.lists);
  const uint64_t page_count = all.bytes / kBlockSize;
  const auto pages = static_cast<double>(page_count);
  const double touched = std::min(pages, share * static_cast<double>(b.arc_count));
  const double at_least = touched / 8 / device_.reads_per_second;
  choice.is_known = !graph_.has_index(push_block(choice)) &&
                    at_least > 2 * device_.seconds(range_cost(pull_block(choice)));
}

void Planner::decide(Choice& choice, const Frontier& frontier, bool may_select, SweepPlan& plan) {
  if (choice.pushes || !choice.is_known) {
    choice.index = graph_.index(push_block(choice));
    const auto costs_at_most = [&](double limit) {
      return select_sources(choice, frontier, limit, plan);
    };
    // A pull decodes all arcs, even if their pages are in the cache, where it takes long to look
    // for them.
    choice.pushes = costs_at_most(choice.is_known ? kNoLimit : decoding_seconds(choice)) ||
                    costs_at_most(device_.seconds(range_cost(pull_block(choice))));
    choice.is_costly =
        may_select && choice.pushes && device_.seconds(choice.cost) > decoding_seconds(choice) / 4;
    if (choice.is_costly) {
      plan.items.resize(choice.first_item);
      choice.has_items = false;
    }
  }
  choice.is_known = true;
}

double Planner::decoding_seconds(const Choice& choice) const {
  return device_.seconds({.arcs = pulled_arcs(about(pull_block(choice)).arc_count)});
}

bool Planner::select_targets(Choice& choice, const CanChange& can_change, SweepPlan& plan) const {
  const BlockId block = pull_block(choice);
  const DualBlock& b = about(block);
  const BlockIndexPtr index = graph_.index(block);
  const uint64_t first = graph_.geometry().first(choice.target);
  const double limit = device_.seconds(choice.cost);
  const size_t first_item = plan.items.size();
  ReadCost cost;
  PageCount lists(graph_, graph_.blocks(block.side), device_.gap_bytes, cost);
  uint64_t bytes = 0, seen = 0;
  bool is_cheap = true;
  index->index.scan(
      0, index->index.vertex_count(), [&](uint32_t vertex, const ListPlace& place, uint64_t) {
        if (!is_cheap || !can_change(first + vertex)) return;
        bytes += new_bytes(plan, first_item, place);
        plan.items.push_back({place.offset, vertex, static_cast<uint32_t>(place.length_bytes)});
        lists.add({b.lists.offset + place.offset, place.length_bytes});
        cost.arcs = pulled_arcs(b.arc_count * bytes / b.lists.length_bytes);
        if (++seen % 256 == 0) is_cheap = device_.seconds(cost) < limit;
      });
  is_cheap = is_cheap && device_.seconds(cost) < limit;
  return settle(choice, index, first_item, cost, is_cheap, plan);
}

// Pushes that cost much are compared with pulling only what can still change.
Outcome<void> Planner::reconsider(std::span<Choice> choices, const Frontier& frontier,
                                  const CanChange& can_change, SweepPlan& plan) {
  std::vector<BlockId> blocks;
  for (const Choice& choice : choices) {
    if (choice.is_costly) blocks.push_back(pull_block(choice));
  }
  if (auto loaded = graph_.load(blocks, pool_); !loaded) return loaded;
  for (Choice& choice : choices) {
    if (!choice.is_costly) continue;
    choice.pushes = !select_targets(choice, can_change, plan);
    if (choice.pushes) select_sources(choice, frontier, kNoLimit, plan);
  }
  return {};
}

void Planner::add_chunks(const Choice& choice, SweepPlan& plan) {
  const SweepChunk like{.index = {}, .tag = choice.pushes ? kPushChunk : kPullChunk};
  if (choice.has_items) {
    plan.add_items(graph_, choice.index, choice.first_item, choice.items_end, device_.gap_bytes,
                   like);
  } else {
    plan.add_range(graph_.index(pull_block(choice)), 0, graph_.geometry().size(choice.target),
                   like);
  }
}

Outcome<void> Planner::load_for(std::span<Choice> choices, bool pushes) {
  std::vector<BlockId> blocks;
  for (Choice& choice : choices) {
    if (pushes && (choice.pushes || !choice.is_known)) blocks.push_back(push_block(choice));
    if (!pushes && !choice.pushes && !choice.has_items) {
      choice.cost = range_cost(pull_block(choice));
      blocks.push_back(pull_block(choice));
    }
    if (pushes && choice.pushes && !graph_.has_index(push_block(choice))) {
      report_.cost.bytes += pages_of(about(push_block(choice)).index).bytes;
    }
  }
  return graph_.load(blocks, pool_);
}

void Planner::add_report(const Choice& choice) {
  (choice.pushes ? report_.pushed : report_.pulled) += 1;
  report_.cost += choice.cost;
  report_.seconds += device_.seconds(choice.cost);
}

bool Planner::has_arcs(uint32_t source, uint32_t target, std::span<const Flow> flows) const {
  return std::any_of(flows.begin(), flows.end(), [&](const Flow& flow) {
    return about(push_block({.flow = flow, .source = source, .target = target})).arc_count > 0;
  });
}

Outcome<void> Planner::add_active(std::span<const uint32_t> sources,
                                  std::span<const uint32_t> targets, std::span<const Flow> flows,
                                  const Frontier& frontier, const CanChange& can_change,
                                  SweepPlan& plan) {
  std::vector<Choice> choices;
  for (const uint32_t source : sources) {
    if (frontier.count(source) == 0) continue;
    for (const Flow& flow : flows) {
      for (const uint32_t target : targets) {
        Choice choice{.flow = flow, .source = source, .target = target};
        if (about(push_block(choice)).arc_count == 0) continue;
        guess(choice, frontier);
        choices.push_back(std::move(choice));
      }
    }
  }
  if (auto loaded = load_for(choices, true); !loaded) return loaded;
  const bool may_select = can_change && model_ == Model::kHybrid;
  for (Choice& choice : choices) decide(choice, frontier, may_select, plan);
  if (auto done = reconsider(choices, frontier, can_change, plan); !done) return done;
  if (auto loaded = load_for(choices, false); !loaded) return loaded;
  for (Choice& choice : choices) {
    if (choice.pushes) add_chunks(choice, plan);
  }
  // In the order of the file.
  std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) {
    return std::pair(a.flow.targets, a.target) < std::pair(b.flow.targets, b.target);
  });
  for (Choice& choice : choices) {
    if (!choice.pushes) {
      if (can_change && !choice.has_items) select_targets(choice, can_change, plan);
      add_chunks(choice, plan);
    }
    add_report(choice);
  }
  return {};
}

Outcome<void> Planner::add_all_into(uint32_t targets, std::span<const uint32_t> sources,
                                    const Flow& flow, bool ascends, SweepPlan& plan) {
  std::vector<Choice> choices;
  std::vector<BlockId> blocks;
  for (const uint32_t source : sources) {
    Choice choice{.flow = flow, .source = source, .target = targets};
    if (about(pull_block(choice)).arc_count == 0) continue;
    choice.pushes = model_ == Model::kPush || (model_ == Model::kRandom && coin());
    const BlockId block = choice.pushes ? push_block(choice) : pull_block(choice);
    choice.cost = range_cost(block);
    blocks.push_back(block);
    choices.push_back(std::move(choice));
  }
  if (auto loaded = graph_.load(blocks, pool_); !loaded) return loaded;
  uint32_t step = 0;
  for (size_t c = 0; c < choices.size(); ++c) {
    const Choice& choice = choices[c];
    const BlockId& block = blocks[c];
    const size_t first_chunk = plan.chunks.size();
    plan.add_range(graph_.index(block), 0, graph_.geometry().size(block.own),
                   {.index = {},
                    .group = targets,
                    .step = step,
                    .tag = choice.pushes ? kPushChunk : kPullChunk});
    // Pushed chunks add in their order, which must not depend on the cache.
    if (!ascends) plan.reverse(first_chunk, choice.pushes ? 0 : graph_.segment_bytes());
    // Chunks of a block that pushes have the same targets.
    if (choice.pushes) {
      for (size_t i = first_chunk; i < plan.chunks.size(); ++i) plan.chunks[i].step = step++;
    } else {
      ++step;
    }
    add_report(choice);
  }
  return {};
}

}  // namespace graphlane::hybrid
