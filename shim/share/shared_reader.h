// SharedReader: a file's bytes from memory, where several processes read it, and a server brings
// them there (iomgr/server/server_protocol.h, "Sharing"): the mount's, or without a mount the volume's.
//
//   there                ──► copied from the page cache, or shown (mapped_pages.h); the server is told
//   missing              ──► the server fetches it, once for all; the same then
//   no room, no server   ──► nothing: the caller reads as if nobody shared
//
// A process that reads the file alone does so: sharing would cost it a copy. And a file for which there
// is memory, together with all others that are read, which the kernel shares well by itself; but
// whoever began by that may have to share when others have taken the memory.
//
// Threads: read_shared() from any; each takes a link, or waits for one: whoever read by himself instead
// would read what the others share once more. The rest under the SlowLock, and
// while nobody reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iomgr/server/shared_frames.h"
#include "shim/locate/ask_server.h"

namespace graphlane {

class OpenFileRef;
class IoEngine;
struct OpenFile;

struct SharedReader {
  struct Link {
    std::atomic<bool> taken{true};  // also where there is none
    int fd = -1;
  };
  static constexpr uint32_t kLinksMax = 8;

  // Asks by a descriptor: ask_mount_to_share() or ask_volume_to_share(). `generation`: what the
  // file is to be in.
  void begin(ShareAnswer (*ask)(int), int fd, uint64_t generation, uint64_t size_bytes);
  // The last reader has gone, or all begins anew.
  void end();

  SharedFrames frames;  // empty: nothing is shared
  std::atomic<uint32_t> link_count{0};
  mutable Link links[kLinksMax];
  mutable std::atomic<uint32_t> links_freed{0};  // so often
  mutable std::atomic<uint32_t> waiting{0};      // threads that want one
  mutable std::atomic<bool> dead{false};  // the server does not answer
  // Of a file that is read through the page cache: when it was seen last whether it still fits.
  mutable std::atomic<int64_t> looked_ms{0};
  mutable std::atomic<bool> fits{true};
  // Without a mount: the ctime of the state for which the server was asked last. A file that
  // changes is asked for anew, when nobody reads; who reads meanwhile does so by himself.
  std::atomic<int64_t> asked_ctime_ns{0};
  static constexpr int32_t kBusy = INT32_MIN;
  mutable std::atomic<int32_t> users{0};  // threads that read; below 0: it begins anew
};

// Whether to ask for that, of this read: not while there is memory for the file.
bool is_to_share(const OpenFileRef& file, ByteRange range);

// Whether other processes read the file, as far as a server knows.
bool is_read_by_others(const OpenFile& file);

// Bytes, fewer than asked only at the end of the file. Nothing: it is to be read otherwise, as by `engine`.
std::optional<size_t> read_shared(const OpenFileRef& file, ByteRange range, void* buffer,
                                  IoEngine& engine);

// Read so far, of all files: for the report.
uint64_t shared_bytes();

}  // namespace graphlane
