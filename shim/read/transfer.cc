#include "shim/read/transfer.h"

#include <cerrno>
#include <optional>

#include "iomgr/base/sys.h"
#include "iomgr/io/inline_engine.h"
#include "iomgr/read/plan.h"
#include "iomgr/volume/parts/lane_io.h"
#include "shim/base/report.h"
#include "shim/base/settings.h"
#include "shim/read/queues.h"
#include "shim/read/read_cache.h"
#include "shim/read/sweep_step.h"
#include "shim/share/shared_reader.h"

namespace graphlane::shim {
namespace {

InlineEngine::Options engine_options() {
  const Settings& set = settings();
  return {.backend = set.backend, .gates = set.lanes, .merges = set.merging};
}

// The engine of one open file: counts what moves.
class FileEngine final : public InlineEngine {
 public:
  explicit FileEngine(const OpenFile& file, Prefetch prefetch = Prefetch::kOnDisks)
      : InlineEngine(file.map, file.gates, queues, this_process, engine_options(), prefetch),
        file_(file) {}

 private:
  void count(uint32_t device_index, IoOp op, uint64_t bytes, uint32_t io_count) override {
    file_.counters[device_index]->count(op, bytes, io_count);
  }

  const OpenFile& file_;
};

bool is_aligned(uint64_t offset, const void* buffer, size_t count) {
  return (offset | reinterpret_cast<uintptr_t>(buffer) | count) % kBlockSize == 0;
}

// Without a server, or where the file's own size decides, the other files do not count.
ReadPlan plan_of(const OpenFileRef& file, uint64_t length_bytes) {
  ReadState state = file.state();
  state.may_share = may_share(*file);
  const bool may_be_crowded = state.may_share && length_bytes >= kSharedReadMin && !state.maps &&
                              !bypasses_page_cache(state);
  return plan(state, {.length_bytes = length_bytes},
              {.together = may_be_crowded ? fit_beside_others(file) : MemoryFit::kTwice});
}

PartRequest write_request(const OpenFileRef& file, const Piece& piece) {
  return {.map = file->map,
          .parts = *file->parts,
          .size_bytes = piece.range.end(),
          .op = IoOp::kWrite,
          .direct = file.bypasses_page_cache() &&
                    is_aligned(piece.range.offset, piece.buffer, piece.range.length_bytes),
          .pieces = {&piece, 1}};
}

}  // namespace

ssize_t read_striped(const OpenFileRef& file, uint64_t offset, void* buffer, size_t count_wanted) {
  const int saved_errno = errno;
  Piece piece{.range = {.offset = offset, .length_bytes = count_wanted}, .buffer = buffer};
  const ReadPlan plan = plan_of(file, count_wanted);
  FileEngine engine(*file);
  std::optional<size_t> done;
  std::optional<SweepStep> step;
  if (plan.shares) done = read_shared(file, piece.range, buffer, engine);
  if (!done && plan.prefetch == ReadPlan::Prefetch::kSweep) step.emplace(file, piece.range);
  if (!done && plan.source == ReadPlan::Source::kCache)
    done = read_cached(file, piece.range, buffer, engine);
  const bool within_unit = !done && !plan.bypass && piece.range.end() <= file.size() &&
                           engine.read_within_unit(*file->parts, piece.range, buffer);
  if (within_unit) done = count_wanted;
  if (done) {
    errno = saved_errno;
    return static_cast<ssize_t>(*done);
  }
  PartRequest request{.map = file->map,
                      .parts = *file->parts,
                      .size_bytes = file.size(),
                      .op = IoOp::kRead,
                      .direct = plan.bypass,
                      .pieces = {&piece, 1}};
  const uint64_t readable = prepare_read(&request, &piece);
  const int error = readable == 0 ? 0 : engine.run(request);
  ssize_t result = error != 0 ? -error : static_cast<ssize_t>(readable);
  if (error == EFAULT && !request.direct) result = engine.read_up_to_fault(request);
  errno = saved_errno;
  return result;
}

void advise_striped(const OpenFileRef& file, ByteRange range, int advice) {
  const int saved_errno = errno;
  const bool bypasses = file.bypasses_page_cache();
  const uint32_t part_count = bypasses ? 0 : file->map.geometry().device_count;
  for (uint32_t d = 0; d < part_count; ++d) {
    const ByteRange run = file->map.run(d, range);
    if (run.length_bytes == 0) continue;  // for the kernel 0 means up to the end
    (void)sys::fadvise(file->parts->buffered(d), run.offset, run.length_bytes, advice);
  }
  if (bypasses && advice == POSIX_FADV_WILLNEED) {
    FileEngine engine(*file, InlineEngine::Prefetch::kAnywhere);
    will_need_cached(file, range, engine);
  }
  errno = saved_errno;
}

int overwrite_striped(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count) {
  const int saved_errno = errno;
  const Piece piece{.range = {.offset = offset, .length_bytes = count},
                    .buffer = const_cast<void*>(buffer)};
  const int error = FileEngine(*file).run(write_request(file, piece));
  errno = saved_errno;
  return error;
}

ssize_t write_in_order(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count) {
  const int saved_errno = errno;
  const Piece piece{.range = {.offset = offset, .length_bytes = count},
                    .buffer = const_cast<void*>(buffer)};
  const ssize_t written = FileEngine(*file).write_in_order(write_request(file, piece));
  errno = saved_errno;
  return written;
}

}  // namespace graphlane::shim
