// SweepStep: a read through the page cache of a file on disks, with its prefetches.
//
//   read ──► starts all its devices ──► the read itself ──► starts the next ranges
//
// A file that fits in memory is left to the page cache of its parts. But the kernel knows each part
// alone: it reads ahead of one device while the others idle, and never reads ahead into the next
// file. So a long read starts its I/O on all devices before it waits for any. Once it has its
// bytes, it prefetches the ranges expected next (iomgr/read/file_sweeps.h). So the disks work while
// the program computes.
//
// On disks only: devices with deep queues lose little by waiting. It needs no thread and no memory,
// because the kernel fills its page cache (POSIX_FADV_WILLNEED).
#pragma once

#include <optional>

#include "iomgr/read/file_sweeps.h"
#include "shim/fd/open_file.h"
#include "shim/read/swept_files.h"

namespace graphlane::shim {

class SweepStep {
 public:
  SweepStep(const OpenFileRef& file, ByteRange range);
  ~SweepStep();
  SweepStep(const SweepStep&) = delete;
  SweepStep& operator=(const SweepStep&) = delete;

 private:
  const Uuid file_id_;
  const ByteRange range_;
  uint64_t size_bytes_ = 0;
  bool drops_ = false;  // drops read pages from the page cache, because no reader needs them soon
  std::optional<SweptFiles::Ref> swept_;  // empty, or none: the read is no such step
};

// The counts of prefetched ranges.
PrefetchStats sweep_stats();

}  // namespace graphlane::shim
