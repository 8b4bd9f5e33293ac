// The header of a stored graph, and the files that it names: their sizes and their checksums.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "graphfmt/buffer.h"
#include "graphfmt/graph_directory.h"
#include "graphfmt/graph_header.h"
#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

// The header of a graph of this kind. EINVAL: no stored graph; ENOTSUP: of another kind; EIO:
// damaged.
Outcome<GraphHeader> read_header_of(const GraphDirectory& directory, GraphKind kind);

// The header's entry of a file that it names; EIO unless the file has the size in it.
Outcome<GraphHeader::File> find_stored_file(const GraphDirectory& directory,
                                            const GraphHeader& header, const std::string& name);

// All bytes of a file that has a checksum in the header. EIO: damaged, or of another graph.
Outcome<Buffer> read_pinned_file(const GraphDirectory& directory, const GraphHeader& header,
                                 const std::string& name);

// EIO: the files of encoded weights have not the bytes that the header tells.
Outcome<void> check_weights_bytes(const GraphDirectory& directory, const GraphHeader& header);

// A file of which the bytes that are left to parse begin with the checksums of another file's
// pieces.
struct ChecksumTable {
  const std::string& path;
  uint64_t size_bytes;             // of all of it
  const char* sizes_by;            // in errors, what tells the other file's size: "index", "blocks"
  std::span<const uint8_t>& rest;  // moves behind what was taken
};

// Takes a checksum (uint32) for every piece of the file `name`, padded to 8 bytes. EIO: the file
// has not `expected_bytes`, or the checksums are not those that the header pins.
Outcome<std::span<const uint32_t>> take_piece_checksums(const GraphDirectory& directory,
                                                        const GraphHeader& header,
                                                        const std::string& name,
                                                        uint64_t expected_bytes,
                                                        const ChecksumTable& table);

}  // namespace graphlane::graphfmt
