// An ExtentCache over a file laid out by hand. It counts reads of the devices.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "iomgr/io/aio_read_queue.h"
#include "iomgr/read/extent_cache.h"
#include "tests/iomgr/striped_fixture.h"
#include "tests/sizes.h"

namespace graphlane {

class ExtentFixture : public StripedFixture, public IoEngine {
 protected:
  void start(uint64_t budget_bytes) { restart({.budget_bytes = budget_bytes}); }
  void restart(const ExtentCacheOptions& options) {
    cache_ = std::make_unique<ExtentCache>();
    ASSERT_TRUE(cache_->start(options));
  }

  ExtentFile file(uint64_t generation = 1) const {
    return {.file_id = layout_.file_id,
            .generation = generation,
            .size_bytes = layout_.logical_size,
            .map = map_,
            .parts = *parts_};
  }

  // Acts as a device, one lane I/O after another.
  int run(const PartRequest& request) override {
    if (error_ != 0) return error_;
    RequestCutter cutter(request);
    for (LaneIo io; cutter.next(&io);) {
      int error = 0;
      IoStep step;
      do {
        const ssize_t n = sys::preadv(io.fd, io.iov, io.iov_count, io.part_offset);
        step = settle(&io, n < 0 ? -errno : n, &error);
      } while (step == IoStep::kAgain);
      if (step == IoStep::kFailed) return error;
      io_count_ += 1;
      moved_bytes_ += io.moved_bytes;
      if (idle_when_done_ && request.meanwhile != nullptr) {
        idle_ = DeviceSet{1} << io.device_index;
        request.meanwhile->device_idle();
        idle_ = 0;
      }
    }
    return 0;
  }

  DeviceSet idle_devices() override {
    return starts_ && ahead_.works() ? idle_ & all_devices(map_.geometry().device_count) : 0;
  }
  bool submit(const PartRequest& request, Completion* end) override {
    // Before the submission: after it, the pieces may belong to another reader.
    uint64_t bytes = 0;
    DeviceSet on = 0;
    for (const Piece& piece : request.pieces) {
      bytes += piece.range.length_bytes;
      on |= DeviceSet{1} << map_.locate(piece.range.offset).device_index;
      on |= DeviceSet{1} << map_.locate(piece.range.end() - 1).device_index;
    }
    if (before_start_) before_start_();
    if (!ahead_.submit(request, end)) return false;
    started_count_ += 1;
    started_bytes_ += bytes;
    started_on_ |= on;
    return true;
  }
  bool poll() override { return ahead_.poll(); }

  // Prefetches end before the objects that they use.
  void TearDown() override {
    while (ahead_.poll()) {
    }
    cache_.reset();
    StripedFixture::TearDown();
  }

  // Reads as a program does. Nothing may be declined.
  std::string read(ByteRange range) {
    std::string bytes(range.length_bytes, '\x5a');
    const std::optional<size_t> got = cache_->read(file(), range, bytes.data(), *this);
    if (!got) return "declined";
    bytes.resize(*got);
    return bytes;
  }

  std::string_view expected(ByteRange range) const {
    const std::string_view content = content_;
    return range.offset < content.size() ? content.substr(range.offset, range.length_bytes) : "";
  }

  AioReadQueue ahead_;
  bool starts_ = false;
  std::atomic<DeviceSet> idle_{~DeviceSet{0}};
  bool idle_when_done_ = false;  // a device is idle for a moment whenever it has moved its bytes
  std::atomic<uint64_t> started_count_{0};
  std::atomic<DeviceSet> started_on_{0};
  std::function<void()> before_start_;
  std::atomic<uint64_t> started_bytes_{0};

  std::unique_ptr<ExtentCache> cache_;
  std::atomic<int> error_{0};
  std::atomic<uint64_t> io_count_{0};
  std::atomic<uint64_t> moved_bytes_{0};
};

}  // namespace graphlane
