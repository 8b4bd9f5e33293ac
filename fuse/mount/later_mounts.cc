#include "fuse/mount/later_mounts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "fuse/mount/private_daemon.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/passed_fds.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"
#include "iomgr/server/mount_request.h"
#include "iomgr/server/server_socket.h"
#include "iomgr/volume/mount_table.h"

namespace graphlane::fuse {
namespace {

constexpr timeval kProgramPatience{.tv_sec = 5, .tv_usec = 0};

// Receives descriptors of the command's namespaces. False: the command has given up.
bool receive_namespace(int socket, PrivateNamespace* space) {
  char has_users = 0;
  iovec piece{.iov_base = &has_users, .iov_len = 1};
  PassedFds<2> passed;
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  passed.make_room(&message);
  ssize_t received;
  do received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received != 1) return false;
  int count = 0;
  for_each_passed(message,
                  [&](int fd) { (count++ == 0 ? space->users : space->mounts).reset(fd); });
  space->has_users = has_users != 0;
  return count == 2;
}

bool receive_question(int connection, LaterQuestion* question) {
  ucred peer;
  if (!find_peer(connection, &peer) || peer.uid != ::geteuid()) return false;
  MountRequest request;
  const Result<size_t> head = read_full(connection, &request, sizeof request);
  if (!head || *head != sizeof request || request.magic != MountRequest::kMagic ||
      request.text_bytes > MountRequest::kTextMax) {
    return false;
  }
  std::string text(request.text_bytes, '\0');
  const Result<size_t> got = read_full(connection, text.data(), text.size());
  if (!got || *got != text.size()) return false;
  if (request.kind == MountRequest::kPath) {
    question->path = text;
    return true;
  }
  std::vector<std::string> strings;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    strings.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (strings.empty() || strings.size() < 1 + size_t{request.word_count}) return false;
  question->program = strings[0];
  const auto environment = strings.begin() + 1 + static_cast<ptrdiff_t>(request.word_count);
  question->words.assign(strings.begin() + 1, environment);
  question->environment.assign(environment, strings.end());
  std::error_code error;
  question->directory =
      std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", peer.pid), error).string();
  return !error;
}

// Detaches from the terminal, which belongs to the command.
void leave_to_the_command(pid_t caller) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != caller) ::_exit(1);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_IGN);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::close(null);
}

class Supervisor {
 public:
  Supervisor(Fd listening, PrivateNamespace space, std::vector<std::string> mounted,
             MountOptions options, FindLater find)
      : listening_(std::move(listening)),
        space_(std::move(space)),
        mounted_(std::move(mounted)),
        options_(std::move(options)),
        find_(std::move(find)) {}

  [[noreturn]] void run() {
    for (;;) {
      pollfd polled{listening_.get(), POLLIN, 0};
      if (::poll(&polled, 1, -1) < 0 && errno != EINTR) ::_exit(1);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // daemons that have ended
      const Fd connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection) answer(connection.get());
    }
  }

 private:
  void answer(int connection) {
    set_patience(connection, kProgramPatience);
    LaterQuestion question;
    if (!receive_question(connection, &question)) return;
    MountReply reply;
    for (const auto& volume : find_(question)) {
      if (const Outcome<void> done = mount(volume); !done) {
        log_line(done.error().text);
        reply.error = done.error().code;
      }
    }
    (void)!::send(connection, &reply, sizeof reply, MSG_NOSIGNAL);
  }

  Outcome<void> mount(const std::shared_ptr<const Volume>& volume) {
    const bool known =
        std::find(mounted_.begin(), mounted_.end(), volume->root()) != mounted_.end();
    if (known || find_volume_mount(volume->root())) return {};
    Outcome<SocketPair> pair = make_socket_pair();
    if (!pair) return pair.error();
    const pid_t daemon = ::fork();
    if (daemon < 0) return os_error(errno, "daemon", "cannot start");
    if (daemon == 0) {
      pair->first.reset();
      listening_.reset();
      space_ = {};
      run_private_daemon(volume, options_, std::move(pair->second));
    }
    pair->second.reset();
    Outcome<void> done = mount_by_helper(*volume, pair->first);
    if (done) mounted_.push_back(volume->root());
    return done;
  }

  // This process and its daemons stay outside the command's namespaces.
  Outcome<void> mount_by_helper(const Volume& volume, const Fd& socket) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "pipe", "cannot make");
    Fd reader(ends[0]), writer(ends[1]);
    const pid_t helper = ::fork();
    if (helper < 0) return os_error(errno, "helper", "cannot start");
    if (helper == 0) {
      Outcome<void> done = space_.join();
      if (done) done = space_.mount(volume, options_, socket.get());
      send_report(writer.get(), done ? Error{0, ""} : done.error());
      ::_exit(0);
    }
    writer.reset();
    const std::optional<Error> report = receive_report(reader.get());
    while (::waitpid(helper, nullptr, 0) < 0 && errno == EINTR) continue;
    if (!report) return make_error(EIO, "{}: no private mount: the helper died", volume.root());
    if (report->code != 0) return *report;
    return {};
  }

  Fd listening_;
  PrivateNamespace space_;
  std::vector<std::string> mounted_;
  const MountOptions options_;
  const FindLater find_;
};

}  // namespace

LaterMounts LaterMounts::start(const std::vector<std::string>& mounted, const MountOptions& options,
                               const FindLater& find) {
  LaterMounts made;
  if (!find) return made;
  const std::string name = fmt::format("graphlane-{}", UuidText(Uuid::random()).view());
  Outcome<SocketPair> pair = make_socket_pair();
  Fd listening = ServerAddress::of_mount(name.c_str()).listen();
  if (!pair || !listening) return made;
  const pid_t caller = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    pair->first.reset();
    leave_to_the_command(caller);
    PrivateNamespace space;
    if (!receive_namespace(pair->second.get(), &space)) ::_exit(0);
    pair->second.reset();
    Supervisor(std::move(listening), std::move(space), mounted, options, find).run();
  }
  if (child < 0) return made;
  made.process_ = child;
  made.socket_ = std::move(pair->first);
  ::setenv(kMounterVariable, name.c_str(), 1);
  return made;
}

void LaterMounts::tell(const PrivateNamespace& space) const {
  if (!socket_) return;
  char has_users = space.has_users ? 1 : 0;
  iovec piece{.iov_base = &has_users, .iov_len = 1};
  const int fds[] = {space.users.get(), space.mounts.get()};
  PassedFds<2> passed;
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  passed.attach(fds, &message);
  (void)!::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
}

void LaterMounts::end() {
  socket_.reset();
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
}

}  // namespace graphlane::fuse
