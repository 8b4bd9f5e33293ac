#include "adapters/share/schedule/chunk_scheduler.h"

#include <algorithm>
#include <functional>

namespace graphlane::share {

ChunkScheduler::ChunkScheduler(const std::vector<Member>& members, uint32_t core_count)
    : core_count_(core_count) {
  for (const Member& member : members) {
    const uint32_t most = std::min(member.thread_count, core_count);
    const uint32_t least =
        member.thread_count_min == 0 ? most : std::min(member.thread_count_min, most);
    members_.push_back({.job = member.job, .thread_count = most, .thread_count_min = least});
  }
}

void ChunkScheduler::ask(JobId job, uint32_t chunk, uint64_t load_ns) {
  if (Place* place = find(job)) {
    place->state = State::kWaits;
    place->chunk = std::max(place->chunk, chunk);
    place->load_ns = load_ns;
  }
}

void ChunkScheduler::done(JobId job) {
  Place* place = find(job);
  if (place == nullptr || (place->state != State::kRuns && place->state != State::kOverdue)) return;
  place->state = State::kBetween;
  ++place->chunk;
}

void ChunkScheduler::overdue(JobId job) {
  Place* place = find(job);
  if (place != nullptr && place->state == State::kRuns) place->state = State::kOverdue;
}

void ChunkScheduler::leave(JobId job) {
  std::erase_if(members_, [&](const Place& place) { return place.job == job; });
}

std::vector<ChunkScheduler::Turn> ChunkScheduler::step() {
  std::vector<Turn> turns;
  const uint32_t chunk = lowest_chunk();
  uint32_t busy = 0;
  for (const Place& place : members_) {
    if (place.state == State::kRuns) busy += place.busy_threads;
  }
  uint32_t behind = this->behind(chunk);
  for (Place* place : waiting(chunk)) {
    const uint32_t share = (core_count_ - std::min(busy, core_count_)) / behind;
    const uint32_t threads = std::clamp(share, place->thread_count_min, place->thread_count);
    if (busy > 0 && busy + threads > core_count_) continue;
    --behind;
    busy += threads;
    place->busy_threads = threads;
    place->state = State::kRuns;
    turns.push_back({.job = place->job, .first = begun_chunk_ != chunk, .thread_count = threads});
    begun_chunk_ = chunk;
  }
  return turns;
}

bool ChunkScheduler::waits(JobId job) const {
  const Place* place = find(job);
  return place != nullptr && place->state == State::kWaits;
}

std::vector<ChunkScheduler::JobId> ChunkScheduler::holders() const {
  std::vector<JobId> holders;
  if (std::none_of(members_.begin(), members_.end(),
                   [](const Place& place) { return place.state == State::kWaits; })) {
    return holders;
  }
  for (const Place& place : members_) {
    if (place.state != State::kWaits) holders.push_back(place.job);
  }
  return holders;
}

ChunkScheduler::Place* ChunkScheduler::find(JobId job) {
  return const_cast<Place*>(static_cast<const ChunkScheduler*>(this)->find(job));
}

const ChunkScheduler::Place* ChunkScheduler::find(JobId job) const {
  for (const Place& place : members_) {
    if (place.job == job) return &place;
  }
  return nullptr;
}

// The members that wait for `chunk`, in the order of their turns.
std::vector<ChunkScheduler::Place*> ChunkScheduler::waiting(uint32_t chunk) {
  std::vector<Place*> waiting;
  for (size_t i = 0; i < members_.size(); ++i) {
    Place& place = members_[(i + chunk) % members_.size()];
    if (place.state == State::kWaits && place.chunk == chunk) waiting.push_back(&place);
  }
  std::ranges::stable_sort(waiting, std::greater(),
                           [](const Place* place) { return place->load_ns; });
  return waiting;
}

// The members that still have `chunk` before them.
uint32_t ChunkScheduler::behind(uint32_t chunk) const {
  return static_cast<uint32_t>(std::ranges::count_if(members_, [&](const Place& place) {
    return place.chunk == chunk && (place.state == State::kWaits || place.state == State::kBetween);
  }));
}

uint32_t ChunkScheduler::lowest_chunk() const {
  uint32_t lowest = UINT32_MAX;
  for (const Place& place : members_) lowest = std::min(lowest, place.chunk);
  return lowest;
}

}  // namespace graphlane::share
