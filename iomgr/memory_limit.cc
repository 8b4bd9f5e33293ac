#include "iomgr/memory_limit.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "iomgr/base/fd.h"
#include "iomgr/base/file_io.h"

namespace graphlane {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr size_t kPathMax = 1024;

// A path put together without allocation; too long a one becomes empty.
struct Path {
  Path(const char* root, const char* middle, const char* leaf) {
    const size_t a = std::strlen(root), b = std::strlen(middle), c = std::strlen(leaf);
    if (a + b + c + 1 > sizeof text) return;
    std::memcpy(text, root, a);
    std::memcpy(text + a, middle, b);
    std::memcpy(text + a + b, leaf, c + 1);
  }
  char text[kPathMax] = "";
};

// A small file's text, cut at `size` - 1 characters; "" when it cannot be read.
void read_text(const char* path, char* text, size_t size) {
  const Fd fd(sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  const Result<size_t> got = fd ? read_full(fd.get(), text, size - 1) : Result<size_t>(Errno{});
  text[got ? *got : 0] = '\0';
}

// The number at the start of `text`; "max" and what is no number are unlimited.
uint64_t parse_number(const char* text) {
  while (*text == ' ' || *text == '\t') ++text;
  if (*text < '0' || *text > '9') return kUnlimited;
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    const uint64_t digit = static_cast<uint64_t>(*text - '0');
    if (value > (kUnlimited - digit) / 10) return kUnlimited;
    value = value * 10 + digit;
  }
  return value;
}

// The number behind `key` at the start of a line, or `missing`.
uint64_t field(const char* text, const char* key, uint64_t missing) {
  const size_t length = std::strlen(key);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    if (std::strncmp(line, key, length) == 0) return parse_number(line + length);
    const char* end = std::strchr(line, '\n');
    line = end == nullptr ? nullptr : end + 1;
  }
  return missing;
}

// Page cache that is mapped is in use: vertex files, libraries.
uint64_t machine_available() {
  char text[4096];
  read_text("/proc/meminfo", text, sizeof text);
  const uint64_t kib = field(text, "MemAvailable:", kUnlimited);
  if (kib == kUnlimited) return kUnlimited;
  return (kib - std::min(kib, field(text, "Mapped:", 0))) * 1024;
}

struct CgroupFiles {
  const char* root;
  const char* limit;
  const char* usage;
  const char* cache;  // keys in memory.stat
  const char* mapped;
};
constexpr CgroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                   "/memory.usage_in_bytes", "total_cache ",
                                   "total_mapped_file "};
constexpr CgroupFiles kVersion2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "file ",
                                   "file_mapped "};

// What one cgroup leaves: its limit less what it uses, page cache that nobody has mapped
// not counted.
uint64_t cgroup_available(const CgroupFiles& files, const char* group) {
  char text[4096];
  read_text(Path(files.root, group, files.limit).text, text, sizeof text);
  const uint64_t limit = parse_number(text);
  if (limit == kUnlimited) return kUnlimited;
  read_text(Path(files.root, group, files.usage).text, text, sizeof text);
  const uint64_t usage = text[0] == '\0' ? 0 : parse_number(text);
  read_text(Path(files.root, group, "/memory.stat").text, text, sizeof text);
  const uint64_t cache = field(text, files.cache, 0);
  const uint64_t mapped = std::min(cache, field(text, files.mapped, 0));
  const uint64_t held = usage - std::min(usage, cache - mapped);
  return limit - std::min(limit, held);
}

// The smallest over the group and all groups above it.
uint64_t cgroups_available(const CgroupFiles& files, char* group) {
  uint64_t available = kUnlimited;
  while (true) {
    available = std::min(available, cgroup_available(files, group));
    char* slash = std::strrchr(group, '/');
    if (slash == nullptr) return available;
    *slash = '\0';  // "/a/b" -> "/a" -> "", the root
  }
}

}  // namespace

Result<IoMode> parse_io_mode(const char* name) {
  if (std::strcmp(name, "auto") == 0) return IoMode::kAuto;
  if (std::strcmp(name, "direct") == 0) return IoMode::kDirect;
  if (std::strcmp(name, "buffered") == 0) return IoMode::kBuffered;
  return Errno{EINVAL};
}

uint64_t memory_available_bytes() {
  uint64_t available = machine_available();
  char groups[4096];
  read_text("/proc/self/cgroup", groups, sizeof groups);
  // Lines "ID:CONTROLLERS:/GROUP"; version 2 has no controllers.
  for (char* line = groups; line != nullptr && *line != '\0';) {
    char* end = std::strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    char* controllers = std::strchr(line, ':');
    char* group = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (group != nullptr) {
      *group++ = '\0';
      ++controllers;
      if (*controllers == '\0') {
        available = std::min(available, cgroups_available(kVersion2, group));
      } else if (std::strcmp(controllers, "memory") == 0) {
        available = std::min(available, cgroups_available(kVersion1, group));
      }
    }
    line = end == nullptr ? nullptr : end + 1;
  }
  return available;
}

bool wants_direct(IoMode mode, uint64_t size_bytes, bool asked) {
  if (mode != IoMode::kAuto) return mode == IoMode::kDirect;
  if (asked) return true;
  const uint64_t available = memory_available_bytes();
  // An eighth stays free: a file that just fits is evicted by what runs beside.
  return size_bytes > available - available / 8;
}

}  // namespace graphlane
