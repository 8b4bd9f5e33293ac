#include "iomgr/server/volume_server.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"
#include "iomgr/base/process/signal_mask.h"
#include "iomgr/server/server_socket.h"
#include "iomgr/server/stats.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/sum/tell.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

constexpr int kEndingPatienceMs = 30'000;
constexpr size_t kStatsMax = 1 << 16;
// How long a server without users takes to end.
constexpr auto kEndingTime = std::chrono::seconds(2);
// Most idle servers end within the first intervals.
constexpr auto kFirstLookInterval = std::chrono::microseconds(100);
constexpr auto kLastLookInterval = std::chrono::milliseconds(2);

// The process that serves; 0: none, or unknown.
pid_t server_process(int run_directory) {
  const Fd connection = ServerAddress::of_volume(run_directory).connect(kVolumeServerPatience);
  ucred server{};
  return connection && find_peer(connection.get(), &server) ? server.pid : 0;
}

Error served_already(const std::string& root, int run_directory) {
  if (const pid_t process = server_process(run_directory); process != 0) {
    return make_error(EBUSY, "{0}: served already, by process {1} (graphlane serve --stop {0})",
                      root, process);
  }
  return make_error(EBUSY, "{}: another server is just starting or ending", root);
}

// Whether the shown file lies on that filesystem; does not query the filesystem.
bool lies_on(int fd, dev_t device, struct statx* seen) {
  return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, seen) == 0 &&
         makedev(seen->stx_dev_major, seen->stx_dev_minor) == device;
}

bool is_as_it_was(const StripedFile& file, const SharedCache::Content& content) {
  struct stat stub;
  return ::fstat(file.held_stub(), &stub) == 0 && ctime_ns_of(stub) == content.time_ns &&
         !is_stub_locked(file.held_stub(), StubLock::kChange, F_WRLCK);
}

