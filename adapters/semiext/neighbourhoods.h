// Neighbourhoods: the vertices of one worker whose programs look at their neighbours' lists.
//
//   open(v, members)   v wants the lists of these members
//   ask(v)             requests some of them: all lists of a vertex with a million neighbours would fill memory
//   done(v)            one has come: requests the next, or closes the neighbourhood
//
// Threads: a worker's own.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/semiext/neighbours.h"

namespace graphlane::semiext {

class Neighbourhoods {
 public:
  struct Open {
    std::vector<Neighbour> members;  // ascending
    uint64_t count = 0;              // the program's own
    size_t asked = 0;
    size_t pending = 0;
  };

  Open& open(VertexId v, std::vector<Neighbour> members) {
    Open& made = open_[v];
    made = {};
    made.members = std::move(members);
    return made;
  }
  Open& at(VertexId v) { return open_.at(v); }

  // Requests those in [begin, end). False: there is none, and the neighbourhood is closed.
  template <class Context>
  bool ask(Context& ctx, VertexId v, VertexId begin, VertexId end) {
    Open& own = open_.at(v);
    while (own.pending < kAskedMax && own.asked < own.members.size()) {
      const VertexId member = own.members[own.asked++].vertex;
      if (member < begin || member >= end) continue;
      ctx.request_vertex(v, member, EdgeSide::kBoth);
      ++own.pending;
    }
    if (own.pending > 0) return true;
    open_.erase(v);
    return false;
  }
  template <class Context>
  bool done(Context& ctx, VertexId v, VertexId begin, VertexId end) {
    return --open_.at(v).pending > kAskedMax / 2 || ask(ctx, v, begin, end);
  }

 private:
  static constexpr size_t kAskedMax = 2048;
  std::unordered_map<VertexId, Open> open_;
};

// The first place from `from` on with a value of `value` or more; both ascend. Steps double, as one
// of two lists is often much longer.
template <class ValueAt>
size_t advance_to(size_t from, size_t size, uint64_t value, const ValueAt& value_at) {
  size_t step = 1, to = from;
  while (to < size && value_at(to) < value) {
    from = to + 1;
    to += step;
    step *= 2;
  }
  to = std::min(to, size);
  while (from < to) {
    const size_t middle = from + (to - from) / 2;
    if (value_at(middle) < value) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

// Calls hit(i, arcs) for each member that is a neighbour of u by `list`, but not for u itself.
// `arcs` is as in merge_neighbours(). `scratch` is memory of the caller.
template <class Hit>
void intersect(const std::vector<Neighbour>& members, VertexId u, const ListView& list,
               std::vector<Neighbour>& scratch, const Hit& hit) {
  const auto member_at = [&](size_t i) -> uint64_t { return members[i].vertex; };
  const auto walk = [&](size_t size, const auto& value_at, const auto& arcs_at) {
    for (size_t i = 0, j = 0; i < members.size() && j < size;) {
      const uint64_t a = members[i].vertex, b = value_at(j);
      if (a < b) {
        i = advance_to(i + 1, members.size(), b, member_at);
      } else if (b < a) {
        j = advance_to(j + 1, size, a, value_at);
      } else {
        if (a != u) hit(i, arcs_at(j));
        ++i;  // duplicates in the list are passed over: the next member is larger
      }
    }
  };
  if (list.side != EdgeSide::kBoth) {
    const std::span<const VertexId> neighbours = list.neighbours;
    walk(
        neighbours.size(), [&](size_t j) -> uint64_t { return neighbours[j]; },
        [](size_t) { return 2u; });
    return;
  }
  merge_neighbours(u, list, scratch);
  walk(
      scratch.size(), [&](size_t j) -> uint64_t { return scratch[j].vertex; },
      [&](size_t j) { return scratch[j].arcs; });
}

}  // namespace graphlane::semiext
