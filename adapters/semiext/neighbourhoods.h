// Neighbourhoods: the vertices of one worker whose programs look at their neighbours' lists.
//
//   begin(v)           requests v's own list, now or when others are closed: memory is bounded
//   open(v, members)   v wants the lists of these members; or leave(v)
//   ask(v)             requests some of them: all lists of a vertex with a million neighbours would fill memory
//   done(v)            one has come: requests the next, or closes the neighbourhood
//
// Threads: a worker's own.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/graph/vertex_array.h"
#include "adapters/semiext/neighbours.h"

namespace graphlane::semiext {

// The members of a neighbourhood, found by their vertex: a hash table with linear probing, at most
// half full. Most vertices of most lists are no members, so a filter of 16 to 32 bits a member is
// asked first, and without a branch.
class MemberTable {
 public:
  struct Member {
    VertexId vertex = kNoVertex;
    uint32_t arcs = 0;    // as in Neighbour
    uint32_t degree = 0;  // of the whole graph, in both directions; at most UINT32_MAX
    uint32_t list = 0;    // the latest list that it was in
  };

  MemberTable() = default;
  // `degrees`: of all vertices.
  MemberTable(std::span<const uint32_t> degrees, const std::vector<Neighbour>& members)
      : size_bits_(static_cast<unsigned>(std::bit_width(members.size() * 2 + 1))),
        members_(size_t{1} << size_bits_),
        filter_((members_.size() * kFilterBits + 63) / 64) {
    for (const Neighbour& member : members) {
      find(member.vertex) = {member.vertex, member.arcs, degrees[member.vertex], 0};
      const uint64_t bit = filter_bit(member.vertex);
      filter_[bit / 64] |= uint64_t{1} << bit % 64;
    }
  }

  // The member, or the free place for it.
  Member& find(VertexId v) {
    size_t at = hash(v) >> (64 - size_bits_);
    while (members_[at].vertex != v && members_[at].vertex != kNoVertex) {
      at = (at + 1) & (members_.size() - 1);
    }
    return members_[at];
  }

  // Calls hit(member, arcs, is_first) for each member in the list but its owner. `arcs`: between the
  // two, 1 or 2. With 1 there may be another call for the other direction, with is_first false.
  template <class Hit>
  void for_members_in(const ListView& list, const Hit& hit) {
    constexpr size_t kBlock = 512;
    std::array<VertexId, kBlock> maybe;
    ++list_;
    const uint32_t arcs = list.side == EdgeSide::kBoth ? 1 : 2;
    for (std::span<const VertexId> side : {list.neighbours, list.in_neighbours}) {
      VertexId last = list.owner;
      while (!side.empty()) {
        size_t count = 0;
        for (const VertexId w : side.first(std::min(kBlock, side.size()))) {
          const uint64_t bit = filter_bit(w);
          maybe[count] = w;
          count += filter_[bit / 64] >> bit % 64 & 1;
        }
        side = side.subspan(std::min(kBlock, side.size()));
        for (const VertexId w : std::span(maybe).first(count)) {
          Member& member = find(w);
          if (member.vertex != w || w == last || w == list.owner) continue;
          last = w;  // duplicates lie beside one another
          hit(std::as_const(member), arcs, std::exchange(member.list, list_) != list_);
        }
      }
    }
  }

 private:
  static constexpr uint64_t kFilterBits = 8;  // for each place
  static uint64_t hash(VertexId v) { return v * uint64_t{0x9E3779B97F4A7C15}; }
  uint64_t filter_bit(VertexId v) const { return hash(v) >> (64 - 3 - size_bits_); }

  unsigned size_bits_ = 1;
  uint32_t list_ = 0;  // the number of the present list
  std::vector<Member> members_ = std::vector<Member>(2);
  std::vector<uint64_t> filter_ = std::vector<uint64_t>(1);
};

// The degree of each vertex in both directions, at most UINT32_MAX. A look at it is cheaper than one
// at two indexes.
inline VertexArray<uint32_t> degrees_of(const Graph& graph) {
  VertexArray<uint32_t> degrees(graph.vertex_count());
  for (VertexId v = 0; v < graph.vertex_count(); ++v) {
    degrees[v] =
        static_cast<uint32_t>(std::min<uint64_t>(graph.degree(v, EdgeSide::kBoth), UINT32_MAX));
  }
  return degrees;
}

class Neighbourhoods {
 public:
  Neighbourhoods() = default;
  // `degrees`: degrees_of() the graph; they outlive this object.
  explicit Neighbourhoods(std::span<const uint32_t> degrees) : degrees_(degrees) {}

