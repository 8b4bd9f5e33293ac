// StripeMap: where the bytes of a striped file lie. Pure arithmetic.
//
//   logical   |  0  |  1  |  2  |  3  |  4  |  5  | ...   stripe units of S bytes
//   device       1     2     0     1     2     0          (unit + f) mod N;  here N = 3, f = 1
//
//   device 0  |  2  |  5  | ...        On one device a file's units follow each
//   device 1  |  0  |  3  | ...        other without a gap. So whatever the length
//   device 2  |  1  |  4  | ...        of a request, it needs *one* contiguous run
//                                      of each part: merging within a request is
//                                      exact, not a heuristic.
//
// The formulas are CSMqGraph's (1) and (2) with a first device f added:
//   device      = (floor(O / S) + f) mod N
//   part offset = floor(O / (S * N)) * S + O mod S     (printed there with "* N")
#pragma once

#include <cassert>
#include <cstdint>
#include <span>

namespace graphlane {

// The block of O_DIRECT, the page cache and stubs.
inline constexpr uint64_t kBlockSize = 4096;
inline constexpr uint32_t kDeviceCountMin = 2;
inline constexpr uint32_t kDeviceCountMax = 64;
// A stripe unit larger than this would put every graph on one device.
inline constexpr uint64_t kStripeDepthMax = uint64_t{1} << 40;

// Rounds up to a multiple of `unit`, which is not 0.
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

struct StripeGeometry {
  uint64_t stripe_depth_bytes = 0;  // S: a multiple of 4096, at most kStripeDepthMax
  uint32_t device_count = 0;        // N: kDeviceCountMin .. kDeviceCountMax
  uint32_t first_device = 0;        // f: 0 .. N - 1

  friend bool operator==(const StripeGeometry&, const StripeGeometry&) = default;
  constexpr bool valid() const {
    return stripe_depth_bytes > 0 && stripe_depth_bytes % kBlockSize == 0 &&
           stripe_depth_bytes <= kStripeDepthMax && device_count >= kDeviceCountMin &&
           device_count <= kDeviceCountMax && first_device < device_count;
  }
};

// A byte of a part.
struct PartLocation {
  uint32_t device_index = 0;
  uint64_t part_offset = 0;
  friend bool operator==(const PartLocation&, const PartLocation&) = default;
};

// Bytes of a file: [offset, offset + length_bytes).
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length_bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
  constexpr uint64_t end() const { return offset + length_bytes; }
};

// The piece of a request that lies in one stripe unit.
struct Segment {
  uint32_t device_index = 0;
  uint64_t part_offset = 0;
  uint64_t logical_offset = 0;
  uint64_t length_bytes = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

class StripeMap {
 public:
  constexpr StripeMap() = default;
  constexpr explicit StripeMap(const StripeGeometry& geometry) : g_(geometry) {
    assert(geometry.valid());
  }
  constexpr const StripeGeometry& geometry() const { return g_; }

  constexpr PartLocation locate(uint64_t offset) const {
    const uint64_t unit = offset / g_.stripe_depth_bytes;
    return {.device_index = device_of_unit(unit),
            .part_offset =
                unit / g_.device_count * g_.stripe_depth_bytes + offset % g_.stripe_depth_bytes};
  }

  // The inverse of locate().
  constexpr uint64_t logical_offset(PartLocation location) const {
    const uint64_t row = location.part_offset / g_.stripe_depth_bytes;
    return (row * g_.device_count + column_of(location.device_index)) * g_.stripe_depth_bytes +
           location.part_offset % g_.stripe_depth_bytes;
  }

  // Bytes of a device's part in a file of `logical_size` bytes without holes.
  constexpr uint64_t part_size(uint32_t device_index, uint64_t logical_size) const {
    return part_begin(device_index, logical_size);
  }

  // The inverse of part_size(): the longest prefix that all parts hold. Bytes that an interrupted
  // write has left behind it do not count. part_sizes has N elements.
  constexpr uint64_t logical_size(std::span<const uint64_t> part_sizes) const {
    uint64_t size = UINT64_MAX;
    for (uint32_t d = 0; d < g_.device_count; ++d) {
      const uint64_t missing = logical_offset({.device_index = d, .part_offset = part_sizes[d]});
      if (missing < size) size = missing;
    }
    return size;
  }

  // The one contiguous run of a device's part that a request needs; length 0 if it needs none.
  constexpr ByteRange run(uint32_t device_index, ByteRange request) const {
    const uint64_t begin = part_begin(device_index, request.offset);
    return {.offset = begin, .length_bytes = part_begin(device_index, request.end()) - begin};
  }

  // The first segment of a non-empty request. The rest of the request starts
  // at logical_offset + length_bytes.
  constexpr Segment first_segment(ByteRange request) const {
    const PartLocation at = locate(request.offset);
    const uint64_t room = g_.stripe_depth_bytes - request.offset % g_.stripe_depth_bytes;
    return {.device_index = at.device_index,
            .part_offset = at.part_offset,
            .logical_offset = request.offset,
            .length_bytes = request.length_bytes < room ? request.length_bytes : room};
  }

 private:
  constexpr uint32_t device_of_unit(uint64_t unit) const {
    return static_cast<uint32_t>((unit + g_.first_device) % g_.device_count);
  }
  // The place of a device in a row of units: the first device has 0.
  constexpr uint32_t column_of(uint32_t device_index) const {
    return (device_index + g_.device_count - g_.first_device) % g_.device_count;
  }
  // How many bytes of a device's part come before logical offset `offset`.
  constexpr uint64_t part_begin(uint32_t device_index, uint64_t offset) const {
    const uint64_t unit = offset / g_.stripe_depth_bytes;
    const uint64_t row = unit / g_.device_count;
    const uint32_t column = static_cast<uint32_t>(unit % g_.device_count);
    const uint32_t own = column_of(device_index);
    uint64_t bytes = row * g_.stripe_depth_bytes;
    if (own < column) bytes += g_.stripe_depth_bytes;
    if (own == column) bytes += offset % g_.stripe_depth_bytes;
    return bytes;
  }

  StripeGeometry g_;
};

}  // namespace graphlane
