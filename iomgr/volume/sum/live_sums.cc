#include "iomgr/volume/sum/live_sums.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "iomgr/base/parallel_for.h"
#include "iomgr/base/process/log.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/sum/sum_builder.h"

namespace graphlane {
namespace {

// A sequential writer ends up marking so many regions together, because each mark waits for the
// device.
constexpr uint64_t kAheadMax = 16;

void set_bit(std::vector<uint64_t>& bits, uint64_t i) { bits[i / 64] |= uint64_t{1} << i % 64; }
bool has_bit(const std::vector<uint64_t>& bits, uint64_t i) {
  return !bits.empty() && (bits[i / 64] >> i % 64 & 1) != 0;
}

}  // namespace

LiveSums::LiveSums(const Volume& volume, const StripedFile& file, uint64_t size_bytes,
                   bool is_closed)
    : volume_(volume), file_(file) {
  MutexLock lock(mu_);
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    open_part(d, file.map().part_size(d, size_bytes), is_closed);
  }
}

PartOf LiveSums::which(uint32_t d) const {
  return part_of(volume_.devices()[d].root_fd.get(), file_.layout());
}

// Reads the record first, because a close writes the sums before it.
void LiveSums::open_part(uint32_t d, uint64_t part_bytes, bool is_closed) {
  Part& part = parts_[d];
  // A file made by a killed writer gets checksums, too.
  part.kind = part_bytes == 0 || !is_closed ? Part::Kind::kFresh : Part::Kind::kLeft;
  PartRecord record;
  if (read_part_record(part_fd(d), which(d), &record).value_or(RecordVerdict::kNone) !=
      RecordVerdict::kRecord) {
    return;
  }
  part.is_small_summed = (record.flags & PartRecord::kSummed) != 0;
  part.has_small_sum = part.is_small_summed && is_closed;
  part.small_sum = record.sum;
  part.small_bytes = part_bytes;
  if (part.is_small_summed || part_bytes <= kSmallPartMax) part.kind = Part::Kind::kFresh;
  if ((record.flags & PartRecord::kBlockSums) == 0) return;
  part.kind = Part::Kind::kLeft;
  Result<SumFile> opened = SumFile::open(which(d), part_fd(d), d, O_RDWR);
  // An interrupted chown may have left the part and its `.sum` with different owners.
  if (!opened && opened.error().code == EINVAL && share_part_access(part_fd(d), which(d)) == 0) {
    opened = SumFile::open(which(d), part_fd(d), d, O_RDWR);
  }
  if (!opened && verdict_of_error(opened.error().code) == SumVerdict::kGood) {
    part.error = opened.error().code;
  }
  if (!opened ||
      opened->read_header(&part.header).value_or(SumVerdict::kDamaged) != SumVerdict::kGood ||
      !fits_generation(part.header.generation, record.generation)) {
    part.header = {};
    part.is_lost = true;
    return;
  }
  part.file = std::move(*opened);
  part.kind = Part::Kind::kBlocks;
  is_dirty_ = is_dirty_ || (part.header.covered_bytes != part_bytes && !part.header.is_partial);
  // A killed writer may have left regions dirty.
  std::vector<uint8_t> bytes(kSumRegionsMax);
  const ssize_t got = ::pread(part.file.fd(), bytes.data(), bytes.size(), kSumRegionsAt);
  for (ssize_t i = 0; i < got; ++i) {
    if (!is_region_dirty(bytes[static_cast<size_t>(i)])) continue;
    Region& region = part.regions[static_cast<uint64_t>(i)];
    region.all = region.is_marked = is_dirty_ = true;
  }
  // Cuts sums behind the covered bytes.
  (void)::ftruncate(part.file.fd(),
                    static_cast<off_t>(sum_at(sum_block_count(part.header.covered_bytes))));
}

