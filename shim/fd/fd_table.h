// FdTable: what the shim knows of each descriptor number of this process.
//
//   unknown    never looked at, or opened, duplicated or closed since
//   foreign    not ours: straight to libc
//   internal   the shim's own: a part, a ring. The program cannot close it
//   mounted    foreign, but open for writing on a mount: large writes may be ours
//   ours       a striped file: the OpenFile's slot, whether its open file
//              description asked for O_DIRECT, and what the program may do by it
//
// A look-up is one load. Entries may go stale when a descriptor is closed in a
// way that we do not see; whoever finds `ours` therefore compares inode numbers
// before trusting it (see acquire() in open_file.h), and a stale `foreign` only
// costs speed over a mount.
//
// Threads, signal handlers: everything is one atomic operation.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/fd/access.h"

namespace graphlane {

class FdEntry {
 public:
  constexpr FdEntry() = default;
  static constexpr FdEntry unknown() { return FdEntry(0); }
  static constexpr FdEntry foreign() { return FdEntry(1); }
  static constexpr FdEntry internal() { return FdEntry(2); }
  static constexpr FdEntry mounted() { return FdEntry(3); }
  static constexpr FdEntry ours(uint32_t slot, bool direct, Access access) {
    return FdEntry((slot + 1) << 3 | (direct ? 4u : 0u) | static_cast<uint32_t>(access));
  }

  constexpr bool is_ours() const { return bits_ >= 8; }
  constexpr uint32_t slot() const { return (bits_ >> 3) - 1; }
  constexpr bool direct() const { return (bits_ & 4) != 0; }
  constexpr Access access() const { return static_cast<Access>(bits_ & 3); }
  friend constexpr bool operator==(FdEntry, FdEntry) = default;

 private:
  constexpr explicit FdEntry(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

class FdTable {
 public:
  // Numbers above this are looked at anew each time. 4 MiB of zero pages that
  // cost nothing until they are touched.
  static constexpr int kFdMax = 1 << 20;

  static bool covers(int fd) { return fd >= 0 && fd < kFdMax; }

  // Acquire: whoever sees `ours` sees the OpenFile that was filled before.
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

// Zero-initialised: every number is unknown before any constructor has run.
extern FdTable fd_table;

inline void set_entry(int fd, FdEntry entry) {
  if (FdTable::covers(fd)) fd_table.exchange(fd, entry);
}

// Where our own descriptors are put: above what programs reach, below the
// limit. Constant for the process.
int internal_fd_floor();

}  // namespace graphlane
