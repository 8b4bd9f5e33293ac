#include "adapters/hybrid/engine.h"

#include <algorithm>
#include <chrono>

namespace graphlane::hybrid {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<uint32_t> Engine::intervals_in_order() const {
  std::vector<uint32_t> order(graph_.geometry().partitions());
  std::iota(order.begin(), order.end(), 0u);
  if (!ascends_) std::reverse(order.begin(), order.end());
  return order;
}

Outcome<void> Engine::sweep_all(const BlockSweep::Body& body, bool in_order) {
  plan_.clear();
  const std::vector<uint32_t> order = intervals_in_order();
  for (const uint32_t targets : order) {
    if (auto planned = planner_.add_all_into(targets, order, kForward, ascends_, plan_); !planned) {
      return planned;
    }
    // The plan keeps the indexes of its blocks in memory.
    if (graph_.keeps_indexes() && targets != order.back()) continue;
    if (!in_order) {
      for (SweepChunk& chunk : plan_.chunks) chunk.group = chunk.step = 0;
    }
    if (auto swept = sweep_.run(plan_, body); !swept) return swept;
    plan_.clear();
  }
  return {};
}

void Engine::begin_iteration() {
  moved_before_ = graph_.moved();
  value_bytes_before_ = value_space_.read_bytes + value_space_.written_bytes;
  begun_at_ = now_seconds();
}

void Engine::end_iteration(uint64_t active) {
  const PagedFiles::Moved moved = graph_.moved();
  reports_.push_back(
      {.active = active,
       .plan = planner_.take_report(),
       .device_bytes = moved.bytes - moved_before_.bytes,
       .device_reads = moved.io_count - moved_before_.io_count,
       .value_bytes = value_space_.read_bytes + value_space_.written_bytes - value_bytes_before_,
       .seconds = now_seconds() - begun_at_});
  if (progress_ != nullptr) progress_->iteration_ended();
}

Outcome<void> Engine::end_full_sweep() {
  plan_.clear();
  ascends_ = !ascends_;
  end_iteration(graph_.geometry().vertex_count());
  return check_interrupt();
}

}  // namespace graphlane::hybrid