// Notes in memory: the writes in flight, and the blocks with a sum, or with a sum in the making.
void LiveSums::note(Part& part, ByteRange run) {
  const uint64_t size = part.header.region_bytes;
  const uint64_t noted = part.is_updating ? UINT64_MAX : part.header.covered_bytes;
  for (uint64_t r = run.offset / size; r * size < run.end(); ++r) {
    Region& region = part.regions[r];
    region.writes += 1;
    const uint64_t begin = std::max(run.offset, r * size);
    const uint64_t end = std::min({run.end(), (r + 1) * size, noted});
    if (begin >= end) continue;
    // a block that is rewritten as a whole is good
    std::erase_if(part.damaged, [&](uint64_t block) {
      return block * kBlockSize >= begin && (block + 1) * kBlockSize <= end;
    });
    if (region.all) continue;
    if (region.changed.empty()) region.changed.resize(size / kBlockSize / 64);
    const uint64_t first = r * size / kBlockSize;
    for (uint64_t b = begin / kBlockSize; b * kBlockSize < end; ++b) {
      set_bit(region.changed, b - first);
    }
  }
}

LiveSums::Mark LiveSums::marks_of(Part& part, ByteRange run) {
  const uint64_t size = part.header.region_bytes;
  const uint64_t covered = part.header.covered_bytes;
  if (part.kind != Part::Kind::kBlocks || run.offset >= covered) return {};
  Mark mark{.first = UINT64_MAX};
  for (uint64_t r = run.offset / size; r * size < std::min(run.end(), covered); ++r) {
    if (part.regions[r].is_marked) continue;
    mark.first = std::min(mark.first, r);
    mark.end = r + 1;
  }
  if (mark.end == 0) return {};
  part.ahead = mark.first == part.next_region ? std::min(2 * part.ahead, kAheadMax) : 1;
  mark.end = std::min(std::max(mark.end, mark.first + part.ahead), (covered - 1) / size + 1);
  part.next_region = mark.end;
  return mark;
}

// Marks on all devices in parallel. 0 or an errno.
int LiveSums::mark(uint32_t count, const std::array<Mark, kDeviceCountMax>& marks) {
  std::array<int, kDeviceCountMax> errors{};
  std::vector<uint32_t> devices;
  std::array<const SumFile*, kDeviceCountMax> files{};  // the caller holds mu_ until all are marked
  for (uint32_t d = 0; d < count; ++d) {
    if (marks[d].end > 0) devices.push_back(d);
    files[d] = &parts_[d].file;
  }
  const auto mark_one = [&](uint32_t i) {
    const uint32_t d = devices[i];
    const SumFile& file = *files[d];
    errors[d] = file.set_regions(marks[d].first, marks[d].end - marks[d].first, kRegionDirty);
    if (errors[d] == 0) errors[d] = file.sync();
  };
  if (devices.size() == 1) {
    mark_one(0);
  } else if (!devices.empty()) {
    parallel_for(static_cast<uint32_t>(devices.size()), mark_one);
  }
  for (const uint32_t d : devices) {
    if (errors[d] != 0) return errors[d];
    for (uint64_t r = marks[d].first; r < marks[d].end; ++r) parts_[d].regions[r].is_marked = true;
  }
  return 0;
}

// Verifies an unchanged block before a part of it changes.
void LiveSums::verify_block(uint32_t d, uint64_t block) {
  Part& part = parts_[d];
  const uint64_t r = block * kBlockSize / part.header.region_bytes;
  const auto region = part.regions.find(r);
  if (region != part.regions.end() &&
      (region->second.all ||
       has_bit(region->second.changed, block - r * part.header.region_bytes / kBlockSize))) {
    return;
  }
  const Result<bool> matches = matches_sum(part.file, part_fd(d), block, part.header.covered_bytes);
  if (matches.value_or(true)) return;
  part.damaged.insert(block);
  const uint64_t at =
      file_.map().logical_offset({.device_index = d, .part_offset = block * kBlockSize});
  log_line(
      "{}: bytes {} to {} do not match their checksum: part {} at {}; a part of them is written "
      "now",
      file_.name(), at, at + kBlockSize - 1, volume_.part_path(d, file_.layout().file_id),
      block * kBlockSize);
}

