#include "shim/locate/volume_json.h"

#define JSMN_STATIC
#define JSMN_STRICT
#include <fnmatch.h>
#include <jsmn.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/volume/found_volume.h"
#include "iomgr/volume/kind.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane::shim {
namespace {

constexpr size_t kFileMax = 512 * 1024;  // 64 devices with the longest of paths
constexpr unsigned kTokenMax = 1024;

// One JSON file at a time, parsed in place.
class Document {
 public:
  // False: unreadable, too long, or not one JSON object.
  bool read(int directory, const char* path) {
    const Fd fd = open_regular(directory, path, O_RDONLY);
    if (!fd) return false;
    const Result<size_t> got = read_full(fd.get(), text_, sizeof text_);
    if (!got || *got == sizeof text_) return false;
    jsmn_parser parser;
    jsmn_init(&parser);
    token_count_ = jsmn_parse(&parser, text_, *got, tokens_, kTokenMax);
    return token_count_ > 0 && tokens_[0].type == JSMN_OBJECT;
  }

  // The token of a key's value in an object, by default the outermost; -1: no such key, or not an
  // object.
  int find(std::string_view key, int object = 0) const {
    if (object < 0 || tokens_[object].type != JSMN_OBJECT) return -1;
    int token = object + 1;
    for (int member = 0; member < tokens_[object].size; ++member) {
      if (token + 1 >= token_count_) return -1;  // a key without a value
      if (raw(token) == key) return token + 1;
      token = after(token + 1);
    }
    return -1;
  }

  std::string_view raw(int token) const {
    const jsmntok_t& t = tokens_[token];
    return {text_ + t.start, static_cast<size_t>(t.end - t.start)};
  }

  std::optional<uint64_t> number(std::string_view key, int object = 0) const {
    const int token = find(key, object);
    if (token < 0 || tokens_[token].type != JSMN_PRIMITIVE) return std::nullopt;
    uint64_t value = 0;
    for (const char c : raw(token)) {
      if (c < '0' || c > '9' || value > UINT64_MAX / 10 - 9) return std::nullopt;
      value = value * 10 + static_cast<uint64_t>(c - '0');
    }
    return value;
  }

  std::optional<Uuid> uuid(std::string_view key) const {
    const int token = find(key);
    if (token < 0 || tokens_[token].type != JSMN_STRING) return std::nullopt;
    return Uuid::parse(raw(token));
  }

  // The number of elements of an array; 0: not an array.
  int array_size(int array) const {
    return array < 0 || tokens_[array].type != JSMN_ARRAY ? 0 : tokens_[array].size;
  }
  // An element with its escapes resolved.
  void element(int array, int index, PathText* value) const { string(array + 1 + index, value); }
  void string(int token, PathText* value) const {
    value->cut(0);
    if (tokens_[token].type == JSMN_STRING) unescape(raw(token), value);
  }

 private:
  // The token after a value and all that it contains.
  int after(int token) const {
    const int end = tokens_[token].end;
    while (token < token_count_ && tokens_[token].start < end) ++token;
    return token;
  }

  static void unescape(std::string_view text, PathText* out) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        *out << text.substr(i, 1);
        continue;
      }
      ++i;  // jsmn has checked that a valid escape follows
      if (text[i] == 'u') {
        append_code_point(text.substr(i + 1, 4), out);
        i += 4;
        continue;
      }
      constexpr std::string_view kNames = "bfnrt";
      constexpr std::string_view kCharacters = "\b\f\n\r\t";
      const size_t named = kNames.find(text[i]);
      *out << (named == kNames.npos ? text.substr(i, 1) : kCharacters.substr(named, 1));
    }
  }

  // \uXXXX as UTF-8. Surrogates do not occur, because the writer escapes only control characters.
  static void append_code_point(std::string_view digits, PathText* out) {
    unsigned code = 0;
    for (const char c : digits) {
      const unsigned digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
      code = code * 16 + digit;
    }
    char utf8[3];
    size_t n = 0;
    if (code >= 0x800) {
      utf8[n++] = static_cast<char>(0xe0 | code >> 12);
      utf8[n++] = static_cast<char>(0x80 | (code >> 6 & 0x3f));
      utf8[n++] = static_cast<char>(0x80 | (code & 0x3f));
    } else if (code >= 0x80) {
      utf8[n++] = static_cast<char>(0xc0 | code >> 6);
      utf8[n++] = static_cast<char>(0x80 | (code & 0x3f));
    } else {
      utf8[n++] = static_cast<char>(code);
    }
    *out << std::string_view(utf8, n);
  }

  char text_[kFileMax];
  jsmntok_t tokens_[kTokenMax];
  int token_count_ = 0;
};

Document document;  // under the SlowLock

