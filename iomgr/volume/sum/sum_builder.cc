#include "iomgr/volume/sum/sum_builder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iomgr/base/crc32c_long.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {
namespace {

constexpr uint32_t kSumBatch = 256;         // sums that are written together
constexpr uint64_t kKeptBlocksMax = 65536;  // of a part

}  // namespace

Result<uint32_t> sum_of_small_part(int part_fd, uint64_t part_bytes) {
  uint8_t buffer[kBlockSize];
  uint32_t crc = 0;
  for (uint64_t done = 0; done < part_bytes;) {
    const uint64_t length = std::min<uint64_t>(part_bytes - done, sizeof buffer);
    const Result<size_t> got = pread_full(part_fd, buffer, length, done);
    if (!got) return got.error();
    if (*got < length) return Errno{EIO};
    crc = crc32c_extend(crc, buffer, length);
    done += length;
  }
  return crc;
}

Error SumBuilder::error(uint32_t d, int code, const char* what) const {
  return make_error(code, "{}: checksums of part {}: {}: {}", file_->name(),
                    volume_->part_path(d, file_->layout().file_id), what, error_text(code));
}

Outcome<SumBuilder> SumBuilder::create(const Volume& volume, const StripedFile& file) {
  SumBuilder builder(volume, file);
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    const uint64_t bytes = builder.part_bytes(d);
    if (bytes <= kSmallPartMax) continue;
    const PartOf part = part_of(volume.devices()[d].root_fd.get(), file.layout());
    Result<SumFile> made = SumFile::create_empty(part, file.parts().buffered(d), d);
    if (!made) return builder.error(d, made.error().code, "cannot create");
    builder.files_[d] = std::move(*made);
    const uint64_t blocks = sum_block_count(bytes);
    if (blocks <= kKeptBlocksMax) builder.kept_[d].resize(blocks);
  }
  return builder;
}

Outcome<void> SumBuilder::add(ByteRange range, const char* buffer) {
  const Piece piece{.range = range, .buffer = const_cast<char*>(buffer)};
  const PartRequest request{.map = file_->map(),
                            .parts = file_->parts(),
                            .size_bytes = range.end(),
                            .op = IoOp::kWrite,
                            .pieces = {&piece, 1}};
  RequestCutter cutter(request);
  for (LaneIo io; cutter.next(&io);) {
    const int code = files_[io.device_index] ? add_of(io) : 0;
    if (code != 0) return error(io.device_index, code, "cannot write");
  }
  return {};
}

// Computes the sums of the bytes in the I/O's memory. 0 or an errno.
int SumBuilder::add_of(const LaneIo& io) {
  std::vector<uint32_t>& kept = kept_[io.device_index];
  uint32_t batch[kSumBatch];
  uint64_t block = io.part_offset / kBlockSize;
  for (uint32_t i = 0; i < io.iov_count; ++i) {
    const char* at = static_cast<const char*>(io.iov[i].iov_base);
    for (uint64_t left = io.iov[i].iov_len; left > 0;) {
      const auto whole = static_cast<uint32_t>(std::min<uint64_t>(left / kBlockSize, kSumBatch));
      const uint64_t taken = whole > 0 ? whole * kBlockSize : left;
      const uint32_t count = std::max(whole, 1u);
      uint32_t* const sums = kept.empty() ? batch : kept.data() + block;
      if (whole > 0) {
        sum_blocks(at, whole, sums);
      } else {
        sums[0] = sum_partial_block(at, left);
      }
      if (kept.empty()) {
        const int error = files_[io.device_index].write_sums(block, {batch, count});
        if (error != 0) return error;
      }
      block += count;
      at += taken;
      left -= taken;
    }
  }
  return 0;
}

// Writes the header, and the sums that are kept. 0 or an errno.
int SumBuilder::write(uint32_t d) {
  const SumFile& file = files_[d];
  const std::vector<uint32_t>& kept = kept_[d];
  SumHeader header{.ordinal = d,
                   .generation = file_->layout().generation,
                   .region_bytes = sum_region_bytes(part_bytes(d)),
                   .covered_bytes = part_bytes(d)};
  const auto end = static_cast<off_t>(sum_at(sum_block_count(part_bytes(d))));
  // A hole's sums were not written.
  if (kept.empty() && ::ftruncate(file.fd(), end) != 0) return errno;
  std::vector<uint8_t> image(kSumsAt - kSumHeaderAt + kept.size() * sizeof(uint32_t));
  if (!kept.empty()) {
    std::memcpy(image.data() + (kSumsAt - kSumHeaderAt), kept.data(),
                kept.size() * sizeof(uint32_t));
  }
  return file.write_image(image, &header);
}

Outcome<void> SumBuilder::finish() {
  for (uint32_t d = 0; d < volume_->device_count(); ++d) {
    if (files_[d]) {
      if (const int code = write(d); code != 0) return error(d, code, "cannot write");
    } else {
      const Result<uint32_t> sum = sum_of_small_part(file_->parts().buffered(d), part_bytes(d));
      if (!sum) return error(d, sum.error().code, "cannot read the part");
      small_[d] = *sum;
    }
  }
  return {};
}

void SumBuilder::note_in(PartRecord& record) const {
  const uint32_t d = record.ordinal;
  record.flags |= files_[d] ? PartRecord::kBlockSums : PartRecord::kSummed;
  record.sum = files_[d] ? 0 : small_[d];
}

}  // namespace graphlane
