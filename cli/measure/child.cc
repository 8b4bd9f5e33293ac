#include "cli/measure/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval{10};

std::string content_of(const Fd& fd) {
  struct stat info = {};
  (void)::fstat(fd.get(), &info);
  std::string text(static_cast<size_t>(info.st_size), '\0');
  const Result<size_t> got = pread_full(fd.get(), text.data(), text.size(), 0);
  text.resize(got ? *got : 0);
  return text;
}

Outcome<pid_t> start(std::vector<std::string>& words, const Fd& out, const Fd& err) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return os_error(error, words[0], "cannot run");
  return child;
}

// Waits; an interrupt kills the child first. SIGTERM would not do: fio would finish what is in
// flight, and print.
int wait_for(pid_t child) {
  int status = 0;
  bool is_ended = false;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (!check_interrupt() && !is_ended) {
      ::kill(child, SIGKILL);
      is_ended = true;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return status;
}

}  // namespace

std::string Finished::complaint() const {
  const std::string line = err.substr(0, err.find('\n'));
  if (!line.empty()) return line;
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

// The output goes into files in memory, because a full pipe would block the program.
Outcome<Finished> run_child(std::vector<std::string> words) {
  const Fd out(::memfd_create("out", MFD_CLOEXEC)), err(::memfd_create("err", MFD_CLOEXEC));
  if (!out || !err) return os_error(errno, words[0], "cannot run");
  const Outcome<pid_t> child = start(words, out, err);
  if (!child) return child.error();
  Finished finished{.status = wait_for(*child)};
  if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on.error();
  finished.out = content_of(out);
  finished.err = content_of(err);
  return finished;
}

}  // namespace graphlane::cli
