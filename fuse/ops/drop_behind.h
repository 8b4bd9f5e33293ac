// DropBehind: drops pages of the kernel's page cache that a sweep will not read again.
//
// The kernel keeps pages until it needs memory, and under a tight limit it then writes the engine's
// vertex files out. So the pages read longest ago are dropped first, over all files and threads
// (fuse/ops/read_trail.h). Behind them stays what the kernel has prefetched and no thread has read
// yet.
//
// A page must not be dropped while a write of it is in flight: a read in that time would bring back
// the old bytes. So no page of a file with a writer is dropped.
//
// Threads: everything of DropBehind is safe from any thread. One of its own drops, because the
// kernel makes a drop wait for pages that a request is to bring.
#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <unordered_map>

#include "fuse/ops/fuse_api.h"
#include "fuse/ops/read_trail.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::fuse {

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
  void add_read(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes);
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

}  // namespace graphlane::fuse
