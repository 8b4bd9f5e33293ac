#include "iomgr/volume/sum/part_sums.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iomgr/base/crc32c_long.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/base/sys.h"
#include "iomgr/volume/sum/scratch_block.h"

namespace graphlane {
namespace {

constexpr uint64_t kMarkAheadMax = 16;  // the most regions that a sequential writer marks together

// Reported failures, by inode and block: the oldest is forgotten first.
constexpr uint32_t kToldMax = 256;
std::atomic<uint64_t> told_blocks[kToldMax];
std::atomic<uint32_t> told_count{0};

void tell(const SumFailure& failure) {
  const TellSumFailure teller = tell_sum_failure.load(relaxed);
  struct stat st;
  if (teller == nullptr || sys::fstat(failure.part_fd, &st) != 0) return;
  const uint64_t mark = ((st.st_ino * 0x9e3779b97f4a7c15 + st.st_dev) * 0x9e3779b97f4a7c15 +
                         failure.part_offset / kBlockSize) *
                            2 +
                        1;
  for (const auto& one : told_blocks) {
    if (one.load(relaxed) == mark) return;
  }
  told_blocks[told_count.fetch_add(1, relaxed) % kToldMax].store(mark, relaxed);
  teller(failure);
}

class TellFailed final : public FailedBlocks {
 public:
  explicit TellFailed(int part_fd) : part_fd_(part_fd) {}
  void failed(uint64_t part_offset) override {
    tell({.part_fd = part_fd_, .part_offset = part_offset});
  }

 private:
  const int part_fd_;
};

// Whether the error means that there is no `.sum` at all.
bool is_final(int error) { return error == ENOENT || error == kNotRegular || error == ELOOP; }

// Removes the sum in the record, durably. 0 or an errno.
int forget_small(int part_fd, const PartOf& part) {
  PartRecord record;
  const auto verdict = read_part_record(part_fd, part, &record);
  if (!verdict) return verdict.error().code;
  if (*verdict != RecordVerdict::kRecord || (record.flags & PartRecord::kSummed) == 0) return 0;
  record.flags &= static_cast<uint8_t>(~PartRecord::kSummed);
  record.sum = 0;
  const int error = write_part_record(part_fd, part, record);
  return error == 0 ? sync_part_record(part_fd, part) : error;
}

void count(const SumCounts& counts) {
  sum_totals.verified.fetch_add(counts.verified, relaxed);
  sum_totals.unverified.fetch_add(counts.unverified, relaxed);
  sum_totals.failed.fetch_add(counts.failed, relaxed);
}

}  // namespace

// Reads the record first, because a close writes the sums before it.
void PartSums::open(uint32_t d, const PartOf& part, int part_fd, Fd sum, int flags, Raise raise,
                    int floor) {
  kinds_[d] = Kind::kNone;
  parts_[d] = part;
  small_forgotten_[d].store(false, relaxed);
  PartRecord record;
  struct stat st;
  if (read_part_record(part_fd, part, &record).value_or(RecordVerdict::kNone) !=
      RecordVerdict::kRecord) {
    return;
  }
  if ((record.flags & PartRecord::kSummed) != 0 && sys::fstat(part_fd, &st) == 0) {
    kinds_[d] = Kind::kSmall;
    small_bytes_[d] = static_cast<uint64_t>(st.st_size);
    // The device's root, needed for a record in a `.sum`, will not be open later.
    parts_[d].root_fd = -1;
    const bool is_beside = !read_part_record(part_fd, parts_[d], &record).has_value();
    if (is_beside) kinds_[d] = Kind::kNone;
    if (is_beside && (flags & O_ACCMODE) != O_RDONLY) (void)forget_small(part_fd, part);
  }
  if ((record.flags & PartRecord::kBlockSums) == 0) return;
  kinds_[d] = Kind::kLost;
  // Retries, because a chown changes the owners one after the other.
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 2'000'000};
  for (int look = 0; !sum && look < 3; ++look) {
    if (look > 0) ::syscall(SYS_nanosleep, &kPause, nullptr);
    sum = open_part_sum(part, part_fd, flags & O_ACCMODE);
    errors_[d] = sum ? 0 : errno;
    if (errors_[d] != EINVAL) break;
  }
  if (!sum) {
    verdicts_[d] = verdict_of_error(errors_[d]);
    return;
  }
  sum = Fd(raise(sum.release(), floor));
  SumFile file(std::move(sum), part, record.ordinal);
  SumHeader header;
  verdicts_[d] = file.read_header(&header).value_or(SumVerdict::kDamaged);
  if (verdicts_[d] == SumVerdict::kGood && !fits_generation(header.generation, record.generation)) {
    verdicts_[d] = SumVerdict::kStale;
  }
  if (verdicts_[d] != SumVerdict::kGood) return;
  kinds_[d] = Kind::kBlocks;
  region_bytes_[d] = header.region_bytes;
  covered_[d].store(header.covered_bytes, relaxed);
  files_[d] = std::move(file);
}