void LiveSums::verify_edges(uint32_t d, ByteRange run) {
  const Part& part = parts_[d];
  if (part.kind != Part::Kind::kBlocks) return;
  const uint64_t covered = part.header.covered_bytes;
  const uint64_t first = run.offset / kBlockSize, last = (run.end() - 1) / kBlockSize;
  const bool head_stays = run.offset % kBlockSize != 0 && run.offset < covered;
  const bool tail_stays = run.end() % kBlockSize != 0 && run.end() < covered;
  if (head_stays) verify_block(d, first);
  if (tail_stays && !(head_stays && first == last)) verify_block(d, last);
}

int LiveSums::begin(ByteRange range) {
  const uint32_t count = volume_.device_count();
  std::array<Mark, kDeviceCountMax> marks{};
  int error = 0;
  {
    MutexLock lock(mu_);
    is_dirty_ = true;
    for (uint32_t d = 0; d < count; ++d) {
      const ByteRange run = file_.map().run(d, range);
      if (run.length_bytes == 0) continue;
      if (parts_[d].error != 0) error = parts_[d].error;
      verify_edges(d, run);
      note(parts_[d], run);
      marks[d] = marks_of(parts_[d], run);
    }
    if (error == 0) error = mark(count, marks);
  }
  if (error != 0) end(range);
  return error;
}

void LiveSums::end(ByteRange range) {
  MutexLock lock(mu_);
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    const ByteRange run = file_.map().run(d, range);
    if (run.length_bytes == 0) continue;
    const uint64_t size = parts_[d].header.region_bytes;
    for (uint64_t r = run.offset / size; r * size < run.end(); ++r) {
      const auto region = parts_[d].regions.find(r);
      if (region == parts_[d].regions.end() || region->second.writes == 0) continue;
      region->second.writes -= 1;
      const Region& left = region->second;
      if (left.writes == 0 && !left.is_marked && !left.has_changed()) {
        parts_[d].regions.erase(region);
      }
    }
  }
}

int LiveSums::cut(uint64_t size_bytes) {
  MutexLock lock(mu_);
  is_dirty_ = true;
  int error = 0;
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    Part& part = parts_[d];
    const uint64_t bytes = file_.map().part_size(d, size_bytes);
    part.cuts += 1;
    if (bytes == 0) {
      if (part.kind == Part::Kind::kLeft) part.kind = Part::Kind::kFresh;
      part.is_small_damaged = false;
    }
    if (part.kind != Part::Kind::kBlocks || part.header.covered_bytes <= bytes) continue;
    if (bytes % kBlockSize != 0) verify_block(d, bytes / kBlockSize);
    const int failed = part.file.lower_cover(&part.header, bytes);
    std::erase_if(part.damaged, [&](uint64_t block) { return block * kBlockSize >= bytes; });
    if (failed != 0) error = failed;
  }
  return error;
}

int LiveSums::want_all(uint64_t size_bytes, SumWork work) {
  MutexLock lock(mu_);
  wants_all_ = true;
  work_ = std::move(work);
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    Part& part = parts_[d];
    const uint64_t bytes = file_.map().part_size(d, size_bytes);
    if (part.kind == Part::Kind::kLeft && !part.is_lost) part.kind = Part::Kind::kFresh;
    if (part.kind == Part::Kind::kFresh && bytes > kSmallPartMax) {
      if (const int error = make_file(d, bytes); error != 0) return error;
    }
    const bool lacks_small = part.kind == Part::Kind::kFresh && !part.is_small_summed;
    const bool lacks_some = part.kind == Part::Kind::kBlocks && part.header.covered_bytes != bytes;
    is_dirty_ = is_dirty_ || lacks_small || lacks_some;
  }
  return 0;
}

void LiveSums::give_way_if(std::function<bool()> is_asked_to) {
  is_asked_to_go_ = std::move(is_asked_to);
}

