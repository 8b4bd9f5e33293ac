// ListCodec: an adjacency list to bytes and back. FORMAT.md has each codec's bytes.
//
//   raw      uint32 each
//   varint   differences in groups of 7 bits, the top bit alternates from number to number (HUS-Graph §3.3)
//   simd     differences in 1 to 4 bytes, their lengths in front (streamvbyte's layout)
//   reference   in bits: references to earlier lists, intervals, gaps (codec_reference.h)
//
// A list is ascending; equal neighbours are legal. Its bytes carry neither their own length nor a
// count: the index knows the length, and count() finds the number of neighbours in the bytes.
//
// A codec may encode lists in groups, as `reference` does. A group is the lists of group_vertices()
// vertices, from a multiple of it on. The index knows the group's length. Only the format `dual`
// has groups.
//
// Damaged bytes: decode() and count() never access memory outside of their arguments. They return
// EIO for bytes that no encoder writes, or a list of numbers below `limit`. Only a checksum finds a
// neighbour that has become another one.
//
// Threads: a codec has no state; any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

// The numbers stand in headers.
enum class CodecKind : uint32_t { kRaw = 0, kVarint = 1, kSimd = 2, kReference = 3 };

// "raw", "varint", "simd", "reference". EINVAL: none of them.
Outcome<CodecKind> parse_codec(std::string_view name);
std::string_view name_of(CodecKind kind);
// EINVAL: a format without groups of lists cannot use this codec; the error names the format.
Outcome<void> check_codec_of_lists(CodecKind kind, std::string_view format);

// A list of a group, not empty. The vertex counts from its interval's begin.
struct VertexList {
  uint32_t vertex;
  std::span<const uint32_t> list;
};

class ListCodec {
 public:
  static const ListCodec& of(CodecKind kind);

  virtual CodecKind kind() const = 0;
  // Whether a list of so many neighbours always has the same length: bytes_max().
  virtual bool has_fixed_length() const { return false; }
  // The most bytes that a list of so many neighbours takes.
  virtual size_t bytes_max(size_t count) const = 0;
  // An ascending list; `bytes` has room for bytes_max(list.size()). The bytes written.
  virtual size_t encode(std::span<const uint32_t> list, uint8_t* bytes) const = 0;
  // The neighbours of the list that is exactly these bytes. EIO: no list has these bytes.
  virtual Result<size_t> count(std::span<const uint8_t> bytes) const = 0;
  // Exactly list.size() neighbours from exactly these bytes, each below `limit` (at most 2^32).
  // EIO: they are not that. `slack_bytes`: so many bytes behind `bytes` may be read too, which is
  // faster from 16 on.
  virtual Result<void> decode(std::span<const uint8_t> bytes, std::span<uint32_t> list,
                              uint64_t limit, size_t slack_bytes = 0) const = 0;
  // Decodes consecutive lists, as of a block: list i has lengths[i] bytes and degrees[i]
  // neighbours. They must fill `bytes` and `neighbours` exactly. The result is that of decode() for
  // each.
  virtual Result<void> decode_lists(std::span<const uint8_t> bytes,
                                    std::span<const uint32_t> lengths,
                                    std::span<const uint32_t> degrees,
                                    std::span<uint32_t> neighbours, uint64_t limit) const;

  // As decode_lists(), for lists of unknown length. List i is neighbours[starts[i]] …
  // neighbours[starts[i + 1] - 1]. `starts` has room for one more than the number of lists,
  // `neighbours` for bytes.size() numbers. Returns the number of neighbours. EIO also for a list
  // without bytes.
  virtual Result<size_t> decode_counted(std::span<const uint8_t> bytes,
                                        std::span<const uint32_t> lengths,
                                        std::span<uint32_t> starts, std::span<uint32_t> neighbours,
                                        uint64_t limit) const;

  // 1: each list stands by itself, and these two are not called.
  virtual uint32_t group_vertices() const { return 1; }
  // Lists of ascending vertices of one group; `bytes` has room for the sum of their bytes_max().
  // The bytes written.
  virtual size_t encode_group(std::span<const VertexList> lists, uint8_t* bytes) const;
  // Appends the lists of these vertices, which are exactly these bytes. `starts` ends with the end
  // of the neighbours before, and gets the end of each list. `neighbours` grows, and may be longer
  // than that. EIO: the bytes are not these lists, or have more than `arcs_max` neighbours. Throws
  // bad_alloc.
  virtual Result<void> decode_group(std::span<const uint8_t> bytes,
                                    std::span<const uint32_t> vertices, uint64_t limit,
                                    uint64_t arcs_max, std::vector<uint32_t>& starts,
                                    std::vector<uint32_t>& neighbours) const;

 protected:
  ~ListCodec() = default;
};

}  // namespace graphlane::graphfmt
