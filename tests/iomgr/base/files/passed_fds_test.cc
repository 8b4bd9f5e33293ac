#include "iomgr/base/files/passed_fds.h"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "iomgr/base/fd.h"

namespace graphlane {
namespace {

class PassedFdsTest : public ::testing::Test {
 protected:
  PassedFdsTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    sender_.reset(ends[0]);
    receiver_.reset(ends[1]);
    message_.msg_iov = &piece_;
    message_.msg_iovlen = 1;
  }

  void send(size_t count) {
    const std::vector<int> fds(count, sender_.get());
    PassedFds<8> passed;
    passed.attach(fds, &message_);
    ASSERT_EQ(::sendmsg(sender_.get(), &message_, 0), 1);
  }

  template <size_t kMax>
  std::vector<Fd> receive() {
    PassedFds<kMax> passed;
    passed.make_room(&message_);
    EXPECT_EQ(::recvmsg(receiver_.get(), &message_, MSG_CMSG_CLOEXEC), 1);
    std::vector<Fd> fds;
    for_each_passed(message_, [&fds](int fd) { fds.emplace_back(fd); });
    return fds;
  }

  static size_t open_count() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                             std::filesystem::directory_iterator()));
  }

  char byte_ = 'x';
  iovec piece_{.iov_base = &byte_, .iov_len = 1};
  msghdr message_ = {};
  Fd sender_, receiver_;
};

TEST_F(PassedFdsTest, DescriptorsArriveOnceEach) {
  for (const size_t count : {0, 1, 2, 3}) {
    message_.msg_control = nullptr;
    message_.msg_controllen = 0;
    ASSERT_NO_FATAL_FAILURE(send(count));
    EXPECT_EQ(receive<3>().size(), count);
  }
}

// CMSG_SPACE pads to eight bytes. With it as the limit, a fourth descriptor came where three were
// expected, past the end of the receiver's array.
TEST_F(PassedFdsTest, ExcessDescriptorsAreClosed) {
  const size_t before = open_count();
  ASSERT_NO_FATAL_FAILURE(send(4));
  EXPECT_EQ(receive<3>().size(), 3u);
  EXPECT_NE(message_.msg_flags & MSG_CTRUNC, 0);
  EXPECT_EQ(open_count(), before);
}

}  // namespace
}  // namespace graphlane
