// SharedReader: reads a file from memory that several processes share. A server fetches the bytes
// (iomgr/server/server_protocol.h, "Sharing"): the mount's, or without a mount the volume's.
//
//   hit                  ──► copied from the page cache, or mapped (mapped_pages.h); tells the server
//
//   miss                 ──► the server fetches it, once for all; then as above
//
//   no room, no server   ──► nothing: the caller reads alone
//
// A process that is a file's only reader does not share, because that would cost a copy. Nor does
// it share a file that fits in memory with all others that are read: the kernel shares those well.
// But such a reader may have to share later, when others have taken the memory.
//
// Threads: read_shared() from any. Each takes a link, or waits for one: a thread that read alone
// would read again what the others share. The rest under the SlowLock, and while no thread reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iomgr/io/engine.h"
#include "iomgr/read/plan.h"
#include "iomgr/server/shared_frames.h"
#include "shim/locate/ask_server.h"

namespace graphlane::shim {

class OpenFileRef;
struct OpenFile;

struct SharedReader {
  struct Link {
    std::atomic<bool> taken{true};  // also for a link that does not exist
    int fd = -1;
  };
  static constexpr uint32_t kLinksMax = 8;

  // Asks by a descriptor: ask_mount_to_share() or ask_volume_to_share(). `generation`: the file's
  // expected one.
  void begin(ShareAnswer (*ask)(int), int fd, uint64_t generation, uint64_t size_bytes);
  // Ends the sharing: after the last reader, or before a new begin().
  void end();

  SharedFrames frames;  // empty: nothing is shared
  std::atomic<uint32_t> link_count{0};
  mutable Link links[kLinksMax];
  mutable std::atomic<uint32_t> links_freed{0};  // a count
  mutable std::atomic<uint32_t> waiting{0};      // threads that wait for a link
  mutable std::atomic<bool> dead{false};         // the server does not answer
  // For a file read through the page cache: when it was last checked whether it still fits.
  mutable std::atomic<int64_t> looked_ms{0};
  mutable std::atomic<bool> fits{true};
  // Without a mount: the file's ctime at the last question to the server. After a change the server
  // is asked again, when no thread reads; threads that read meanwhile read alone.
  std::atomic<int64_t> asked_ctime_ns{0};
  static constexpr int32_t kBusy = INT32_MIN;
  mutable std::atomic<int32_t> users{0};  // threads that read; below 0: it is being replaced
};

// Whether a server may have the file in memory for several processes.
bool may_share(const OpenFile& file);

// Whether the file fits in memory with all others that are read, as far as a server knows. Looks again
// every 100 ms.
MemoryFit fit_beside_others(const OpenFileRef& file);

// Whether other processes read the file, as far as a server knows.
bool is_read_by_others(const OpenFile& file);

// The bytes read, fewer than asked only at the end of the file. Nothing: read otherwise, e.g. by
// `engine`.
std::optional<size_t> read_shared(const OpenFileRef& file, ByteRange range, void* buffer,
                                  IoEngine& engine);

// The bytes read so far, of all files: for the report.
uint64_t shared_bytes();

}  // namespace graphlane::shim
