#include "adapters/hybrid/planner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

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

// The lists chosen of a block, and what they cost.
class Selection {
 public:
  Selection(const DualGraph& graph, const BlockId& block, const graphfmt::ListIndex& index,
            uint64_t gap_bytes)
      : graph_(graph),
        index_(index),
        block_(graph.dual().block(block.side, block.own, block.other)),
        side_(block.side),
        lists_(graph, graph.blocks(block.side), gap_bytes, cost_) {
    if (graph.has_weights()) weights_.emplace(graph, graph.weights(side_), gap_bytes, cost_);
  }
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;
  void add(uint32_t vertex, const graphfmt::ListPlace& place) {
    // Lists of a group have one place, and are decoded together.
    const bool is_there = !items_.empty() && items_.back().offset == place.offset;
    if (!is_there) decoded_bytes_ += place.length_bytes;
    items_.push_back({place.offset, vertex, static_cast<uint32_t>(place.length_bytes)});
    lists_.add({block_.lists.offset + place.offset, place.length_bytes});
    if (!weights_) return;
    weights_->add(graph_.dual().weights(side_).range(block_.first_arc + index_.first_arc(vertex),
                                                     index_.arcs(vertex)));
  }
  // The arcs are those of as many bytes of the block.
  ReadCost cost() const {
    const double share =
        static_cast<double>(decoded_bytes_) / static_cast<double>(block_.lists.length_bytes);
    ReadCost cost = cost_;
    cost.arcs = static_cast<uint64_t>(share * static_cast<double>(block_.arc_count));
    return cost;
  }
  // Now and then it is time to ask for the cost.
  bool is_due() const { return items_.size() % 256 == 0; }
  std::vector<SweepItem> take_items() { return std::move(items_); }

 private:
  const DualGraph& graph_;
  const graphfmt::ListIndex& index_;
  const graphfmt::DualBlock& block_;
  const graphfmt::DualSide side_;
  ReadCost cost_;
  PageCount lists_;
  std::optional<PageCount> weights_;
  uint64_t decoded_bytes_ = 0;
  std::vector<SweepItem> items_;
};

}  // namespace

