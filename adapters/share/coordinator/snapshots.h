// Snapshots: which job sees which bytes of a graph that is updated: GraphM §3.3.2.
//
//   version      0        1        2        3
//   chunk 5      file   ─ u1 ───────────── u3        an update makes a version
//   jobs           a           b                     a sees the file, b sees u1
//
// A job sees the version that was newest when it came, to its end. What an update
// replaces stays as long as a job of before it lives, and no longer. The newest copies
// stay: the graph's file does not have them.
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

  // The chunk is `bytes` for jobs that come from now on.
  Outcome<void> update(uint32_t partition, uint32_t chunk, std::span<const char> bytes);

  // What a job of `version` sees instead of the file's chunks; null: nothing.
  const Fd* overlay(uint32_t partition, uint64_t version) const;
  std::vector<uint32_t> updated_partitions(uint64_t version) const;
  // Behind the last chunk that was updated; 0: none was.
  uint64_t chunk_end(uint32_t partition) const;

  // Only jobs of these versions are left.
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
