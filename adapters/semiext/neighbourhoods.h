// Neighbourhoods: vertices whose programs look at their neighbours' lists, one worker's of them.
//
//   open(v, members)   v wants the lists of these members
//   ask(v)             some of them are asked for: a vertex of a million neighbours would fill memory
//   done(v)            one has come; the next are asked for, or the neighbourhood is closed
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

  // Those in [begin, end). False: there is none, and the neighbourhood is closed.
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

// hit(i, arcs) for each member whose vertex is among the neighbours in `list`, the list of u, and is not u. `arcs` as
// merge_neighbours() says; `scratch` is the caller's.
template <class Hit>
void intersect(const std::vector<Neighbour>& members, VertexId u, const ListView& list,
               std::vector<Neighbour>& scratch, const Hit& hit) {
  merge_neighbours(u, list, scratch);
  const auto below = [](const Neighbour& neighbour, VertexId vertex) { return neighbour.vertex < vertex; };
  // Where one is much longer, its place of the next is searched for, by steps that double.
  const auto advance = [&](const std::vector<Neighbour>& in, size_t from, VertexId vertex) {
    size_t step = 1, to = from;
    while (to < in.size() && in[to].vertex < vertex) {
      from = to + 1;
      to += step;
      step *= 2;
    }
    return static_cast<size_t>(std::lower_bound(in.begin() + static_cast<std::ptrdiff_t>(from),
                                                in.begin() + static_cast<std::ptrdiff_t>(std::min(to, in.size())),
                                                vertex, below) - in.begin());
  };
  for (size_t i = 0, j = 0; i < members.size() && j < scratch.size();) {
    const VertexId a = members[i].vertex, b = scratch[j].vertex;
    if (a == b) {
      hit(i, scratch[j].arcs);
      ++i;
      ++j;
    } else if (a < b) {
      i = advance(members, i, b);
    } else {
      j = advance(scratch, j, a);
    }
  }
}

}  // namespace graphlane::semiext
