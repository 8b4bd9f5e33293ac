// The labels of a graph beside it: `.graphlane-chunks-NAME` in the directory of its first
// file, NAME. Hidden, and not beginning with NAME: engines take in what does.
//
// Written whole or not at all; made anew when the graph or the wanted chunk size has
// changed. Nothing depends on it: where it cannot be written it is made each time.
//
// **Who is believed.** Anybody can compute its checksums, and with tables that are wrong chunks
// are passed over, so where others may write it has to be root's, the graph's owner's or our own,
// and nobody else's to write. And it is written beside graphs of root and our own only: ours
// beside a stranger's graph, of the same sizes and times, could be moved to where it is believed.
#pragma once

#include <string>

#include "adapters/share/schedule/labels.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

std::string label_file_name(std::string_view graph_file_name);

// Whether `name` in `directory` is the graph's file: only then is this "beside it", and
// not a place where somebody wants us to write.
bool is_beside(int directory, const std::string& name, const FileIdentity& graph_file);

// Sealed memory that is good labels of the graph, which is `owner`'s, for chunks of `chunk_bytes`.
// EPERM: of somebody who is not believed. ENOMEM: larger than `bytes_max`, or than half of what memory
// there is.
Outcome<Fd> read_label_file(int directory, const std::string& name, uid_t owner, uint64_t bytes_max,
                            uint64_t graph_hash, uint64_t chunk_bytes,
                            std::span<const uint64_t> partition_bytes);
bool may_write_label_file(uid_t owner);
Outcome<void> write_label_file(int directory, const std::string& name, std::string_view bytes);

}  // namespace graphlane::share