void PartSums::close() {
  for (uint32_t d = 0; d < kDeviceCountMax; ++d) {
    files_[d] = {};
    kinds_[d] = Kind::kNone;
  }
  verifies_ = false;
}

int PartSums::verify(uint32_t d, int fd, uint64_t part_offset, std::span<const iovec> memory,
                     uint64_t length_bytes) const {
  SumCounts counts;
  int error = 0;
  switch (kinds_[d]) {
    case Kind::kNone: counts.unverified = sum_block_count(length_bytes); break;
    case Kind::kSmall: return verify_small(d, fd, part_offset, memory, length_bytes);
    case Kind::kLost:
      tell({.part_fd = fd, .part_offset = 0, .verdict = verdicts_[d]});
      counts.failed = sum_block_count(length_bytes);
      error = EIO;
      break;
    case Kind::kBlocks: {
      TellFailed teller(fd);
      error = verify_bytes(files_[d], fd, part_offset, memory, length_bytes, &covered_[d], &counts,
                           &teller);
      break;
    }
  }
  count(counts);
  return error == 0 && counts.failed > 0 ? EIO : error;
}

// Reads the whole part, block by block, and copies only verified bytes to the caller.
int PartSums::verify_small(uint32_t d, int fd, uint64_t part_offset, std::span<const iovec> memory,
                           uint64_t length) const {
  const ScratchBlock scratch;
  if (scratch.bytes() == nullptr) return ENOMEM;
  PartRecord record;
  if (read_part_record(fd, parts_[d], &record).value_or(RecordVerdict::kNone) !=
      RecordVerdict::kRecord) {
    return EIO;
  }
  uint32_t crc = 0;
  uint64_t at = 0;
  for (; at < small_bytes_[d]; at += kBlockSize) {
    const Result<size_t> got = pread_full(fd, scratch.bytes(), kBlockSize, at);
    if (!got) return got.error().code;
    const uint64_t here = std::min<uint64_t>(*got, small_bytes_[d] - at);
    crc = crc32c_extend(crc, scratch.bytes(), here);
    uint64_t piece_at = part_offset, left = length;
    for (const iovec& piece : memory) {
      const uint64_t piece_length = std::min<uint64_t>(piece.iov_len, left);
      const uint64_t begin = std::max(at, piece_at),
                     end = std::min(at + here, piece_at + piece_length);
      if (begin < end) {
        std::memcpy(static_cast<uint8_t*>(piece.iov_base) + (begin - piece_at),
                    scratch.bytes() + (begin - at), end - begin);
      }
      piece_at += piece_length;
      left -= piece_length;
    }
  }
  PartRecord now;
  const bool is_same = read_part_record(fd, parts_[d], &now).value_or(RecordVerdict::kNone) ==
                           RecordVerdict::kRecord &&
                       (now.flags & PartRecord::kSummed) != 0 && now.sum == record.sum &&
                       now.generation == record.generation;
  SumCounts counts;
  const uint64_t blocks = sum_block_count(length);
  if (!is_same || (record.flags & PartRecord::kSummed) == 0) {
    counts.unverified = blocks;
  } else if (crc == record.sum) {
    counts.verified = blocks;
  } else {
    counts.failed = blocks;
  }
  count(counts);
  if (counts.failed == 0) return 0;
  tell({.part_fd = fd, .part_offset = part_offset});
  return EIO;
}

