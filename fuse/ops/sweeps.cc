#include "fuse/ops/sweeps.h"

#include <algorithm>

#include "iomgr/base/memory_order.h"
#include "iomgr/volume/device_kind.h"

namespace graphlane::fuse {
// Updates the totals before the file's first request, because the kernel sends several at once.
Sweeps::Member::Member(Sweeps& sweeps, std::shared_ptr<const StripedFile> file)
    : sweeps_(sweeps), file_(std::move(file)) {
  {
    const MutexLock lock(sweeps_.mu_);
    const auto found = sweeps_.position(file_->layout().file_id);
    if (found != sweeps_.open_.end()) {
      ++found->handle_count;
      return;
    }
    sweeps_.open_.push_back({.file = file_, .handle_count = 1});
    if (sweeps_.open_.size() == 1) return;
  }
  sweeps_.check_memory();
}

Sweeps::Member::~Member() {
  const MutexLock lock(sweeps_.mu_);
  const auto found = sweeps_.position(file_->layout().file_id);
  if (--found->handle_count > 0) return;
  sweeps_.open_.erase(found);
  sweeps_.files_.check_memory_soon();
}

void Sweeps::start(const Volume& volume, IoMode io_mode) {
  by_memory_ = io_mode == IoMode::kAuto;
  kept_bytes_.store(budget_of(MemoryUse::kPagesBehind, memory_available_bytes()), relaxed);
  on_disks_ = is_on_disk(volume.device_roots()[0]);
}

std::vector<Sweeps::Open>::iterator Sweeps::position(const Uuid& file_id) {
  return std::find_if(open_.begin(), open_.end(),
                      [&](const Open& open) { return open.file->layout().file_id == file_id; });
}

std::shared_ptr<const StripedFile> Sweeps::find(const Uuid& file_id) {
  const MutexLock lock(mu_);
  const auto found = position(file_id);
  return found == open_.end() ? nullptr : found->file;
}

void Sweeps::check_memory() {
  const uint64_t available = memory_available_bytes();
  uint64_t all_bytes = 0;
  bool several = false;
  {
    const MutexLock lock(mu_);
    several = open_.size() > 1;
    for (const Open& open : open_) all_bytes += open.file->size();
  }
  const bool decides = several && by_memory_;
  fit_.store(decides ? fit_in_memory(IoMode::kAuto, all_bytes, available) : MemoryFit::kTwice,
             relaxed);
  has_several_files_.store(several, relaxed);
  kept_bytes_.store(budget_of(MemoryUse::kPagesBehind, available), relaxed);
  files_.set_available(available);
}

void Sweeps::count(uint64_t read_bytes) {
  if (files_.is_memory_check_due(read_bytes)) check_memory();
}

void Sweeps::arrive(const StripedFile& file, ByteRange range) {
  files_.arrive(file.layout().file_id, range);
}

void Sweeps::prefetch_next(const StripedFile& file, ByteRange range) {
  for (const auto& next : files_.prefetches_after(file.layout().file_id, range, /*size_bytes=*/0)) {
    if (const auto wanted = find(next.file_id)) {
      prefetch_into_page_cache(wanted->map(), wanted->parts().all_buffered(), next.range);
    }
  }
}

}  // namespace graphlane::fuse
