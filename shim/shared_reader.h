// SharedReader: a file's bytes from the memory of the mount's server, where several processes
// read it (iomgr/server_protocol.h, "Sharing").
//
//   in the image         ──► copied; the server is told
//   missing              ──► the server fetches it, once for all; the same then
//   no room, no server   ──► nothing: the caller reads as if nobody shared
//
// A process that reads the file alone does so: sharing would cost it a copy.
//
// Threads: read_shared() from any; each takes a link of its own. The rest under the SlowLock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iomgr/shared_image.h"

namespace graphlane {

class OpenFileRef;

struct SharedReader {
  struct Link {
    std::atomic<bool> taken{true};  // also where there is none
    int fd = -1;
  };
  static constexpr uint32_t kLinksMax = 8;

  // Asks the server, by a descriptor that the program has open. `generation`: what the file is
  // to be in.
  void begin(int fd, uint64_t generation, uint64_t size_bytes);
  // The last reader has gone.
  void end();

  SharedImage image;  // empty: nothing is shared
  uint32_t link_count = 0;
  mutable Link links[kLinksMax];
  mutable std::atomic<bool> dead{false};  // the server does not answer
};

// Bytes, fewer than asked only at the end of the file. Nothing: it is to be read otherwise.
std::optional<size_t> read_shared(const OpenFileRef& file, ByteRange range, void* buffer);

// Read so far, of all files: for the report.
uint64_t shared_bytes();

}  // namespace graphlane
