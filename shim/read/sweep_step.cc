#include "shim/read/sweep_step.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "iomgr/base/memory_order.h"
#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/cache/page_cache_share.h"
#include "iomgr/read/sequence_predictor.h"
#include "shim/base/settings.h"
#include "shim/read/queues.h"
#include "shim/share/shared_reader.h"

namespace graphlane::shim {
namespace {

constinit SequencePredictor sequence_predictor;
constinit SweptFiles swept_files;
std::atomic<uint64_t> unlooked_bytes{SequencePredictor::kLookBytes};
constinit PageCacheShare ahead_share(MemoryUse::kPrefetchedPages);

bool is_on_disks(const OpenFile& file) {
  return file.gates[0] != nullptr && file.gates[0]->seeks();
}

void look_at_memory(uint64_t read_bytes) {
  if (unlooked_bytes.fetch_add(read_bytes, relaxed) + read_bytes < SequencePredictor::kLookBytes) {
    return;
  }
  unlooked_bytes.store(0, relaxed);
  const uint64_t available = memory_available_bytes();
  ahead_share.adjust(available);
  swept_files.share_memory(available);
}

}  // namespace

SweepStep::SweepStep(const OpenFileRef& file, ByteRange range)
    : file_id_(file->file_id), range_(range) {
  const bool is_one = range.length_bytes >= SequencePredictor::kReadMin && !file.direct() &&
                      settings().cache.reads_ahead && is_on_disks(*file) && is_first_process();
  if (!is_one) return;
  const BlockedSignals signals;  // a handler may also read, and leave by siglongjmp()
  size_bytes_ = file.size();
  swept_.emplace(swept_files.use(*file, size_bytes_));
  if (!*swept_) return;
  look_at_memory(range.length_bytes);
  drops_ = !swept_->stays() && !is_read_by_others(*file);
  const uint64_t begun = sequence_predictor.arrive(file_id_, range);
  const uint64_t missing = begin_in_page_cache(swept_->map(), swept_->parts(), range);
  if (begun == range.length_bytes) {
    ahead_share.record_use(begun, missing);
  } else {
    swept_files.record_use(*swept_, range.length_bytes, missing);
  }
}

SweepStep::~SweepStep() {
  if (!swept_ || !*swept_) return;
  const BlockedSignals signals;
  const int saved_errno = errno;
  if (drops_) drop_from_page_cache(swept_->map(), swept_->parts(), range_);
  SequencePredictor::Prediction next[SequencePredictor::kPredictionsMax];
  const uint64_t enough = std::max(SequencePredictor::kAheadEnough, range_.length_bytes);
  const uint32_t count = sequence_predictor.predict(file_id_, range_, size_bytes_,
                                                    std::min(ahead_share.bytes(), enough), next);
  for (uint32_t i = 0; i < count; ++i) {
    if (const SweptFiles::Ref file = swept_files.find(next[i].file_id)) {
      const uint64_t missing = begin_in_page_cache(file.map(), file.parts(), next[i].range);
      swept_files.record_use(file, next[i].range.length_bytes, missing);
    }
  }
  errno = saved_errno;
}

PrefetchStats sweep_stats() { return sequence_predictor.stats(); }

}  // namespace graphlane::shim
