#include "graphfmt/dual/dual_row.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {

constexpr size_t kDrainBytes = 1 << 20;

Outcome<void> SpillableBytes::spill(const OutFile& file, uint64_t& end) {
  if (memory_.empty()) return {};
  if (auto written = file.write(memory_.data(), memory_.size(), end); !written) return written;
  extents_.push_back({end, memory_.size()});
  end += memory_.size();
  std::vector<uint8_t>().swap(memory_);
  return {};
}

Outcome<void> SpillableBytes::drain(const OutFile& file, const Write& write) {
  std::vector<uint8_t> piece;
  for (const Extent& extent : extents_) {
    for (uint64_t done = 0; done < extent.length_bytes; done += piece.size()) {
      piece.resize(std::min<uint64_t>(kDrainBytes, extent.length_bytes - done));
      const Result<size_t> got =
          pread_full(file.fd.get(), piece.data(), piece.size(), extent.offset + done);
      if (!got) return os_error(got.error().code, file.path, "cannot read");
      if (*got < piece.size()) {
        return make_error(EIO, "{}: ends at byte {}", file.path, extent.offset + done + *got);
      }
      if (auto written = write(piece.data(), piece.size()); !written) return written;
    }
  }
  if (auto written = write(memory_.data(), memory_.size()); !written) return written;
  extents_.clear();
  std::vector<uint8_t>().swap(memory_);
  return {};
}

DualRow::~DualRow() {
  if (spill_.fd) ::unlink(spill_path_.c_str());
}

void DualRow::clear() {
  blocks_.clear();
  blocks_.reserve(partitions_);
  for (uint32_t other = 0; other < partitions_; ++other) blocks_.emplace_back(shape_);
  spill_end_ = 0;
  memory_bytes_ = 0;
}

void DualRow::append(uint32_t other, uint32_t vertex, uint64_t degree,
                     std::span<const uint8_t> list, std::span<const uint8_t> weights) {
  Block& block = blocks_[other];
  block.index.append(vertex, degree, list.size());
  block.lists.append(list.data(), list.size());
  block.weights.append(weights.data(), weights.size());
  memory_bytes_ += list.size() + weights.size();
}

void DualRow::append_group(uint32_t other, std::span<const uint8_t> lists, uint64_t arcs) {
  Block& block = blocks_[other];
  block.index.append_group(lists.size(), arcs);
  block.lists.append(lists.data(), lists.size());
  memory_bytes_ += lists.size();
}

Outcome<void> DualRow::keep_limit() {
  if (memory_bytes_ <= memory_bytes_max_) return {};
  if (!spill_.fd) {
    auto file = OutFile::create(spill_path_);
    if (!file) return file.error();
    spill_ = std::move(*file);
    // To be read, too.
    spill_.fd = Fd(::open(spill_path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!spill_.fd) return os_error(errno, spill_path_, "cannot open");
  }
  for (Block& block : blocks_) {
    for (SpillableBytes* bytes : {&block.lists, &block.weights}) {
      if (auto done = bytes->spill(spill_, spill_end_); !done) return done;
    }
  }
  memory_bytes_ = 0;
  return {};
}

}  // namespace graphlane::graphfmt
