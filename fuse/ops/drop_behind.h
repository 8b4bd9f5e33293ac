// DropBehind: drops pages of the kernel's page cache that a sweep will not read again.
//
// The kernel keeps pages until it needs memory, and under a tight limit it then writes the engine's
// vertex files out. The next sweep of files that do not fit in memory hits no page anyway. So the
// pages read longest ago are dropped first, over all files and threads:
//
//        dropped              kept            read now
//   ░░░░░░░░░░░░░░░░░░███████████████████████|▓▓▓        in the order of reading
//                     └ prefetched by the kernel and not yet read by any thread ┘
//
// A page must not be dropped while a write of it is in flight: a read in that time would bring back
// the old bytes. So no page of a file with a writer is dropped.
//
// Threads: everything of DropBehind is safe from any thread. One of its own drops, because the
// kernel makes a drop wait for pages that a request is to bring.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>
#include <unordered_map>

#include "fuse/ops/fuse_api.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

// The ranges read, of all files, in their order. Not thread-safe.
class ReadTrail {
 public:
  struct Stretch {
    fuse_ino_t ino;
    ByteRange range;
    bool sweeps = false;   // it continues another recent stretch
    uint64_t gone_at = 0;  // the clock when it was dropped
  };

  // Adds a read, which is not empty. A read of a range that was dropped recently shows that more
  // must be kept.
  void add(fuse_ino_t ino, ByteRange range);
  // The oldest stretch of a sweep, if at least `kept_bytes` were read after it, or more if that has
  // proved to be too little. The caller drops it. Stretches that are not of a sweep are forgotten.
  std::optional<Stretch> take(uint64_t kept_bytes);
  // As take(), of this file and regardless of later reads, because the file was closed.
  std::optional<Stretch> take_of(fuse_ino_t ino);
  // Forgets all stretches of this file, because it has a writer.
  void forget(fuse_ino_t ino);

 private:
  // Requests of one read-ahead window may arrive out of order by this much.
  static constexpr uint64_t kNear = uint64_t{4} << 20;
  static constexpr uint64_t kStretchMax = uint64_t{4} << 20;  // dropped at a time
  // recent stretches that a read may continue
  static constexpr size_t kStreamsMax = 32;
  static constexpr size_t kStretchesMax = 4096;
  static constexpr uint64_t kSweepMin = uint64_t{1} << 20;
  static constexpr uint64_t kKeptGrowth = 4;  // times kept_bytes, at most

  void learn(fuse_ino_t ino, ByteRange range);
  void forget_first();

  std::deque<Stretch> stretches_;
  uint64_t bytes_ = 0;        // in stretches_
  uint64_t clock_ = 0;        // bytes read so far
  uint64_t kept_bytes_ = 0;   // of the last take()
  uint64_t extra_bytes_ = 0;  // learned: to keep beyond kept_bytes_
  std::array<Stretch, kStreamsMax> gone_{};
  size_t gone_count_ = 0;
};

class DropBehind {
 public:
  DropBehind() = default;
  ~DropBehind() { stop(); }
  DropBehind(const DropBehind&) = delete;
  DropBehind& operator=(const DropBehind&) = delete;

  // Call it before the first request.
  void start(fuse_session* session);
  // Call it after the mount has ended: no request for a page may be outstanding.
  void stop();

  // The kernel has asked for this range. The last `kept_bytes` read stay.
  void passed(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes);
  // The file was closed: drops what its sweeps have left.
  void ended(fuse_ino_t ino);
  // Adds a writer of the file, before its first write. `waits`: not before a drop in progress has
  // ended. end_writing() removes the writer.
  void begin_writing(fuse_ino_t ino, bool waits);
  void end_writing(fuse_ino_t ino);

 private:
  static constexpr size_t kWaitingMax = 256;  // further stretches stay in the page cache

  void push(const ReadTrail::Stretch& stretch) REQUIRES(mu_);
  void serve();

  fuse_session* session_ = nullptr;  // constant while the thread runs
  std::thread thread_;

  Mutex mu_;
  CondVar changed_, dropped_;
  ReadTrail trail_ GUARDED_BY(mu_);
  std::deque<ReadTrail::Stretch> waiting_ GUARDED_BY(mu_);
  fuse_ino_t dropping_ GUARDED_BY(mu_) = 0;  // the file of the drop in progress
  std::unordered_map<fuse_ino_t, uint32_t> writer_counts_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
