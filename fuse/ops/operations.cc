#include "fuse/ops/operations.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <new>

#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
namespace {

// After a lack of descriptors, closes those that are kept for later. True: try once more.
bool can_retry(Filesystem& fs, int error) {
  if (error != EMFILE && error != ENFILE) return false;
  if (fs.live.close_idle()) return true;
  static std::atomic<int64_t> told_s{-(int64_t{1} << 40)};
  constexpr int64_t kQuietSeconds = 60;
  const int64_t now_s = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::steady_clock::now().time_since_epoch())
                            .count();
  int64_t before_s = told_s.load(std::memory_order_relaxed);
  if (now_s - kQuietSeconds >= before_s && told_s.compare_exchange_strong(before_s, now_s)) {
    log_line("{}: out of descriptors: {}; raise the limit of the mount's daemon (ulimit -Hn)",
             fs.volume->root(),
             error == ENFILE ? "the system has no more" : "all that it may have are in use");
  }
  return false;
}

// The one place between libfuse and the operations.
template <auto kOperation>
struct Edge;

template <class... Args, int (*kOperation)(Filesystem&, fuse_req_t, Args...)>
struct Edge<kOperation> {
  static void call(fuse_req_t req, Args... args) {
    reply::after_request();
    int error;
    try {
      Filesystem& fs = *static_cast<Filesystem*>(::fuse_req_userdata(req));
      error = kOperation(fs, req, args...);
      if (can_retry(fs, error)) error = kOperation(fs, req, args...);
    } catch (const std::bad_alloc&) {
      error = ENOMEM;
    } catch (...) {
      error = EIO;
    }
    if (error != 0) reply::err(req, error);
  }
};

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops table{};
  table.init = op::init;
  table.lookup = Edge<op::lookup>::call;
  table.forget = Edge<op::forget>::call;
  table.forget_multi = Edge<op::forget_multi>::call;
  table.readlink = Edge<op::readlink>::call;
  table.statfs = Edge<op::statfs>::call;
  table.getattr = Edge<op::getattr>::call;
  table.setattr = Edge<op::setattr>::call;
  table.mkdir = Edge<op::mkdir>::call;
  table.mknod = Edge<op::mknod>::call;
  table.symlink = Edge<op::symlink>::call;
  table.link = Edge<op::link>::call;
  table.unlink = Edge<op::unlink>::call;
  table.rmdir = Edge<op::rmdir>::call;
  table.rename = Edge<op::rename>::call;
  table.create = Edge<op::create>::call;
  table.open = Edge<op::open>::call;
  table.flush = Edge<op::flush>::call;
  table.fsync = Edge<op::fsync>::call;
  table.release = Edge<op::release>::call;
  table.read = Edge<op::read>::call;
  table.lseek = Edge<op::lseek>::call;
  table.write_buf = Edge<op::write_buf>::call;
  table.fallocate = Edge<op::fallocate>::call;
  table.copy_file_range = Edge<op::copy_file_range>::call;
  table.opendir = Edge<op::opendir>::call;
  table.readdir = Edge<op::readdir>::call;
  table.readdirplus = Edge<op::readdirplus>::call;
  table.fsyncdir = Edge<op::fsyncdir>::call;
  table.releasedir = Edge<op::releasedir>::call;
  table.getxattr = Edge<op::getxattr>::call;
  table.setxattr = Edge<op::setxattr>::call;
  table.listxattr = Edge<op::listxattr>::call;
  table.removexattr = Edge<op::removexattr>::call;
  table.ioctl = Edge<op::ioctl>::call;
  // Left out on purpose: getlk, setlk and flock (the kernel keeps local locks itself), and access
  // (default_permissions answers it).
  return table;
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops table = make_operations();
  return table;
}

}  // namespace graphlane::fuse
