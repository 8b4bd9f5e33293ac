// Buffers that are lent for one request each. Idle ones are freed when fewer are lent at a time.
#include "fuse/ops/request_buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

namespace graphlane::fuse {
namespace {

constexpr size_t kSize = 64 << 10;

bool is_mapped(void* memory) {
  unsigned char resident[kSize / 4096];
  return ::mincore(memory, kSize, resident) == 0;
}

TEST(RequestBuffersTest, LendsTheMostRecentlyReturnedBuffer) {
  RequestBuffers buffers(kSize);
  void* first = nullptr;
  {
    const RequestBuffers::Loan loan(buffers);
    first = loan.get();
    const RequestBuffers::Loan other(buffers);
    EXPECT_NE(other.get(), first);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RequestBuffers::Loan(buffers).get(), first);
}

TEST(RequestBuffersTest, ReusesIdleBuffersKeepsLentOnes) {
  RequestBuffers buffers(kSize);
  std::set<void*> all;
  {
    std::deque<RequestBuffers::Loan> loans;
    for (int i = 0; i < 20; ++i) all.insert(loans.emplace_back(buffers).get());
  }
  for (int i = 0; i < 1000; ++i) {
    const RequestBuffers::Loan one(buffers), two(buffers);
    std::memset(one.get(), 1, kSize);
    std::memset(two.get(), 2, kSize);
  }
  EXPECT_EQ(std::count_if(all.begin(), all.end(), is_mapped), 2);
}

}  // namespace
}  // namespace graphlane::fuse
