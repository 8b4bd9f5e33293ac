// disk_model: a filesystem with one file, `disk`, as slow as a disk with one head, or as an SSD.
//
//   disk_model --store FILE [--bandwidth B/s] [--dilation F] … MOUNTPOINT
//   disk_model --explain < lines of "OFFSET LENGTH [ARRIVAL_MS]"
//
// The file's bytes are those of FILE. A loop device over `disk` is the emulated disk: what orders
// the I/Os is the loop device's own scheduler, and the one thread here serves them as they come.
//
// The extended attribute user.disk_model.speed of `disk`, "model" or "unlimited", turns the model
// off and on: a data set need not be copied in at the disk's speed.

#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/devices/disk_model.h"

namespace disk_model {
namespace {

constexpr fuse_ino_t kDisk = 2;
constexpr char kName[] = "disk";
constexpr char kSpeed[] = "user.disk_model.speed";
constexpr double kAttributeSeconds = 3600;  // nothing here ever changes

struct Disk {
  DiskModel model;
  int store;
  uint64_t size_bytes;
  bool unlimited = false;
  std::vector<char> buffer = {};  // of the read at hand
};

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void sleep_until(double seconds) {
  timespec until{};
  until.tv_sec = static_cast<time_t>(seconds);
  until.tv_nsec = static_cast<long>((seconds - static_cast<double>(until.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

Disk& disk_of(fuse_req_t request) { return *static_cast<Disk*>(fuse_req_userdata(request)); }

// Until the disk would answer an I/O that arrived at the time.
void wait_for_disk(Disk& disk, double arrival_seconds, off_t offset, size_t length) {
  if (disk.unlimited) return;
  sleep_until(disk.model
                  .serve({.arrival_seconds = arrival_seconds,
                          .offset_bytes = static_cast<uint64_t>(offset),
                          .length_bytes = length})
                  .end_seconds);
}

struct stat attributes(const Disk& disk, fuse_ino_t inode) {
  struct stat info{};
  info.st_ino = inode;
  info.st_nlink = 1;
  info.st_mode = inode == kDisk ? S_IFREG | 0600 : S_IFDIR | 0700;
  info.st_size = inode == kDisk ? static_cast<off_t>(disk.size_bytes) : 0;
  return info;
}

void op_init(void*, fuse_conn_info* connection) {
  // The reads of one request of the block layer are to arrive in order.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_ASYNC_READ);
}

void op_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::strcmp(name, kName) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kDisk;
  entry.attr = attributes(disk_of(request), kDisk);
  entry.attr_timeout = entry.entry_timeout = kAttributeSeconds;
  fuse_reply_entry(request, &entry);
}

void op_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  const struct stat info = attributes(disk_of(request), inode);
  fuse_reply_attr(request, &info, kAttributeSeconds);
}

void op_readdir(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  char entry[64];
  const struct stat info = attributes(disk_of(request), kDisk);
  const size_t length = fuse_add_direntry(request, entry, sizeof entry, kName, &info, 1);
  fuse_reply_buf(request, entry, offset == 0 && length <= size ? length : 0);
}

void op_open(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  // Past the page cache: every read of the loop device is one of the disk.
  file->direct_io = 1;
  fuse_reply_open(request, file);
}

void op_read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  const double arrival_seconds = now_seconds();
  Disk& disk = disk_of(request);
  disk.buffer.resize(std::max(disk.buffer.size(), size));
  const ssize_t got = pread(disk.store, disk.buffer.data(), size, offset);
  if (got < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  wait_for_disk(disk, arrival_seconds, offset, size);
  fuse_reply_buf(request, disk.buffer.data(), static_cast<size_t>(got));
}

void op_write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t offset,
              fuse_file_info*) {
  const double arrival_seconds = now_seconds();
  Disk& disk = disk_of(request);
  if (static_cast<uint64_t>(offset) + size > disk.size_bytes) {
    fuse_reply_err(request, ENOSPC);  // a disk does not grow
    return;
  }
  const ssize_t put = pwrite(disk.store, data, size, offset);
  if (put < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  wait_for_disk(disk, arrival_seconds, offset, size);
  fuse_reply_write(request, static_cast<size_t>(put));
}

// Answered writes are in the store already: there is no cache to write out.
void op_fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) { fuse_reply_err(request, 0); }

void op_setxattr(fuse_req_t request, fuse_ino_t inode, const char* name, const char* value,
                 size_t size, int) {
  const std::string speed(value, size);
  if (inode != kDisk || std::strcmp(name, kSpeed) != 0) {
    fuse_reply_err(request, ENOTSUP);
  } else if (speed != "model" && speed != "unlimited") {
    fuse_reply_err(request, EINVAL);
  } else {
    disk_of(request).unlimited = speed == "unlimited";
    fuse_reply_err(request, 0);
  }
}

void op_getxattr(fuse_req_t request, fuse_ino_t inode, const char* name, size_t size) {
  const std::string speed = disk_of(request).unlimited ? "unlimited" : "model";
  if (inode != kDisk || std::strcmp(name, kSpeed) != 0) {
    fuse_reply_err(request, ENODATA);
  } else if (size == 0) {
    fuse_reply_xattr(request, speed.size());
  } else if (size < speed.size()) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, speed.data(), speed.size());
  }
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = op_init;
  ops.lookup = op_lookup;
  ops.getattr = op_getattr;
  ops.readdir = op_readdir;
  ops.open = op_open;
  ops.read = op_read;
  ops.write = op_write;
  ops.fsync = op_fsync;
  ops.setxattr = op_setxattr;
  ops.getxattr = op_getxattr;
  return ops;
}

int fail(const char* what, const std::string& path) {
  std::fprintf(stderr, "disk_model: %s %s: %s\n", what, path.c_str(), std::strerror(errno));
  return 1;
}

// Serves until the filesystem is unmounted.
int serve(const Parameters& parameters, const std::string& store, const std::string& mountpoint) {
  const int fd = open(store.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) return fail("open", store);
  Disk disk{.model = DiskModel(parameters),
            .store = fd,
            .size_bytes = static_cast<uint64_t>(info.st_size)};
  const std::string options = "fsname=" + store + ",subtype=disk_model";
  const char* words[] = {"disk_model", "-o", options.c_str()};
  fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(words));
  const fuse_lowlevel_ops ops = operations();
  const std::unique_ptr<fuse_session, void (*)(fuse_session*)> session(
      fuse_session_new(&args, &ops, sizeof ops, &disk), fuse_session_destroy);
  fuse_opt_free_args(&args);
  if (!session || fuse_session_mount(session.get(), mountpoint.c_str()) != 0) {
    return 1;  // libfuse has said why
  }
  // A disk must answer while the kernel frees memory by writing to it.
  prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 1);
  fuse_set_signal_handlers(session.get());
  fuse_daemonize(0);
  const int status = fuse_session_loop(session.get());
  fuse_remove_signal_handlers(session.get());
  fuse_session_unmount(session.get());
  return status == 0 ? 0 : 1;
}

