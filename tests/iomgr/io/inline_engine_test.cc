// InlineEngine over real parts: what it moves, counts and borrows.
#include "iomgr/io/inline_engine.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <string>
#include <vector>

#include "iomgr/base/sys.h"
#include "tests/iomgr/striped_fixture.h"
#include "tests/sizes.h"

namespace graphlane {
namespace {

uint32_t inline_epoch = 1;
std::vector<int> protected_fds;
const InlineProcess kInlineProcess{.epoch = [] { return inline_epoch; },
                                   .fd_floor = [] { return 100; },
                                   .protect = [](int fd) { protected_fds.push_back(fd); }};

class InlineEngineTest : public StripedFixture {
 protected:
  struct Engine final : InlineEngine {
    using InlineEngine::InlineEngine;
    void count(uint32_t device_index, IoOp op, uint64_t bytes, uint32_t io_count) override {
      (op == IoOp::kRead ? read_bytes : written_bytes) += bytes;
      ios[device_index] += io_count;
    }
    uint64_t read_bytes = 0, written_bytes = 0;
    uint32_t ios[3] = {};
  };

  void SetUp() override {
    StripedFixture::SetUp();
    inline_epoch = 1;
    protected_fds.clear();
    make_file({.stripe_depth_bytes = kMiB, .device_count = 3, .first_device = 1}, 16 * kMiB);
    for (uint32_t d = 0; d < 3; ++d) gates_[d] = &gate_storage_[d];
  }

  Engine engine(InlineEngine::Options options = {}) {
    return Engine(map_, gates_, *queues_, kInlineProcess, options,
                  InlineEngine::Prefetch::kOnDisks);
  }
  std::string read(Engine& engine, ByteRange range, bool direct = true) {
    std::vector<Page> memory(range.length_bytes / sizeof(Page));
    const Piece piece{.range = range, .buffer = memory.data()};
    PartRequest request = read_request({&piece, 1});
    request.direct = direct;
    EXPECT_EQ(engine.run(request), 0);
    return {memory[0].bytes, range.length_bytes};
  }
  std::string expected(ByteRange range) const {
    return content_.substr(range.offset, range.length_bytes);
  }

  DeviceGate gate_storage_[3];
  DeviceGate* gates_[3];
  const std::unique_ptr<InlineQueues> queues_ = std::make_unique<InlineQueues>();
};

constexpr ByteRange kInlineLong{2 * kMiB + 4096, 9 * kMiB};

TEST_F(InlineEngineTest, ReadsOverAllDevicesByOneIoEach) {
  Engine one = engine();
  EXPECT_TRUE(read(one, kInlineLong) == expected(kInlineLong));
  EXPECT_EQ(one.read_bytes, kInlineLong.length_bytes);
  for (const uint32_t count : one.ios) EXPECT_EQ(count, 1u);
}

TEST_F(InlineEngineTest, WithoutMergingReadsUnitByUnit) {
  Engine one = engine({.merges = false});
  EXPECT_TRUE(read(one, kInlineLong) == expected(kInlineLong));
  EXPECT_GE(one.ios[0] + one.ios[1] + one.ios[2], 9u);
}

TEST_F(InlineEngineTest, ReadsTheSameWithoutAQueueAndThroughGates) {
  for (DeviceGate& gate : gate_storage_) gate.set_width(1);
  for (const IoBackend backend : {IoBackend::kAuto, IoBackend::kThreads}) {
    Engine one = engine({.backend = backend});
    EXPECT_TRUE(read(one, kInlineLong) == expected(kInlineLong));
    EXPECT_TRUE(read(one, kInlineLong, /*direct=*/false) == expected(kInlineLong));
    for (DeviceGate& gate : gate_storage_) EXPECT_TRUE(gate.is_free());
  }
}

TEST_F(InlineEngineTest, AForkedChildGetsNoQueueAndPassesNoGate) {
  for (DeviceGate& gate : gate_storage_) gate.set_width(1);
  Engine one = engine();
  EXPECT_TRUE(read(one, kInlineLong) == expected(kInlineLong));
  const size_t made = protected_fds.size();
  DeviceGate::Waiter inside;
  ASSERT_TRUE(gate_storage_[0].enter(&inside));  // by a thread that the child does not have
  inline_epoch = 2;
  EXPECT_TRUE(read(one, kInlineLong) == expected(kInlineLong));
  EXPECT_EQ(protected_fds.size(), made);
  gate_storage_[0].leave();
}

TEST_F(InlineEngineTest, ProtectsTheDescriptorsOfItsQueues) {
  Engine one = engine();
  EXPECT_TRUE(read(one, kInlineLong) == expected(kInlineLong));
  if (std::string(queues_->backend_in_use()) == "preadv") GTEST_SKIP() << "no queue works here";
  for (const int fd : protected_fds) {
    EXPECT_TRUE(fd < 0 || fd >= 100) << fd;
  }
  EXPECT_FALSE(protected_fds.empty());
}

TEST_F(InlineEngineTest, ReadsWithinAUnitByOneCall) {
  Engine one = engine();
  std::string bytes(5000, 'x');
  EXPECT_TRUE(one.read_within_unit(*parts_, {3 * kMiB + 17, 5000}, bytes.data()));
  EXPECT_TRUE(bytes == expected({3 * kMiB + 17, 5000}));
  EXPECT_FALSE(one.read_within_unit(*parts_, {3 * kMiB - 17, 5000}, bytes.data()));
  EXPECT_EQ(one.read_bytes, 5000u);
}

TEST_F(InlineEngineTest, MemoryThatEndsCutsARead) {
  void* const memory =
      ::mmap(nullptr, 2 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const end = static_cast<char*>(memory) + kMiB;
  ASSERT_EQ(::munmap(end, kMiB), 0);
  Engine one = engine();
  const Piece piece{.range = {kMiB - 3, 20000}, .buffer = end - 10000};
  const PartRequest request = read_request({&piece, 1});
  EXPECT_EQ(one.run(request), EFAULT);
  EXPECT_EQ(one.read_up_to_fault(request), 10000);
  EXPECT_TRUE(std::string(end - 10000, 10000) == expected({kMiB - 3, 10000}));
  ::munmap(memory, kMiB);
}

}  // namespace
}  // namespace graphlane
