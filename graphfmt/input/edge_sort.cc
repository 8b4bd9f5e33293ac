#include "graphfmt/input/edge_sort.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "graphfmt/sort/run_fill.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/unnamed_file.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kSortMemoryMin = uint64_t{1} << 20;
constexpr uint64_t kMergeBufferMin = uint64_t{16} << 10;
constexpr uint64_t kMergeBufferMax = uint64_t{4} << 20;

// The bytes of 48 records of 16, so whole records of 8, 12 and 16.
constexpr size_t kSortUnit = 768;

template <size_t N>
struct Record {
  char bytes[N];
};

// A stable sort by byte `shift` of the key, from `from` to `to`.
template <size_t N, class Key>
bool radix_pass(const char* from, char* to, size_t count, unsigned shift, const Key& key) {
  size_t starts[256] = {};
  const auto* const records = reinterpret_cast<const Record<N>*>(from);
  auto* const sorted = reinterpret_cast<Record<N>*>(to);
  for (size_t i = 0; i < count; ++i) ++starts[key(records[i].bytes) >> shift & 0xff];
  if (std::find(starts, starts + 256, count) != starts + 256) return false;  // all the same
  size_t sum = 0;
  for (size_t& start : starts) sum += std::exchange(start, sum);
  for (size_t i = 0; i < count; ++i) {
    sorted[starts[key(records[i].bytes) >> shift & 0xff]++] = records[i];
  }
  return true;
}

template <size_t N, class Key>
void radix_sort(Buffer& records, Buffer& scratch, size_t count, const Key& key) {
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (radix_pass<N>(records.data(), scratch.data(), count, shift, key)) {
      std::swap(records, scratch);
    }
  }
}

}  // namespace

Outcome<Fd> open_spill_file(const std::string& directory) {
  std::error_code failed;
  std::string dir = directory;
  if (dir.empty()) dir = std::filesystem::temp_directory_path(failed).string();
  if (dir.empty()) dir = "/tmp";
  Result<Fd> file = make_unnamed_file(dir);
  if (!file) return os_error(file.error().code, dir, "cannot create a temporary file");
  return std::move(*file);
}

EdgeSorter::EdgeSorter(EdgeOrder order, size_t edge_bytes, uint64_t memory_bytes,
                       std::string spill_directory)
    : order_(order),
      edge_bytes_(edge_bytes),
      memory_bytes_(std::max(memory_bytes, kSortMemoryMin)),
      spill_directory_(std::move(spill_directory)),
      run_bytes_(std::max<size_t>(memory_bytes_ / 2 / kSortUnit * kSortUnit, kSortUnit)) {}

uint64_t EdgeSorter::key_of(const char* record) const {
  Edge edge;
  std::memcpy(&edge, record, sizeof edge);
  return order_ == EdgeOrder::kSourceTarget ? uint64_t{edge.source} << 32 | edge.target
                                            : uint64_t{edge.target} << 32 | edge.source;
}

Outcome<void> EdgeSorter::add(const char* records, size_t edge_count) {
  edge_count_ += edge_count;
  return fill_runs({records, edge_count * edge_bytes_}, run_bytes_, filling_, filling_bytes_,
                   [this] { return spill_run(); });
}

Outcome<void> EdgeSorter::sort_run() {
  if (auto grown = scratch_.reserve(run_bytes_); !grown) return grown;
  const size_t count = filling_bytes_ / edge_bytes_;
  const auto key = [this](const char* record) { return key_of(record); };
  switch (edge_bytes_) {
    case 8: radix_sort<8>(filling_, scratch_, count, key); break;
    case 12: radix_sort<12>(filling_, scratch_, count, key); break;
    default: radix_sort<16>(filling_, scratch_, count, key); break;
  }
  return check_interrupt();
}

Outcome<void> EdgeSorter::spill_run() {
  if (auto sorted = sort_run(); !sorted) return sorted;
  if (!spill_) {
    auto opened = open_spill_file(spill_directory_);
    if (!opened) return opened.error();
    spill_ = std::move(*opened);
  }
  auto written = pwrite_full(spill_.get(), filling_.data(), filling_bytes_, spill_bytes_);
  if (!written) return os_error(written.error().code, "a temporary file", "cannot write");
  runs_.push_back({.offset = spill_bytes_, .bytes_left = filling_bytes_, .buffer = {}});
  spill_bytes_ += std::exchange(filling_bytes_, 0);
  return {};
}

Outcome<void> EdgeSorter::finish() {
  if (runs_.empty()) return filling_bytes_ > 0 ? sort_run() : Outcome<void>();
  if (filling_bytes_ > 0) {
    if (auto spilled = spill_run(); !spilled) return spilled;
  }
  filling_ = Buffer();
  scratch_ = Buffer();
  const uint64_t share = std::clamp(memory_bytes_ / runs_.size(), kMergeBufferMin, kMergeBufferMax);
  for (size_t run = 0; run < runs_.size(); ++run) {
    if (auto grown = runs_[run].buffer.reserve(share / kSortUnit * kSortUnit); !grown) return grown;
    auto filled = refill(runs_[run]);
    if (!filled) return filled.error();
    if (*filled) push(run);
  }
  return {};
}

// False: the run has ended.
Outcome<bool> EdgeSorter::refill(Run& run) {
  run.at = run.end = 0;
  if (run.bytes_left == 0) return false;
  const size_t room = run.buffer.size() / kSortUnit * kSortUnit;
  const size_t length = std::min<uint64_t>(room, run.bytes_left);
  auto count = pread_full(spill_.get(), run.buffer.data(), length, run.offset);
  if (!count) return os_error(count.error().code, "a temporary file", "cannot read");
  if (*count != length) return make_error(EIO, "a temporary file is shorter than what was written");
  run.offset += length;
  run.bytes_left -= length;
  run.end = length;
  return true;
}

void EdgeSorter::push(size_t run) {
  heap_.push_back({key_of(runs_[run].buffer.data() + runs_[run].at), run});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

Outcome<size_t> EdgeSorter::next(char* records, size_t count_max) {
  if (auto go_on = check_interrupt(); !go_on) return go_on.error();
  if (runs_.empty()) {
    const size_t bytes = std::min(count_max * edge_bytes_, filling_bytes_ - taken_bytes_);
    std::memcpy(records, filling_.data() + taken_bytes_, bytes);
    taken_bytes_ += bytes;
    return bytes / edge_bytes_;
  }
  size_t count = 0;
  while (count < count_max && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const size_t index = heap_.back().run;
    heap_.pop_back();
    Run& run = runs_[index];
    std::memcpy(records + count * edge_bytes_, run.buffer.data() + run.at, edge_bytes_);
    ++count;
    run.at += edge_bytes_;
    if (run.at == run.end) {
      auto filled = refill(run);
      if (!filled) return filled.error();
      if (!*filled) continue;
    }
    push(index);
  }
  return count;
}

}  // namespace graphlane::graphfmt
