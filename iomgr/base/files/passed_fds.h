// PassedFds: the descriptors that go with a message by a Unix socket (SCM_RIGHTS).
//
//   PassedFds<2> passed;
//   passed.attach(fds, &message);       sendmsg(socket, &message, …)
//   passed.make_room(&message);         recvmsg(socket, &message, MSG_CMSG_CLOEXEC)
//   for_each_passed(message, [](int fd) { … });
//
// It must live as long as the message. No allocation, no exceptions: the preload library uses
// this too.
#pragma once

#include <sys/socket.h>

#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>

namespace graphlane {

// Calls take() for each descriptor of a received message, in order. The receiver owns them.
template <class Take>
void for_each_passed(const msghdr& message, Take take) {
  if (message.msg_control == nullptr) return;
  auto* const all = const_cast<msghdr*>(&message);  // the macros need it
  for (cmsghdr* one = CMSG_FIRSTHDR(all); one != nullptr; one = CMSG_NXTHDR(all, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= one->cmsg_len; at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, reinterpret_cast<const char*>(one) + at, sizeof fd);
      take(fd);
    }
  }
}

// Room for up to kMax descriptors.
template <size_t kMax>
class PassedFds {
 public:
  // Without descriptors the message carries none.
  void attach(std::span<const int> fds, msghdr* message) {
    assert(fds.size() <= kMax);
    if (fds.empty()) return;
    message->msg_control = control_;
    message->msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }

  // The kernel closes descriptors beyond kMax, and sets MSG_CTRUNC. (Not CMSG_SPACE: it pads,
  // so an odd kMax would have room for one more.)
  void make_room(msghdr* message) {
    message->msg_control = control_;
    message->msg_controllen = CMSG_LEN(kMax * sizeof(int));
  }

 private:
  alignas(cmsghdr) char control_[CMSG_SPACE(kMax * sizeof(int))] = {};
};

}  // namespace graphlane
