#include "iomgr/read/read_ahead.h"

#include <algorithm>
#include <bit>

#include "iomgr/base/slot_pool.h"

namespace graphlane {
namespace {

// Below this, prefetching costs a disk more seeks than it saves.
constexpr uint64_t kMemoryMin = kCacheWaysMax / 2 * kExtentFrameBytes;

// The most frames between two frames of one request.
constexpr uint64_t kGapMax = 16;

// Whether the whole frame is on some of these devices.
bool is_on(const ExtentFile& file, uint64_t frame_index, DeviceSet devices) {
  const uint32_t count = file.map.geometry().device_count;
  if (devices == all_devices(count)) return true;
  const ByteRange range = file.frame_range(frame_index);
  const uint64_t depth = file.map.geometry().stripe_depth_bytes;
  for (uint64_t unit = range.offset / depth; unit * depth < range.end(); ++unit) {
    const uint32_t device = file.map.locate(unit * depth).device_index;
    if ((devices >> device & 1) == 0) return false;
  }
  return true;
}

}  // namespace

Result<void> ReadAhead::init(uint64_t bytes, PrefetchTracker& prefetches) {
  prefetches_ = &prefetches;
  if (bytes < kMemoryMin) return Errno{ENOMEM};
  Result<void> mapped = frames_.map(
      bytes, {.frames = {.frame_bytes = kExtentFrameBytes, .policy = CachePolicy::kFifo}});
  if (!mapped) return mapped;
  bytes_max_ = bytes / kExtentFrameBytes * kExtentFrameBytes;
  resize(bytes_max_);
  return {};
}

void ReadAhead::resize(uint64_t bytes) {
  if (!frames_) return;
  const uint64_t allowed = std::min(bytes, bytes_max_) / kExtentFrameBytes * kExtentFrameBytes;
  (void)frames_->resize(allowed);
  // Not all of it: neighbours in a set may still be pinned.
  const uint64_t reach = allowed - allowed / 8;
  reach_bytes_.store(allowed < kMemoryMin ? 0 : std::min(reach, kFramesMax * kExtentFrameBytes),
                     std::memory_order_relaxed);
}

// Iterates over the frames of a forecast, in its order.
class ReadAhead::Walk {
 public:
  explicit Walk(const PrefetchTracker::Forecast& forecast) : forecast_(forecast) { enter(); }

  bool ended() const { return range_ == forecast_.count; }
  uint64_t index() const { return index_; }
  uint64_t distance_bytes() const { return passed_ * kExtentFrameBytes; }
  void advance() {
    ++passed_;
    if (++index_ * kExtentFrameBytes < forecast_.ranges[range_].end()) return;
    ++range_;
    enter();
  }

 private:
  void enter() {
    if (!ended()) index_ = forecast_.ranges[range_].offset / kExtentFrameBytes;
  }

  const PrefetchTracker::Forecast& forecast_;
  uint32_t range_ = 0;
  uint64_t index_ = 0;
  uint64_t passed_ = 0;
};

// How many frames to read so that these devices' share of the window is in memory. 0 if that is
// not worth a request yet. A gap before frames that the last sweep left in memory is read at
// once, because waiting does not make it larger.
uint64_t ReadAhead::missing_frames(const ExtentFile& file,
                                   const PrefetchTracker::Forecast& forecast, DeviceSet devices,
                                   FrameCache& cache) {
  const uint64_t window = forecast.window_bytes / kExtentFrameBytes;
  const uint32_t device_count = file.map.geometry().device_count;
  const uint64_t step =
      forecast.step_bytes * static_cast<uint64_t>(std::popcount(devices)) / device_count;
  uint64_t others = 0, missing = 0;  // frames in memory or on other devices; frames to read
  bool has_gap = false;
  uint32_t looks = 0;
  Walk walk(forecast);
  for (; !walk.ended() && others + missing < window && looks < kLooksMax; walk.advance(), ++looks) {
    const FrameKey key = file.key(walk.index());
    if (cache.contains(key)) continue;
    Reservation reservation = join(key);
    if (reservation.kind == Reservation::Kind::kHit) {
      prefetches_->add(key, walk.distance_bytes(), std::move(reservation.pin));
    }
    const bool begun = reservation.kind != Reservation::Kind::kBypass;
    const bool ours = is_on(file, walk.index(), devices);
    has_gap |= begun && ours && missing > 0;
    (begun || !ours ? others : missing) += 1;
  }
  return walk.ended() || has_gap || missing * kExtentFrameBytes >= step ? missing : 0;
}

void ReadAhead::begin(const ExtentFile& file, const PrefetchTracker::Forecast& forecast,
                      DeviceSet devices, FrameCache& cache, IoEngine& engine) {
  uint64_t left = missing_frames(file, forecast, devices, cache);
  Walk walk(forecast);
  for (bool more = left > 0; more;) {
    Batch* const batch = take_free_slot(batches_);
    if (batch == nullptr) return;
    more = fill(file, walk, devices, cache, &left, *batch);
    if (!start(file, *batch, engine)) return;
  }
}

// Fills the batch with frames in ascending order, because a request goes upwards. They are close
// together, because a reader of one frame waits for the whole request. Returns whether more is
// left.
bool ReadAhead::fill(const ExtentFile& file, Walk& walk, DeviceSet devices, FrameCache& cache,
                     uint64_t* left, Batch& batch) {
  batch.count = 0;
  uint64_t lowest = 0;
  for (; !walk.ended() && *left > 0; walk.advance()) {
    const uint64_t index = walk.index();
    if (index < lowest || batch.count == kFramesMax) return true;
    const FrameKey key = file.key(index);
    if (!is_on(file, index, devices) || cache.contains(key)) continue;
    if (batch.count > 0 && index > lowest + kGapMax) return true;
    lowest = index;
    Reservation reservation = frames_->reserve(key, Admission::kAhead);
    if (reservation.kind == Reservation::Kind::kBypass) return false;
    if (reservation.kind != Reservation::Kind::kFill) continue;
    batch.pieces[batch.count] = {.range = file.frame_range(index),
                                 .buffer = reservation.fill.bytes().data()};
    batch.fills[batch.count++] = std::move(reservation.fill);
    prefetches_->add(key, walk.distance_bytes());
    --*left;
  }
  return false;
}

bool ReadAhead::start(const ExtentFile& file, Batch& batch, IoEngine& engine) {
  begun_.store(true, std::memory_order_relaxed);
  batch.owner = this;
  batch.key = file.key(0);
  batch.size_bytes = file.size_bytes;
  const PartRequest request{.map = file.map,
                            .parts = file.parts,
                            .size_bytes = file.size_bytes,
                            .op = IoOp::kRead,
                            .direct = true,
                            .pieces = {batch.pieces, batch.count}};
  if (batch.count > 0 && engine.submit(request, &batch)) return true;
  batch.on_done(ECANCELED);
  return false;
}

void ReadAhead::Batch::on_done(int error) {
  uint64_t fetched = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (error != 0) {
      fills[i].abandon(error);
      continue;
    }
    const ByteRange& range = pieces[i].range;
    const uint64_t length = std::min(range.length_bytes, size_bytes - range.offset);
    key.frame_index = range.offset / kExtentFrameBytes;
    owner->prefetches_->complete(key, fills[i].publish(length));
    fetched += length;
  }
  owner->fetched_bytes_.fetch_add(fetched, std::memory_order_relaxed);
  free_slot(*this);
}

}  // namespace graphlane
