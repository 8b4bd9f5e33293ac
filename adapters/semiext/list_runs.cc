#include "adapters/semiext/list_runs.h"

#include <algorithm>

namespace graphlane::semiext {

void ListRuns::close() {
  for (const Run& run : runs_) {
    if (!run.descends) continue;
    std::reverse(owners_.begin() + static_cast<ptrdiff_t>(run.first),
                 owners_.begin() + static_cast<ptrdiff_t>(run.end));
  }
}

void ListRuns::clear() {
  runs_.clear();
  owners_.clear();
  bytes_ = 0;
}

// The first of `owners` that lie behind one another within `room` bytes.
RunReader::Stretch RunReader::stretch(const graphfmt::ListIndex& index,
                                      std::span<const VertexId> owners, uint64_t room) {
  constexpr uint64_t kGapMax = 16;
  Stretch lists;
  uint64_t next = owners[0];
  for (const VertexId owner : owners) {
    if (owner - next > kGapMax) break;  // or it is below: an empty list between others
    while (next < owner && index.bytes(static_cast<VertexId>(next)) == 0) ++next;
    const uint64_t length = index.bytes(owner);
    const uint64_t degree = index.degree(owner);
    if (next != owner || length == 0 || lists.bytes + length > room ||
        lists.numbers + degree > kNumbersMax || lists.count == kStretchMax) {
      break;
    }
    lengths_[lists.count] = static_cast<uint32_t>(length);
    degrees_[lists.count] = static_cast<uint32_t>(degree);
    ++lists.count;
    lists.bytes += length;
    lists.numbers += degree;
    ++next;
  }
  return lists;
}

bool RunReader::decode(const Stretch& lists, std::span<const std::byte> bytes, size_t slack_bytes) {
  if (is_raw_ || lists.count == 1) return decode_one(bytes, lists.numbers, slack_bytes);
  if (numbers_.size() < lists.numbers) {
    numbers_.resize(std::max(lists.numbers, numbers_.size() * 2));
  }
  decoded_ = numbers_.data();
  return codec_
      .decode_lists({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                    std::span(lengths_).first(lists.count), std::span(degrees_).first(lists.count),
                    {numbers_.data(), lists.numbers}, vertex_count_)
      .has_value();
}

// One list, or raw ones behind one another.
bool RunReader::decode_one(std::span<const std::byte> bytes, uint64_t degree, size_t slack_bytes) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (is_raw_ && reinterpret_cast<uintptr_t>(data) % sizeof(VertexId) == 0) {
    decoded_ = reinterpret_cast<const VertexId*>(data);
    VertexId largest = 0;
    for (uint64_t i = 0; i < degree; ++i) largest = std::max(largest, decoded_[i]);
    return largest < vertex_count_;
  }
  if (numbers_.size() < degree) numbers_.resize(std::max(degree, numbers_.size() * 2));
  decoded_ = numbers_.data();
  return codec_.decode({data, bytes.size()}, {numbers_.data(), degree}, vertex_count_, slack_bytes)
      .has_value();
}

// The list's bytes from its pages, in one piece.
std::span<const std::byte> RunReader::copy(std::span<const PageBytes::Piece> pages, uint64_t page,
                                           uint64_t in_page, uint64_t length) {
  if (copied_.size() < length + kDecodeSlack) {
    copied_.resize(std::max(length + kDecodeSlack, copied_.size() * 2));
  }
  for (uint64_t done = 0; done < length; ++page, in_page = 0) {
    const uint64_t count = std::min<uint64_t>(length - done, pages[page].size() - in_page);
    std::memcpy(copied_.data() + done, pages[page].data() + in_page, count);
    done += count;
  }
  return {copied_.data(), length};
}

// Finds the damaged one of the stretch.
bool RunReader::fail(std::span<const VertexId> owners, uint64_t offset, const Stretch& lists,
                     std::span<const std::byte> bytes) {
  size_t i = 0;
  for (; i + 1 < lists.count; ++i) {
    if (!decode_one(bytes.first(lengths_[i]), degrees_[i], 0)) break;
    bytes = bytes.subspan(lengths_[i]);
    offset += lengths_[i];
  }
  damaged_owner_ = owners[i];
  damaged_offset_ = offset;
  return false;
}

}  // namespace graphlane::semiext
