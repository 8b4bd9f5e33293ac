// Profile: the cost of an edge to a job: GraphM's formulas 2 to 4.
//
//   (2)  T(F_j) × active edges + T(E) × edges = T_j^i     of the first two partitions
//   (3)  L_j^k = T(F_j) × active edges                    of chunk k
//   (4)  F_j^k = L_j^k + T(E) × edges                     for the first job at the chunk
//
// Two partitions give two equations in T(F_j), the time to process an active edge, and T(E), the
// time to fetch any edge. They have one solution only if the share of active edges differs. Where
// it does not, or where noise makes the solution negative, T(E) comes from another job on the same
// graph, because it depends on the graph alone. Without another job it is 0.
//
// Times are picoseconds an edge: an edge takes about a nanosecond.
#pragma once

#include <cstdint>

namespace graphlane::share {

struct EdgeCosts {
  uint64_t process_ps = 0;       // T(F_j); 0: unknown
  uint64_t access_ps = 0;        // T(E)
  bool access_measured = false;  // by this job, so that other jobs can use it
};

struct ChunkLoad {
  uint64_t process_ns = 0;  // L_j^k, formula 3
  uint64_t access_ns = 0;   // formula 4 adds it
};

class Profile {
 public:
  // T(E) as other jobs measured it; 0: unknown.
  explicit Profile(uint64_t known_access_ps = 0) : known_access_ps_(known_access_ps) {}

  // Adds a processed partition. Only the first two with edges count.
  void add(uint64_t active_edge_count, uint64_t edge_count, uint64_t elapsed_ns);

  const EdgeCosts& costs() const { return costs_; }

  ChunkLoad load(uint64_t active_edge_count, uint64_t edge_count) const {
    return {.process_ns = active_edge_count * costs_.process_ps / 1000,
            .access_ns = edge_count * costs_.access_ps / 1000};
  }

 private:
  struct Sample {
    double active = 0;
    double all = 0;
    double elapsed_ps = 0;
  };

  void solve();

  uint64_t known_access_ps_;
  Sample samples_[2];
  int sample_count_ = 0;
  EdgeCosts costs_;
};

}  // namespace graphlane::share