  struct Open {
    std::vector<VertexId> members;  // ascending
    MemberTable table;
    uint64_t count = 0;  // the program's own
    size_t asked = 0;
    size_t pending = 0;
  };

  // Requests the list of v, of both sides, which must be followed by open() or leave().
  template <class Context>
  void begin(Context& ctx, VertexId v) {
    waiting_.push_back(v);
    begin_waiting(ctx);
  }
  template <class Context>
  void leave(Context& ctx, VertexId v) {
    bytes_ -= bytes_before_open(v);
    begin_waiting(ctx);
  }
  // Requests the members' lists in [begin, end). False: there are none, and the neighbourhood is
  // closed.
  template <class Context>
  bool open(Context& ctx, VertexId v, const std::vector<Neighbour>& members, VertexId begin,
            VertexId end) {
    Open& made = open_[v];
    made = {};
    bytes_ -= bytes_before_open(v);
    bytes_ += table_bytes(members.size());
    for (const Neighbour& member : members) made.members.push_back(member.vertex);
    made.table = MemberTable(degrees_, members);
    return ask(ctx, v, made, begin, end);
  }
  Open& at(VertexId v) { return open_.at(v); }
  // The list of `member` has come. Returns as open() does.
  template <class Context>
  bool done(Context& ctx, VertexId v, VertexId member, VertexId begin, VertexId end) {
    Open& own = open_.at(v);
    bytes_ -= ask_bytes(member);
    return --own.pending > kAskedMax / 2 || ask(ctx, v, own, begin, end);
  }

 private:
  static constexpr size_t kAskedMax = 512;
  static constexpr uint64_t kBytesMax = 24 << 20;  // unless each has only one list asked for

  // A table has up to four places for each member, and a byte of filter for each place.
  static uint64_t table_bytes(uint64_t members) {
    return members * (sizeof(VertexId) + 4 * (sizeof(MemberTable::Member) + 1));
  }
  // A list is asked for by its sides, and the one that comes first is kept.
  uint64_t ask_bytes(VertexId v) const { return 256 + degrees_[v] * sizeof(VertexId); }
  uint64_t bytes_before_open(VertexId v) const { return ask_bytes(v) + table_bytes(degrees_[v]); }

  template <class Context>
  void begin_waiting(Context& ctx) {
    is_filling_ = is_filling_ || bytes_ <= kBytesMax / 2;
    while (is_filling_ && !waiting_.empty()) {
      const VertexId v = waiting_.front();
      const uint64_t bytes = bytes_before_open(v);
      is_filling_ = bytes_ == 0 || bytes_ + bytes <= kBytesMax;
      if (!is_filling_) return;
      waiting_.pop_front();
      bytes_ += bytes;
      ctx.request_vertex(v, v, EdgeSide::kBoth);
    }
  }

  template <class Context>
  bool ask(Context& ctx, VertexId v, Open& own, VertexId begin, VertexId end) {
    for (; own.pending < kAskedMax && own.asked < own.members.size(); ++own.asked) {
      const VertexId member = own.members[own.asked];
      if (member < begin || member >= end) continue;
      const uint64_t bytes = ask_bytes(member);
      if (own.pending > 0 && bytes_ + bytes > kBytesMax) break;
      bytes_ += bytes;
      ++own.pending;
      ctx.request_vertex(v, member, EdgeSide::kBoth);
    }
    if (own.pending > 0) return true;
    bytes_ -= table_bytes(own.members.size());
    open_.erase(v);
    begin_waiting(ctx);
    return false;
  }

  std::span<const uint32_t> degrees_;
  std::unordered_map<VertexId, Open> open_;
  std::deque<VertexId> waiting_;
  uint64_t bytes_ = 0;      // of those that have begun
  bool is_filling_ = true;  // until kBytesMax; then again from half of it
};

}  // namespace graphlane::semiext
