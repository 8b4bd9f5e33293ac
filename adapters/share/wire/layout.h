// Layout: a graph's partitions, as a job describes them.
//
//   files        0: column (device, inode, size, time)     1: …
//   partition 0  file 0, bytes 0 … 8191
//   partition 1  file 0, bytes 8192 … 20479   file 1, bytes 0 … 511
//
// Either all partitions are byte ranges of files, or the jobs' own loader callback makes all. Two
// jobs share a graph if their layouts are equal and their files are the same.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

inline constexpr uint32_t kPartitionsMax = 1u << 20;
inline constexpr uint32_t kFilesMax = 64;

// A piece of a partition. Pieces stand in the order of partitions, and a partition is their
// sequence.
struct FileRange {
  uint32_t partition = 0;
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t length_bytes = 0;
  friend bool operator==(const FileRange&, const FileRange&) = default;
};
static_assert(sizeof(FileRange) == 24);

// Edges of a fixed size, each with its source as a little-endian uint32. Size 0: unknown bytes;
// such a partition is one chunk and always active.
struct RecordFormat {
  uint32_t size_bytes = 0;
  uint32_t source_offset_bytes = 0;
  friend bool operator==(const RecordFormat&, const RecordFormat&) = default;
};

struct Layout {
  bool by_loader = false;
  uint32_t partition_count = 0;
  RecordFormat record;
  uint64_t vertex_count = 0;
  std::vector<FileRange> ranges;  // unless by_loader

  friend bool operator==(const Layout&, const Layout&) = default;

  // The wire format.
  std::string to_bytes() const;
  static Outcome<Layout> from_bytes(std::string_view bytes);
};

// Identifies a file and its state. A file system gives the inode number of a deleted file to a new
// one; the time of birth tells them apart. It is 0 where the file system does not keep it (FUSE).
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t born_ns = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// EBADF: not a regular file that is open for reading.
Result<FileIdentity> identify(int file);

// As identify(), for any descriptor of a regular file: it proves no right to read.
Result<FileIdentity> identify_without_rights(int file);

// Whether the layout is consistent and lies within the files. Then the sum of all sizes fits 64
// bits.
Outcome<void> check(const Layout& layout, std::span<const FileIdentity> files);

// All chunks of a partition have `chunk_bytes`, except for the last.
constexpr uint64_t chunk_count_of(uint64_t partition_bytes, uint64_t chunk_bytes) {
  return partition_bytes == 0 ? 0 : (partition_bytes - 1) / chunk_bytes + 1;
}

// The bytes of each partition; zeros with a loader.
std::vector<uint64_t> partition_sizes(const Layout& layout);

}  // namespace graphlane::share