std::optional<SumDamage> PartSums::find_damage(uint32_t d, int fd, ByteRange run) const {
  if (kinds_[d] == Kind::kLost) return SumDamage{.run = run, .verdict = verdicts_[d]};
  const ScratchBlock scratch;
  if (scratch.bytes() == nullptr) return {};
  for (uint64_t at = run.offset / kBlockSize * kBlockSize; at < run.end(); at += kBlockSize) {
    const Result<size_t> got = pread_full(fd, scratch.bytes(), kBlockSize, at);
    if (!got || *got == 0) return {};
    const iovec memory{.iov_base = scratch.bytes(), .iov_len = *got};
    if (verify(d, fd, at, {&memory, 1}, *got) == 0) continue;
    if (kinds_[d] == Kind::kSmall) return SumDamage{.run = {0, small_bytes_[d]}};
    return SumDamage{.run = {at, *got}};
  }
  return {};
}

int PartSums::mark(uint32_t d, int part_fd, ByteRange run) const {
  // The checksums may be valid, but cannot be marked.
  if (kinds_[d] == Kind::kLost && errors_[d] != 0 && !is_final(errors_[d])) {
    return errors_[d] == EINVAL ? EIO : errors_[d];
  }
  if (kinds_[d] == Kind::kSmall && !small_forgotten_[d].load(std::memory_order_acquire)) {
    if (const int error = forget_small(part_fd, parts_[d]); error != 0) return error;
    small_forgotten_[d].store(true, std::memory_order_release);
  }
  const uint64_t covered = covered_[d].load(relaxed);
  if (kinds_[d] != Kind::kBlocks || run.length_bytes == 0 || run.offset >= covered) return 0;
  const uint64_t first = run.offset / region_bytes_[d];
  const uint64_t last = (std::min(run.end(), covered) - 1) / region_bytes_[d];
  // The marks in front show how far a sequential writer has got.
  uint8_t bytes[kMarkAheadMax + 1] = {};
  const uint64_t from = first - std::min(first, kMarkAheadMax);
  bool is_marked = true;
  for (uint64_t r = from; r <= last && is_marked; r += sizeof bytes) {
    const uint64_t length = std::min<uint64_t>(sizeof bytes, last + 1 - r);
    const Result<size_t> got = pread_full(files_[d].fd(), bytes, length, kSumRegionsAt + r);
    if (!got) return got.error().code;
    for (uint64_t i = r < first ? first - r : 0; i < length; ++i) {
      is_marked = is_marked && bytes[i] == kRegionDirty;
    }
    if (r + length <= first) is_marked = true;
  }
  if (is_marked) return 0;
  const Result<size_t> got = pread_full(files_[d].fd(), bytes, first - from, kSumRegionsAt + from);
  uint64_t behind = 0;
  while (got && behind < *got && bytes[*got - 1 - behind] == kRegionDirty) ++behind;
  const uint64_t ahead = std::clamp<uint64_t>(2 * behind, 1, kMarkAheadMax);
  const uint64_t end =
      std::min(std::max(last + 1, first + ahead), (covered - 1) / region_bytes_[d] + 1);
  int error = files_[d].set_regions(first, end - first, kRegionMarking);
  if (error == 0) error = files_[d].sync();
  return error == 0 ? files_[d].set_regions(first, end - first, kRegionDirty) : error;
}

int PartSums::cut(uint32_t d, uint64_t part_bytes) const {
  if (kinds_[d] != Kind::kBlocks) return 0;
  SumHeader header;
  const Result<SumVerdict> verdict = files_[d].read_header(&header);
  if (!verdict) return verdict.error().code;
  return *verdict == SumVerdict::kGood ? files_[d].lower_cover(&header, part_bytes) : EIO;
}

}  // namespace graphlane