// Whether the process lacks resources for now: then the error says nothing about the file.
bool is_lack(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// Opens the volume.json of the nearest trusted directory above, and sets `path` to it. Null, or the
// reason why there is none. A lack of descriptors or memory (errno) ends the search, because a
// volume further up would be another one.
const char* read_nearest(std::string_view file, PathText& path) {
  static PathText directory, control;  // under the SlowLock
  const char* wrong = "no readable .graphlane/volume.json above the stub";
  path.cut(0);
  path << file;
  while (true) {
    const size_t slash = path.view().rfind('/');
    if (slash == std::string_view::npos) return wrong;
    path.cut(slash);
    directory.cut(0);
    directory << path.view() << "/";
    control.cut(0);
    control << path.view() << "/.graphlane";
    path << "/.graphlane/volume.json";
    const FoundVolume found = find_volume_at(directory.c_str(), control.c_str(), path.c_str());
    errno = 0;
    const bool has_read = found == FoundVolume::kTrusted && document.read(AT_FDCWD, path.c_str());
    path.cut(slash);
    if (has_read) return nullptr;
    if (is_lack(errno)) return strerrordesc_np(errno);
    if (found == FoundVolume::kUntrusted) {
      wrong = "the .graphlane above the stub is neither its directory's owner's nor root's";
    }
  }
}

// Reads the document's home. False: it has none, and its format needs one.
bool read_home(StubIdentity* home, uint64_t* epoch) {
  *home = {};
  *epoch = 0;
  if (document.number("format") == 1u) return true;
  const int object = document.find("home");
  const std::optional<uint64_t> inode = document.number("inode", object);
  const std::optional<uint64_t> born = document.number("born", object);
  const std::optional<uint64_t> raised = document.number("epoch");
  if (!inode || !born || !raised) return false;
  *home = {.inode = *inode, .born = static_cast<int64_t>(*born)};
  *epoch = *raised;
  return true;
}

// Whether the .graphlane below the directory is the one that volume.json names. On btrfs it also
// compares the filesystem's id, because snapshots keep the rest. False, with errno if it cannot be
// opened.
bool is_at_home(const PathText& directory, const VolumeDevices& devices) {
  static PathText path;  // under the SlowLock
  path.cut(0);
  path << directory.view() << "/.graphlane";
  errno = 0;
  const Fd control(
      sys::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const Result<StubSeen> seen =
      control ? identify_stub(control.get()) : Result<StubSeen>(last_errno());
  if (!seen || !is_identity(devices.home, seen->identity)) return false;
  const std::optional<uint64_t> filesystem = document.number("filesystem", document.find("home"));
  if (!filesystem) return true;
  struct statfs now;
  uint64_t number = 0;
  if (::fstatfs(control.get(), &now) != 0) return false;
  std::memcpy(&number, &now.f_fsid, sizeof number);
  return number == *filesystem;
}

}  // namespace

const char* read_volume_file(std::string_view file, VolumeDevices* devices) {
  if (const char* wrong = read_nearest(file, devices->directory)) return wrong;
  const std::optional<Uuid> uuid = document.uuid("uuid");
  const int directories = document.find("devices");
  const int count = document.array_size(directories);
  const uint64_t format = document.number("format").value_or(0);
  if (format < 1 || format > 2 || !uuid || count < static_cast<int>(kDeviceCountMin) ||
      count > static_cast<int>(kDeviceCountMax)) {
    return "the volume's volume.json is damaged or of another format";
  }
  devices->format = static_cast<uint32_t>(format);
  if (!read_home(&devices->home, &devices->epoch)) {
    return "the volume's volume.json does not say where it belongs";
  }
  if (format > 1 && !is_at_home(devices->directory, *devices)) {
    if (is_lack(errno)) return strerrordesc_np(errno);
    return "this directory is a copy of the volume, or was moved: see graphlane adopt";
  }
  devices->volume = *uuid;
  devices->stripe_depth_bytes = document.number("stripe_depth").value_or(0);
  static PathText verify;  // under the SlowLock
  verify.cut(0);
  if (const int said = document.find("verify"); said >= 0) document.string(said, &verify);
  devices->verifies_reads = verify.view() == "read";
  devices->count = static_cast<uint32_t>(count);
  for (int i = 0; i < count; ++i) {
    PathText& root = devices->roots[i];
    document.element(directories, i, &root);
    if (!root.view().starts_with('/')) {
      return "a device's path in volume.json does not begin with /";
    }
    root << "/graphlane-" << UuidText(*uuid).view();
    if (!root.ok()) return "a device's path in volume.json is too long";
  }
  return nullptr;
}

bool wants_new(const char* name) {
  static PathText glob, at_the_end;  // under the SlowLock
  at_the_end.cut(0);
  at_the_end << final_name(name);
  const int globs = document.find("stripe", document.find("policy"));
  for (int i = 0; i < document.array_size(globs); ++i) {
    document.element(globs, i, &glob);
    if (::fnmatch(glob.c_str(), name, 0) == 0) return true;
    if (::fnmatch(glob.c_str(), at_the_end.c_str(), 0) == 0) return true;
  }
  return false;
}

uint64_t size_min_bytes() {
  return document.number("size_min", document.find("policy")).value_or(0);
}

const char* check_device_file(int root_fd, const VolumeDevices& devices, uint32_t index) {
  errno = 0;
  if (!document.read(root_fd, "device.json")) {
    return is_lack(errno) ? strerrordesc_np(errno) : "device.json is missing or damaged";
  }
  if (document.uuid("volume") != devices.volume) return "belongs to another volume";
  StubIdentity home;
  uint64_t epoch = 0;
  if (!read_home(&home, &epoch)) return "device.json is damaged";
  if (devices.format > 1 && document.number("format") != 2u) {
    return "is an older copy of the device";
  }
  if (devices.format > 1 && home != devices.home) {
    return "belongs to another directory of this volume: see graphlane adopt";
  }
  if (devices.format > 1 && epoch > devices.epoch) {
    return "was changed since by another directory of this volume: see graphlane adopt";
  }
  if (epoch + 1 < devices.epoch) return "is an older copy of the device";
  if (document.number("count") != devices.count) return "counts other devices than the volume";
  if (document.number("ordinal") != index) return "is another device of the volume (swapped?)";
  return nullptr;
}

uint32_t calibrated_depth(const char* root) {
  const Fd fd(sys::openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd || !document.read(fd.get(), "device.json")) return 0;
  const uint64_t depth = document.number("depth", document.find("calibration")).value_or(0);
  return depth <= kQueueDepthMax ? static_cast<uint32_t>(depth) : 0;
}

}  // namespace graphlane::shim
