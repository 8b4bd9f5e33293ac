#include "shim/locate/locate.h"

#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <span>

#include "iomgr/base/files/regular_file.h"
#include "iomgr/volume/lost_and_found.h"
#include "iomgr/volume/parts/never_synced.h"
#include "iomgr/volume/parts/promises.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "shim/base/settings.h"
#include "shim/base/text.h"
#include "shim/locate/ask_server.h"
#include "shim/locate/devices.h"
#include "shim/locate/warm_up.h"

namespace graphlane::shim {
namespace {

// Under the SlowLock.
VolumeDevices located_devices;  // of the last located file
PathText stub_path;
PathText part_path;  // of the last part that could not be opened

// Parses N directories, each with its NUL, for the report.
bool parse_directories(const char* text, size_t length) {
  size_t at = 0;
  for (uint32_t d = 0; d < located_devices.count; ++d) {
    const size_t n = strnlen(text + at, length - at);
    if (n == length - at) return false;
    located_devices.roots[d].cut(0);
    located_devices.roots[d] << std::string_view(text + at, n);
    at += n + 1;
  }
  return true;
}

// Fails for a file in state `open` that has lost bytes, instead of reading it as a shorter one.
Failure check_open_parts(const Layout& layout, const Devices& roots, PartFiles* parts,
                         uint64_t* bytes_max) {
  if (layout.state != FileState::kOpen) return {};
  const OpenSize open = look_at_open(layout, {.parts = parts->all_buffered(),
                                              .roots = roots.roots(),
                                              .volume = layout.volume,
                                              .file_id = layout.file_id,
                                              .geometry = layout.geometry});
  if (open.is_cut) *bytes_max = open.bytes;
  if (!open.is_damaged()) return {};
  parts->close();
  return {located_devices.roots[open.short_device].c_str(),
          "the part has lost bytes that the file had (graphlane export --salvage saves the others)",
          EIO};
}

// If another process begins to change the file meanwhile, *stub becomes what its stub says then.
Failure open_stub_parts(int fd, Layout* stub, int flags, PartFiles* parts, uint64_t* bytes_max) {
  const Layout& layout = *stub;
  Devices roots;
  if (const Failure failure = open_devices_of(fd, layout, &located_devices, &roots)) return failure;
  if (located_devices.format == 1 && (flags & O_ACCMODE) != O_RDONLY) {
    return {stub_path.c_str(), "a volume of format 1 is read only (graphlane check --upgrade)",
            EROFS};
  }
  const bool by_volume = settings().verify == Verify::kByVolume;
  const bool verifies =
      by_volume ? located_devices.verifies_reads : settings().verify == Verify::kRead;
  reads_are_verified.store(verifies, std::memory_order_relaxed);
  warm_up(roots.roots(), layout.file_id, verifies || (flags & O_ACCMODE) != O_RDONLY);
  PartError error;
  bool is_lost = false;
  // Retries after a mismatch, because a chown changes the owners one after the other.
  for (int i = 0; i < 2; ++i) {
    const Result<StubSeen> seen = identify_stub(fd);
    if (!seen) return {stub_path.c_str(), error_text(seen.error().code), EIO};
    const PartsOwner owner{
        .stub = *seen, .volume_format = located_devices.format, .is_lost_and_found = is_lost};
    const Result<void, PartError> opened = parts->open(roots.roots(), layout, flags, &owner);
    if (opened) return check_open_parts(layout, roots, parts, bytes_max);
    error = opened.error();
    if (layout.state == FileState::kClosed && has_changed(fd, stub)) {
      i = -1;
      continue;
    }
    if (error.ownership == Ownership::kOwned) break;
    if (i == 0 && error.ownership == Ownership::kNeverSynced && (flags & O_ACCMODE) != O_RDONLY) {
      const int failed = remake_parts(roots.roots(), layout, fd, owner);
      if (failed != 0 && failed != EIO) {
        return {stub_path.c_str(), "cannot make its parts, of which a power failure left some",
                error_for_program(failed)};
      }
      continue;
    }
    is_lost = (flags & O_ACCMODE) == O_RDONLY &&
              is_lost_and_found(open_volume(located_devices).get(), fd, layout.file_id);
    constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 2'000'000};
    if (i == 0) ::syscall(SYS_nanosleep, &kPause, nullptr);
  }
  const bool is_of_stub =
      error.ownership == Ownership::kCopy || error.ownership == Ownership::kOldFormat;
  const PartName name(layout.file_id);
  part_path.cut(0);
  part_path << located_devices.roots[error.device_index].view() << "/" << name.c_str();
  return {is_of_stub ? stub_path.c_str() : part_path.c_str(),
          describe_part_error(error, roots.roots()[error.device_index], name.c_str()),
          error_for_program(error.code)};
}

// Takes over the server's answer.
Located take(const ServerAnswer& answer, Origin origin, int flags, PartFiles* parts) {
  Located located;
  located.counter = answer.counter;
  located.generation = answer.generation;
  located.counts = answer.counts;
  located.life = answer.life;
  if (answer.error == EAGAIN) located.origin = Origin::kWritten;
  if (answer.error != 0) return located;
  parts->adopt({answer.parts, answer.reply->device_count}, flags);
  located_devices.count = answer.reply->device_count;
  const bool is_stub = decode_stub(answer.reply->stub, &located.layout) == StubVerdict::kStub;
  if (is_stub && answer.has_sums) {
    parts->adopt_sums({answer.sums, answer.reply->device_count}, located.layout);
  } else if (answer.has_sums) {
    for (const int fd : std::span(answer.sums, answer.reply->device_count)) {
      sys::close(fd);
    }
  }
  if (is_stub && located.layout.geometry.device_count == located_devices.count &&
      parse_directories(answer.directories, answer.directories_length)) {
    located.origin = origin;
  }
  return located;
}

Located locate_on_mount(int fd, Access access, PartFiles* parts) {
  // A descriptor with write access makes this process the writer.
  if (access != Access::kRead) return {};
  return take(ask_server(fd), Origin::kMount, O_RDONLY, parts);
}

Located locate_stub(int fd, const struct stat& st, Access access, PartFiles* parts) {
  Located located;
  struct statx before;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_CTIME, &before) != 0) {
    return located;
  }
  located.stub_ctime = before.stx_ctime;
  const Result<StubVerdict> verdict =
      read_stub(fd, static_cast<uint64_t>(st.st_size), &located.layout);
  if (!verdict || *verdict == StubVerdict::kNotAStub) return {};
  located.origin = Origin::kDamaged;
  located.error = EIO;
  if (*verdict != StubVerdict::kStub) {
    find_path(fd, &stub_path);
    complain(stub_path.view(), describe(*verdict));
    return located;
  }
  const int flags = may_write(access) ? O_RDWR : O_RDONLY;
  find_path(fd, &stub_path);
  const Failure failure = open_stub_parts(fd, &located.layout, flags, parts, &located.bytes_max);
  if (failure) {
    find_path(fd, &stub_path);
    Text<512> reason;
    reason << failure.subject << ": " << failure.reason;
    complain(stub_path.view(),
             failure.subject == stub_path.view() ? failure.reason : reason.view());
    located.error = failure.error;
    return located;
  }
  located.origin = Origin::kStub;
  located.counts = counts_of_volume(fd, located.layout.volume);
  return located;
}

}  // namespace

