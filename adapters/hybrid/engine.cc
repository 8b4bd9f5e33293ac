#include "adapters/hybrid/engine.h"

#include <chrono>

namespace graphlane::hybrid {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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
