// PatternDetector: how programs read their files, and what they read next (CSMqGraph §3.3).
//
//   streams   ░░██████▓░░░   ░░░███▓░░     (read_stream.h) Stretches that are read upwards now:
//                                          does this read belong to one?
//   order     A ████  B ████  A ██ ...     (read_order.h) Runs, the oldest first: what came next
//                                          when this place was last read?
//
// Each file has an interval of its own in one address space, on which both work. So the order tells
// what comes next in a file, and which file comes next. An engine that keeps its data in many short
// files sweeps them in the same order every time.
//
// It only answers. prefetch_tracker.h and file_sweeps.h prefetch, and judge the answers by their use.
//
// Threads: everything is safe from any thread, under one lock that is held for a scan of the
// order. A signal handler that cannot have the lock gets the answer no, or none.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/read/pattern/read_order.h"
#include "iomgr/read/pattern/read_stream.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class PatternDetector {
 public:
  struct File {
    Uuid file_id;
    uint64_t generation = 0;  // another one is another file

    bool operator==(const File&) const = default;
  };
  struct Prediction {
    Uuid file_id;
    ByteRange range;
    uint64_t address = 0;  // of the range
  };
  // A run of adjoining steps is ended by steps elsewhere in its file, or in any file. The latter
  // makes runs of windows of many files that take turns, in the order of the turns.
  enum class RunEnd : uint8_t { kInFile, kInAnyFile };

  static constexpr uint32_t kRangesMax = 16;  // of predict_files()

  constexpr explicit PatternDetector(RunEnd run_end) : run_end_(run_end) {}

  // A read (not empty) arrives. Returns whether it belongs to a stream.
  bool observe(const File& file, ByteRange range);

  // Adds a step of a sweep (not empty) to the order, when it arrives. Small reads make no steps:
  // they would replace what a sweep needs. Returns the step's address; 0: not added.
  uint64_t add_step(const File& file, ByteRange step);

  // Predicts what follows the added step in its file, within `size_bytes`. Returns how many ranges,
  // in order, none empty. `is_sequential` allows the bytes behind the step.
  uint32_t predict_file(const File& file, ByteRange step, bool is_sequential, uint64_t size_bytes,
                        std::span<ByteRange> next);
  // As predict_file(), in all files, at most kRangesMax. `size_bytes` of this file allows guesses at
  // what was never read; 0: none.
  uint32_t predict_files(const File& file, ByteRange step, uint64_t size_bytes,
                         std::span<Prediction> next);

 private:
  static constexpr uint32_t kFileCount = 256;
  static constexpr uint32_t kStreamCount = 64;  // GraphChi: a window of each of its shards
  static constexpr uint64_t kFileBytesMax = uint64_t{1} << 48;  // no answers beyond
  static constexpr uint64_t kFileSpan = 2 * kFileBytesMax;      // between the bases of two files
  static constexpr uint64_t kSlackReads = 16;  // how far out of order, in lengths of a read
  static constexpr uint32_t kReadsMin = 2;     // make a stream

  struct Slot {
    File file;
    uint64_t base = 0;  // its first address
    uint32_t last_used = 0;
    bool used = false;
  };
  struct Stream {
    ReadStream reads;  // of addresses
    uint32_t last_used = 0;
    bool used = false;
  };

  const Slot& use(const File& file);
  const Slot* slot_at(uint64_t address) const;
  Stream* find_stream(ByteRange range);
  void forget_all();

  const RunEnd run_end_;
  FutexLock lock_;  // guards the members below
  uint32_t clock_ = 0;
  uint32_t newest_ = 0;  // the slot that was used last
  uint64_t last_base_ = 0;
  Stream streams_[kStreamCount];
  Slot slots_[kFileCount];
  ReadOrder order_;
};

}  // namespace graphlane
