// Counts the reads and writes of this process, by device, by file and by path. GRAPHLANE_REPORT
// prints them when the process ends.
//
// Threads: counters are relaxed atomics, because they order nothing.
// Tables are filled under the caller's SlowLock.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/parts/lane_io.h"
#include "shim/base/text.h"
#include "shim/hooks/groups.h"
#include "shim/locate/locate.h"

namespace graphlane::shim {

struct DeviceCounters {
  Text<1024> directory;
  std::atomic<uint32_t> depth{0};  // I/Os at once past the page cache; 0: no limit
  std::atomic<uint64_t> io_count{0};
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<DeviceCounts*> server_counts{nullptr};  // for `graphlane stat`; null: none

  void count(IoOp op, uint64_t bytes, uint32_t ios = 1) {
    add(*this, op, bytes, ios);
    if (DeviceCounts* const server = server_counts.load(std::memory_order_relaxed)) {
      add(*server, op, bytes, ios);
    }
  }
  // From now on also counts in the server's memory, which stays mapped.
  void mirror_to(DeviceCounts* server) { server_counts.store(server, std::memory_order_relaxed); }

 private:
  template <class Counts>
  static void add(Counts& counts, IoOp op, uint64_t bytes, uint32_t ios) {
    counts.io_count.fetch_add(ios, std::memory_order_relaxed);
    (op == IoOp::kRead ? counts.bytes_read : counts.bytes_written)
        .fetch_add(bytes, std::memory_order_relaxed);
  }
};

struct FileCounters {
  Text<1024> path;
  Origin origin = Origin::kForeign;
  std::atomic<uint64_t> read_count{0};
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> write_count{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> failed_count{0};   // reads that failed here, and were passed to FUSE
  std::atomic<uint64_t> written_count{0};  // calls while the file had a writer
  std::atomic<uint64_t> small_count{0};    // reads left to the kernel (small_reads.h)
  std::atomic<uint64_t> left_count[kGroupCount] = {};  // calls that FUSE always serves

  void count_read(uint64_t bytes) {
    read_count.fetch_add(1, std::memory_order_relaxed);
    bytes_read.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_write(uint64_t bytes) {
    write_count.fetch_add(1, std::memory_order_relaxed);
    bytes_written.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_left(Group group) {
    left_count[static_cast<size_t>(group)].fetch_add(1, std::memory_order_relaxed);
  }
};

// The counters of the device with the root ".../graphlane-<uuid>".
DeviceCounters* counters_of_device(const char* root);

// The counters of the file that `fd` shows. Once the table is full, all later files share one
// entry.
FileCounters* counters_of_file(int fd, Origin origin);

}  // namespace graphlane::shim
