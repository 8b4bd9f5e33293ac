#include "shim/read/sweep_step.h"

#include <cerrno>

#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/read/file_sweeps.h"
#include "shim/base/settings.h"
#include "shim/read/queues.h"
#include "shim/share/shared_reader.h"

namespace graphlane::shim {
namespace {

constinit FileSweeps file_sweeps;
constinit SweptFiles swept_files;

void check_memory() {
  const uint64_t available = memory_available_bytes();
  file_sweeps.set_available(available);
  swept_files.share_memory(available);
}

}  // namespace

SweepStep::SweepStep(const OpenFileRef& file, ByteRange range)
    : file_id_(file->file_id), range_(range) {
  if (!settings().cache.reads_ahead || !is_first_process()) return;
  const BlockedSignals signals;  // a handler may also read, and leave by siglongjmp()
  size_bytes_ = file.size();
  swept_.emplace(swept_files.use(*file, size_bytes_));
  if (!*swept_) return;
  if (file_sweeps.is_memory_check_due(range.length_bytes)) check_memory();
  drops_ = !swept_->stays() && !is_read_by_others(*file);
  const uint64_t predicted = file_sweeps.arrive(file_id_, range);
  const uint64_t missing = prefetch_into_page_cache(swept_->map(), swept_->parts(), range);
  if (predicted == range.length_bytes)
    file_sweeps.record_use(predicted, missing);
  else
    swept_files.record_use(*swept_, range.length_bytes, missing);
}

SweepStep::~SweepStep() {
  if (!swept_ || !*swept_) return;
  const BlockedSignals signals;
  const int saved_errno = errno;
  if (drops_) drop_from_page_cache(swept_->map(), swept_->parts(), range_);
  for (const auto& next : file_sweeps.prefetches_after(file_id_, range_, size_bytes_)) {
    if (const SweptFiles::Ref file = swept_files.find(next.file_id)) {
      const uint64_t missing = prefetch_into_page_cache(file.map(), file.parts(), next.range);
      swept_files.record_use(file, next.range.length_bytes, missing);
    }
  }
  errno = saved_errno;
}

PrefetchStats sweep_stats() { return file_sweeps.stats(); }

}  // namespace graphlane::shim