bool lies_on_fuse(int fd) {
  struct statfs fs;
  return ::fstatfs(fd, &fs) == 0 && fs.f_type == FUSE_SUPER_MAGIC;
}

Located locate(int fd, const struct stat& st, Access access, PartFiles* parts) {
  if (lies_on_fuse(fd)) return locate_on_mount(fd, access, parts);
  return locate_stub(fd, st, access, parts);
}

Located locate_to_write(int fd, PartFiles* parts, Fd* connection, AppendProgress** progress) {
  struct statfs fs;
  if (::fstatfs(fd, &fs) != 0 || fs.f_type != FUSE_SUPER_MAGIC) return {};
  if ((fs.f_flags & ST_SYNCHRONOUS) != 0) return {};  // `-o sync`
  Located located = take(ask_to_write(fd, connection, progress), Origin::kLinked, O_WRONLY, parts);
  located.counter = nullptr;  // this process itself changes it
  return located;
}

uint64_t size_by_parts(int fd, const Layout& layout) {
  Devices roots;
  if (open_devices_of(fd, layout, &located_devices, &roots)) return layout.logical_size;
  Fd places[kDeviceCountMax];
  int parts[kDeviceCountMax];
  for (uint32_t d = 0; d < located_devices.count; ++d) {
    places[d] = find_part(roots.roots()[d], layout.file_id);
    parts[d] = places[d].get();
    if (!layout.is_new) continue;
    if (!places[d] && errno == ENOENT) return 0;  // it was never synced
    PartRecord record;
    const Result<RecordVerdict> verdict =
        read_part_record(parts[d], part_of(roots.roots()[d], layout), &record);
    if (verdict && (*verdict != RecordVerdict::kRecord || record.stub == StubIdentity{})) return 0;
  }
  return look_at_open(layout, {.parts = {parts, located_devices.count},
                               .roots = roots.roots(),
                               .volume = layout.volume,
                               .file_id = layout.file_id,
                               .geometry = layout.geometry})
      .bytes;
}

Fd open_run_directory(int stub_fd) {
  find_path(stub_fd, &stub_path);
  if (read_volume_file(stub_path.view(), &located_devices) != nullptr) return {};
  stub_path.cut(0);
  stub_path << located_devices.directory.view() << "/.graphlane/run";
  return Fd(sys::openat(AT_FDCWD, stub_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

const char* located_device(uint32_t device_index) {
  return located_devices.roots[device_index].c_str();
}

bool is_stub(int fd, const struct stat& st, Layout* layout) {
  if (!S_ISREG(st.st_mode) || st.st_size != kStubSize || lies_on_fuse(fd)) return false;
  const Result<StubVerdict> verdict = read_stub(fd, kStubSize, layout);
  return verdict && *verdict == StubVerdict::kStub;
}

}  // namespace graphlane::shim
