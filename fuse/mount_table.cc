#include "fuse/mount_table.h"

#include <fcntl.h>
#include <limits.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fuse/mount.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/file_io.h"

namespace graphlane {
namespace {

constexpr std::string_view kReadAheadKib = "4096";

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAGS…] - TYPE SOURCE SUPER
std::optional<MountEntry> parse_line(const std::string& line) {
  std::istringstream words(line);
  std::string id, parent, device, root, mountpoint, word, type, source;
  words >> id >> parent >> device >> root >> mountpoint;
  while (words >> word && word != "-") continue;
  if (!(words >> type >> source)) return std::nullopt;
  return MountEntry{.mountpoint = unescape_mount_field(mountpoint),
                    .type = type,
                    .source = unescape_mount_field(source),
                    .device = device};
}

}  // namespace

std::string unescape_mount_field(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<MountEntry> read_mount_table() {
  std::vector<MountEntry> entries;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    if (std::optional<MountEntry> entry = parse_line(line)) entries.push_back(std::move(*entry));
  }
  return entries;
}

std::optional<MountEntry> find_graphlane_mount(const std::string& mountpoint) {
  std::optional<MountEntry> top;
  for (MountEntry& entry : read_mount_table()) {
    if (entry.mountpoint == mountpoint) top = std::move(entry);
  }
  if (top && top->type != kFilesystemType) top.reset();
  return top;
}

std::vector<std::string> mountpoints_of(const std::string& volume_root) {
  std::vector<std::string> mountpoints;
  for (MountEntry& entry : read_mount_table()) {
    if (entry.type == kFilesystemType && entry.source == volume_root) {
      mountpoints.push_back(std::move(entry.mountpoint));
    }
  }
  return mountpoints;
}

Outcome<std::string> absolute_mountpoint(const std::string& path) {
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) != nullptr) return std::string(real);
  if (errno != ENOTCONN) return os_error(errno, path, "cannot find");
  const size_t end = path.find_last_not_of('/');
  const std::string trimmed = path.substr(0, end + 1);
  const size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  if (::realpath(parent.c_str(), real) == nullptr) return os_error(errno, path, "cannot find");
  const std::string above = real;
  return (above == "/" ? "" : above) + "/" + trimmed.substr(slash + 1);
}

bool is_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

void raise_read_ahead(const std::string& device) {
  const std::string path = "/sys/class/bdi/" + device + "/read_ahead_kb";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  // Only root may; without it buffered reads are slower, not wrong.
  if (file) (void)write_full(file.get(), kReadAheadKib.data(), kReadAheadKib.size());
}

}  // namespace graphlane
