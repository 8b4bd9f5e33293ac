#include "iomgr/base/process/daemonize.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/log.h"

namespace graphlane {
namespace {

[[noreturn]] void run_child(const Server& server, Fd report) {
  ::setsid();
  bool announced = false;
  const Outcome<void> served = server([&] {
    if (::chdir("/") != 0) log_line("/: {}", std::strerror(errno));  // must not keep a mount busy
    log_to_syslog();
    stdio_to_null();  // leaves the terminal, and closes the pipes of a waiting parent
    send_report(report.get(), {.code = 0, .text = ""});
    report.reset();
    announced = true;
  });
  if (!served) {
    if (announced) {
      log_line(served.error().text);
    } else {
      send_report(report.get(), served.error());
    }
  }
  ::_exit(served ? 0 : 1);
}

}  // namespace

void stdio_to_null() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
}

void send_report(int fd, const Error& error) {
  const std::string message(reinterpret_cast<const char*>(&error.code), sizeof error.code);
  (void)write_full(fd, (message + error.text).data(), message.size() + error.text.size());
}

std::optional<Error> receive_report(int fd) {
  char message[4096];
  const Result<size_t> length = read_full(fd, message, sizeof message);
  if (!length || *length < sizeof(int)) return std::nullopt;
  Error error;
  std::memcpy(&error.code, message, sizeof error.code);
  error.text.assign(message + sizeof error.code, *length - sizeof error.code);
  return error;
}

Outcome<void> daemonize(const Server& server) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "pipe", "cannot make");
  Fd reader(ends[0]), writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return os_error(errno, "daemon", "cannot start");
  if (child == 0) {
    reader.reset();
    run_child(server, std::move(writer));
  }
  writer.reset();
  const std::optional<Error> report = receive_report(reader.get());
  if (report && report->code == 0) return {};
  ::waitpid(child, nullptr, 0);
  if (report) return *report;
  return make_error(EIO, "the daemon ended before it was ready");
}

void raise_descriptor_limit() {
  rlim_t most = 0;
  std::ifstream("/proc/sys/fs/nr_open") >> most;
  const struct rlimit all = {.rlim_cur = most, .rlim_max = most};
  if (most > 0 && ::setrlimit(RLIMIT_NOFILE, &all) == 0) return;  // CAP_SYS_RESOURCE
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace graphlane
