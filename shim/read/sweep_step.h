// SweepStep: a read through the page cache of files on disks, and what is wanted after it.
//
//   read ──► all its devices begin ──► the read itself ──► what comes next begins
//
// A file that fits in memory is left to the page cache of its parts. But the kernel
// knows each part alone: it reads ahead of one device while the others idle, and of no file
// that the program comes to next. So what a long read wants is begun on all devices before any is
// waited for, and what the last sweep over all files read next, or what the first one seems to want
// (iomgr/read/sequence_predictor.h), when this one has its bytes: the disks work while the program computes.
//
// On disks only: what answers many reads at once loses little by waiting.
// No thread, no memory of ours: the kernel fills its page cache (POSIX_FADV_WILLNEED).
#pragma once

#include <optional>

#include "iomgr/read/sequence_predictor.h"
#include "shim/fd/open_file.h"
#include "shim/read/swept_files.h"

namespace graphlane {

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
  bool drops_ = false;  // of what has been read, from the page cache: nobody comes for it soon
  std::optional<SweptFiles::Ref> swept_;  // empty, or none: it is no such step
};

// What was begun of what comes next.
NextStats sweep_stats();

}  // namespace graphlane
