// Snapshots: which bytes of an updated graph each job sees: GraphM §3.3.2.
//
//   version      0        1        2        3
//   chunk 5      file   ─ u1 ───────────── u3        an update makes a version
//   jobs           a           b                     a sees the file, b sees u1
//
// A job sees, to its end, the version that was newest when it attached. A replaced chunk stays as
// long as a job of an earlier version lives. The newest copies stay always, because the graph's
// file does not have them.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

class Snapshots {
 public:
  uint64_t newest_version() const { return newest_; }

  // Replaces the chunk by `bytes` for jobs that attach from now on.
  Outcome<void> update(uint32_t partition, uint32_t chunk, std::span<const char> bytes);

  // The overlay of the partition that a job of `version` sees; null: none.
  const Fd* overlay(uint32_t partition, uint64_t version) const;
  std::vector<uint32_t> updated_partitions(uint64_t version) const;
  // One past the highest updated chunk; 0: none was updated.
  uint64_t chunk_end(uint32_t partition) const;

  // Drops overlays that no job of these versions sees.
  void keep_for(const std::multiset<uint64_t>& versions_of_jobs);

  uint64_t bytes() const;  // of all overlays

 private:
  struct Overlay {
    uint64_t version = 0;
    Fd memory;
    uint64_t size_bytes = 0;
    uint64_t chunk_end = 0;
  };

  uint64_t newest_ = 0;
  std::map<uint32_t, std::vector<Overlay>> partitions_;  // each by rising version
};

}  // namespace graphlane::share
