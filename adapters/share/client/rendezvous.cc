#include "adapters/share/client/rendezvous.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "adapters/share/wire/message_socket.h"

extern char** environ;

namespace graphlane::share {
namespace {

constexpr int kBacklog = 1024;
constexpr int kConnectTries = 500;  // 10 ms apart, while the coordinator's queue is full

struct Address {
  Address(uid_t user, const FileIdentity& file) {
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("graphlane-share-{}-{:x}-{:x}-{:x}", user, file.device,
                                         file.inode, static_cast<uint64_t>(file.born_ns));
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address = {};
  socklen_t length = 0;
};

Outcome<Fd> make_socket() {
  Fd socket(static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
  if (!socket) return os_error(errno, "socket", "cannot make");
  enlarge_buffers(socket.get());
  return socket;
}

enum class Found { kCoordinator, kNone, kUntrusted };

// Connects without blocking: with a full queue connect() would wait for the listener.
Outcome<Found> try_connect(uid_t user, const FileIdentity& file, Fd& connection) {
  const Address address(user, file);
  auto socket = make_socket();
  if (!socket) return socket.error();
  ::fcntl(socket->get(), F_SETFL, O_NONBLOCK);
  for (int i = 0; ::connect(socket->get(), address.get(), address.length) != 0; ++i) {
    if (errno == ECONNREFUSED) return Found::kNone;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return os_error(errno, "coordinator", "cannot connect");
    if (i == kConnectTries) return Found::kUntrusted;
    ::poll(nullptr, 0, 10);
  }
  ::fcntl(socket->get(), F_SETFL, 0);
  const Result<uid_t> listener = peer_user(socket->get());
  if (!listener || *listener != user) return Found::kUntrusted;
  connection = std::move(*socket);
  return Found::kCoordinator;
}

std::string directory_of_this_code() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&directory_of_this_code), &info) == 0) return {};
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).parent_path();
}

// Any user can put a program beside ours in a shared directory such as /tmp. A trusted one is not
// world-writable, and belongs to root, this user or this program's owner.
bool is_trusted(const std::string& program) {
  struct stat st, ours;
  if (::stat(program.c_str(), &st) != 0 || (st.st_mode & S_IWOTH) != 0) return false;
  const bool is_ours = st.st_uid == 0 || st.st_uid == ::geteuid();
  return is_ours || (::stat("/proc/self/exe", &ours) == 0 && ours.st_uid == st.st_uid);
}

Outcome<std::string> find_program() {
  if (const char* named = ::secure_getenv("GRAPHLANE_SHARE_COORDINATOR")) return std::string(named);
  std::error_code ignored;
  const std::string here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::string library = directory_of_this_code();
  for (const std::string& path :
       {here + "/" + kCoordinatorName, here + "/../bin/" + kCoordinatorName,
        library + "/graphlane/" + kCoordinatorName, library + "/../bin/" + kCoordinatorName,
        std::string(GRAPHLANE_SHARE_LIBDIR "/graphlane/") + kCoordinatorName}) {
    if (::access(path.c_str(), X_OK) == 0 && is_trusted(path)) return path;
  }
  const char* const search = ::secure_getenv("PATH");
  std::istringstream directories(search == nullptr ? "" : search);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string path = directory + "/" + kCoordinatorName;
    if (path.starts_with('/') && ::access(path.c_str(), X_OK) == 0 && is_trusted(path)) return path;
  }
  return make_error(ENOENT, "{} is not installed: name it in GRAPHLANE_SHARE_COORDINATOR",
                    kCoordinatorName);
}

// Starts the program with `socket` as descriptor 3 and waits for its launcher. The coordinator
// itself is a daemon and outlives this process.
Outcome<void> start(const char* how, const Fd& socket, const RendezvousOptions& options) {
  auto program = find_program();
  if (!program) return program.error();
  std::vector<std::string> words{*program, how};
  if (options.budget_bytes > 0) words.push_back(fmt::format("--budget={}", options.budget_bytes));
  if (options.idle_ms > 0) {
    words.push_back(fmt::format("--idle-ms={}", std::min<uint64_t>(options.idle_ms, INT64_MAX)));
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, socket.get(), 3);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_adddup2(&actions, 0, 1);
  if (const char* log = ::secure_getenv("GRAPHLANE_SHARE_LOG")) {
    ::posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  } else {
    ::posix_spawn_file_actions_adddup2(&actions, 0, 2);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  // A session of its own and no blocked signals: signals to this program do not reach it.
  posix_spawnattr_t attributes;
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  pid_t launcher;
  const int failed =
      ::posix_spawn(&launcher, program->c_str(), &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return os_error(failed, *program, "cannot start");
  int status = 0;
  pid_t waited;
  do waited = ::waitpid(launcher, &status, 0);
  while (waited < 0 && errno == EINTR);
  // If this program ignores SIGCHLD, waitpid() fails with ECHILD and gives no status.
  if (waited == launcher && status != 0) {
    return make_error(ECHILD, "{}: did not start; GRAPHLANE_SHARE_LOG=FILE tells why", *program);
  }
  return {};
}

Outcome<Fd> start_private(const RendezvousOptions& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_error(errno, "socket", "cannot make");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  enlarge_buffers(ours.get());
  if (Outcome<void> started = start("--connection", theirs, options); !started) {
    return started.error();
  }
  return ours;
}

}  // namespace

Outcome<Fd> listen_for_jobs(const FileIdentity& first_file) {
  const Address address(::geteuid(), first_file);
  auto listener = make_socket();
  if (!listener) return listener.error();
  if (::bind(listener->get(), address.get(), address.length) != 0) {
    return os_error(errno, "coordinator", "cannot bind its socket");
  }
  if (::listen(listener->get(), kBacklog) != 0) {
    return os_error(errno, "coordinator", "cannot listen");
  }
  return listener;
}

Outcome<Fd> connect_or_start(const RendezvousOptions& options) {
  const uid_t self = ::geteuid();
  std::vector<uid_t> trusted{0, options.owner, self};
  Fd connection;
  for (size_t i = 0; i < trusted.size(); ++i) {
    if (std::find(trusted.begin(), trusted.begin() + static_cast<ptrdiff_t>(i), trusted[i]) !=
        trusted.begin() + static_cast<ptrdiff_t>(i)) {
      continue;
    }
    auto found = try_connect(trusted[i], options.first_file, connection);
    if (!found) return found.error();
    if (*found == Found::kCoordinator) return connection;
    if (trusted[i] == self && *found == Found::kUntrusted) return start_private(options);
  }

  auto listener = listen_for_jobs(options.first_file);
  // Another job has bound the name and will listen, or another user holds it and never will.
  if (!listener && listener.error().code == EADDRINUSE) {
    if (options.is_last_try) return start_private(options);
    return Error{EAGAIN, "another job starts the coordinator"};
  }
  if (!listener) return listener.error();
  if (Outcome<void> started = start("--listener", *listener, options); !started) {
    return started.error();
  }
  auto found = try_connect(self, options.first_file, connection);
  if (!found) return found.error();
  if (*found != Found::kCoordinator) return Error{ECONNRESET, "the coordinator ended at once"};
  return connection;
}

}  // namespace graphlane::share
