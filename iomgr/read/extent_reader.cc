#include "iomgr/read/extent_reader.h"

#include <algorithm>

#include "iomgr/base/futex.h"
#include "iomgr/base/memory_order.h"

namespace graphlane {
namespace {

// The filler of a frame may have been killed (a vfork child, while its parent lives).
constexpr uint64_t kFillPatienceNs = 30'000'000'000;
// A thread that reserved a prefetch frame may not have submitted it yet, or may compute after it
// has. Then the waiter must poll the engine itself.
constexpr uint64_t kUndrivenNs = 5'000'000;

// Whether the blocks of a prefetched frame match their checksums: all of them, or those that are
// wanted.
bool verify(const ExtentRequest& request, uint64_t frame_index, std::span<const std::byte> bytes,
            bool whole) {
  const uint64_t frame_at = frame_index * kExtentFrameBytes;
  const Piece wanted = request.piece_of(frame_index);
  const uint64_t begin = whole ? 0 : (wanted.range.offset - frame_at) / kBlockSize * kBlockSize;
  const uint64_t end =
      whole ? bytes.size()
            : std::min(round_up(wanted.range.end() - frame_at, kBlockSize), uint64_t{bytes.size()});
  if (begin >= end) return true;
  const Piece piece{.range = {.offset = frame_at + begin, .length_bytes = end - begin},
                    .buffer = const_cast<std::byte*>(bytes.data()) + begin};
  return verify_pieces({.map = request.file.map,
                        .parts = request.file.parts,
                        .size_bytes = request.file.size_bytes,
                        .direct = true,
                        .pieces = {&piece, 1}}) == 0;
}

// Waits for a frame that another thread fills, or that is being prefetched.
Result<Pin> wait_for(const ExtentRequest& request, FrameWait& frame, bool is_prefetched,
                     Meanwhile& meanwhile) {
  const uint64_t deadline = monotonic_ns() + kFillPatienceNs;
  for (;;) {
    while (!frame.ended() && request.engine.poll()) meanwhile.device_idle();
    Result<Pin> pin = frame.wait(is_prefetched ? kUndrivenNs : kFillPatienceNs);
    // `frame` is empty once the wait has ended; it keeps the frame while the fill goes on.
    if (pin || !frame || !is_prefetched || monotonic_ns() >= deadline) return pin;
    meanwhile.device_idle();
  }
}

}  // namespace

bool ExtentReader::read(const ExtentRequest& request, Meanwhile& meanwhile) {
  const ExtentBatches::Borrowed batch(batches_);
  if (!batch) return false;
  for (uint64_t first = request.first_frame(); request.wants(first);
       first += ExtentBatch::kFramesMax) {
    if (!read_frames(request, first, *batch, meanwhile)) return false;
  }
  return true;
}

bool ExtentReader::read_hits(const ExtentRequest& request) {
  for (uint64_t i = request.first_frame(); request.wants(i); ++i) {
    const Pin pin = request.cache->find(request.file.key(i));
    if (!pin || !copy_kept(request, i, pin)) return false;
  }
  return true;
}

bool ExtentReader::is_begun(const ExtentRequest& request) {
  for (uint64_t i = request.first_frame(); request.wants(i); ++i) {
    const FrameKey key = request.file.key(i);
    if (request.cache->contains(key)) continue;
    if (ahead_.join(key).kind == Reservation::Kind::kBypass) return false;
  }
  return true;
}

// Copies the piece from a kept frame. False: the frame ends before it, or the kernel has reclaimed
// some of it.
bool ExtentReader::copy_kept(const ExtentRequest& request, uint64_t frame_index, const Pin& pin) {
  const Piece piece = request.piece_of(frame_index);
  const uint64_t begin = request.begin_in(frame_index);
  if (begin + piece.range.length_bytes > pin.bytes().size()) return false;
  const std::span<std::byte> to{static_cast<std::byte*>(piece.buffer), piece.range.length_bytes};
  if (!request.cache.copy(pin, begin, to)) {
    reclaimed_frames_.fetch_add(1, relaxed);
    budget_.count_reclaim();
    return false;
  }
  hit_bytes_.fetch_add(piece.range.length_bytes, relaxed);
  return true;
}

// Copies a prefetched frame to the caller. Once its last byte is read, the cache may keep it. So
// the pieces of a frame count as one use.
bool ExtentReader::take_prefetched(const ExtentRequest& request, uint64_t frame_index,
                                   const Pin& pin) {
  const std::span<const std::byte> bytes = pin.bytes();
  const bool is_last = request.range.end() >= frame_index * kExtentFrameBytes + bytes.size();
  if (!request.engine.verifies_submitted() &&
      !verify(request, frame_index, bytes, /*whole=*/keeps_ && is_last)) {
    return false;
  }
  if (!request.copy(frame_index, bytes)) return false;
  if (!keeps_ || !is_last) return true;
  Reservation reservation =
      request.cache->reserve(request.file.key(frame_index), Admission::kToKeep);
  if (reservation.kind != Reservation::Kind::kFill) return true;
  request.cache.fill(reservation.fill, bytes);
  (void)reservation.fill.publish(bytes.size());
  kept_.sample(bytes);
  return true;
}

// Reads a batch of frames from `first` on. If a device is needed, also reads on. False: a
// device failed.
bool ExtentReader::read_frames(const ExtentRequest& request, uint64_t first, ExtentBatch& batch,
                               Meanwhile& meanwhile) {
  batch.clear();
  const uint64_t end = first + ExtentBatch::kFramesMax;
  uint64_t next = first;
  for (; next < end && request.wants(next); ++next) reserve(request, next, batch);
  // Reads on only where the engine cannot prefetch, as the devices are busy now anyway.
  if (batch.piece_count > 0 && request.engine.idle_devices() == 0) {
    const uint64_t fetch_end = std::min(request.fetch_end, request.file.size_bytes);
    for (; next < end && next * kExtentFrameBytes < fetch_end; ++next) {
      reserve(request, next, batch);
    }
  }
  // Must fetch before waiting, because other threads may wait for these frames.
  if (!fetch(request, batch, meanwhile)) {
    batch.stop_waiting();
    return false;
  }
  wait(request, batch, meanwhile);
  return read_late(request, batch);
}

Admission ExtentReader::admission(const ExtentRequest& request, uint64_t frame_index) const {
  if (!request.wants(frame_index)) return Admission::kAhead;
  const Admission admission = request.admission(frame_index);
  return keeps_ || admission == Admission::kAlways ? admission : Admission::kNone;
}

void ExtentReader::reserve(const ExtentRequest& request, uint64_t frame_index, ExtentBatch& batch) {
  const ExtentFile& file = request.file;
  const FrameKey key = file.key(frame_index);
  const bool wanted = request.wants(frame_index);
  if (const Pin pin = request.cache->find(key)) {
    if (wanted && !copy_kept(request, frame_index, pin)) {
      batch.add_late(request.piece_of(frame_index));
    }
    return;
  }
  Reservation ahead = ahead_.join(key);
  if (ahead.kind == Reservation::Kind::kWait) {
    if (wanted) batch.add_wait(frame_index, std::move(ahead.wait), /*is_prefetched=*/true);
    return;
  }
  if (ahead.kind == Reservation::Kind::kHit) {
    if (wanted && !take_prefetched(request, frame_index, ahead.pin)) {
      batch.add_late(request.piece_of(frame_index));
    }
    return;
  }
  Reservation reservation = request.cache->reserve(key, admission(request, frame_index));
  if (reservation.kind == Reservation::Kind::kFill) {
    request.cache.claim(reservation.fill);
    if (!wanted) prefetches_.add(key, frame_index * kExtentFrameBytes - request.range.end());
    batch.add_fill(file.frame_range(frame_index), std::move(reservation.fill));
    return;
  }
  if (!wanted) return;
  if (reservation.kind == Reservation::Kind::kWait) {
    batch.add_wait(frame_index, std::move(reservation.wait), /*is_prefetched=*/false);
  } else if (reservation.kind == Reservation::Kind::kBypass &&
             is_aligned(request.piece_of(frame_index))) {
    batch.add_bypass(request.piece_of(frame_index));
  } else if (reservation.kind != Reservation::Kind::kHit ||
             !copy_kept(request, frame_index, reservation.pin)) {
    batch.add_late(request.piece_of(frame_index));
  }
}

// Requests all pieces from the devices at once.
bool ExtentReader::fetch(const ExtentRequest& request, ExtentBatch& batch, Meanwhile& meanwhile) {
  if (batch.piece_count == 0) return true;
  const ExtentFile& file = request.file;
  const int error = request.engine.run({.map = file.map,
                                        .parts = file.parts,
                                        .size_bytes = file.size_bytes,
                                        .op = IoOp::kRead,
                                        .direct = true,
                                        .pieces = {batch.pieces, batch.piece_count},
                                        .meanwhile = &meanwhile});
  end_fetch(request, batch, error);
  return error == 0;
}

void ExtentReader::end_fetch(const ExtentRequest& request, ExtentBatch& batch, int error) {
  const ExtentFile& file = request.file;
  uint64_t fetched = 0, bypassed = 0;
  for (uint32_t i = 0; i < batch.piece_count; ++i) {
    const ByteRange& range = batch.pieces[i].range;
    Fill& fill = batch.fills[i];
    if (!fill) {
      bypassed += range.length_bytes;
    } else if (error != 0) {
      fill.abandon(error);
    } else {
      const uint64_t index = range.offset / kExtentFrameBytes;
      const uint64_t length = std::min(range.length_bytes, file.size_bytes - range.offset);
      const bool wanted = request.wants(index);
      const std::span<const std::byte> bytes = fill.bytes().first(length);
      if (wanted) (void)request.copy(index, bytes);
      kept_.sample(bytes);
      request.cache.leave(fill, length);
      Pin pin = fill.publish(length);
      fetched += length;
      if (!wanted) prefetches_.complete(file.key(index), std::move(pin));
    }
  }
  fetched_bytes_.fetch_add(fetched, relaxed);
  bypassed_bytes_.fetch_add(bypassed, relaxed);
}

void ExtentReader::wait(const ExtentRequest& request, ExtentBatch& batch, Meanwhile& meanwhile) {
  for (uint32_t i = 0; i < batch.wait_count; ++i) {
    const uint64_t index = batch.wait_index[i];
    const bool is_prefetched = batch.wait_prefetched[i];
    const Result<Pin> pin = wait_for(request, batch.waits[i], is_prefetched, meanwhile);
    if (pin &&
        (is_prefetched ? take_prefetched(request, index, *pin) : copy_kept(request, index, *pin))) {
      continue;
    }
    batch.waits[i].release();
    batch.add_late(request.piece_of(index));
  }
}

// Reads the pieces without a frame, and those that another thread failed to fill. Unaligned ones
// go through the page cache.
bool ExtentReader::read_late(const ExtentRequest& request, ExtentBatch& batch) {
  for (uint32_t i = 0; i < batch.late_count; ++i) {
    const Piece& piece = batch.late[i];
    bypassed_bytes_.fetch_add(piece.range.length_bytes, relaxed);
    const int error = request.engine.run({.map = request.file.map,
                                          .parts = request.file.parts,
                                          .size_bytes = request.file.size_bytes,
                                          .op = IoOp::kRead,
                                          .direct = is_aligned(piece),
                                          .pieces = {&piece, 1}});
    if (error != 0) return false;
  }
  return true;
}

ExtentReader::Counts ExtentReader::counts() const {
  return {.hit_bytes = hit_bytes_.load(relaxed),
          .fetched_bytes = fetched_bytes_.load(relaxed),
          .bypassed_bytes = bypassed_bytes_.load(relaxed),
          .reclaimed_frames = reclaimed_frames_.load(relaxed)};
}

}  // namespace graphlane
