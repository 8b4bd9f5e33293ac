#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "graphchi_types.hpp"

namespace graphchi {

inline vid_t translate_edge(vid_t target, bool&) { return target; }

// A vertex that keeps its edges: (the other end, its value).
template <class V, class E>
class graphchi_vertex {
 public:
  static bool computational_edges() { return false; }

  void add_inedge(vid_t source, E* value, bool) {
    const std::lock_guard lock(mu());
    in.emplace_back(source, value);
  }
  void add_outedge(vid_t target, E* value, bool) {
    const std::lock_guard lock(mu());
    out.emplace_back(target, value);
  }

  bool scheduled = true;
  bool parallel_safe = true;
  std::vector<std::pair<vid_t, E*>> in;
  std::vector<std::pair<vid_t, E*>> out;

 private:
  static std::mutex& mu() {
    static std::mutex mutex;
    return mutex;
  }
};

}  // namespace graphchi
