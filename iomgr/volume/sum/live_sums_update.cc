// LiveSums::update(): computes new sums for changed blocks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/sum/live_sums.h"
#include "iomgr/volume/sum/pace.h"
#include "iomgr/volume/sum/sum_builder.h"

namespace graphlane {
namespace {

constexpr uint64_t kUpdateChunk = 1 << 20;
// XORed to the sum of a damaged block, so that it still fails after a write to a part of it.
constexpr uint32_t kSpoiled = 0xffffffff;

}  // namespace

// Updates one part. Takes the changes out of the table first; later changes are noted there, and
// stay dirty.
class LiveSums::Update {
 public:
  Update(LiveSums& sums, uint32_t d, uint64_t part_bytes, uint32_t generation)
      : sums_(sums),
        part_(sums.parts_[d]),
        d_(d),
        part_bytes_(part_bytes),
        generation_(generation),
        pace_(sums.rate_) {}

  // 0 or an errno.
  int run() {
    if (part_bytes_ <= kSmallPartMax) return sum_small();
    if (const int error = begin(); error != 0 || is_left_) return error;
    int error = sum_changed();
    if (error == 0) error = sum_tail();
    if (error == 0) error = part_.file.sync();
    MutexLock lock(sums_.mu_);
    if (error == 0) error = part_.cuts == cuts_ ? commit() : EAGAIN;
    part_.is_updating = false;
    if (error != 0) put_back();
    return error;
  }

 private:
  int fd() const { return sums_.part_fd(d_); }

  int sum_small() {
    bool has_changed = false;
    {
      MutexLock lock(sums_.mu_);
      if (part_.kind == Part::Kind::kLeft) return 0;
      if (part_.kind == Part::Kind::kBlocks) leave_blocks();
      take_changed();
      has_changed = !taken_.empty() || !part_.has_small_sum;
      part_.is_updating = has_changed;
    }
    if (!has_changed) return 0;
    const Result<uint32_t> sum = sum_of_small_part(fd(), part_bytes_);
    MutexLock lock(sums_.mu_);
    part_.is_updating = false;
    part_.has_small_sum = sum.has_value();
    part_.small_bytes = part_bytes_;
    if (sum) part_.small_sum = part_.is_small_damaged ? *sum ^ kSpoiled : *sum;
    return sum ? 0 : sum.error().code;
  }

  // The part has become small: its record holds the sum. A new `.sum` is made if it grows again.
  void leave_blocks() {
    part_.kind = Part::Kind::kFresh;
    part_.file = {};
    part_.header = {};
    std::erase_if(part_.regions, [](const auto& entry) { return entry.second.writes == 0; });
  }

  int begin() {
    MutexLock lock(sums_.mu_);
    is_left_ = part_.kind == Part::Kind::kLeft;
    if (is_left_) return 0;
    if (part_.kind == Part::Kind::kFresh) {
      if (const int error = make_file(); error != 0) return error;
    }
    cuts_ = part_.cuts;
    covered_ = part_.header.covered_bytes;
    target_ = std::min(part_bytes_, part_.header.region_bytes * kSumRegionsMax);
    const bool extends_block = covered_ % kBlockSize != 0 && covered_ < target_;
    if (extends_block) {
      // Its sum is about to cover more bytes than the header says.
      sums_.verify_block(d_, covered_ / kBlockSize);
      std::array<Mark, kDeviceCountMax> marks{};
      const uint64_t r = part_.header.region_of(covered_);
      if (!part_.regions[r].is_marked) marks[d_] = {.first = r, .end = r + 1};
      if (const int error = sums_.mark(sums_.volume_.device_count(), marks); error != 0) {
        return error;
      }
    }
    note_tail();
    take_changed();
    part_.is_updating = true;
    damaged_ = part_.damaged;
    return 0;
  }

  // Notes the blocks of writes in flight behind the covered bytes.
  void note_tail() {
    const uint64_t size = part_.header.region_bytes;
    for (auto& [r, region] : part_.regions) {
      if (region.writes == 0 || region.all || (r + 1) * size <= covered_) continue;
      if (region.changed.empty()) region.changed.resize(size / kBlockSize / 64);
      const uint64_t first = r * size / kBlockSize;
      for (uint64_t b = std::max(first, covered_ / kBlockSize); b < first + size / kBlockSize;
           ++b) {
        region.changed[(b - first) / 64] |= uint64_t{1} << (b - first) % 64;
      }
    }
  }

