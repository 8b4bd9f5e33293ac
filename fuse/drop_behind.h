// DropBehind: pages that a sweep will not want again leave the kernel's page cache.
//
// The kernel keeps what was read until it needs room, and under a tight limit it finds some
// by writing the engine's vertex files out. Of a file that does not fit in memory the next
// sweep finds no page again, so what lies far behind this one goes before that:
//
//        dropped              kept            read now
//   |░░░░░░░░░░░░░░░░░|███████████████████████|▓▓▓|
//                     └ where a thread may lag ┘
//
// Threads: everything is safe from any thread. One of its own drops, as the kernel waits
// there for pages that a request is to bring.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <thread>

#include "fuse/fuse_api.h"
#include "iomgr/base/mutex.h"
#include "iomgr/stripe.h"

namespace graphlane {

// The reads of one open file.
class ReadTrail {
 public:
  // Of one more read: a stretch that is to go, if there is one. `kept_bytes` behind the furthest
  // read stay, or more, if its threads turn out to be further apart. Only of a sweep, which
  // has asked for half of what it has passed at least.
  std::optional<ByteRange> advance(ByteRange read, uint64_t kept_bytes);
  // After the last read: what is left of a sweep.
  std::optional<ByteRange> rest();

 private:
  Mutex mu_;
  uint64_t begin_ GUARDED_BY(mu_) = 0;  // of what may still be there
  uint64_t end_ GUARDED_BY(mu_) = 0;
  uint64_t asked_bytes_ GUARDED_BY(mu_) = 0;  // between them
  uint64_t kept_bytes_ GUARDED_BY(mu_) = 0;
  bool sweeps_ GUARDED_BY(mu_) = false;  // the last stretch was one's
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

  // The kernel asks for this range.
  void passed(fuse_ino_t ino, ReadTrail& trail, ByteRange range);
  // The same of files that do not fit together: `kept_bytes` of what was read last of them stay.
  void passed_together(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes);
  // The file was closed.
  void ended(fuse_ino_t ino, ReadTrail& trail);

 private:
  struct Stretch {
    fuse_ino_t ino;
    ByteRange range;
  };
  static constexpr size_t kWaitingMax = 64;  // what is more, stays

  void push(fuse_ino_t ino, std::optional<ByteRange> range);
  void push_locked(fuse_ino_t ino, ByteRange range) REQUIRES(mu_);
  void serve();

  fuse_session* session_ = nullptr;  // constant while the thread runs
  uint64_t kept_bytes_ = 0;
  std::thread thread_;

  Mutex mu_;
  CondVar changed_;
  std::deque<Stretch> waiting_ GUARDED_BY(mu_);
  std::deque<Stretch> together_ GUARDED_BY(mu_);  // in the order of reading
  uint64_t together_bytes_ GUARDED_BY(mu_) = 0;
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
