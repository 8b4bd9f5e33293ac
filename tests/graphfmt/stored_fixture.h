// Fixture for tests of stored graphs: an edge list as a file, the arcs of its graph, and the damage
// that a check must notice.
#pragma once

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "graphfmt/edge_list.h"
#include "graphfmt/list_sink.h"
#include "graphfmt/lists/lists.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {

struct ListedArc {
  uint32_t vertex, neighbour;
  float weight;
  friend bool operator==(const ListedArc&, const ListedArc&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const ListedArc& arc) {
  return out << arc.vertex << "->" << arc.neighbour << " (" << arc.weight << ")";
}

class CollectArcs : public ListSink {
 public:
  Outcome<void> take(ListBatch& batch) override {
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (size_t arc = batch.starts[i]; arc < batch.starts[i + 1]; ++arc) {
        float weight = 0;
        if (!batch.weights.empty()) std::memcpy(&weight, batch.weights.data() + 4 * arc, 4);
        arcs.push_back({batch.vertices[i], batch.neighbours[arc], weight});
      }
    }
    return {};
  }
  std::vector<ListedArc> arcs;
};

// The lists of a direction, in their order.
inline std::vector<ListedArc> expected_arcs(const std::vector<WeightedEdge>& edges,
                                            Direction direction, bool is_weighted,
                                            bool is_undirected, bool is_simple = false) {
  std::vector<ListedArc> arcs;
  for (const WeightedEdge& edge : edges) {
    if (is_simple && edge.source == edge.target) continue;
    const float weight = is_weighted ? edge.weight : 0;
    const ListedArc there{edge.source, edge.target, weight}, back{edge.target, edge.source, weight};
    if (direction == Direction::kOut || is_undirected) arcs.push_back(there);
    if ((direction == Direction::kIn && !is_undirected) ||
        (is_undirected && edge.source != edge.target)) {
      arcs.push_back(back);
    }
  }
  const auto place = [](const ListedArc& arc) { return std::tie(arc.vertex, arc.neighbour); };
  std::stable_sort(arcs.begin(), arcs.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  if (is_simple) {
    const auto same = [&](const auto& a, const auto& b) { return place(a) == place(b); };
    arcs.erase(std::unique(arcs.begin(), arcs.end(), same), arcs.end());
  }
  return arcs;
}

// The graph of each test is the directory "g", made of "edges.u32".
class StoredGraphTest : public TempDirTest {
 protected:
  EdgeListOptions input_of(const std::vector<WeightedEdge>& edges, bool is_weighted,
                           uint64_t vertices) const {
    std::string records;
    for (const WeightedEdge& edge : edges) {
      records.append(reinterpret_cast<const char*>(&edge), edge_size_bytes(is_weighted));
    }
    return {.path = write("edges.u32", records),
            .format = EdgeFormat::kU32,
            .weighted = is_weighted,
            .vertices = vertices,
            .memory_budget_bytes = 64 << 20,
            .threads = 2};
  }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr size_t kBitStep = 5;  // some bits of each byte: each check takes long there
#else
  static constexpr size_t kBitStep = 1;
#endif
  // `check` reads the graph at a path: it fails on each flipped bit and each truncation of each
  // file, names the graph, and succeeds when the file is whole again.
  template <class Check>
  void expect_damage_is_noticed(const Check& check) const {
    for (const auto& [name, sound] : files_of(path("g"))) {
      const std::string file = "g/" + name;
      for (size_t bit = 0; bit < 8 * sound.size(); bit += kBitStep) {
        flip_bit(file, bit);
        const auto checked = check(path("g"));
        flip_bit(file, bit);
        ASSERT_FALSE(checked) << name << " bit " << bit;
        ASSERT_NE(checked.error().text.find(path("g/")), std::string::npos) << checked.error().text;
      }
      for (size_t length = sound.size(); length-- > 0;) {
        std::filesystem::resize_file(path(file), length);
        ASSERT_FALSE(check(path("g"))) << name << " cut to " << length;
      }
      write(file, sound);
    }
    ASSERT_TRUE(check(path("g")));
  }
};

}  // namespace graphlane::graphfmt