  int make_file() {
    const PartOf which = sums_.which(d_);
    Result<SumFile> made = SumFile::create(which, fd(), d_, part_bytes_);
    if (!made) return made.error().code;
    if (const int error = sync_names(which.root_fd, PartDirectory(PartName(which.file_id)).c_str());
        error != 0) {
      return error;
    }
    if (made->read_header(&part_.header).value_or(SumVerdict::kDamaged) != SumVerdict::kGood) {
      return EIO;
    }
    part_.file = std::move(*made);
    part_.kind = Part::Kind::kBlocks;
    const uint64_t spoiled = part_.is_small_damaged ? sum_block_count(part_.small_bytes) : 0;
    for (uint64_t block = 0; block < spoiled; ++block) part_.damaged.insert(block);
    // The size of regions may have changed; writes in flight are noted in the smallest one.
    if (part_.header.region_bytes != kSumRegionMin) regroup(part_.header.region_bytes);
    return 0;
  }

  void regroup(uint64_t region_bytes) {
    std::unordered_map<uint64_t, Region> larger;
    for (const auto& [r, region] : part_.regions) {
      Region& to = larger[r * kSumRegionMin / region_bytes];
      // counts a write over several too often: it stays dirty for longer
      to.writes += region.writes;
      to.all = to.all || region.has_changed();
    }
    part_.regions = std::move(larger);
  }

  // Takes the changed blocks of regions without a write in flight.
  void take_changed() {
    for (auto entry = part_.regions.begin(); entry != part_.regions.end();) {
      Region& region = entry->second;
      if (region.writes == 0 && region.has_changed()) {
        taken_[entry->first] = {.changed = std::exchange(region.changed, {}),
                                .all = std::exchange(region.all, false)};
      }
      if (region.writes == 0 && !region.is_marked && !region.has_changed()) {
        entry = part_.regions.erase(entry);
      } else {
        ++entry;
      }
    }
  }

  void put_back() {
    for (auto& [r, taken] : taken_) {
      Region& region = part_.regions[r];
      region.all = region.all || taken.all;
      if (region.changed.empty()) {
        region.changed = std::move(taken.changed);
      } else {
        for (size_t i = 0; i < taken.changed.size(); ++i) {
          region.changed[i] |= taken.changed[i];
        }
      }
    }
  }

  int sum_changed() {
    const uint64_t per_region = part_.header.region_bytes / kBlockSize;
    const uint64_t end =
        std::min(covered_, target_) / kBlockSize + (std::min(covered_, target_) % kBlockSize != 0);
    for (const auto& [r, region] : taken_) {
      uint64_t first = r * per_region;
      const uint64_t last = std::min(first + per_region, end);
      while (first < last) {
        const auto is_changed = [&](uint64_t block) {
          const uint64_t i = block - r * per_region;
          return region.all ||
                 (!region.changed.empty() && (region.changed[i / 64] >> i % 64 & 1) != 0);
        };
        if (!is_changed(first)) {
          ++first;
          continue;
        }
        uint64_t run_end = first + 1;
        while (run_end < last && is_changed(run_end)) ++run_end;
        if (const int error = sum_run(first * kBlockSize, std::min(run_end * kBlockSize, target_));
            error != 0) {
          return error;
        }
        first = run_end;
      }
    }
    return 0;
  }

  // Computes sums of blocks that are not covered yet. A hole has the sum 0, which needs no write.
  int sum_tail() {
    uint64_t at = covered_ / kBlockSize * kBlockSize;
    while (at < target_) {
      const off_t data = ::lseek(fd(), static_cast<off_t>(at), SEEK_DATA);
      if (data < 0 && errno == ENXIO) return extend_file();
      if (data > static_cast<off_t>(at)) {
        at = std::max(at, static_cast<uint64_t>(data) / kBlockSize * kBlockSize);
      }
      const off_t hole = data < 0 ? -1 : ::lseek(fd(), data, SEEK_HOLE);
      const uint64_t end =
          hole < 0 ? target_ : std::min(target_, round_up(static_cast<uint64_t>(hole), kBlockSize));
      if (at >= target_) break;
      if (const int error = sum_run(at, end); error != 0) return error;
      at = std::max(end, at + 1);
    }
    return extend_file();
  }

  // Makes the file end behind the last sum, even if that is a hole's.
  int extend_file() {
    struct stat st;
    const auto end = static_cast<off_t>(sum_at(sum_block_count(target_)));
    if (::fstat(part_.file.fd(), &st) != 0) return errno;
    return st.st_size >= end || ::ftruncate(part_.file.fd(), end) == 0 ? 0 : errno;
  }