Fd open_directory(const Volume& volume, const char* name) {
  return Fd(::openat(volume.root_fd(), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Takes an flock(). False: another process holds a conflicting lock.
bool lock_now(const Fd& file, int operation) {
  return ::flock(file.get(), operation | LOCK_NB) == 0;
}

// Whether the condition became true in time.
bool wait_for_end(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + kEndingTime;
  for (auto pause = kFirstLookInterval; !is_so(); pause *= 2) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    pause = std::min<std::chrono::microseconds>(pause, kLastLookInterval);
    std::this_thread::sleep_for(pause);
  }
  return true;
}

// Ends this process once no process has a shared lock on the directory.
void end_with_last_user(Fd users) {
  std::thread([held = std::move(users)] {
    while (::flock(held.get(), LOCK_EX) != 0 && errno == EINTR) continue;
    ::kill(::getpid(), SIGTERM);
    // keeps the lock until the exit: a new user waits, and starts another server
    for (;;) ::pause();
  }).detach();
}

Outcome<void> serve_until_told(const std::shared_ptr<const Volume>& volume,
                               const ServerOptions& options, const StopMask& stop,
                               const std::function<void()>& on_ready) {
  raise_descriptor_limit();
  reads_are_verified = options.verifies_reads.value_or(volume->verifies_reads());
  log_sum_failures();
  const Outcome<std::unique_ptr<VolumeServer>> server = VolumeServer::start(volume, options);
  if (!server) return server.error();
  on_ready();
  int taken = 0;
  while (::sigwait(&stop.signals(), &taken) != 0) continue;
  return {};
}

}  // namespace

Outcome<std::unique_ptr<VolumeServer>> VolumeServer::start(std::shared_ptr<const Volume> volume,
                                                           const ServerOptions& options) {
  std::unique_ptr<VolumeServer> made(new VolumeServer(std::move(volume)));
  Outcome<Fd> listening = made->listen();
  if (!listening) return listening.error();
  Outcome<std::unique_ptr<Lanes>> lanes = Lanes::start(*made->volume_, options.lanes);
  if (!lanes) return lanes.error();
  made->lanes_ = std::move(*lanes);
  made->shared_.emplace(
      options.shared(),
      [raw = made.get()](const PartRequest& request) { return raw->lanes_->run(request); },
      is_as_it_was);
  made->late_closer_.emplace(made->volume_);
  auto server = FileServer::start(std::move(*listening), *made, &*made->shared_);
  if (!server) return server.error();
  made->server_ = std::move(*server);
  return made;
}

VolumeServer::~VolumeServer() {
  if (listens_) (void)::unlinkat(run_directory_.get(), kServerSocketName, 0);
}

Outcome<Fd> VolumeServer::listen() {
  const std::string path = volume_->root() + "/" + kRunDirectory;
  // a file like those that clients show, as a directory may have another device
  struct stat record;
  if (::fstatat(volume_->root_fd(), kVolumeJson, &record, 0) != 0) {
    return os_error(errno, volume_->root() + "/" + kVolumeJson, "cannot read");
  }
  device_ = record.st_dev;
  struct stat root;
  if (::fstat(volume_->root_fd(), &root) == 0) root_device_ = root.st_dev;
  run_directory_ = open_directory(*volume_, kRunDirectory);
  if (!run_directory_) {
    return control_error(volume_->root(), path, errno, "cannot serve the volume");
  }
  if (::flock(run_directory_.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK
               ? served_already(volume_->root(), run_directory_.get())
               : control_error(volume_->root(), path, errno, "cannot serve the volume");
  }
  (void)::unlinkat(run_directory_.get(), kServerSocketName, 0);  // left by a dead server
  Fd listening = ServerAddress::of_volume(run_directory_.get()).listen();
  if (!listening) return control_error(volume_->root(), path, errno, "cannot serve the volume");
  listens_ = true;
  // Any user may connect: the descriptor that a client shows decides what it may read.
  if (::fchmodat(run_directory_.get(), kServerSocketName, 0666, 0) != 0) {
    return os_error(errno, path + "/" + kServerSocketName, "cannot set the mode");
  }
  return listening;
}

FileServer::Answer VolumeServer::answer(const FileServer::Question& question) {
  if (!is_readable(question.fd)) return FileServer::refusal(EACCES);
  if (question.kind == ShareRequest::kMagic) return answer_sharer(question.fd);
  if (question.kind == StatsRequest::kMagic) return answer_stats(question.fd);
  if (question.kind == CountsRequest::kMagic) return answer_counter(question);
  if (question.kind == ChangeNotice::kMagic) return answer_changer(question);
  return FileServer::refusal(EOPNOTSUPP);
}

FileServer::Answer VolumeServer::answer_sharer(int file_fd) const {
  struct statx seen;
  if (!lies_on(file_fd, device_, &seen) || !S_ISREG(seen.stx_mode)) {
    return FileServer::refusal(EXDEV);
  }
  // A separate open file description, so that the client's locks stay apart. Non-blocking, because
  // the file's owner may hold a lease.
  Fd stub = reopen(file_fd, O_RDONLY | O_NONBLOCK);
  struct stat st;
  if (!stub || ::fstat(stub.get(), &st) != 0) return FileServer::refusal(errno);
  Layout layout;
  const Result<StubVerdict> verdict =
      read_stub(stub.get(), static_cast<uint64_t>(st.st_size), &layout);
  if (!verdict || *verdict != StubVerdict::kStub || st.st_nlink == 0) {
    return FileServer::refusal(ESTALE);
  }
  if (layout.state != FileState::kClosed || may_change_unseen(stub.get(), ctime_ns_of(st))) {
    return FileServer::refusal(EAGAIN);
  }
  auto file = StripedFile::open(*volume_, stub.get(), layout, "");
  if (!file) return FileServer::refusal(file.error().code);  // the client has reported the reason
  if ((*file)->layout().state != FileState::kClosed) return FileServer::refusal(EAGAIN);
  (*file)->hold(std::move(stub));
  Answer answer;
  answer.content.time_ns = ctime_ns_of(st);
  answer.reply.generation = static_cast<uint64_t>(answer.content.time_ns);
  answer.file = std::move(*file);
  return answer;
}

bool VolumeServer::is_root(int shown_fd) const {
  struct stat root;
  struct statx seen;
  return ::fstat(volume_->root_fd(), &root) == 0 && lies_on(shown_fd, root.st_dev, &seen) &&
         seen.stx_ino == root.st_ino;
}

// Answers any process that may list the volume.
FileServer::Answer VolumeServer::answer_stats(int root_fd) const {
  if (!is_root(root_fd)) return FileServer::refusal(EACCES);
  Answer answer;
  answer.text =
      stats_json(*lanes_, {}, shared_->stats(), {}, client_counts_.sums(volume_->device_count()));
  return answer;
}

FileServer::Answer VolumeServer::answer_counter(const FileServer::Question& question) {
  if (!is_root(question.fd)) return FileServer::refusal(EACCES);
  const int page = client_counts_.page_of(question.user);
  if (page < 0) return FileServer::refusal(EMFILE);
  Answer answer;
  answer.fds = {page};
  return answer;
}

FileServer::Answer VolumeServer::answer_changer(const FileServer::Question& question) {
  struct statx seen;
  if (!lies_on(question.fd, device_, &seen) || !S_ISREG(seen.stx_mode)) {
    return FileServer::refusal(EXDEV);
  }
  Fd stub = reopen(question.fd, O_RDONLY | O_NONBLOCK);
  Layout layout;
  const Result<StubVerdict> verdict =
      stub ? inspect_stub(stub.get(), &layout) : Result<StubVerdict>(last_errno());
  if (!verdict || *verdict != StubVerdict::kStub || !volume_->accept(layout, "")) {
    return FileServer::refusal(ESTALE);
  }
  late_closer_->note(std::move(stub), question.user);
  return {};
}

Outcome<void> serve_volume(const std::shared_ptr<const Volume>& volume,
                           const ServerOptions& options, bool foreground) {
  const Server serve = [&](const std::function<void()>& on_ready) {
    const StopMask stop;
    const Fd users = open_directory(*volume, kControlDirectory.data());
    (void)lock_now(users, LOCK_SH);  // this process counts as a user, so none is the last
    return serve_until_told(volume, options, stop, on_ready);
  };
  return foreground ? serve([] {}) : daemonize(serve);
}

ServerUse ServerUse::begin(const std::shared_ptr<const Volume>& volume) {
  ServerUse use;
  use.run_ = open_directory(*volume, kRunDirectory);
  use.users_ = open_directory(*volume, kControlDirectory.data());
  // An idle server may just be ending. Some filesystems (NFS) have no such locks.
  const auto is_known = [&] { return lock_now(use.users_, LOCK_SH) || errno != EWOULDBLOCK; };
  if (!use.run_ || !use.users_ || !wait_for_end(is_known) || !lock_now(use.users_, LOCK_SH)) {
    use.users_.reset();
    return use;
  }
  const auto serve = [&](const std::function<void()>& on_ready) -> Outcome<void> {
    use.users_.reset();                // the parent's lock, or the server would wait for itself
    (void)::signal(SIGTERM, SIG_DFL);  // the caller may ignore it
    const StopMask stop;
    Fd users = open_directory(*volume, kControlDirectory.data());
    if (!users) return os_error(errno, volume->root(), "cannot open");
    end_with_last_user(std::move(users));
    ServerOptions options;
    options.lanes = {.at_first_request = true,
                     .tell_failure = [](const std::string& line) { log_line(line); }};
    return serve_until_told(volume, options, stop, on_ready);
  };
  const auto is_served = [&] {
    if (!lock_now(use.run_, LOCK_SH)) return true;
    (void)::flock(use.run_.get(), LOCK_UN);
    // EBUSY: another process has just started one, or was looking, as this one did.
    const Outcome<void> started = daemonize(serve);
    if (!started && started.error().code != EBUSY) use.users_.reset();
    return started || !use.users_;
  };
  (void)wait_for_end(is_served);
  return use;
}

ServerUse::~ServerUse() {
  if (!users_) return;
  (void)::flock(users_.get(), LOCK_UN);
  (void)wait_for_end([&] {
    if (lock_now(run_, LOCK_SH)) return true;  // not served
    // it will end soon
    if (lock_now(users_, LOCK_EX)) return ::flock(users_.get(), LOCK_UN), false;
    return lock_now(users_, LOCK_SH);  // true: it has other users; false: it is ending
  });
}

Outcome<void> stop_server(const Volume& volume) {
  const Fd directory = open_directory(volume, kRunDirectory);
  const pid_t process = directory ? server_process(directory.get()) : 0;
  if (process == 0) return make_error(ENOENT, "{}: nobody serves it", volume.root());
  const std::string name = fmt::format("process {}", process);
  const Fd server(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!server) return os_error(errno, name, "cannot stop");
  for (const int signal : {SIGTERM, SIGCONT}) {  // a stopped process ends once it continues
    if (::syscall(SYS_pidfd_send_signal, server.get(), signal, nullptr, 0) != 0) {
      return os_error(errno, name, "cannot stop");
    }
  }
  pollfd ended{server.get(), POLLIN, 0};
  if (::poll(&ended, 1, kEndingPatienceMs) > 0) return {};
  return make_error(EBUSY, "{}: does not end", name);
}

Outcome<std::string> ask_for_stats(const std::string& root) {
  const Fd volume(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd run(::openat(volume.get(), kRunDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd connection = run ? ServerAddress::of_volume(run.get()).connect(kServerPatience) : Fd();
  if (!connection) return make_error(ENOENT, "{}: nobody serves it", root);
  std::vector<char> buffer(sizeof(ServerReply) + kStatsMax);
  ServerMessage message;
  ServerReply reply;
  if (send_question(connection.get(), {.magic = StatsRequest::kMagic}, volume.get())) {
    receive_message(connection.get(), buffer.data(), buffer.size(), &message);
  }
  if (message.length_bytes < static_cast<ssize_t>(sizeof reply)) {
    return make_error(EIO, "{}: its server does not answer", root);
  }
  std::memcpy(&reply, buffer.data(), sizeof reply);
  if (reply.error != 0) return os_error(reply.error, root, "cannot read the statistics");
  return std::string(buffer.data() + sizeof reply,
                     static_cast<size_t>(message.length_bytes) - sizeof reply);
}

}  // namespace graphlane
