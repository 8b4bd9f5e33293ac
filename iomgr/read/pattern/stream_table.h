// StreamTable: which reads belong to a sequential stream, and how far to read on
// (CSMqGraph §3.3).
//
// It remembers the most recent streams (read_stream.h) of all files. A stream is a stretch of which
// at least half was read, not a chain of adjacent offsets.
//
// Threads: everything is safe from any thread, under one lock that is held for a scan of the
// table. A signal handler that cannot have the lock reads without prefetch.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/read/pattern/read_stream.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class StreamTable {
 public:
  // The answer for one read.
  struct Advice {
    bool is_stream = false;
    // How far a read that misses should read on; the end of the read: not at all.
    uint64_t fetch_end = 0;  // bytes
  };

  // Records a read of `range` (not empty). A stream is read on to the next multiple of
  // `quantum_bytes`, at most `ahead_max_bytes` behind the range.
  Advice observe(const Uuid& file_id, uint64_t generation, ByteRange range, uint64_t quantum_bytes,
                 uint64_t ahead_max_bytes);

 private:
  static constexpr uint32_t kStreamCount = 64;  // GraphChi: a window of each of its shards
  static constexpr uint64_t kSlackReads = 16;   // how far out of order, in lengths of a read
  static constexpr uint32_t kReadsMin = 2;      // make a stream

  struct Stream {
    Uuid file_id;
    uint64_t generation = 0;
    ReadStream reads;
    uint32_t last_used = 0;
    bool used = false;
  };

  Stream* find(const Uuid& file_id, uint64_t generation, ByteRange range);
  Stream* begin_stream(const Uuid& file_id, uint64_t generation, ByteRange range);

  FutexLock lock_;  // guards the members below
  uint32_t clock_ = 0;
  Stream streams_[kStreamCount];
};

}  // namespace graphlane
