#include "fuse/mount/private_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "fuse/mount/descriptor_socket.h"
#include "fuse/mount/session.h"
#include "fuse/ops/filesystem.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"
#include "iomgr/base/sys.h"

namespace graphlane::fuse {
namespace {

// Releases stderr when P has ended. A reader of a pipe that was P's stderr must see its end,
// although processes that the command left behind still need this daemon.
//
// No libc call here is a cancellation point: libfuse cancels its threads when the mount ends, and one
// that is cancelled in the middle of a signal handler waits for itself.
int messages = STDERR_FILENO;
void let_stderr_go(int) {
  const int saved_errno = errno;
  const Fd null(sys::openat(AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC));
  if (null) (void)::syscall(SYS_dup3, null.get(), messages, O_CLOEXEC);
  errno = saved_errno;
}

void leave_the_terminal() {
  ::setsid();  // the terminal's signals go to the command
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::signal(SIGUSR1, let_stderr_go);
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  // When the mount's last process ends, libfuse reports a truncated request by perror(), which is
  // no news for the command's user.
  const int own = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (own >= 0) {
    messages = own;
    log_to(own);
    ::dup2(null, STDERR_FILENO);
  }
  ::close(null);
  (void)!::chdir("/");  // keep no directory busy
}

// Waits for the command's /dev/fuse descriptor and serves it. Reports through `socket` whether it
// does.
Outcome<void> serve_received(std::shared_ptr<const Volume> volume, const MountOptions& options,
                             Fd& socket) {
  prepare_server_process();
  Outcome<std::unique_ptr<Filesystem>> fs = Filesystem::start(std::move(volume), options);
  if (!fs) return fs.error();
  Outcome<std::unique_ptr<Session>> session = Session::make(**fs);
  if (!session) return session.error();
  Result<MountedDevice> mounted = receive_mounted(socket.get());
  if (!mounted) return make_error(mounted.error().code, "no /dev/fuse came");  // C has given up
  Outcome<void> adopted = (*session)->adopt(std::move(mounted->fuse));
  if (!adopted) return adopted;
  send_report(socket.get(), {.code = 0, .text = ""});
  socket.reset();
  const Outcome<void> served = (*session)->serve(nullptr);
  // All files are closed. The kernel frees threads, queues and memory faster than this process, and
  // `graphlane run` waits for its end.
  if (served) ::_exit(0);
  return served;
}

}  // namespace

void run_private_daemon(std::shared_ptr<const Volume> volume, const MountOptions& options,
                        Fd socket) {
  leave_the_terminal();
  const Outcome<void> served = serve_received(std::move(volume), options, socket);
  if (!served && socket) send_report(socket.get(), served.error());
  ::_exit(served ? 0 : 1);
}

}  // namespace graphlane::fuse
