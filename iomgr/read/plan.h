// ReadPlan: how a striped file is read. The mount and the preload library gather the inputs and
// execute the plan. Neither decides anything else about the way of a read.
//
//   at open         fit_in_memory(mode, size, free memory)      ──► MemoryFit of the file
//   every 32 MiB    mounted: the same of all open files         ──► MemoryFit of them together
//   at each read    plan(ReadState, AccessPattern, FreeMemory)  ──► ReadPlan
//
//   the file fits    preloaded                 mounted
//   twice            the parts' page cache     the parts' page cache; the mount's pages are a copy
//   once             the parts' page cache     past it: the mount's pages stay
//   not              past it, own cache        past it: own cache, or the mount's pages, which are
//                                              dropped behind a sweep
//
// Once: in 7/8 of the free memory. Twice: in half of that.
//
// A file that fits goes through the page cache, so that a second sweep is as warm as on plain
// files. A larger file bypasses it (O_DIRECT), because a cyclic sweep under LRU would never hit.
//
// Pure. No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/cache/memory_budget.h"

namespace graphlane {

// Measures the free memory first.
inline MemoryFit fit_now(IoMode mode, uint64_t size_bytes) {
  return fit_in_memory(mode, size_bytes, mode == IoMode::kAuto ? memory_available_bytes() : 0);
}

// An open file, as it was when it was opened.
struct ReadState {
  // Preloaded, the bytes lie in the parts' page cache. Mounted, the mount's pages are a second copy.
  enum class Reader : uint8_t { kPreloaded, kMounted };

  Reader reader = Reader::kPreloaded;
  IoMode mode = IoMode::kAuto;
  MemoryFit fit = MemoryFit::kTwice;  // by itself
  bool o_direct = false;              // the program opened it with O_DIRECT
  bool on_disks = false;
  bool verifies = false;  // reads are compared with checksums
  bool in_turn = false;  // mounted: the kernel keeps no pages, and asks for one piece after another
  bool may_share = false;  // preloaded: a server may have it in memory for several processes
  bool maps = false;       // preloaded: shared pages are mapped, not copied

  // The user can switch O_DIRECT off (buffered).
  constexpr bool obeys_o_direct() const { return o_direct && mode != IoMode::kBuffered; }
  // Mounted: whether reads leave pages in the kernel that do not fit in memory. (In turn, only
  // reads of mappings do.)
  constexpr bool leaves_pages() const { return fit == MemoryFit::kNot && !o_direct; }
  constexpr bool sweeps_page_cache() const { return leaves_pages() && !in_turn; }
  // Mounted: whether the other open files change its plan (FreeMemory).
  constexpr bool depends_on_others() const { return fit != MemoryFit::kNot && !o_direct; }
};

// One request, and what is known of the reads before it.
struct AccessPattern {
  uint64_t length_bytes = 0;
  uint64_t request_max_bytes = UINT64_MAX;  // mounted: of the kernel's requests
  bool to_end = false;                      // up to the end of the file
  bool alone = false;                       // mounted: no other striped file is open
  bool has_writer = false;                  // mounted
  bool one_handle = true;                   // mounted: of the file
};

// The free memory, for the files that are read together.
struct FreeMemory {
  MemoryFit together = MemoryFit::kTwice;
};

struct ReadPlan {
  // Where the bytes come from.
  enum class Source : uint8_t {
    kPageCache,  // of the parts, through which they are read
    kDevices,    // straight into the reader's pages, which stay
    kCache,      // this process's cache; what it declines, from the devices
  };
  enum class Prefetch : uint8_t {
    kBySource,  // the kernel's read-ahead, or the cache's own
    kSweep,     // what the program's sweep over its files reads next (file_sweeps.h)
  };
  enum class Drop : uint8_t {
    kNothing,
    kBehindSweep,  // mounted: of the mount's pages, those read longest ago (fuse/ops/drop_behind.h)
    kUnlessKept,  // preloaded: the range, from the parts' page cache, unless its file may stay there
  };

  // Mounted: how a program's read arrives.
  enum class Arrival : uint8_t {
    kWhole,   // in one request
    kParts,   // as one of several that are in flight together
    kInTurn,  // as one of several, each after the answer to the one before
  };

  Source source = Source::kPageCache;
  bool bypass = false;  // what is not in memory is read past the parts' page cache
  // Mounted: pages of the parts that are in memory are used first. With another source than the
  // page cache they are dropped after that, because the mount has a copy.
  bool peeks = false;
  bool shares = false;  // preloaded: first from memory that other processes share
  Prefetch prefetch = Prefetch::kBySource;
  Drop drop = Drop::kNothing;
  Arrival arrival = Arrival::kWhole;

  friend bool operator==(const ReadPlan&, const ReadPlan&) = default;
};

// Mounted: below this, the 20 µs of a call outweigh its bytes.
inline constexpr uint64_t kSmallReadBytes = 128 << 10;
// Preloaded: reads up to this may be faster by the kernel (small_reads.h).
inline constexpr uint64_t kKernelReadMax = 64 << 10;
// Preloaded: for smaller reads a question to the server costs more than it gains.
inline constexpr uint64_t kSharedReadMin = 512 << 10;

ReadPlan plan(const ReadState& file, const AccessPattern& read, const FreeMemory& memory);

// Preloaded: `bypass` of every plan for this file. It depends on nothing but the file.
bool bypasses_page_cache(const ReadState& file);

}  // namespace graphlane
