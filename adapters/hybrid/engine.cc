#include "adapters/hybrid/engine.h"

#include <chrono>

#include "adapters/hybrid/strips.h"

namespace graphlane::hybrid {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Engine::begin_iteration() {
  moved_before_ = graph_.moved();
  begun_at_ = now_seconds();
}

void Engine::end_iteration(uint64_t active) {
  const PagedFiles::Moved moved = graph_.moved();
  reports_.push_back({.active = active,
                      .plan = planner_.take_report(),
                      .device_bytes = moved.bytes - moved_before_.bytes,
                      .device_reads = moved.io_count - moved_before_.io_count,
                      .seconds = now_seconds() - begun_at_});
  if (progress_ != nullptr) progress_->iteration_ended();
}

Outcome<void> Engine::end_full_sweep() {
  plan_.clear();
  ascends_ = !ascends_;
  end_iteration(graph_.geometry().vertex_count());
  return check_interrupt();
}

Outcome<void> Engine::gather(const Give& give) {
  const DualGeometry& geometry = graph_.geometry();
  begin_iteration();
  for (uint32_t i = 0; i < geometry.partitions(); ++i) {
    const uint32_t own = ascends_ ? i : geometry.partitions() - 1 - i;
    Strips strips(graph_, own);
    if (auto loaded = graph_.load(strips.blocks(), pool_); !loaded) return loaded;
    plan_.clear();
    strips.add_to(plan_);
    const BlockSweep::Body body = [&](unsigned worker, const SweepChunk& chunk, const ChunkLists& lists) -> Outcome<void> {
      strips.take(chunk, lists, [&](VertexId v, std::span<const VertexId> neighbours) { give(worker, v, neighbours); });
      return {};
    };
    if (auto swept = sweep_.run(plan_, body); !swept) return swept;
  }
  return end_full_sweep();
}

}  // namespace graphlane::hybrid
