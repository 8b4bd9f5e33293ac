// RequestCutter and settle(): the I/Os for the devices, and their handling after short and failed
// transfers. PartFiles over real files.
#include "iomgr/volume/parts/lane_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/io/io_queue.h"
#include "tests/iomgr/striped_fixture.h"

namespace graphlane {
namespace {

class CutterTest : public StripedFixture {};

TEST_F(CutterTest, SendsOneIoToEachDeviceForAnOrdinaryRequest) {
  make_file({.stripe_depth_bytes = 4096, .device_count = 4, .first_device = 2}, 4096 * 40);
  std::vector<char> buffer(4096 * 33);
  const Piece piece{{.offset = 4096 * 3, .length_bytes = buffer.size()}, buffer.data()};
  const PartRequest request = read_request({&piece, 1});
  RequestCutter cutter(request);
  LaneIo io;
  std::map<uint32_t, int> ios_of_device;
  while (cutter.next(&io)) ++ios_of_device[io.device_index];
  EXPECT_EQ(ios_of_device, (std::map<uint32_t, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
}

TEST_F(CutterTest, CutsARunAtTheLargestIo) {
  make_file({.stripe_depth_bytes = 8192, .device_count = 2, .first_device = 0}, 8192 * 16);
  std::vector<char> buffer(8192 * 16);
  const Piece piece{{.offset = 0, .length_bytes = buffer.size()}, buffer.data()};
  PartRequest request = read_request({&piece, 1});
  request.io_size_max = 8192 + 4096;
  RequestCutter cutter(request);
  LaneIo io;
  uint64_t total = 0;
  while (cutter.next(&io)) {
    EXPECT_LE(io.length_bytes, 8192u + 4096u);
    total += io.length_bytes;
  }
  EXPECT_EQ(total, buffer.size());
}

TEST_F(CutterTest, ReadsRandomRangesRightWithEveryBackendAndAnyIoSize) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  make_file({.stripe_depth_bytes = 4096, .device_count = 3, .first_device = 1}, 1234567);
  for (const IoBackend backend : {IoBackend::kUring, IoBackend::kAio, IoBackend::kThreads}) {
    IoQueueStorage storage;
    IoBackend chosen;
    const Result<IoQueue*> queue = make_io_queue(backend, 4, &storage, &chosen);
    if (!queue) continue;  // a sandbox may lack it; the others are tested
    for (int round = 0; round < 200; ++round) {
      const uint64_t offset = random() % (content_.size() + 5000);
      const uint64_t length = random() % 300000;
      std::vector<char> buffer(length, '\x5a');
      Piece piece{{.offset = offset, .length_bytes = length}, buffer.data()};
      PartRequest request = read_request({&piece, 1});
      request.direct = random() % 2 == 0;
      request.io_size_max = 4096 * (1 + random() % 40);
      const uint64_t readable = prepare_read(&request, &piece);
      ASSERT_EQ(readable, offset >= content_.size()
                              ? 0
                              : std::min<uint64_t>(length, content_.size() - offset));
      if (readable == 0) continue;
      ASSERT_EQ(run(**queue, request), 0) << "seed " << seed;
      ASSERT_EQ(std::string(buffer.data(), readable), content_.substr(offset, readable))
          << name_of(backend) << " seed " << seed << " round " << round;
      for (size_t i = readable; i < length; ++i) ASSERT_EQ(buffer[i], '\x5a') << "past the end";
    }
    (*queue)->~IoQueue();
  }
}

// With no other I/O in flight, repeatedly.
TEST(IoQueueTest, WaitingEndsWhenTheEventfdIsWritten) {
  const Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (const IoBackend backend : {IoBackend::kUring, IoBackend::kAio}) {
    IoQueueStorage storage;
    IoBackend chosen;
    const Result<IoQueue*> queue = make_io_queue(backend, 4, &storage, &chosen);
    if (!queue) continue;  // a sandbox without it
    IoCompletion completions[4];
    for (uint64_t round = 1; round <= 3; ++round) {
      ASSERT_TRUE((*queue)->wake_by(event.get())) << name_of(backend);
      std::thread writer([&] { EXPECT_EQ(::write(event.get(), &round, sizeof round), 8); });
      const Result<uint32_t> reaped = (*queue)->reap(completions);
      writer.join();
      ASSERT_TRUE(reaped);
      EXPECT_EQ(*reaped, 0u);
      uint64_t value;
      EXPECT_EQ(::read(event.get(), &value, sizeof value), -1) << "it was not emptied";
    }
    (*queue)->~IoQueue();
  }
}

// Pieces of one size at any memory address: one I/O for each device where they are adjacent in the
// file.
TEST_F(CutterTest, AdjacentPiecesAreOneIoPerDevice) {
  constexpr uint64_t kPieceBytes = 4096;
  make_file({.stripe_depth_bytes = 4 * kPieceBytes, .device_count = 2, .first_device = 1},
            40 * kPieceBytes);
  std::vector<char> memory(40 * kPieceBytes);
  std::vector<Piece> pieces;
  for (uint64_t i = 0; i < 40; ++i) {  // backwards in memory
    pieces.push_back({{.offset = i * kPieceBytes, .length_bytes = kPieceBytes},
                      memory.data() + (39 - i) * kPieceBytes});
  }
  const PartRequest request = read_request(pieces);
  RequestCutter cutter(request);
  LaneIo io;
  for (const uint32_t device : {1, 0}) {
    ASSERT_TRUE(cutter.next(&io));
    EXPECT_EQ(io.device_index, device);
    EXPECT_EQ(io.length_bytes, 20 * kPieceBytes);
  }
  EXPECT_FALSE(cutter.next(&io));
}

TEST_F(CutterTest, ReadsRandomPiecesRight) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  make_file({.stripe_depth_bytes = 12288, .device_count = 3, .first_device = 2}, 1234567);
  IoQueueStorage storage;
  IoBackend chosen;
  const Result<IoQueue*> queue = make_io_queue(IoBackend::kThreads, 4, &storage, &chosen);
  ASSERT_TRUE(queue);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<char>> memory;
    std::vector<Piece> pieces;
    uint64_t at = random() % 100000;
    const size_t count = 1 + random() % 20;
    while (pieces.size() < count && at + 40000 < content_.size()) {
      const uint64_t length = 1 + random() % 40000;
      memory.emplace_back(length);
      pieces.push_back({{.offset = at, .length_bytes = length}, memory.back().data()});
      at += length + (random() % 2 == 0 ? 0 : random() % 30000);  // adjacent, or with a gap
    }
    PartRequest request = read_request(pieces);
    request.io_size_max = 4096 * (1 + random() % 40);
    ASSERT_EQ(run(**queue, request), 0);
    for (size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_EQ(std::string(memory[i].begin(), memory[i].end()),
                content_.substr(pieces[i].range.offset, memory[i].size()))
          << "seed " << seed << " round " << round << " piece " << i;
    }
  }
  (*queue)->~IoQueue();
}

TEST_F(CutterTest, ReadsAlignedRangesPastThePageCacheUpToTheUnalignedEnd) {
  make_file({.stripe_depth_bytes = 4096, .device_count = 3, .first_device = 0}, 100001);
  alignas(4096) static char buffer[1 << 20];
  Piece piece{{.offset = 8192, .length_bytes = sizeof buffer}, buffer};
  PartRequest request = read_request({&piece, 1});
  request.direct = true;
  EXPECT_EQ(prepare_read(&request, &piece), 100001u - 8192u);
  EXPECT_TRUE(request.direct);
  IoQueueStorage storage;
  IoBackend chosen;
  const Result<IoQueue*> queue = make_io_queue(IoBackend::kAuto, 8, &storage, &chosen);
  ASSERT_TRUE(queue);
  EXPECT_EQ(run(**queue, request), 0);
  EXPECT_EQ(std::string(buffer, 100001 - 8192), content_.substr(8192));
  (*queue)->~IoQueue();
}

TEST_F(CutterTest, UnalignedRequestsGoThroughThePageCache) {
  make_file({.stripe_depth_bytes = 4096, .device_count = 2, .first_device = 0}, 100001);
  alignas(4096) static char buffer[65536];
  for (const ByteRange range : {ByteRange{1, 4096}, ByteRange{4096, 4095}, ByteRange{0, 100}}) {
    Piece piece{range, buffer};
    PartRequest request = read_request({&piece, 1});
    request.direct = true;
    prepare_read(&request, &piece);
    EXPECT_FALSE(request.direct) << range.offset << "+" << range.length_bytes;
  }
  Piece piece{{.offset = 0, .length_bytes = 4096}, buffer + 512};
  PartRequest request = read_request({&piece, 1});
  request.direct = true;
  prepare_read(&request, &piece);
  EXPECT_FALSE(request.direct);
}

TEST(SettleTest, TakesUpAShortTransferWhereItEnded) {
  char buffer[64];
  LaneIo io;
  io.fd = io.fd_buffered = 3;
  io.part_offset = 1000;
  io.length_bytes = io.expected_bytes = 30;
  io.iov_count = 3;
  for (int i = 0; i < 3; ++i) io.iov[i] = {.iov_base = buffer + 20 * i, .iov_len = 10};
  int error = 0;
  ASSERT_EQ(settle(&io, 14, &error), IoStep::kAgain);
  EXPECT_EQ(io.part_offset, 1014u);
  EXPECT_EQ(io.expected_bytes, 16u);
  ASSERT_EQ(io.iov_count, 2u);
  EXPECT_EQ(io.iov[0].iov_base, buffer + 24);
  EXPECT_EQ(io.iov[0].iov_len, 6u);
  EXPECT_EQ(settle(&io, 16, &error), IoStep::kDone);
  EXPECT_EQ(io.moved_bytes, 30u);
}

TEST(SettleTest, RetriesInterruptedIosAndFailsMissingBytes) {
  LaneIo io;
  io.length_bytes = io.expected_bytes = 4096;
  int error = 0;
  EXPECT_EQ(settle(&io, -EINTR, &error), IoStep::kAgain);
  EXPECT_EQ(settle(&io, -EAGAIN, &error), IoStep::kAgain);
  EXPECT_EQ(settle(&io, 0, &error), IoStep::kFailed);  // the part is too short
  EXPECT_EQ(error, EIO);
  EXPECT_EQ(settle(&io, -ENOSPC, &error), IoStep::kFailed);
  EXPECT_EQ(error, ENOSPC);
}

TEST(SettleTest, LeavesODirectWhenTheFilesystemRefusesTheAlignment) {
  LaneIo io;
  io.fd = 7;
  io.fd_buffered = 5;
  io.length_bytes = io.expected_bytes = 4096;
  int error = 0;
  EXPECT_EQ(settle(&io, -EINVAL, &error), IoStep::kAgain);
  EXPECT_EQ(io.fd, 5);
  EXPECT_EQ(settle(&io, -EINVAL, &error), IoStep::kFailed);
}

}  // namespace
}  // namespace graphlane