// Prints the model's service of each I/O on stdin. An I/O without an arrival time comes when the
// one before it has ended.
int explain(const Parameters& parameters) {
  DiskModel model(parameters);
  double end_seconds = 0;
  std::puts("offset length seek_ms rotation_ms transfer_ms end_ms");
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    Io io{.arrival_seconds = end_seconds, .offset_bytes = 0, .length_bytes = 0};
    if (!(words >> io.offset_bytes >> io.length_bytes)) {
      std::fprintf(stderr, "disk_model: '%s': not OFFSET LENGTH [ARRIVAL_MS]\n", line.c_str());
      return 2;
    }
    if (double arrival_ms = 0; words >> arrival_ms) io.arrival_seconds = arrival_ms / 1000;
    const Service service = model.serve(io);
    end_seconds = service.end_seconds;
    std::printf("%" PRIu64 " %" PRIu64 " %.3f %.3f %.3f %.3f\n", io.offset_bytes, io.length_bytes,
                service.seek_seconds * 1000, service.rotation_seconds * 1000,
                service.transfer_seconds * 1000, end_seconds * 1000);
  }
  return 0;
}

int run(int argc, char** argv) {
  Parameters p;
  std::string store, mountpoint;
  bool dry = false, flash = false;
  CLI::App app("A filesystem with one file, as slow as a disk with one head, or as an SSD");
  app.option_defaults()->always_capture_default();
  app.add_option("--bandwidth", p.bandwidth_bytes_per_second, "bytes/s")
      ->check(CLI::PositiveNumber);
  app.add_option("--seek-min", p.seek_seconds_min, "s")->check(CLI::NonNegativeNumber);
  app.add_option("--seek-avg", p.seek_seconds_avg, "s")->check(CLI::NonNegativeNumber);
  app.add_option("--seek-max", p.seek_seconds_max, "s")->check(CLI::NonNegativeNumber);
  app.add_option("--rpm", p.rpm, "revolutions a minute")->check(CLI::PositiveNumber);
  app.add_option("--stroke", p.stroke_bytes, "bytes from the outermost track to the innermost")
      ->check(CLI::PositiveNumber);
  app.add_option("--buffer", p.buffer_bytes, "bytes that the disk reads on")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--flash", flash, "an SSD: no head, no seeks");
  app.add_option("--iops", p.ios_per_second, "I/Os/s at most")->check(CLI::PositiveNumber);
  app.add_option("--dilation", p.dilation, "slower by this factor")->check(CLI::PositiveNumber);
  app.add_option("--store", store, "the file that holds the bytes");
  app.add_flag("--explain", dry, "serve nothing; print what I/Os on stdin would take");
  app.add_option("mountpoint", mountpoint, "a directory");
  CLI11_PARSE(app, argc, argv);
  p.has_head = !flash;
  if (dry) return explain(p);
  if (!store.empty() && !mountpoint.empty()) return serve(p, store, mountpoint);
  std::fputs("disk_model: give --store FILE MOUNTPOINT, or --explain\n", stderr);
  return 2;
}

}  // namespace
}  // namespace disk_model

int main(int argc, char** argv) { return disk_model::run(argc, argv); }
