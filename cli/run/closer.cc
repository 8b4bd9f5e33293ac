#include "cli/run/closer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/server/mount_request.h"
#include "iomgr/volume/parts/close_file.h"

namespace graphlane::cli {
namespace {

using Clock = std::chrono::steady_clock;

// For files that processes which the command left behind still write.
constexpr auto kPatience = std::chrono::minutes(10);
constexpr auto kFirstPause = std::chrono::milliseconds(20);
constexpr auto kLastPause = std::chrono::seconds(5);

// The paths in the list, each with its NUL, from `*offset` on.
void take_paths(int list, uint64_t* offset, std::set<std::string>* paths) {
  char buffer[1 << 16];
  for (;;) {
    const Result<size_t> got = pread_full(list, buffer, sizeof buffer, *offset);
    const std::string_view text(buffer, got.value_or(0));
    const size_t whole = text.rfind('\0') + 1;  // 0: none
    for (size_t at = 0; at < whole; at = text.find('\0', at) + 1) paths->insert(text.data() + at);
    *offset += whole;
    if (whole == 0) return;
  }
}

void close_changed(int list) {
  const auto deadline = Clock::now() + kPatience;
  std::set<std::string> paths;
  uint64_t offset = 0;
  for (Clock::duration pause = kFirstPause;;) {
    take_paths(list, &offset, &paths);
    std::erase_if(paths, [](const std::string& path) {
      const Outcome<bool> closed = close_file(path);
      return closed || closed.error().code != EBUSY;
    });
    if (paths.empty() || Clock::now() >= deadline) return;
    std::this_thread::sleep_for(pause);
    pause = std::min<Clock::duration>(2 * pause, kLastPause);
  }
}

// Keeps no descriptor of the command's: a reader of its output waits for the end of all.
void let_go(int list, int command) {
  ::setsid();
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  (void)!::chdir("/");
  const int low = std::min(list, command), high = std::max(list, command);
  const auto close_between = [](int first, int last) {
    if (first <= last) (void)::syscall(SYS_close_range, first, last, 0);
  };
  close_between(3, low - 1);
  close_between(low + 1, high - 1);
  close_between(high + 1, INT32_MAX);
  stdio_to_null();
}

[[noreturn]] void run_closer(int list, int command, int answer) {
  const pid_t process = ::getpid();
  (void)write_full(answer, &process, sizeof process);
  let_go(list, command);
  pollfd ended{.fd = command, .events = POLLIN, .revents = 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) continue;
  close_changed(list);
  ::_exit(0);
}

// A descriptor that a program may not take for one of the first three.
Fd above_standard(int fd) {
  const Fd low(fd);
  return low ? Fd(::fcntl(low.get(), F_DUPFD_CLOEXEC, 3)) : Fd();
}

}  // namespace

void start_closer() {
  if (std::getenv(kChangesVariable) != nullptr) return;
  const Fd list = above_standard(::memfd_create("graphlane-changes", MFD_CLOEXEC));
  const Fd command = above_standard(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  int ends[2];
  if (!list || !command || ::pipe2(ends, O_CLOEXEC) != 0) return;
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  // Its parent is not the command, which may wait for children.
  const pid_t between = ::fork();
  if (between == 0) {
    if (::fork() == 0) run_closer(list.get(), command.get(), writer.get());
    ::_exit(0);
  }
  writer.reset();
  if (between < 0) return;
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_t closer = 0;
  if (read_full(reader.get(), &closer, sizeof closer).value_or(0) != sizeof closer) return;
  const std::string path = "/proc/" + std::to_string(closer) + "/fd/" + std::to_string(list.get());
  ::setenv(kChangesVariable, path.c_str(), 1);
}

}  // namespace graphlane::cli
