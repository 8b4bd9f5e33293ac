#include "iomgr/base/process/memory_limit.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr size_t kTextMax = 1024;

using Pieces = std::initializer_list<const char*>;

// Reads a file line by line in little memory, because a program's thread may have a stack of only
// 16 KiB. A line longer than the buffer comes in pieces.
class LineReader {
 public:
  // A path longer than the buffer reads as an empty file.
  explicit LineReader(Pieces path) {
    size_t length = 0;
    for (const char* piece : path) length += std::strlen(piece);
    if (length > kTextMax) return;
    text_[0] = '\0';
    for (const char* piece : path) std::strcat(text_, piece);
    fd_ = Fd(sys::openat(AT_FDCWD, text_, O_RDONLY | O_CLOEXEC));
  }

  // Null: no more lines, or the file cannot be read.
  char* next() {
    char* line_end = nullptr;
    while ((line_end = static_cast<char*>(std::memchr(begin_, '\n', size()))) == nullptr &&
           fill()) {
    }
    if (size() == 0) return nullptr;
    if (line_end == nullptr) line_end = end_;  // the last line, or a piece
    char* const line = begin_;
    begin_ = std::min(line_end + 1, end_);
    *line_end = '\0';
    return line;
  }

 private:
  size_t size() const { return static_cast<size_t>(end_ - begin_); }

  // Appends from the file. False: at its end, or no room.
  bool fill() {
    const size_t kept = size();
    std::memmove(text_, begin_, kept);
    begin_ = text_;
    end_ = text_ + kept;
    const size_t room = kTextMax - kept;
    const ssize_t got = fd_ && room > 0 ? sys::read(fd_.get(), end_, room) : 0;
    if (got > 0) end_ += got;
    return got > 0;
  }

  Fd fd_;
  char text_[kTextMax + 1];
  char* begin_ = text_;
  char* end_ = text_;
};

// The number at the start of `text`; "max" and any other text are unlimited.
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

// A number after a key.
struct Field {
  const char* key;  // the start of its line
  uint64_t value;   // the default when there is no such line
};

// Reads the numbers of a file with one line for each.
template <size_t count>
void read_fields(Pieces path, Field (&fields)[count]) {
  LineReader lines(path);
  while (const char* line = lines.next()) {
    for (Field& field : fields) {
      const size_t length = std::strlen(field.key);
      if (std::strncmp(line, field.key, length) == 0) field.value = parse_number(line + length);
    }
  }
}

// Mapped page cache counts as used: vertex files, libraries.
uint64_t machine_available(const char* root) {
  Field fields[] = {{"MemAvailable:", kUnlimited}, {"Mapped:", 0}};
  read_fields({root, "/proc/meminfo"}, fields);
  const auto [available, mapped] = fields;
  if (available.value == kUnlimited) return kUnlimited;
  return (available.value - std::min(available.value, mapped.value)) * 1024;
}

struct CgroupFiles {
  const char* mount;
  const char* limit;
  const char* high;  // above it the kernel throttles programs; null in version 1
  const char* usage;
  const char* cache;   // keys in memory.stat
  const char* shared;  // tmpfs and memfds, which count as cache
  const char* mapped;
};
constexpr CgroupFiles kVersion1 = {
    "/sys/fs/cgroup/memory",  "/memory.limit_in_bytes", nullptr,
    "/memory.usage_in_bytes", "total_cache ",           "total_shmem ",
    "total_mapped_file "};
constexpr CgroupFiles kVersion2 = {"/sys/fs/cgroup",  "/memory.max", "/memory.high",
                                   "/memory.current", "file ",       "shmem ",
                                   "file_mapped "};

// The only number of a file, or `missing`. Not inlined, so that the caller's stack frame does not
// hold a LineReader for each call.
[[gnu::noinline]] uint64_t read_number(Pieces path, uint64_t missing) {
  LineReader lines(path);
  const char* const line = lines.next();
  return line == nullptr ? missing : parse_number(line);
}

// The free memory of one cgroup: its limit less its usage; unmapped page cache counts as free.
// Mapped memory may be shared memory, which cannot be reclaimed. The kernel does not tell them
// apart, so it is split in proportion.
uint64_t cgroup_available(const char* root, const CgroupFiles& files, const char* group) {
  const auto number = [&](const char* leaf, uint64_t missing) {
    return read_number({root, files.mount, group, leaf}, missing);
  };
  uint64_t limit = number(files.limit, kUnlimited);
  if (files.high != nullptr) limit = std::min(limit, number(files.high, kUnlimited));
  if (limit == kUnlimited) return kUnlimited;
  const uint64_t usage = number(files.usage, 0);
  Field fields[] = {{files.cache, 0}, {files.shared, 0}, {files.mapped, 0}};
  read_fields({root, files.mount, group, "/memory.stat"}, fields);
  const uint64_t all = std::max(fields[0].value, uint64_t{1});
  const uint64_t cache = all - std::min(all, fields[1].value);
  const double files_share = static_cast<double>(cache) / static_cast<double>(all);
  const auto mapped = static_cast<uint64_t>(static_cast<double>(fields[2].value) * files_share);
  const uint64_t held = usage - std::min(usage, cache - std::min(cache, mapped));
  return limit - std::min(limit, held);
}

// The least over the group and all its ancestors.
uint64_t cgroups_available(const char* root, const CgroupFiles& files, char* group) {
  uint64_t available = kUnlimited;
  while (true) {
    available = std::min(available, cgroup_available(root, files, group));
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

uint64_t memory_available_bytes(const char* root) {
  uint64_t available = machine_available(root);
  LineReader lines({root, "/proc/self/cgroup"});
  // "ID:CONTROLLERS:/GROUP"; version 2 has no controllers.
  while (char* line = lines.next()) {
    char* controllers = std::strchr(line, ':');
    char* group = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (group == nullptr) continue;
    *group++ = '\0';
    ++controllers;
    if (*controllers == '\0') {
      available = std::min(available, cgroups_available(root, kVersion2, group));
    } else if (std::strcmp(controllers, "memory") == 0) {
      available = std::min(available, cgroups_available(root, kVersion1, group));
    }
  }
  return available;
}

}  // namespace graphlane
