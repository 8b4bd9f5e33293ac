#include "adapters/share/schedule/profile.h"

#include <algorithm>
#include <cmath>

namespace graphlane::share {
namespace {

// A smaller difference in the shares of active edges measures noise rather than T(E).
constexpr double kShareDifferenceMin = 0.05;
// The most that an edge may cost, so that a job that was stopped while it measured plans sanely.
constexpr double kCostMaxPs = 1e7;

}  // namespace

void Profile::add(uint64_t active_edge_count, uint64_t edge_count, uint64_t elapsed_ns) {
  if (sample_count_ == 2 || active_edge_count == 0) return;
  samples_[sample_count_++] = {.active = static_cast<double>(active_edge_count),
                               .all = static_cast<double>(edge_count),
                               .elapsed_ps = static_cast<double>(elapsed_ns) * 1000};
  if (sample_count_ == 2) solve();
}

void Profile::solve() {
  const auto& [a, b] = samples_;
  double process = 0;
  double access = -1;
  if (std::abs(a.active / a.all - b.active / b.all) >= kShareDifferenceMin) {
    const double determinant = a.active * b.all - b.active * a.all;
    process = (a.elapsed_ps * b.all - b.elapsed_ps * a.all) / determinant;
    access = (a.active * b.elapsed_ps - b.active * a.elapsed_ps) / determinant;
  }
  costs_.access_measured = process > 0 && access > 0;
  if (!costs_.access_measured) {
    access = static_cast<double>(known_access_ps_);
    process = (a.elapsed_ps + b.elapsed_ps - access * (a.all + b.all)) / (a.active + b.active);
  }
  costs_.process_ps = static_cast<uint64_t>(std::clamp(process, 1.0, kCostMaxPs));
  costs_.access_ps = static_cast<uint64_t>(std::clamp(access, 0.0, kCostMaxPs));
}

}  // namespace graphlane::share
