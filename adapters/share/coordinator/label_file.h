// The labels of a graph in a file beside it: `.graphlane-chunks-NAME` in the directory of its first
// file, NAME. Engines read files that begin with NAME, so the name begins otherwise and is hidden.
//
// The file is written whole or not at all, and again when the graph or the chunk size changes. It
// is optional: where it cannot be written, each coordinator makes the labels again.
//
// **Trust.** Wrong tables would make jobs skip chunks, and a checksum proves nothing about the
// writer. So a file is used only if root, the graph's owner or our user owns it and no other user
// may write it. It is written only beside graphs of root and of our user: another owner could move
// our file to a graph of equal sizes and times, where it would be trusted.

#include <string>

#include "adapters/share/schedule/labels.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

std::string label_file_name(std::string_view graph_file_name);

// Whether `name` in `directory` is the graph's file. If not, another user may have chosen the
// directory, and no file is written there.
bool is_beside(int directory, const std::string& name, const FileIdentity& graph_file);

// Sealed memory with valid labels of the graph, which belongs to `owner`, for chunks of
// `chunk_bytes`. EPERM: the file is not trusted. ENOMEM: larger than `bytes_max`, or than half of
// the available memory.
Outcome<Fd> read_label_file(int directory, const std::string& name, uid_t owner, uint64_t bytes_max,
                            uint64_t graph_hash, uint64_t chunk_bytes,
                            std::span<const uint64_t> partition_bytes);
bool may_write_label_file(uid_t owner);
Outcome<void> write_label_file(int directory, const std::string& name, std::string_view bytes);

}  // namespace graphlane::share
