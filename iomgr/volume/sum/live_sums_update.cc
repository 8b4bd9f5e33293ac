// LiveSums::update(): computes new sums for changed blocks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
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
constexpr auto kKeepInterval = std::chrono::seconds(2);
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
        pace_(sums.work_.bytes_per_second) {}

  // 0 or an errno.
  int run() {
    if (part_bytes_ <= kSmallPartMax) return sum_small();
    if (const int error = begin(); error != 0 || is_left_) return error;
    int error = sum_changed();
    if (error == 0) error = sum_tail();
    if (error == EINTR || error == EAGAIN) (void)keep();
    if (error == 0) error = part_.file.sync();
    MutexLock lock(sums_.mu_);
    if (error == 0) error = part_.cuts == cuts_ ? commit(target_) : EAGAIN;
    part_.is_updating = false;
    if (error == 0) error = finish();
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
      if (const int error = sums_.make_file(d_, part_bytes_); error != 0) return error;
    }
    cuts_ = part_.cuts;
    covered_ = part_.header.covered_bytes;
    target_ = std::min(part_bytes_, part_.header.region_bytes * kSumRegionsMax);
    leaves_tail_ = part_.header.is_partial && !sums_.wants_all_;
    if (leaves_tail_) target_ = std::min(target_, covered_);
    tail_ = covered_;
    const bool extends_block = covered_ % kBlockSize != 0 && covered_ < target_;
    if (extends_block) {
      // Its sum is about to cover more bytes than the header says.
      sums_.verify_block(d_, covered_ / kBlockSize);
      std::array<Mark, kDeviceCountMax> marks{};
      const uint64_t r = extended_region_ = part_.header.region_of(covered_);
      if (!part_.regions[r].is_marked) marks[d_] = {.first = r, .end = r + 1};
      if (const int error = sums_.mark(sums_.volume_.device_count(), marks); error != 0) {
        return error;
      }
    }
    // A hole's sums are not written, so none that an earlier update() computed may be there.
    struct stat st;
    const auto end = static_cast<off_t>(sum_at(sum_block_count(covered_)));
    const int file = part_.file.fd();
    if (::fstat(file, &st) != 0 || (st.st_size > end && ::ftruncate(file, end) != 0)) return errno;
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
    while (!taken_.empty()) {
      const auto& [r, region] = *taken_.begin();
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
      taken_.erase(taken_.begin());
      if (const int error = keep_sometimes(); error != 0) return error;
    }
    return 0;
  }

  // Computes sums of blocks that are not covered yet. A hole has the sum 0, which needs no write.
  int sum_tail() {
    uint64_t at = covered_ / kBlockSize * kBlockSize;
    while (at < target_) {
      const off_t data = ::lseek(fd(), static_cast<off_t>(at), SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;
      if (data > static_cast<off_t>(at)) {
        at = std::max(at, static_cast<uint64_t>(data) / kBlockSize * kBlockSize);
      }
      const off_t hole = data < 0 ? -1 : ::lseek(fd(), data, SEEK_HOLE);
      const uint64_t end =
          hole < 0 ? target_ : std::min(target_, round_up(static_cast<uint64_t>(hole), kBlockSize));
      if (at >= target_) break;
      const uint64_t from = at;
      while (at < end) {
        const uint64_t to = std::min(end, at + kUpdateChunk);
        if (const int error = sum_run(at, to); error != 0) return error;
        at = tail_ = to;
        if (const int error = keep_sometimes(); error != 0) return error;
      }
      at = std::max(at, from + kBlockSize);
    }
    tail_ = target_;
    return extend_file();
  }

  int keep_sometimes() {
    return std::chrono::steady_clock::now() - kept_ < kKeepInterval ? 0 : keep();
  }

  // Makes the sums that were computed so far hold, so that they are not computed again if this ends
  // early.
  int keep() {
    if (const int error = part_.file.sync(); error != 0) return error;
    MutexLock lock(sums_.mu_);
    if (part_.cuts != cuts_) return EAGAIN;
    const int error = commit(std::min(tail_, target_));
    kept_ = std::chrono::steady_clock::now();
    return error;
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
      if (sums_.is_asked_to_go_ && sums_.is_asked_to_go_()) return EAGAIN;
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
      if (sums_.work_.summed) sums_.work_.summed(length);
      pace_.moved(length);
    }
    return 0;
  }

  // Whether blocks of the region changed, and have no new sums yet.
  bool is_busy(uint64_t r, const Region& region) const REQUIRES(sums_.mu_) {
    const bool is_extended = r == extended_region_ && tail_ == covered_;
    return region.writes > 0 || region.has_changed() || taken_.contains(r) || is_extended;
  }

  // The sums up to there are durable. Blocks changed since are marked dirty before they become
  // covered.
  int commit(uint64_t covered) REQUIRES(sums_.mu_) {
    std::array<Mark, kDeviceCountMax> marks{};
    const uint64_t regions = covered == 0 ? 0 : part_.header.region_of(covered - 1) + 1;
    for (const auto& [r, region] : part_.regions) {
      if (!is_busy(r, region) || region.is_marked || r >= regions) continue;
      marks[d_].first = marks[d_].end == 0 ? r : std::min(marks[d_].first, r);
      marks[d_].end = std::max(marks[d_].end, r + 1);
    }
    if (const int error = sums_.mark(sums_.volume_.device_count(), marks); error != 0) return error;
    part_.header.covered_bytes = covered;
    part_.header.generation = generation_;
    if (covered == part_bytes_) part_.header.is_partial = false;
    int error = part_.file.write_header(&part_.header);
    is_quiet_ = true;
    for (auto entry = part_.regions.begin(); entry != part_.regions.end();) {
      const Region& region = entry->second;
      const bool stays = is_busy(entry->first, region);
      is_quiet_ = is_quiet_ && !stays;
      if (error == 0 && region.is_marked && !stays) {
        error = part_.file.set_regions(entry->first, 1, kRegionClean);
      }
      if (stays) {
        ++entry;
      } else {
        entry = part_.regions.erase(entry);
      }
    }
    part_.next_region = 0;
    part_.ahead = 1;
    if (error == 0) error = part_.file.sync();
    if (error == 0) error = part_.file.write_header(&part_.header);  // the other slot
    return error;
  }

  int finish() REQUIRES(sums_.mu_) {
    if (!is_quiet_) sums_.is_dirty_ = true;
    return target_ < part_bytes_ && !leaves_tail_ ? widen() : 0;
  }

  // Makes the regions larger, if the part has more than the file has room for. Only while all are
  // clean.
  int widen() REQUIRES(sums_.mu_) {
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
  std::chrono::steady_clock::time_point kept_ = std::chrono::steady_clock::now();
  bool is_left_ = false;
  bool leaves_tail_ = false;  // for `check --checksum`
  bool is_quiet_ = true;
  uint32_t cuts_ = 0;
  uint64_t covered_ = 0;
  uint64_t target_ = 0;
  uint64_t tail_ = 0;                      // has sums up to there
  uint64_t extended_region_ = UINT64_MAX;  // of a block that was covered in part
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
