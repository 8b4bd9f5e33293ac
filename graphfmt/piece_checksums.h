// PieceChecksums: a CRC32C for every `piece_bytes` of a file that is written from its begin to its
// end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "iomgr/base/crc32c_long.h"

namespace graphlane::graphfmt {

class PieceChecksums {
 public:
  explicit PieceChecksums(uint32_t piece_bytes) : piece_bytes_(piece_bytes) {}

  void append(const void* data, size_t length_bytes) {
    const char* from = static_cast<const char*>(data);
    while (length_bytes > 0) {
      if (filled_ == 0) checksums_.push_back(0);
      const size_t count = std::min<size_t>(length_bytes, piece_bytes_ - filled_);
      checksums_.back() = crc32c_extend(checksums_.back(), from, count);
      filled_ = (filled_ + count) % piece_bytes_;
      from += count;
      length_bytes -= count;
    }
  }

  const std::vector<uint32_t>& all() const { return checksums_; }
  // The checksum of the checksums themselves.
  uint32_t checksum() const {
    return crc32c_extend(0, checksums_.data(), checksums_.size() * sizeof(uint32_t));
  }

 private:
  const uint32_t piece_bytes_;
  size_t filled_ = 0;  // of the last piece; 0: it is whole
  std::vector<uint32_t> checksums_;
};

}  // namespace graphlane::graphfmt
