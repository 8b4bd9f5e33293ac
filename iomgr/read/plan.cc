#include "iomgr/read/plan.h"

#include <algorithm>

#include "iomgr/read/file_sweeps.h"

namespace graphlane {
namespace {

bool is_mounted(const ReadState& file) { return file.reader == ReadState::Reader::kMounted; }

// Mounted, all files that are open together count as one: each leaves pages in the kernel.
MemoryFit worst_fit(const ReadState& file, const FreeMemory& memory) {
  return is_mounted(file) ? std::max(file.fit, memory.together) : file.fit;
}

ReadPlan::Source source_of(const ReadState& file, MemoryFit fit) {
  if (file.obeys_o_direct() || fit == MemoryFit::kNot) return ReadPlan::Source::kCache;
  // Mounted, the mount's pages are a second copy.
  const bool has_room = fit == MemoryFit::kTwice || !is_mounted(file);
  return has_room ? ReadPlan::Source::kPageCache : ReadPlan::Source::kDevices;
}

// For one file alone the kernel's read-ahead is enough, if its requests are large.
bool is_sweep_step(const ReadState& file, const AccessPattern& read, ReadPlan::Source source) {
  const bool is_long = read.length_bytes >= FileSweeps::kStepMin;
  if (!file.on_disks) return false;
  if (!is_mounted(file)) return source == ReadPlan::Source::kPageCache && is_long;
  return file.depends_on_others() && !read.alone && (is_long || read.to_end);
}

ReadPlan::Drop drop_of(const ReadState& file, const AccessPattern& read, const FreeMemory& memory) {
  // If a page were dropped while a write of it is in flight, a read would bring back the old bytes.
  if (read.has_writer || file.o_direct) return ReadPlan::Drop::kNothing;
  // Another handle may want the pages of a file that does not fit.
  const bool leaves = file.sweeps_page_cache()
                          ? read.one_handle
                          : file.fit != MemoryFit::kNot && memory.together == MemoryFit::kNot;
  return leaves ? ReadPlan::Drop::kBehindSweep : ReadPlan::Drop::kNothing;
}

// A request near the kernel's maximum is one of several in flight for one read of the program
// (O_DIRECT, or the kernel's read-ahead). Smaller ones come one by one.
ReadPlan::Arrival arrival_of(const ReadState& file, const AccessPattern& read) {
  if (file.in_turn) return ReadPlan::Arrival::kInTurn;
  const bool is_long = read.length_bytes >= read.request_max_bytes / 2;
  return is_long ? ReadPlan::Arrival::kParts : ReadPlan::Arrival::kWhole;
}

}  // namespace

bool bypasses_page_cache(const ReadState& file) {
  return source_of(file, file.fit) != ReadPlan::Source::kPageCache;
}

ReadPlan plan(const ReadState& file, const AccessPattern& read, const FreeMemory& memory) {
  ReadPlan plan;
  plan.source = source_of(file, worst_fit(file, memory));
  // Without the mount's pages, small pieces that come again soon stay in the parts' page cache.
  const bool small_in_turn = file.in_turn && read.length_bytes < kSmallReadBytes;
  plan.bypass = plan.source != ReadPlan::Source::kPageCache && !small_in_turn;
  if (is_sweep_step(file, read, plan.source)) plan.prefetch = ReadPlan::Prefetch::kSweep;
  if (is_mounted(file)) {
    plan.peeks = !file.obeys_o_direct() && file.fit != MemoryFit::kNot;
    plan.drop = drop_of(file, read, memory);
    plan.arrival = arrival_of(file, read);
  } else {
    const bool wanted = plan.bypass || file.maps || memory.together == MemoryFit::kNot;
    plan.shares = file.may_share && wanted && read.length_bytes >= kSharedReadMin;
    if (plan.prefetch == ReadPlan::Prefetch::kSweep) plan.drop = ReadPlan::Drop::kUnlessKept;
  }
  return plan;
}

}  // namespace graphlane
