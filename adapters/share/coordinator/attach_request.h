// AttachRequest: what a job shows of the graph that it wants, checked.
//
// A job shows a descriptor, open for reading, of each of the graph's files. It is attached only to a
// graph of the same files in the same state.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/share/coordinator/graph_files.h"
#include "adapters/share/wire/message_socket.h"
#include "adapters/share/wire/protocol.h"
#include "iomgr/base/error.h"

namespace graphlane::share {

struct AttachRequest {
  AttachMessage message;
  GraphFiles files;          // with the layout, not yet cut into units
  std::string layout_bytes;  // as the job has sent it
  Fd directory;              // where the graph's label file may lie
};

// EPROTO: not a job of this version, or a damaged message; EACCES: a file is not open for reading.
// `layout_bytes_max`: for the layout.
Outcome<AttachRequest> read_attach_request(Message& message, uint64_t layout_bytes_max);

}  // namespace graphlane::share
