#include "cli/run/report_watch.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "cli/command.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/server/mount_request.h"

namespace graphlane::cli {

ReportWatch::ReportWatch(std::string target)
    : target_(std::move(target)),
      socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const std::string name = fmt::format("graphlane-{}", UuidText(Uuid::random()).view());
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (socket_ && ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    ::setenv(kReportedVariable, name.c_str(), 1);
  }
}

void ReportWatch::tell_if_none_reported(const std::string& command,
                                        const std::string& blind) const {
  char byte;
  if (socket_ && ::recv(socket_.get(), &byte, 1, 0) == 1) return;
  const std::string why = blind.empty() ? "no preloaded program of it read a striped file" : blind;
  if (target_ == "1") {
    complain(fmt::format("report of {}: nothing went past the mount: {}", command, why));
    return;
  }
  const Json line = {
      {"program", command}, {"devices", Json::array()}, {"files", Json::array()}, {"why", why}};
  const Fd file(::open(target_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const std::string text = line.dump(-1) + "\n";
  if (!file || !write_full(file.get(), text.data(), text.size())) {
    complain(fmt::format("{}: cannot write the report", target_));
  }
}

}  // namespace graphlane::cli
