#include "iomgr/volume/sum/sum_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/open_below.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

constexpr uint64_t slot_at(uint64_t slot) { return kSumHeaderAt + slot * kSumHeaderStride; }

}  // namespace

SumVerdict verdict_of_error(int error) {
  if (error == ENOENT) return SumVerdict::kMissing;
  if (error == EINVAL || error == kNotRegular || error == ELOOP) return SumVerdict::kOtherFile;
  return SumVerdict::kGood;
}

Result<SumFile> SumFile::open(const PartOf& part, int part_fd, uint32_t ordinal, int flags) {
  Fd file = open_part_sum(part, part_fd, flags);
  if (!file) return last_errno();
  return SumFile(std::move(file), part, ordinal);
}

Result<SumFile> SumFile::create_empty(const PartOf& part, int part_fd, uint32_t ordinal) {
  Fd file = create_part_sum(part, part_fd);
  if (!file) return last_errno();
  // Removes its old content, except for a record.
  if (::syscall(SYS_ftruncate, file.get(), kPartSumHeadSize) != 0) return last_errno();
  return SumFile(std::move(file), part, ordinal);
}

int SumFile::write_image(std::span<uint8_t> image, SumHeader* header) const {
  for (int slot = 0; slot < 2; ++slot) {
    header->sequence += 1;
    const SumHeaderBytes bytes = encode_sum_header(*header, part_.volume, part_.file_id);
    const uint64_t at = slot_at(header->sequence & 1) - kSumHeaderAt;
    std::copy(bytes.begin(), bytes.end(), image.begin() + static_cast<ptrdiff_t>(at));
  }
  const Result<void> written = pwrite_full(fd(), image.data(), image.size(), kSumHeaderAt);
  return written ? 0 : written.error().code;
}

Result<SumFile> SumFile::create(const PartOf& part, int part_fd, uint32_t ordinal,
                                uint64_t part_bytes) {
  Result<SumFile> made = create_empty(part, part_fd, ordinal);
  if (!made) return made;
  // Allocates the blocks of the regions before one becomes dirty, so that a mark does not change the
  // filesystem's metadata.
  if (::syscall(SYS_ftruncate, made->fd(), sum_at(sum_block_count(part_bytes))) != 0) {
    return last_errno();
  }
  SumHeader header{.ordinal = ordinal, .region_bytes = sum_region_bytes(part_bytes)};
  int error = made->write_header(&header);
  if (error == 0) error = made->write_header(&header);  // both slots
  const uint64_t regions = header.region_of(std::max<uint64_t>(part_bytes, 1) - 1) + 1;
  if (error == 0) error = made->set_regions(0, regions, kRegionClean);
  if (error != 0) return Errno{error};
  return made;
}

Result<SumVerdict> SumFile::read_header(SumHeader* header) const {
  SumVerdict verdict = SumVerdict::kDamaged;
  for (uint64_t slot = 0; slot < 2; ++slot) {
    SumHeaderBytes bytes;
    const Result<size_t> got = pread_full(fd(), bytes.data(), bytes.size(), slot_at(slot));
    if (!got) return got.error();
    SumHeader one;
    const SumVerdict said =
        decode_sum_header({bytes.data(), *got}, part_.volume, part_.file_id, ordinal_, &one);
    const bool is_newer = said == SumVerdict::kGood &&
                          (verdict != SumVerdict::kGood || one.sequence > header->sequence);
    if (is_newer) *header = one;
    if (is_newer || (said == SumVerdict::kForeign && verdict == SumVerdict::kDamaged)) {
      verdict = said;
    }
  }
  return verdict;
}

int SumFile::write_header(SumHeader* header) const {
  header->sequence += 1;
  const SumHeaderBytes bytes = encode_sum_header(*header, part_.volume, part_.file_id);
  const Result<void> written =
      pwrite_full(fd(), bytes.data(), bytes.size(), slot_at(header->sequence & 1));
  return written ? 0 : written.error().code;
}

int SumFile::lower_cover(SumHeader* header, uint64_t part_bytes) const {
  if (header->covered_bytes <= part_bytes) return 0;
  const uint64_t rest = part_bytes % kBlockSize;
  header->covered_bytes = part_bytes - rest;
  int error = write_header(header);
  if (error == 0 && rest != 0) error = sync();
  if (error == 0) error = write_header(header);  // the other slot
  if (error != 0) return error;
  return ::syscall(SYS_ftruncate, fd(), sum_at(sum_block_count(header->covered_bytes))) == 0
             ? 0
             : errno;
}

Result<bool> SumFile::is_dirty(uint64_t region) const {
  uint8_t value = kRegionClean;
  const Result<size_t> got = pread_full(fd(), &value, sizeof value, kSumRegionsAt + region);
  if (!got) return got.error();
  return is_region_dirty(value);
}

int SumFile::set_regions(uint64_t first, uint64_t count, uint8_t value) const {
  uint8_t bytes[256];
  std::fill(std::begin(bytes), std::end(bytes), value);
  for (uint64_t done = 0; done < count;) {
    const uint64_t length = std::min<uint64_t>(count - done, sizeof bytes);
    const Result<void> written = pwrite_full(fd(), bytes, length, kSumRegionsAt + first + done);
    if (!written) return written.error().code;
    done += length;
  }
  return 0;
}

int SumFile::read_sums(uint64_t first, std::span<uint32_t> sums) const {
  const Result<size_t> got = pread_full(fd(), sums.data(), sums.size_bytes(), sum_at(first));
  if (!got) return got.error().code;
  std::fill(sums.begin() + static_cast<ptrdiff_t>(*got / sizeof(uint32_t)), sums.end(), 0);
  return 0;
}

int SumFile::write_sums(uint64_t first, std::span<const uint32_t> sums) const {
  const Result<void> written = pwrite_full(fd(), sums.data(), sums.size_bytes(), sum_at(first));
  return written ? 0 : written.error().code;
}

int SumFile::sync() const { return ::syscall(SYS_fdatasync, fd()) == 0 ? 0 : errno; }

}  // namespace graphlane
