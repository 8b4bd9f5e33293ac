// DropBehind: pages that a sweep will not want again leave the kernel's page cache.
//
// The kernel keeps what was read until it needs room, and under a tight limit it finds some
// by writing the engine's vertex files out. Of files that do not fit in memory the next
// sweep finds no page again, so what was read long before the rest goes before that, whatever
// files and threads read it:
//
//        dropped              kept            read now
//   ░░░░░░░░░░░░░░░░░░███████████████████████|▓▓▓        in the order of reading
//                     └ that the kernel has read ahead, and no thread has taken yet ┘
//
// A page must not go while what was written to it is on its way to us: read before that has come,
// it would keep the bytes of before. So of a file that somebody writes nothing goes.
//
// Threads: everything of DropBehind is safe from any thread. One of its own drops, as the
// kernel waits there for pages that a request is to bring.
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

// What was read of all files, in its order. Not thread-safe.
class ReadTrail {
 public:
  struct Stretch {
    fuse_ino_t ino;
    ByteRange range;
    bool sweeps = false;  // it goes on where another one of late had ended
    uint64_t gone_at = 0;
  };

  // One more read, not empty. One that comes for what has gone shortly before shows that more
  // must be kept.
  void add(fuse_ino_t ino, ByteRange range);
  // A stretch of a sweep behind which at least `kept_bytes` were read, or more, if that has shown
  // to be too few: it is to go. What is no sweep is forgotten.
  std::optional<Stretch> take(uint64_t kept_bytes);
  // One of this file, whatever was read since: it was closed.
  std::optional<Stretch> take_of(fuse_ino_t ino);
  // None of this file goes: somebody writes it.
  void forget(fuse_ino_t ino);

 private:
  // A request of one window of read-ahead may come before those in front of it.
  static constexpr uint64_t kNear = uint64_t{4} << 20;
  static constexpr uint64_t kStretchMax = uint64_t{4} << 20;  // goes at a time
  static constexpr size_t kStreamsMax = 32;                   // that are looked at
  static constexpr size_t kStretchesMax = 4096;
  static constexpr uint64_t kSweepMin = uint64_t{1} << 20;
  static constexpr uint64_t kKeptGrowth = 4;  // times what was asked, at most

  void learn(fuse_ino_t ino, ByteRange range);
  void forget_first();

  std::deque<Stretch> stretches_;
  uint64_t bytes_ = 0;        // in them
  uint64_t clock_ = 0;        // bytes read
  uint64_t kept_bytes_ = 0;   // of the last take()
  uint64_t extra_bytes_ = 0;  // to keep beyond it
  std::array<Stretch, kStreamsMax> gone_{};
  size_t gone_count_ = 0;
};

class DropBehind {
 public:
  DropBehind() = default;
  ~DropBehind() { stop(); }
  DropBehind(const DropBehind&) = delete;
  DropBehind& operator=(const DropBehind&) = delete;

  // Before the first request.
  void start(fuse_session* session);
  // No page that the kernel waits for may be left to bring: the mount has ended.
  void stop();

  // The kernel asks for this range. Of what was read last, so much stays.
  void passed(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes);
  // The file was closed: what is left of its sweeps goes.
  void ended(fuse_ino_t ino);
  // One more writer of the file, before he can write, after what is just going (`waits`); and
  // one less.
  void begin_writing(fuse_ino_t ino, bool waits);
  void end_writing(fuse_ino_t ino);

 private:
  static constexpr size_t kWaitingMax = 256;  // what is more, stays

  void push(const ReadTrail::Stretch& stretch) REQUIRES(mu_);
  void serve();

  fuse_session* session_ = nullptr;  // constant while the thread runs
  std::thread thread_;

  Mutex mu_;
  CondVar changed_, dropped_;
  ReadTrail trail_ GUARDED_BY(mu_);
  std::deque<ReadTrail::Stretch> waiting_ GUARDED_BY(mu_);
  fuse_ino_t dropping_ GUARDED_BY(mu_) = 0;  // of which pages are just going
  std::unordered_map<fuse_ino_t, uint32_t> writer_counts_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
