#include "cli/fio.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/base/file_io.h"
#include "iomgr/base/interrupt.h"
#include "iomgr/base/json.h"

namespace graphlane::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval{10};

struct Said {
  int status = 0;  // as of waitpid
  std::string out, err;
};

std::string content_of(const Fd& fd) {
  struct stat info = {};
  (void)::fstat(fd.get(), &info);
  std::string text(static_cast<size_t>(info.st_size), '\0');
  const Result<size_t> got = pread_full(fd.get(), text.data(), text.size(), 0);
  text.resize(got ? *got : 0);
  return text;
}

Outcome<pid_t> start(std::vector<std::string> words, const Fd& out, const Fd& err) {
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
  if (error == ENOENT) {
    return make_error(ENOENT, "fio: not found in $PATH; calibrate measures with it: install the "
                      "package fio");
  }
  if (error != 0) return os_error(error, "fio", "cannot run");
  return child;
}

// Waits; an interrupt ends the child first.
int wait_for(pid_t child) {
  int status = 0;
  bool is_ended = false;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (!check_interrupt() && !is_ended) {
      // Not SIGTERM: fio would end what is in flight, and print.
      ::kill(child, SIGKILL);
      is_ended = true;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return status;
}

// Into files in memory, which unlike pipes need nobody to empty them.
Outcome<Said> run(std::vector<std::string> words) {
  const Fd out(::memfd_create("fio-out", MFD_CLOEXEC)), err(::memfd_create("fio-err", MFD_CLOEXEC));
  if (!out || !err) return os_error(errno, "fio", "cannot run");
  const Outcome<pid_t> child = start(std::move(words), out, err);
  if (!child) return child.error();
  Said said{.status = wait_for(*child), .out = {}, .err = {}};
  if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on.error();
  said.out = content_of(out);
  said.err = content_of(err);
  return said;
}

// The first line that fio wrote in place of a result.
std::string complaint(const Said& said) {
  for (const std::string* text : {&said.err, &said.out}) {
    const std::string line = text->substr(0, text->find('\n'));
    if (!line.empty() && !line.starts_with('{')) return line;
  }
  return fmt::format("ended with wait status {}", said.status);
}

Outcome<FioSpeed> parse_result(const Said& said, const std::string& file) {
  // What it warns of stands before the JSON.
  const size_t begin = std::min(said.out.find('{'), said.out.size());
  const std::optional<Json> result = Json::parse(std::string_view(said.out).substr(begin));
  const Json* jobs = result ? result->find("jobs") : nullptr;
  if (said.status != 0 || jobs == nullptr) {
    return make_error(EIO, "{}: fio cannot measure it: {}", file, complaint(said));
  }
  FioSpeed speed;
  for (const Json& job : jobs->elements()) {
    const Json& read = job.at_or_null("read");
    speed.bytes_per_second += read.at_or_null("bw_bytes").as_double().value_or(0);
    speed.ios_per_second += read.at_or_null("iops").as_double().value_or(0);
  }
  if (speed.bytes_per_second <= 0) {
    return make_error(EIO, "{}: fio read nothing (a longer --runtime may help)", file);
  }
  return speed;
}

}  // namespace

Outcome<void> check_fio() {
  const Outcome<Said> said = run({"fio", "--version"});
  if (!said) return said.error();
  if (said->status != 0) return make_error(EIO, "fio: {}", complaint(*said));
  return {};
}

Outcome<FioSpeed> run_fio(const FioReads& reads) {
  const uint64_t share = reads.file_bytes / reads.stream_count / reads.block_bytes * reads.block_bytes;
  const uint32_t depth_each = (reads.depth + reads.stream_count - 1) / reads.stream_count;
  const Outcome<Said> said =
      run({"fio", "--output-format=json", "--name=calibrate", "--readonly", "--thread",
           "--group_reporting", "--ioengine=libaio", "--direct=1", "--time_based",
           "--allow_file_create=0", "--filename=" + reads.file,
           fmt::format("--rw={}", reads.at_random ? "randread" : "read"),
           fmt::format("--bs={}", reads.block_bytes), fmt::format("--iodepth={}", depth_each),
           fmt::format("--numjobs={}", reads.stream_count), fmt::format("--size={}", share),
           fmt::format("--offset_increment={}", reads.stream_count > 1 ? share : 0),
           fmt::format("--runtime={}ms", reads.duration.count())});
  if (!said) return said.error();
  return parse_result(*said, reads.file);
}

}  // namespace graphlane::cli
