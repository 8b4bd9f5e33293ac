// FdTable: the state of each descriptor number of this process.
//
//   unknown    never identified, or opened, duplicated or closed since
//
//   foreign    not a striped file: calls go straight to libc
//
//   internal   the library's own: a part, a ring. The program cannot close it
//
//   mounted    foreign, but open for writing on a mount: the library may do large writes
//
//   ours       a striped file: the OpenFile's slot, O_DIRECT of its open file description, and the
//              program's access mode
//
// A look-up is one load. An entry becomes stale when a descriptor is closed without the library's
// knowledge. So a caller that finds `ours` compares inode numbers before it trusts the entry (see
// acquire() in open_file.h). A stale `foreign` only costs speed over a mount.
//
// Threads, signal handlers: everything is one atomic operation.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/fd/access.h"

namespace graphlane::shim {

class FdEntry {
 public:
  constexpr FdEntry() = default;
  static constexpr FdEntry unknown() { return FdEntry(0); }
  static constexpr FdEntry foreign() { return FdEntry(1); }
  static constexpr FdEntry internal() { return FdEntry(2); }
  static constexpr FdEntry mounted() { return FdEntry(3); }
  static constexpr FdEntry ours(uint32_t slot, bool o_direct, Access access) {
    return FdEntry((slot + 1) << 3 | (o_direct ? 4u : 0u) | static_cast<uint32_t>(access));
  }

  constexpr bool is_ours() const { return bits_ >= 8; }
  constexpr uint32_t slot() const { return (bits_ >> 3) - 1; }
  constexpr bool o_direct() const { return (bits_ & 4) != 0; }
  constexpr Access access() const { return static_cast<Access>(bits_ & 3); }
  friend constexpr bool operator==(FdEntry, FdEntry) = default;

 private:
  constexpr explicit FdEntry(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

class FdTable {
 public:
  // Larger numbers are identified at each use. 4 MiB of zero pages, which take no memory until they
  // are touched.
  static constexpr int kFdMax = 1 << 20;

  static bool covers(int fd) { return fd >= 0 && fd < kFdMax; }

  // Acquire: a thread that sees `ours` sees the OpenFile that was filled before.
  FdEntry load(int fd) const { return entries_[fd].load(std::memory_order_acquire); }
  FdEntry exchange(int fd, FdEntry entry) {
    return entries_[fd].exchange(entry, std::memory_order_acq_rel);
  }
  bool replace(int fd, FdEntry expected, FdEntry entry) {
    return entries_[fd].compare_exchange_strong(expected, entry, std::memory_order_acq_rel);
  }

 private:
  std::atomic<FdEntry> entries_[kFdMax];
};

// Zero-initialised: all numbers are unknown before any constructor runs.
extern FdTable fd_table;

inline void set_entry(int fd, FdEntry entry) {
  if (FdTable::covers(fd)) fd_table.exchange(fd, entry);
}

// The least number of the library's own descriptors: above those that programs use, below the
// limit. Constant for the process.
int internal_fd_floor();

}  // namespace graphlane::shim
