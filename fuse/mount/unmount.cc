#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "fuse/mount/mount.h"
#include "fuse/mount/mountpoint.h"
#include "fuse/mount/stderr_catcher.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/mount_table.h"

namespace graphlane::fuse {
namespace {

Error busy(const std::string& mountpoint) {
  return make_error(EBUSY, "{}: in use (a program has a file open there or works there)",
                    mountpoint);
}

// fusermount3 is set-user-ID root. Its exit status does not give the reason.
Outcome<void> unmount_as_user(const std::string& mountpoint) {
  StderrCatcher said;
  std::string program = "fusermount3", unmount = "-u", end = "--", path = mountpoint;
  char* const argv[] = {program.data(), unmount.data(), end.data(), path.data(), nullptr};
  pid_t child;
  const int error = ::posix_spawnp(&child, "fusermount3", nullptr, nullptr, argv, environ);
  if (error != 0) return os_error(error, "fusermount3", "cannot run");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const std::string reason = said.first_line();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (reason.find("busy") != std::string::npos) return busy(mountpoint);
  return make_error(EPERM, "{}: cannot unmount: {}", mountpoint, reason);
}

// The daemon of a mount. After it has ended, all bytes written through the mount are on the
// devices. Before that no other process can write those files. In another network namespace any
// process could take the daemon's name. So this waits only for a process of root, or of the user
// that mounted.
class Daemon {
 public:
  Daemon(const std::string& mountpoint, uid_t user) {
    char name[kServerNameSize];
    if (::getxattr(mountpoint.c_str(), kServerXattr, name, sizeof name) != sizeof name) return;
    address_.sun_family = AF_UNIX;  // abstract: the name begins with a NUL
    std::memcpy(address_.sun_path + 1, name, sizeof name);
    const Fd socket = connect();
    ucred peer{};
    socklen_t length = sizeof peer;
    if (socket && ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
        (peer.uid == user || peer.uid == 0)) {
      process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
      pid_ = peer.pid;
    }
  }

  // Waits for the daemon's end. Returns at once if there is no visible daemon, or if it serves on
  // because the mount exists elsewhere too (a bind mount, another namespace).
  void wait_for_the_end() const {
    if (!process_) return;
    const auto deadline = std::chrono::steady_clock::now() + kEndBegins;
    while (connect()) {
      if (std::chrono::steady_clock::now() > deadline) return;
      std::this_thread::sleep_for(kInterval);
    }
    pollfd ended{process_.get(), POLLIN, 0};
    int lapses = 0;
    while (::poll(&ended, 1, kLookMs) <= 0 && lapses < kLapsesMax) {
      if (has_done_all()) ++lapses;
    }
  }

 private:
  static constexpr auto kEndBegins = std::chrono::seconds(1);
  static constexpr auto kInterval = std::chrono::milliseconds(2);
  static constexpr int kLookMs = 100;
  static constexpr int kLapsesMax = 10;

  // Whether the daemon's main thread has ended. The process itself may never end, if it closes a
  // file of a foreign filesystem (iomgr/server/file_server.h).
  bool has_done_all() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string text;
    std::getline(stat, text);
    const size_t name_end = text.rfind(") ");
    return name_end != std::string::npos && text.compare(name_end + 2, 1, "Z") == 0;
  }

  Fd connect() const {
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    constexpr socklen_t kLength = offsetof(sockaddr_un, sun_path) + 1 + kServerNameSize;
    // EAGAIN: its queue is full, so it exists.
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), kLength) == 0 ||
        errno == EAGAIN) {
      return socket;
    }
    return {};
  }

  sockaddr_un address_{};
  Fd process_;  // a pidfd
  pid_t pid_ = 0;
};

Outcome<void> try_unmount(const std::string& path) {
  if (::umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0) return {};
  if (errno == EPERM) return unmount_as_user(path);
  if (errno == EBUSY) return busy(path);
  return os_error(errno, path, "cannot unmount");
}

// A busy mount is tried again for a moment. A preloaded program lends its descriptors to the
// daemon, which may close them a little after the program has ended.
Outcome<void> unmount_there(const std::string& path) {
  constexpr auto kBusyMax = std::chrono::milliseconds(500);
  constexpr auto kInterval = std::chrono::milliseconds(20);
  const auto deadline = std::chrono::steady_clock::now() + kBusyMax;
  while (true) {
    Outcome<void> done = try_unmount(path);
    if (done || done.error().code != EBUSY || std::chrono::steady_clock::now() > deadline) {
      return done;
    }
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace

Outcome<void> unmount(const std::string& mountpoint) {
  const Outcome<std::string> path = absolute_mountpoint(mountpoint);
  if (!path) return path.error();
  const std::optional<VolumeMount> mount = find_volume_mount(*path);
  if (!mount) {
    return make_error(EINVAL, "{}: no Graphlane volume is mounted there", mountpoint);
  }
  const Daemon daemon(*path, mount->user);
  if (Outcome<void> done = unmount_there(*path); !done) return done;
  daemon.wait_for_the_end();
  return {};
}

}  // namespace graphlane::fuse