ReadCost Planner::range_cost(const BlockId& block) const {
  const graphfmt::DualBlock& b = about(block);
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

bool Planner::select_sources(Choice& choice, const Frontier& frontier, double limit) const {
  const graphfmt::ListIndex& index = choice.index->index;
  Selection selection(graph_, push_block(choice), index, device_.gap_bytes);
  bool is_cheap = true;
  frontier.for_each_active(choice.source, [&](uint32_t vertex) {
    const graphfmt::ListPlace place = index.place(vertex);
    if (place.length_bytes == 0) return true;
    selection.add(vertex, place);
    if (selection.is_due()) is_cheap = device_.seconds(selection.cost()) <= limit;
    return is_cheap;
  });
  const ReadCost cost = selection.cost();
  if (!is_cheap || device_.seconds(cost) > limit) return false;
  choice.keep(cost, selection.take_items());
  return true;
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
  const graphfmt::DualBlock& b = about(push_block(choice));
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

void Planner::decide(Choice& choice, const Frontier& frontier, bool may_select) const {
  if (choice.pushes || !choice.is_known) {
    choice.index = graph_.index(push_block(choice));
    const auto costs_at_most = [&](double limit) {
      return select_sources(choice, frontier, limit);
    };
    // A pull decodes all arcs, even if their pages are in the cache, where it takes long to look
    // for them.
    choice.pushes = costs_at_most(choice.is_known ? kNoLimit : decoding_seconds(choice)) ||
                    costs_at_most(device_.seconds(range_cost(pull_block(choice))));
    choice.is_costly =
        may_select && choice.pushes && device_.seconds(choice.cost) > decoding_seconds(choice) / 4;
    if (choice.is_costly) {
      choice.items = {};
      choice.has_items = false;
    }
  }
  choice.is_known = true;
}

double Planner::decoding_seconds(const Choice& choice) const {
  return device_.seconds({.arcs = pulled_arcs(about(pull_block(choice)).arc_count)});
}

bool Planner::select_targets(Choice& choice, const Bits& can) const {
  const BlockId block = pull_block(choice);
  const BlockIndexPtr index = graph_.index(block);
  const double limit = device_.seconds(choice.cost);
  const std::vector<uint64_t>& can_change = can[choice.target];
  Selection selection(graph_, block, index->index, device_.gap_bytes);
  const auto cost_now = [&] {
    ReadCost cost = selection.cost();
    cost.arcs = pulled_arcs(cost.arcs);
    return cost;
  };
  bool is_cheap = true;
  index->index.scan(0, index->index.vertex_count(),
                    [&](uint32_t vertex, const graphfmt::ListPlace& place, uint64_t) {
                      if (!is_cheap || (can_change[vertex / 64] >> vertex % 64 & 1) == 0) return;
                      selection.add(vertex, place);
                      if (selection.is_due()) is_cheap = device_.seconds(cost_now()) < limit;
                    });
  const ReadCost cost = cost_now();
  if (!is_cheap || device_.seconds(cost) >= limit) return false;
  choice.index = index;
  choice.keep(cost, selection.take_items());
  return true;
}

Planner::Bits Planner::changeable(std::span<const uint32_t> targets, const CanChange& can_change) {
  Bits bits(graph_.geometry().partitions());
  pool_.for_blocks(targets.size(), 1, [&](uint64_t i, uint64_t, unsigned) {
    bits[targets[i]].resize(graph_.geometry().size(targets[i]) / 64 + 1);
    can_change(targets[i], bits[targets[i]]);
  });
  return bits;
}

// Pushes that cost much are compared with pulling only what can still change.
Outcome<void> Planner::reconsider(std::span<Choice> choices, const Frontier& frontier,
                                  const Bits& can) {
  std::vector<BlockId> blocks;
  for (const Choice& choice : choices) {
    if (choice.is_costly) blocks.push_back(pull_block(choice));
  }
  if (auto loaded = graph_.load(blocks, pool_); !loaded) return loaded;
  for_each_choice(choices, [&](Choice& choice) {
    if (!choice.is_costly) return;
    choice.pushes = !select_targets(choice, can);
    if (choice.pushes) select_sources(choice, frontier, kNoLimit);
  });
  return {};
}

void Planner::cut_into_chunks(Choice& choice) const {
  const SweepChunk like{.index = {}, .tag = choice.pushes ? kPushChunk : kPullChunk};
  if (choice.has_items) {
    choice.part.add_items(graph_, choice.index, std::move(choice.items), device_.gap_bytes, like);
  } else {
    choice.part.add_range(graph_.index(pull_block(choice)), 0,
                          graph_.geometry().size(choice.target), like);
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
  for_each_choice(choices, [&](Choice& choice) { decide(choice, frontier, may_select); });
  const bool selects = can_change && std::any_of(choices.begin(), choices.end(), [](auto& choice) {
                         return choice.is_costly || !choice.pushes;
                       });
  const Bits can = selects ? changeable(targets, can_change) : Bits{};
  if (auto done = reconsider(choices, frontier, can); !done) return done;
  if (auto loaded = load_for(choices, false); !loaded) return loaded;
  for_each_choice(choices, [&](Choice& choice) {
    if (selects && !choice.pushes && !choice.has_items) select_targets(choice, can);
    cut_into_chunks(choice);
  });
  // Pulls in the order of the file, behind the pushes.
  std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) {
    const auto place = [](const Choice& choice) {
      return choice.pushes ? std::tuple(0, graphfmt::DualSide{}, 0u)
                           : std::tuple(1, choice.flow.targets, choice.target);
    };
    return place(a) < place(b);
  });
  for (Choice& choice : choices) {
    plan.append(std::move(choice.part));
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