// Makes an empty `.sum`, durably.
int LiveSums::make_file(uint32_t d, uint64_t part_bytes) {
  Part& part = parts_[d];
  const PartOf whose = which(d);
  Result<SumFile> made = SumFile::create(whose, part_fd(d), d, part_bytes);
  if (!made) return made.error().code;
  if (part.header = {};
      made->read_header(&part.header).value_or(SumVerdict::kDamaged) != SumVerdict::kGood) {
    return EIO;
  }
  part.header.is_partial = wants_all_;
  int error = wants_all_ ? made->write_header(&part.header) : 0;
  if (error == 0 && wants_all_) error = made->sync();
  if (error == 0) error = sync_names(whose.root_fd, PartSumName(whose.file_id).directory());
  if (error == 0) error = sync_names(whose.root_fd, kSums);
  if (error != 0) return error;
  part.file = std::move(*made);
  part.kind = Part::Kind::kBlocks;
  const uint64_t spoiled = part.is_small_damaged ? sum_block_count(part.small_bytes) : 0;
  for (uint64_t block = 0; block < spoiled; ++block) part.damaged.insert(block);
  // The size of regions may have changed; writes in flight are noted in the smallest one.
  if (part.header.region_bytes != kSumRegionMin) regroup(part);
  return 0;
}

void LiveSums::regroup(Part& part) {
  std::unordered_map<uint64_t, Region> larger;
  for (const auto& [r, region] : part.regions) {
    Region& to = larger[r * kSumRegionMin / part.header.region_bytes];
    // Counts a write over several too often: the region stays dirty for longer.
    to.writes += region.writes;
    to.all = to.all || region.has_changed();
  }
  part.regions = std::move(larger);
}

int LiveSums::sync() {
  MutexLock lock(mu_);
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    if (!parts_[d].file) continue;
    if (const int error = parts_[d].file.sync(); error != 0) return error;
  }
  return 0;
}

bool LiveSums::any_small_summed() {
  MutexLock lock(mu_);
  const auto& parts = parts_;
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.is_small_summed; });
}

// Verifies a small part for the last time before it changes.
int LiveSums::forget_small_of(uint32_t d, bool durably) {
  Part& part = parts_[d];
  if (part.has_small_sum) {
    const Result<uint32_t> sum = sum_of_small_part(part_fd(d), part.small_bytes);
    if (sum && *sum != part.small_sum) {
      part.is_small_damaged = true;
      log_line("{}: part {} does not match its checksum; it is written now", file_.name(),
               volume_.part_path(d, file_.layout().file_id));
    }
  }
  PartRecord record;
  const auto verdict = read_part_record(part_fd(d), which(d), &record);
  if (!verdict) return verdict.error().code;
  if (*verdict == RecordVerdict::kRecord) {
    record.flags &= static_cast<uint8_t>(~PartRecord::kSummed);
    record.sum = 0;
    int error = write_part_record(part_fd(d), which(d), record);
    if (error == 0 && durably) error = sync_part_record(part_fd(d), which(d));
    if (error != 0) return error;
  }
  part.is_small_summed = part.has_small_sum = false;
  is_dirty_ = true;
  return 0;
}

int LiveSums::forget_small(bool durably) {
  MutexLock lock(mu_);
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    const int error = parts_[d].is_small_summed ? forget_small_of(d, durably) : 0;
    if (error != 0) return error;
  }
  return 0;
}

bool LiveSums::is_dirty() {
  MutexLock lock(mu_);
  return is_dirty_;
}

void LiveSums::note_in(PartRecord& record) {
  MutexLock lock(mu_);
  Part& part = parts_[record.ordinal];
  const bool is_quiet = std::all_of(
      part.regions.begin(), part.regions.end(),
      [](const auto& entry) { return entry.second.writes == 0 && !entry.second.has_changed(); });
  const bool is_small = part.kind == Part::Kind::kFresh && part.has_small_sum && is_quiet;
  const auto set = [&](uint8_t flag, bool on) {
    record.flags = static_cast<uint8_t>(on ? record.flags | flag : record.flags & ~flag);
  };
  set(PartRecord::kSummed, is_small);
  record.sum = is_small ? part.small_sum : 0;
  part.is_small_summed = is_small;
  if (part.kind != Part::Kind::kLeft) set(PartRecord::kBlockSums, part.kind == Part::Kind::kBlocks);
}

}  // namespace graphlane