  // Computes the sums of bytes [begin, end) of the part; `begin` is a block's.
  int sum_run(uint64_t begin, uint64_t end) {
    std::vector<uint8_t> buffer(std::min(kUpdateChunk, round_up(end - begin, kBlockSize)));
    std::vector<uint32_t> sums(buffer.size() / kBlockSize);
    for (uint64_t at = begin; at < end; at += buffer.size()) {
      if (!check_interrupt()) return EINTR;
      const uint64_t length = std::min<uint64_t>(buffer.size(), end - at);
      const Result<size_t> got = pread_full(fd(), buffer.data(), length, at);
      if (!got) return got.error().code;
      std::fill(buffer.begin() + static_cast<ptrdiff_t>(*got), buffer.end(), uint8_t{0});
      const auto count = static_cast<uint32_t>(sum_block_count(length));
      sum_blocks(buffer.data(), count, sums.data());
      for (uint32_t i = 0; i < count && !damaged_.empty(); ++i) {
        if (damaged_.contains(at / kBlockSize + i)) sums[i] ^= kSpoiled;
      }
      if (const int error = part_.file.write_sums(at / kBlockSize, {sums.data(), count});
          error != 0) {
        return error;
      }
      pace_.moved(length);
    }
    return 0;
  }

  // The sums are durable. Blocks changed since are marked dirty before they become covered.
  int commit() {
    std::array<Mark, kDeviceCountMax> marks{};
    const uint64_t regions = target_ == 0 ? 0 : part_.header.region_of(target_ - 1) + 1;
    for (const auto& [r, region] : part_.regions) {
      const bool is_busy = region.writes > 0 || region.has_changed();
      if (!is_busy || region.is_marked || r >= regions) continue;
      marks[d_].first = marks[d_].end == 0 ? r : std::min(marks[d_].first, r);
      marks[d_].end = std::max(marks[d_].end, r + 1);
    }
    if (const int error = sums_.mark(sums_.volume_.device_count(), marks); error != 0) return error;
    part_.header.covered_bytes = target_;
    part_.header.generation = generation_;
    int error = part_.file.write_header(&part_.header);
    is_quiet_ = true;
    for (auto entry = part_.regions.begin(); entry != part_.regions.end();) {
      const Region& region = entry->second;
      const bool is_busy = region.writes > 0 || region.has_changed();
      is_quiet_ = is_quiet_ && !is_busy;
      if (error == 0 && region.is_marked && !is_busy) {
        error = part_.file.set_regions(entry->first, 1, kRegionClean);
      }
      if (is_busy) {
        ++entry;
      } else {
        entry = part_.regions.erase(entry);
      }
    }
    part_.next_region = 0;
    part_.ahead = 1;
    if (error == 0) error = part_.file.sync();
    if (error == 0) error = part_.file.write_header(&part_.header);  // the other slot
    if (error == 0 && target_ < part_bytes_) error = widen();
    if (error == 0 && !is_quiet_) sums_.is_dirty_ = true;
    return error;
  }

  // Makes the regions larger, if the part has more than the file has room for. Only while all are
  // clean.
  int widen() {
    sums_.is_dirty_ = true;  // the next update covers the rest
    if (!part_.regions.empty()) return 0;
    part_.header.region_bytes = sum_region_bytes(part_bytes_);
    int error = part_.file.write_header(&part_.header);
    if (error == 0) error = part_.file.sync();
    if (error == 0) error = part_.file.write_header(&part_.header);
    return error;
  }

  LiveSums& sums_;
  Part& part_;
  const uint32_t d_;
  const uint64_t part_bytes_;
  const uint32_t generation_;
  Pace pace_;
  bool is_left_ = false;
  bool is_quiet_ = true;
  uint32_t cuts_ = 0;
  uint64_t covered_ = 0;
  uint64_t target_ = 0;
  std::map<uint64_t, Region> taken_;
  std::unordered_set<uint64_t> damaged_;
};

int LiveSums::update(uint64_t size_bytes, uint32_t generation) {
  const uint32_t count = volume_.device_count();
  {
    MutexLock lock(mu_);
    is_dirty_ = false;
  }
  std::array<int, kDeviceCountMax> errors{};
  parallel_for(count, [&](uint32_t d) {
    errors[d] = Update(*this, d, file_.map().part_size(d, size_bytes), generation).run();
  });
  for (uint32_t d = 0; d < count; ++d) {
    if (errors[d] == 0) continue;
    MutexLock lock(mu_);
    is_dirty_ = true;
    return errors[d];
  }
  return 0;
}

}  // namespace graphlane
