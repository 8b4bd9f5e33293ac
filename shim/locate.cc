#include "shim/locate.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstring>

#include "iomgr/base/fd.h"
#include "shim/ask_server.h"
#include "shim/volume_json.h"

namespace graphlane {
namespace {

// Under the SlowLock.
VolumeDevices devices;  // of the file located last
PathText stub_path;

bool lies_on_fuse(int fd) {
  struct statfs fs;
  return ::fstatfs(fd, &fs) == 0 && fs.f_type == FUSE_SUPER_MAGIC;
}

// N directories, each with its NUL, for the report.
bool parse_directories(const char* text, size_t length) {
  size_t at = 0;
  for (uint32_t d = 0; d < devices.count; ++d) {
    const size_t n = strnlen(text + at, length - at);
    if (n == length - at) return false;
    devices.roots[d].cut(0);
    devices.roots[d] << std::string_view(text + at, n);
    at += n + 1;
  }
  return true;
}

struct Failure {
  const char* subject = nullptr;  // null: none
  const char* reason = nullptr;
  int code = EIO;  // what a read fails with
};

// What a read fails with. A lack of descriptors or memory is the program's own;
// all else is to it a device that does not read.
int read_error(int code) {
  return code == EMFILE || code == ENFILE || code == ENOMEM ? code : EIO;
}

// Opens the devices' directories, checking identities, then the parts.
Failure open_parts(const Layout& layout, PartFiles* parts) {
  Fd roots[kDeviceCountMax];
  int root_fds[kDeviceCountMax];
  for (uint32_t d = 0; d < devices.count; ++d) {
    const char* path = devices.roots[d].c_str();
    roots[d] = Fd(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!roots[d]) return {path, strerrordesc_np(errno), read_error(errno)};
    root_fds[d] = roots[d].get();
    const char* wrong = check_device_file(root_fds[d], devices, d);
    if (wrong != nullptr) return {path, wrong, read_error(errno)};
  }
  const Result<void, PartError> opened =
      parts->open({root_fds, devices.count}, layout, O_RDONLY);
  if (opened) return {};
  const PartError& error = opened.error();
  return {devices.roots[error.device_index].c_str(),
          error.size_found < error.size_expected ? "the part is shorter than it should be"
                                                 : strerrordesc_np(error.code),
          read_error(error.code)};
}

Located locate_on_mount(int fd, PartFiles* parts) {
  Located located;
  // Who may write by this descriptor is himself the writer.
  if ((sys::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) return located;
  const ServerAnswer answer = ask_server(fd);
  located.counter = answer.counter;
  located.generation = answer.generation;
  if (answer.error == EAGAIN) located.origin = Origin::kWritten;
  if (answer.error != 0) return located;
  parts->adopt({answer.parts, answer.reply->device_count});
  devices.count = answer.reply->device_count;
  if (decode_stub(answer.reply->stub, &located.layout) == StubVerdict::kStub &&
      located.layout.geometry.device_count == devices.count &&
      parse_directories(answer.directories, answer.directories_length)) {
    located.origin = Origin::kMount;
  }
  return located;
}

Located locate_stub(int fd, const struct stat& st, PartFiles* parts) {
  Located located;
  const Result<StubVerdict> verdict =
      read_stub(fd, static_cast<uint64_t>(st.st_size), &located.layout);
  if (!verdict || *verdict == StubVerdict::kNotAStub) return {};
  located.origin = Origin::kDamaged;
  located.error = EIO;
  find_path(fd, &stub_path);
  const std::string_view path = stub_path.view();
  if (*verdict != StubVerdict::kStub) {
    complain(path, describe(*verdict));
    return located;
  }
  errno = 0;  // what is wrong may have one
  const char* wrong = read_volume_file(path, &devices);
  if (wrong == nullptr && devices.volume != located.layout.volume) {
    wrong = "stub of another volume";
  }
  if (wrong == nullptr && devices.count != located.layout.geometry.device_count) {
    wrong = "stub for another number of devices";
  }
  if (wrong == nullptr && located.layout.state != FileState::kClosed) {
    wrong = "was not written to its end; run graphlane check --repair";
  }
  if (wrong != nullptr) {
    located.error = read_error(errno);
    complain(path, wrong);
    return located;
  }
  const Failure failure = open_parts(located.layout, parts);
  if (failure.subject != nullptr) {
    Text<512> reason;
    reason << failure.subject << ": " << failure.reason;
    complain(path, reason.view());
    located.error = failure.code;
    return located;
  }
  located.origin = Origin::kStub;
  return located;
}

}  // namespace

Located locate(int fd, const struct stat& st, PartFiles* parts) {
  if (lies_on_fuse(fd)) return locate_on_mount(fd, parts);
  return locate_stub(fd, st, parts);
}

const char* located_device(uint32_t device_index) { return devices.roots[device_index].c_str(); }

bool is_stub(int fd, const struct stat& st, Layout* layout) {
  if (!S_ISREG(st.st_mode) || st.st_size != kStubSize || lies_on_fuse(fd)) return false;
  const Result<StubVerdict> verdict = read_stub(fd, kStubSize, layout);
  return verdict && *verdict == StubVerdict::kStub;
}

}  // namespace graphlane
