// A striped file laid out by hand in temporary device directories, without a
// volume: for tests of what lies below Volume.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/volume/parts/lane_io.h"
#include "tests/iomgr/content.h"

namespace graphlane {

// Memory as direct I/O needs it.
struct alignas(4096) Page {
  char bytes[4096];
};

class StripedFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "graphlane_test_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    parts_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Random content, of each 64 bits those of `content_mask_`, dealt out byte range by byte range as
  // the format says.
  void make_file(const StripeGeometry& geometry, uint64_t size_bytes, Uuid id = Uuid::random()) {
    layout_ = {
        .volume = Uuid::random(), .file_id = id, .geometry = geometry, .logical_size = size_bytes};
    map_ = layout_.map();
    content_.resize(size_bytes);
    fill(content_.data(), content_.size(), /*seed=*/size_bytes, content_mask_);
    std::vector<Fd> parts;
    std::vector<int> roots;
    roots_.clear();
    for (uint32_t d = 0; d < geometry.device_count; ++d) {
      const std::string path = device(d) + "/" + PartName(layout_.file_id).c_str();
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      parts.emplace_back(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
      roots_.emplace_back(::open(device(d).c_str(), O_RDONLY | O_DIRECTORY));
      roots.push_back(roots_.back().get());
    }
    for (uint64_t at = 0; at < size_bytes; at += geometry.stripe_depth_bytes) {
      const uint64_t unit = at / geometry.stripe_depth_bytes;
      const Fd& part = parts[(unit + geometry.first_device) % geometry.device_count];
      ASSERT_TRUE(write_full(part.get(), &content_[at],
                             std::min<uint64_t>(geometry.stripe_depth_bytes, size_bytes - at)));
    }
    parts_ = std::make_unique<PartFiles>();
    ASSERT_TRUE(parts_->open(roots, layout_, O_RDONLY, nullptr));
  }

  std::string device(uint32_t index) const { return directory_ + "/d" + std::to_string(index); }

  PartRequest read_request(std::span<const Piece> pieces) const {
    return {.map = map_,
            .parts = *parts_,
            .size_bytes = layout_.logical_size,
            .op = IoOp::kRead,
            .direct = false,
            .pieces = pieces};
  }

  // Drives a queue as an owner does; 0 or an errno.
  static int run(IoQueue& queue, const PartRequest& request) {
    RequestCutter cutter(request);
    std::vector<LaneIo> ios(queue.capacity());
    std::vector<LaneIo*> free_ios;
    for (LaneIo& io : ios) free_ios.push_back(&io);
    bool more = true;
    int result = 0;
    while (true) {
      while (more && !free_ios.empty()) {
        more = cutter.next(free_ios.back());
        if (!more) break;
        queue.push(free_ios.back());
        free_ios.pop_back();
      }
      if (queue.in_flight() == 0) return result;
      IoCompletion completions[8];
      const Result<uint32_t> count = queue.reap(completions);
      if (!count) return count.error().code;
      for (uint32_t i = 0; i < *count; ++i) {
        int error = 0;
        const IoStep step = settle(completions[i].io, completions[i].result, &error);
        if (step == IoStep::kAgain) {
          queue.push(completions[i].io);
          continue;
        }
        if (step == IoStep::kFailed) result = error;
        free_ios.push_back(completions[i].io);
      }
    }
  }

  std::string directory_;
  Layout layout_;
  StripeMap map_;
  uint64_t content_mask_ = UINT64_MAX;
  std::string content_;
  std::vector<Fd> roots_;
  std::unique_ptr<PartFiles> parts_;
};

}  // namespace graphlane
