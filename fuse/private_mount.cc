#include "fuse/private_mount.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "fuse/descriptor_socket.h"
#include "fuse/filesystem.h"
#include "fuse/held_signals.h"
#include "fuse/mountpoint.h"
#include "fuse/page_cache_limits.h"
#include "fuse/private_daemon.h"
#include "iomgr/background.h"
#include "iomgr/base/file_io.h"
#include "iomgr/log.h"
#include "iomgr/mount_table.h"
#include "iomgr/volume_files.h"

namespace graphlane {
namespace {

using Volumes = std::vector<std::shared_ptr<const Volume>>;

constexpr int kStatusNotFound = 127;  // as env(1)
constexpr int kStatusNotExecutable = 126;
constexpr int kSignalStatus = 128;
constexpr auto kDaemonGrace = std::chrono::seconds(1);

// --- the command -----------------------------------------------------------

Outcome<void> write_file(const char* path, const std::string& text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file) return os_error(errno, path, "cannot open");
  const Result<void> written = write_full(file.get(), text.data(), text.size());
  if (!written) return os_error(written.error().code, path, "cannot write");
  return {};
}

// A mount namespace, and where that takes a user namespace, one in which we
// remain who we are.
Outcome<void> enter_namespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return make_error(errno, "no private mount: namespaces are not allowed here: {}",
                        std::strerror(errno));
    }
    // The kernel wants setgroups denied before an ordinary user maps a group.
    if (Outcome<void> done = write_file("/proc/self/setgroups", "deny"); !done) return done;
    const std::string own_uid = fmt::format("{0} {0} 1\n", uid);
    const std::string own_gid = fmt::format("{0} {0} 1\n", gid);
    if (Outcome<void> done = write_file("/proc/self/uid_map", own_uid); !done) return done;
    if (Outcome<void> done = write_file("/proc/self/gid_map", own_gid); !done) return done;
  }
  // What the host mounts later still appears; what we mount stays here.
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return os_error(errno, "/", "no private mount: cannot be made private");
  }
  return {};
}

// /dev/fuse has to be opened in the user namespace that mounts.
Outcome<MountedDevice> mount_privately(const Volume& volume, uint64_t max_read_bytes, bool read_only) {
  Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device) return os_error(errno, "/dev/fuse", "no private mount: cannot open");
  const std::string options =
      fmt::format("fd={},rootmode={:o},user_id={},group_id={},max_read={},default_permissions,"
                  "allow_other",
                  device.get(), static_cast<unsigned>(S_IFDIR), ::geteuid(), ::getegid(),
                  max_read_bytes);
  const std::string& root = volume.root();
  const unsigned long flags = MS_NODEV | MS_NOSUID | (read_only ? MS_RDONLY : 0);
  if (::mount(root.c_str(), root.c_str(), kMountType, flags, options.c_str()) != 0) {
    return os_error(errno, root, "no private mount: cannot mount");
  }
  struct statx st;  // without asking the daemon, which does not answer yet
  if (::statx(AT_FDCWD, root.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &st) != 0) {
    return os_error(errno, root, "no private mount: cannot look at it");
  }
  return MountedDevice{.fuse = std::move(device),
                       .device_number = makedev(st.stx_dev_major, st.stx_dev_minor)};
}

// Mounts every volume and hands it to its daemon.
Outcome<void> mount_all(const Volumes& volumes, const MountOptions& options,
                        const std::vector<Fd>& sockets) {
  if (Outcome<void> entered = enter_namespaces(); !entered) return entered;
  for (size_t i = 0; i < volumes.size(); ++i) {
    // The daemon's own estimate of the largest request, made from the same facts.
    const uint64_t max_read_bytes = largest_request(options);
    const auto mounted = mount_privately(*volumes[i], max_read_bytes, options.read_only);
    if (!mounted) return mounted.error();
    if (Result<void> sent = send_mounted(sockets[i].get(), *mounted); !sent) {
      return os_error(sent.error().code, volumes[i]->root(), "no private mount: no daemon");
    }
    const std::optional<Error> report = receive_report(sockets[i].get());
    if (!report) {
      return make_error(EIO, "{}: the daemon of the private mount died", volumes[i]->root());
    }
    if (report->code != 0) return *report;
    raise_page_cache_limits(mounted->device_number, *volumes[i]);
  }
  return {};
}

// Our directory, and what it is relative to, still lie below the mount.
void enter_directory_again(const Volumes& volumes) {
  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof directory) == nullptr) return;
  for (const auto& volume : volumes) {
    if (is_within(directory, volume->root()) && ::chdir(directory) != 0) {
      log_line("{}: {}", directory, std::strerror(errno));
    }
  }
}

[[noreturn]] void run_command(const Volumes& volumes, const MountOptions& options,
                              const std::vector<std::string>& argv, const std::vector<Fd>& sockets,
                              Fd report, const sigset_t& signals) {
  if (const Outcome<void> mounted = mount_all(volumes, options, sockets); !mounted) {
    send_report(report.get(), mounted.error());
    ::_exit(1);
  }
  enter_directory_again(volumes);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  log_line("{}: {}", argv[0], std::strerror(error));
  ::_exit(error == ENOENT ? kStatusNotFound : kStatusNotExecutable);
}

// --- the caller ------------------------------------------------------------

struct Daemons {
  std::vector<pid_t> children;
  std::vector<Fd> sockets;  // the command's ends

  // Daemons that nobody sends a descriptor end when their sockets close.
  void wait(const HeldSignals& signals) {
    sockets.clear();
    const auto deadline = std::chrono::steady_clock::now() + kDaemonGrace;
    for (const pid_t child : children) signals.wait_for(child, deadline);
  }
};

Outcome<void> start_daemons(const Volumes& volumes, const MountOptions& options, Daemons* daemons) {
  for (const auto& volume : volumes) {
    Outcome<SocketPair> pair = make_socket_pair();
    if (!pair) return pair.error();
    const pid_t child = ::fork();
    if (child < 0) return os_error(errno, "daemon", "cannot start");
    if (child == 0) {
      daemons->sockets.clear();  // or an earlier daemon would not see C's end close
      pair->first.reset();
      run_private_daemon(volume, options, std::move(pair->second));
    }
    daemons->children.push_back(child);
    daemons->sockets.push_back(std::move(pair->first));
  }
  return {};
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? kSignalStatus + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Outcome<int> run_in_private_mounts(const Volumes& volumes, const MountOptions& options,
                                   const std::vector<std::string>& argv) {
  if (argv.empty()) return make_error(EINVAL, "no command given");
  const HeldSignals signals;
  Daemons daemons;
  if (Outcome<void> started = start_daemons(volumes, options, &daemons); !started) {
    daemons.wait(signals);
    return started.error();
  }
  int ends[2];  // made after the daemons, which would keep it open
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    daemons.wait(signals);
    return os_error(errno, "pipe", "cannot make");
  }
  Fd reader(ends[0]), writer(ends[1]);
  const pid_t command = ::fork();
  if (command == 0) {
    reader.reset();
    run_command(volumes, options, argv, daemons.sockets, std::move(writer), signals.before());
  }
  writer.reset();
  daemons.sockets.clear();
  // exec closes the pipe without a word.
  const std::optional<Error> failed =
      command < 0 ? std::optional(os_error(errno, argv[0], "cannot start"))
                  : receive_report(reader.get());
  const int status = command < 0 ? 0 : signals.wait_for(command);
  daemons.wait(signals);
  if (failed) return *failed;
  return exit_status(status);
}

}  // namespace graphlane
