#include "iomgr/admin/scrub.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/sum/sum_builder.h"

namespace graphlane {
namespace {

constexpr uint64_t kScrubChunk = 4u << 20;
// Counts failed blocks that are not adjacent.
constexpr size_t kProblemsMax = 16;

class Scrub final : public FailedBlocks {
 public:
  Scrub(const Volume& volume, const ScrubFile& file, uint32_t d, const ScrubPace& how)
      : volume_(volume),
        file_(file),
        d_(d),
        how_(how),
        map_(file.layout.map()),
        part_(part_of(volume.devices()[d].root_fd.get(), file.layout)) {}

  PartScrub run(Progress* progress) {
    const Fd part = open_regular(part_.root_fd, PartName(file_.layout.file_id).c_str(), O_RDONLY);
    if (!part) return {};  // reported elsewhere, or removed meanwhile
    // Drops the page cache, because it may hold bytes that the device has lost.
    (void)::fdatasync(part.get());
    (void)::posix_fadvise(part.get(), 0, 0, POSIX_FADV_DONTNEED);
    open_sums(part.get());
    read_all(part.get(), progress);
    end_range();
    if (left_out_ > 0) problem("{} more places on {}", left_out_, device());
    return std::move(result_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    result_.problems.push_back(file_.shown + ": " +
                               fmt::format(format, std::forward<Args>(args)...));
    if (how_.state != nullptr) how_.state->found(result_.problems.back());
  }
  std::string path() const { return volume_.part_path(d_, file_.layout.file_id); }
  // As the user named it: the parent of the parts' directory.
  std::string device() const {
    return std::filesystem::path(volume_.devices()[d_].root).parent_path();
  }

  // Reads the record first, because a close writes the sums before it.
  void open_sums(int part_fd) {
    PartRecord record;
    if (read_part_record(part_fd, part_, &record).value_or(RecordVerdict::kNone) !=
        RecordVerdict::kRecord) {
      return;
    }
    if ((record.flags & PartRecord::kSummed) != 0) check_small(part_fd, record);
    if ((record.flags & PartRecord::kBlockSums) == 0) return;
    result_.has_sums = true;
    Result<SumFile> opened = SumFile::open(part_, part_fd, d_, O_RDONLY);
    SumVerdict verdict = SumVerdict::kGood;
    SumHeader header;
    if (!opened) {
      verdict = verdict_of_error(opened.error().code);
      if (verdict == SumVerdict::kGood) {
        return problem("checksums of part {}: {}", path(), error_text(opened.error().code));
      }
    } else {
      verdict = opened->read_header(&header).value_or(SumVerdict::kDamaged);
      if (verdict == SumVerdict::kGood && !fits_generation(header.generation, record.generation)) {
        verdict = SumVerdict::kStale;
      }
    }
    if (verdict != SumVerdict::kGood) {
      return problem("the checksums of part {} {}", path(), describe(verdict));
    }
    check_length(*opened, header);
    check_unused(*opened);
    check_cover(header, record);
    sums_ = std::move(*opened);
    covered_bytes_ = header.covered_bytes;
  }

  // A longer file than the part needs is reported; it does no harm.
  void check_length(const SumFile& sums, const SumHeader& header) {
    struct stat st;
    const uint64_t most = sum_at(sum_block_count(header.region_bytes * kSumRegionsMax));
    if (::fstat(sums.fd(), &st) == 0 && static_cast<uint64_t>(st.st_size) > most) {
      problem("the checksums of part {} have {} bytes, at most {} are theirs", path(), st.st_size,
              most);
    }
  }

  // After a close the sums must cover the whole part.
  void check_cover(const SumHeader& header, const PartRecord& record) {
    const uint64_t size = std::min(file_.layout.logical_size, record.synced_bytes);
    const uint64_t bytes = map_.part_size(d_, size);
    if (file_.layout.state != FileState::kClosed || header.covered_bytes >= bytes) return;
    if (header.is_partial) {  // `check --checksum` was interrupted
      result_.has_sums = false;
      return;
    }
    problem("the checksums of part {} end at {} of {} bytes", path(), header.covered_bytes, bytes);
  }

  // Every unused byte before the sums has one valid value, or one of two.
  void check_unused(const SumFile& sums) {
    std::vector<uint8_t> bytes(kSumsAt);
    const Result<size_t> got = pread_full(sums.fd(), bytes.data(), bytes.size(), 0);
    for (uint64_t at = 0; got && at < *got; ++at) {
      const bool is_used =
          at < kPartRecordSize || (at >= kSumHeaderAt && at < kSumRegionsAt &&
                                   (at - kSumHeaderAt) % kSumHeaderStride < kSumHeaderSize);
      const bool is_dirty = at >= kSumRegionsAt && is_region_dirty(bytes[at]);
      if (is_used || is_dirty || bytes[at] == 0) continue;
      return problem("the checksums of part {} are damaged at {}", path(), at);
    }
  }

  // Checks a small part's one sum, in its record. While the file is open its bytes may change.
  void check_small(int part_fd, const PartRecord& record) {
    result_.has_sums = true;
    const uint64_t bytes = map_.part_size(d_, file_.layout.logical_size);
    if (file_.layout.state != FileState::kClosed || bytes > kSmallPartMax) return;
    const Result<uint32_t> sum = sum_of_small_part(part_fd, bytes);
    PartRecord now;
    if (!sum || read_part_record(part_fd, part_, &now).value_or(RecordVerdict::kNone) !=
                    RecordVerdict::kRecord) {
      return;
    }
    if (now != record) return;  // a writer is active
    if (*sum == record.sum) {
      result_.blocks.verified += sum_block_count(bytes);
    } else {
      result_.blocks.failed += sum_block_count(bytes);
      problem("part {} ({} bytes, device {}) does not match its checksum", path(), bytes, device());
    }
  }

  void read_all(int part_fd, Progress* progress) {
    std::vector<char> buffer(kScrubChunk);
    for (uint64_t offset = how_.from_part_offset; check_interrupt();) {
      const Result<size_t> got = pread_full(part_fd, buffer.data(), buffer.size(), offset);
      if (!got) {
        return problem("part {}: cannot read between {} and {}: {}", path(), offset,
                       offset + buffer.size(), error_text(got.error().code));
      }
      if (sums_ && !verify(part_fd, offset, {.iov_base = buffer.data(), .iov_len = *got})) return;
      progress->add(*got);
      // Drops the pages that it has read, so that it does not evict others.
      (void)::posix_fadvise(part_fd, static_cast<off_t>(offset), static_cast<off_t>(*got),
                            POSIX_FADV_DONTNEED);
      if (*got < buffer.size()) return;
      offset += *got;
      if (how_.pace != nullptr) how_.pace->moved(*got);
      // A range that may go on is told first: a scrub that is resumed later would not find it.
      const bool goes_on = failed_end_ == offset;
      if (!goes_on) end_range();
      if (how_.state != nullptr && !goes_on) {
        how_.state->reached(d_, {.file_id = file_.layout.file_id.bytes, .part_offset = offset});
      }
    }
  }

  bool verify(int part_fd, uint64_t offset, const iovec& memory) {
    const int error = verify_bytes(sums_, part_fd, offset, {&memory, 1}, memory.iov_len,
                                   &covered_bytes_, &result_.blocks, this);
    if (error != 0) problem("checksums of part {}: cannot read: {}", path(), error_text(error));
    return error == 0;
  }

  void failed(uint64_t part_offset) override {
    failed_end_ = part_offset + kBlockSize;
    const uint64_t at = map_.logical_offset({.device_index = d_, .part_offset = part_offset});
    if (range_.length_bytes > 0 && at == range_.end()) {
      range_.length_bytes += kBlockSize;
      return;
    }
    end_range();
    range_ = {.offset = at, .length_bytes = kBlockSize};
    range_part_offset_ = part_offset;
  }

  void end_range() {
    if (range_.length_bytes == 0) return;
    if (result_.problems.size() >= kProblemsMax) {
      left_out_ += 1;
    } else {
      problem("bytes {} to {} do not match their checksums: device {}, part {} at {}",
              range_.offset, range_.end() - 1, device(), path(), range_part_offset_);
    }
    range_ = {};
  }

  const Volume& volume_;
  const ScrubFile& file_;
  const uint32_t d_;
  const ScrubPace how_;
  const StripeMap map_;
  const PartOf part_;
  SumFile sums_;  // empty: no checksums
  std::atomic<uint64_t> covered_bytes_{0};
  PartScrub result_;
  ByteRange range_;  // a range of the file that failed
  uint64_t range_part_offset_ = 0;
  uint64_t failed_end_ = 0;  // in the part, of the last block that failed
  uint64_t left_out_ = 0;
};

}  // namespace

PartScrub scrub_part(const Volume& volume, const ScrubFile& file, uint32_t device_index,
                     Progress* progress, const ScrubPace& how) {
  return Scrub(volume, file, device_index, how).run(progress);
}

}  // namespace graphlane
