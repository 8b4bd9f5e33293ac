#include "iomgr/read_ahead.h"

#include <algorithm>

#include "iomgr/base/free_slot.h"

namespace graphlane {
namespace {

constexpr uint64_t kFrame = kExtentFrameBytes;

// Below this, reading ahead moves the heads more than it helps.
constexpr uint64_t kMemoryMin = kCacheWaysMax / 2 * kFrame;

}  // namespace

Result<void> ReadAhead::init(uint64_t bytes, StreamTable& streams) {
  streams_ = &streams;
  if (bytes < kMemoryMin) return Errno{ENOMEM};
  Result<void> mapped = frames_.map(bytes, {.frame_bytes = kFrame, .policy = CachePolicy::kFifo});
  if (!mapped) return mapped;
  bytes_max_ = bytes / kFrame * kFrame;
  resize(bytes_max_);
  return {};
}

void ReadAhead::resize(uint64_t bytes) {
  if (!frames_) return;
  const uint64_t allowed = std::min(bytes, bytes_max_) / kFrame * kFrame;
  (void)frames_->resize(allowed);
  // Not all of it: neighbours in a set may still be pinned.
  const uint64_t reach = allowed - allowed / 8;
  reach_bytes_.store(allowed < kMemoryMin ? 0 : std::min(reach, kFramesMax * kFrame),
                     std::memory_order_relaxed);
}

void ReadAhead::begin(const ExtentFile& file, ByteRange stretch,
                      const StreamTable::Advice& advice, FrameCache& cache, PartMover& mover) {
  Batch* const batch = take_free_slot(batches_);
  if (batch == nullptr) return;
  begun_.store(true, std::memory_order_relaxed);
  batch->owner = this;
  batch->advice = advice;
  batch->size_bytes = file.size_bytes;
  batch->count = 0;
  const uint64_t end = std::min(stretch.end(), file.size_bytes);
  for (uint64_t i = stretch.offset / kFrame; i * kFrame < end && batch->count < kFramesMax; ++i) {
    if (cache.contains(file.key(i))) continue;
    Reservation reservation = frames_->reserve(file.key(i), Admission::kAhead);
    if (reservation.kind != Reservation::Kind::kFill) continue;
    batch->pieces[batch->count] = {.range = file.frame_range(i),
                                    .buffer = reservation.fill.bytes().data()};
    batch->fills[batch->count++] = std::move(reservation.fill);
  }
  const PartRequest request{.map = file.map,
                            .parts = file.parts,
                            .size_bytes = file.size_bytes,
                            .op = IoOp::kRead,
                            .direct = true,
                            .pieces = {batch->pieces, batch->count}};
  if (batch->count == 0 || !mover.start(request, batch)) batch->ended(ECANCELED);
}

void ReadAhead::Batch::ended(int error) {
  uint64_t fetched = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (error != 0) {
      fills[i].abandon(error);
      continue;
    }
    const ByteRange& range = pieces[i].range;
    const uint64_t length = std::min(range.length_bytes, size_bytes - range.offset);
    owner->streams_->keep(advice, range.offset / kFrame, fills[i].publish(length));
    fetched += length;
  }
  owner->fetched_bytes_.fetch_add(fetched, std::memory_order_relaxed);
  free_slot(*this);
}

}  // namespace graphlane
