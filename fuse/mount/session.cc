#include "fuse/mount/session.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuse/mount/kernel_flags.h"
#include "fuse/mount/stderr_catcher.h"
#include "fuse/ops/operations.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
namespace {

// The fraction of memory for the buffers of all workers.
constexpr uint64_t kWorkersShare = 8;

// Limited by descriptors as well, because a worker's pipes use some.
uint32_t worker_count(const Filesystem& fs) {
  const uint32_t asked = fs.options.thread_count;
  if (asked != 0) return std::max(asked, kMountThreadsMin);
  const uint64_t affordable = std::min(fs.memory_at_start_bytes / kWorkersShare / fs.read_bytes_max,
                                       uint64_t{InodeTable::half_of_descriptors()} / 16);
  return static_cast<uint32_t>(
      std::clamp(affordable, uint64_t{kMountThreadsMin}, uint64_t{kBackgroundMax}));
}

struct FreeArgs {
  ~FreeArgs() { ::fuse_opt_free_args(&args); }
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
};

// "-o fsname=VOL,subtype=graphlane,…", what libfuse passes to the kernel.
bool add_mount_options(const Filesystem& fs, fuse_args* args) {
  const MountOptions& options = fs.options;
  char* list = nullptr;
  bool ok = ::fuse_opt_add_opt_escaped(&list, ("fsname=" + fs.volume->root()).c_str()) == 0;
  const auto add = [&](const std::string& option) {
    ok = ok && ::fuse_opt_add_opt(&list, option.c_str()) == 0;
  };
  add("subtype=graphlane");
  add("default_permissions");
  if (options.allow_other || fs.privileged) add("allow_other");
  add(fmt::format("max_read={}", fs.read_bytes_max));
  for (const std::string& flag : options.kernel_flags) {
    if (find_kernel_flag(flag)->for_libfuse) add(flag);
  }
  ok = ok && ::fuse_opt_add_arg(args, "graphlane") == 0 && ::fuse_opt_add_arg(args, "-o") == 0 &&
       ::fuse_opt_add_arg(args, list) == 0;
  std::free(list);
  return ok;
}

// Sends libfuse's messages to this process's log.
void log_fuse(fuse_log_level level, const char* format, va_list arguments) {
  if (level > FUSE_LOG_WARNING) return;
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::string line = text;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  log_line(line);
}

}  // namespace

void prepare_server_process() {
  raise_descriptor_limit();  // each known file needs one, each open file at least two
  prepare_identities();
  ::fuse_set_log_func(log_fuse);
}

Outcome<std::unique_ptr<Session>> Session::make(Filesystem& fs) {
  FreeArgs owned;
  if (!add_mount_options(fs, &owned.args)) return make_error(ENOMEM, "out of memory");
  std::unique_ptr<Session> session(new Session(fs));
  session->session_ =
      ::fuse_session_new(&owned.args, &operations(), sizeof(fuse_lowlevel_ops), &fs);
  if (session->session_ == nullptr) return make_error(EINVAL, "libfuse refuses the mount options");
  fs.session = session->session_;
  return session;
}

Session::~Session() {
  if (session_ == nullptr) return;
  if (mounted_) ::fuse_session_unmount(session_);
  server_.reset();
  ::fuse_session_destroy(session_);
}

Outcome<void> Session::mount(const std::string& mountpoint) {
  // fusermount3 and libfuse print the reason on stderr; it becomes part of this function's one
  // line.
  StderrCatcher said;
  const int result = ::fuse_session_mount(session_, mountpoint.c_str());
  std::string reason = said.first_line();
  // it came through log_fuse()
  if (reason.starts_with(kLogPrefix)) reason.erase(0, kLogPrefix.size());
  if (result != 0) {
    return make_error(EPERM, "{}: cannot mount: {}", mountpoint,
                      reason.empty() ? "no reason given" : reason);
  }
  mounted_ = true;
  start_server();
  return {};
}

// Without the server, preloaded programs read and write through the mount.
void Session::start_server() {
  auto server = PartServer::start(fs_);
  if (!server) return log_line(server.error().text);
  server_ = std::move(*server);
  fs_.server_name = server_->name();
}

Outcome<void> Session::adopt(Fd device) {
  const std::string name = fmt::format("/dev/fd/{}", device.get());
  if (::fuse_session_mount(session_, name.c_str()) != 0) {
    return make_error(EIO, "{}: libfuse does not take the descriptor", name);
  }
  (void)device.release();  // owned by the session now
  start_server();
  return {};
}

Outcome<void> Session::serve(StopSignals* stop) {
  fs_.connection_fd = ::fuse_session_fd(session_);
  fs_.init_extension.watch(session_);
  fs_.drop_behind.start(session_);
  fs_.invalidation.start();
  fs_.kinds.start();
  if (stop != nullptr) stop->guard(session_);
  const int result = run_workers();
  if (stop != nullptr) stop->release();
  fs_.handles.release_all();
  if (mounted_) ::fuse_session_unmount(session_);
  mounted_ = false;
  // Only after the loop: the server may be closing a client's descriptor of this mount, which sends
  // a request to the loop.
  server_.reset();
  fs_.kinds.stop();
  fs_.drop_behind.stop();
  fs_.invalidation.stop();
  if (result == 0) return {};
  if (result == -EAGAIN) return make_error(EAGAIN, "no thread can be started to serve the mount");
  return make_error(-result, "the connection to the kernel failed: {}", std::strerror(-result));
}

int Session::run_workers() {
  fuse_loop_config* config = ::fuse_loop_cfg_create();
  if (config == nullptr) return -ENOMEM;
  const uint32_t workers = worker_count(fs_);
  ::fuse_loop_cfg_set_max_threads(config, workers);
  ::fuse_loop_cfg_set_idle_threads(config, workers);
  int result = ::fuse_session_loop_mt(session_, config);
  if (result == -1) result = -EAGAIN;  // libfuse could not start a thread, and has logged it
  ::fuse_loop_cfg_destroy(config);
  return result;
}

}  // namespace graphlane::fuse
