#include "fuse/mount/private_mount.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "fuse/mount/descriptor_socket.h"
#include "fuse/mount/held_signals.h"
#include "fuse/mount/private_daemon.h"
#include "fuse/mount/private_namespace.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"
#include "iomgr/server/mount_request.h"

namespace graphlane::fuse {
namespace {

using Volumes = std::vector<std::shared_ptr<const Volume>>;

constexpr int kStatusNotFound = 127;  // as env(1)
constexpr int kStatusNotExecutable = 126;
constexpr int kSignalStatus = 128;
constexpr auto kDaemonGrace = std::chrono::seconds(1);

struct Daemons {
  std::vector<pid_t> children;
  std::vector<Fd> sockets;  // the command's ends
  LaterMounts later;

  // Ends and waits for all daemons. One without a mount ends when its socket closes.
  void wait(const HeldSignals& signals) {
    sockets.clear();
    later.end();  // it holds the command's namespaces
    const auto deadline = std::chrono::steady_clock::now() + kDaemonGrace;
    for (const pid_t child : children) signals.wait_for(child, deadline);
  }
};

// --- the command -----------------------------------------------------------

// Mounts every volume and hands each mount to its daemon.
Outcome<PrivateNamespace> mount_all(const Volumes& volumes, const MountOptions& options,
                                    const std::vector<Fd>& sockets) {
  Outcome<PrivateNamespace> space = PrivateNamespace::enter();
  if (!space) return space;
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (Outcome<void> done = space->mount(*volumes[i], options, sockets[i].get()); !done) {
      return done.error();
    }
  }
  return space;
}

[[noreturn]] void run_command(const Volumes& volumes, const MountOptions& options,
                              const PrivateCommand& command, const Daemons& daemons, Fd report,
                              const sigset_t& signals) {
  const Outcome<PrivateNamespace> space = mount_all(volumes, options, daemons.sockets);
  if (!space) {
    send_report(report.get(), space.error());
    ::_exit(1);
  }
  daemons.later.tell(*space);
  renew_descriptors(volumes);
  std::vector<char*> words;
  for (const std::string& word : command.argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvp(command.program.empty() ? words[0] : command.program.c_str(), words.data());
  const int error = errno;
  log_line("{}: {}", command.argv[0], std::strerror(error));
  ::_exit(error == ENOENT ? kStatusNotFound : kStatusNotExecutable);
}

// --- the caller ------------------------------------------------------------

Outcome<void> start_daemons(const Volumes& volumes, const MountOptions& options, Daemons* daemons) {
  for (const auto& volume : volumes) {
    Outcome<SocketPair> pair = make_socket_pair();
    if (!pair) return pair.error();
    const pid_t child = ::fork();
    if (child < 0) return os_error(errno, "daemon", "cannot start");
    if (child == 0) {
      daemons->sockets.clear();  // else an earlier daemon would not see C's end close
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

Outcome<int> run_in_private_mounts(const Volumes& volumes, const MountOptions& asked,
                                   const PrivateCommand& command, const FindLater& find) {
  if (command.argv.empty()) return make_error(EINVAL, "no command given");
  MountOptions options = asked;
  options.of_one_command = true;
  // the command may read nothing, and must not wait for them
  options.lanes.at_first_request = true;
  options.lanes.tell_failure = [](const std::string& line) { log_line(line); };
  const HeldSignals signals;
  Daemons daemons;
  std::vector<std::string> roots;
  for (const auto& volume : volumes) roots.push_back(volume->root());
  daemons.later = LaterMounts::start(roots, options, find);
  if (Outcome<void> started = start_daemons(volumes, options, &daemons); !started) {
    daemons.wait(signals);
    return started.error();
  }
  int ends[2];  // made after the daemons, because they would keep it open
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    daemons.wait(signals);
    return os_error(errno, "pipe", "cannot make");
  }
  Fd reader(ends[0]), writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    reader.reset();
    run_command(volumes, options, command, daemons, std::move(writer), signals.before());
  }
  writer.reset();
  daemons.sockets.clear();
  daemons.later.close_sockets();
  // A successful exec closes the pipe without a report.
  const std::optional<Error> failed =
      child < 0 ? std::optional(os_error(errno, command.argv[0], "cannot start"))
                : receive_report(reader.get());
  const int status = child < 0 ? 0 : signals.wait_for(child);
  daemons.wait(signals);
  if (failed) {
    ::unsetenv(kMounterVariable);
    return *failed;
  }
  return exit_status(status);
}

}  // namespace graphlane::fuse
