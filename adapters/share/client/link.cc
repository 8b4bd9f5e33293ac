#include "adapters/share/client/link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <numeric>
#include <utility>

#include "adapters/share/client/rendezvous.h"
#include "adapters/share/memory/sealed_memory.h"
#include "adapters/share/schedule/labels.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/volume/stub/stub.h"

namespace graphlane::share {
namespace {

// Attempts while another job starts the coordinator, 5 ms apart. Fewer if it ends before it
// answers, because a second failure in a row means that it cannot run.
constexpr int kAttachTries = 400;
constexpr int kTriesPerEarlyEnd = 50;
constexpr int kWelcomeMsMax = 10'000;

bool is_gone(Errno why) {
  return why.code == ECONNRESET || why.code == EPIPE || why.code == ENOTCONN || why.code == EBADF;
}

Error refusal(const Message& message) {
  RefusalMessage refused;
  if (!message.read(refused)) return make_error(EPROTO, "the coordinator's answer is cut short");
  return Error{refused.error, std::string(message.after(sizeof refused))};
}

PartitionSet set_of(std::string_view bytes, uint32_t partition_count) {
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint64_t));
  return PartitionSet(partition_count, words);
}

// Whether the units are as few as our own coordinator would make.
bool has_valid_unit_size(std::span<const uint64_t> partition_bytes, const WelcomeMessage& welcome) {
  const uint64_t graph_bytes =
      std::accumulate(partition_bytes.begin(), partition_bytes.end(), uint64_t{0});
  if (welcome.chunk_bytes == 0) return false;
  const uint64_t unit_bytes = unit_bytes_for(welcome.chunk_bytes, graph_bytes);
  return welcome.unit_bytes == kUncut || welcome.unit_bytes == unit_bytes;
}

}  // namespace

Kind kind_of(const Message& message) {
  PlainMessage plain{};
  (void)message.read(plain);
  return plain.kind;
}

Outcome<void> Link::open() {
  if (Outcome<void> opened = open_files(); !opened) return opened;
  if (Outcome<void> good = check(layout(), identities_); !good) {
    return make_error(good.error().code, "{}: {}", name(), good.error().text);
  }
  partition_bytes_ = partition_sizes(layout());
  return attach();
}

Outcome<void> Link::reattach(bool same_chunks) {
  const WelcomeMessage before = welcome_;
  if (sees_updates_) return make_error(ESTALE, "{}: lost its coordinator, and the updates", name());
  for (size_t i = 0; i < files_.size(); ++i) {
    const Result<FileIdentity> now = identify(files_[i].get());
    if (!now) return os_error(now.error().code, options_.files[i], "cannot stat");
    if (*now != identities_[i]) {
      return make_error(ESTALE, "{}: changed while jobs use it", options_.files[i]);
    }
  }
  if (Outcome<void> attached = attach(); !attached) return attached;
  const bool updated = welcome_.version != before.version;
  if (!updated && (!same_chunks || welcome_.chunk_bytes == before.chunk_bytes)) return {};
  socket_.reset();
  welcome_ = before;
  if (updated) return make_error(ESTALE, "{}: was updated while its coordinator was gone", name());
  return make_error(ESTALE, "{}: its new coordinator has other chunks than the job has changed",
                    name());
}

Outcome<void> Link::open_files() {
  if (options_.files.empty() || options_.files.size() > kFilesMax) {
    return make_error(EINVAL, "{} files: 1 to {} are possible", options_.files.size(), kFilesMax);
  }
  for (const std::string& path : options_.files) {
    Fd file(sys::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return os_error(errno, path, "cannot open");
    const Result<FileIdentity> identity = identify(file.get());
    if (!identity) return make_error(EINVAL, "{}: not a regular file", path);
    struct stat st;
    if (::fstat(file.get(), &st) != 0) return os_error(errno, path, "cannot stat");
    graphlane::Layout stub;
    const Result<StubVerdict> verdict =
        read_stub(file.get(), static_cast<uint64_t>(st.st_size), &stub);
    if (verdict && *verdict != StubVerdict::kNotAStub) {
      return make_error(EINVAL,
                        "{}: is a stub of a volume, not the file itself; start the program by "
                        "`graphlane run`, or "
                        "give it the file on a mount",
                        path);
    }
    // With several owners only root and this user are trusted with all files.
    const uid_t owner = is_mapped_user(st.st_uid) ? st.st_uid : ::geteuid();
    owner_ = files_.empty() || owner_ == owner ? owner : ::geteuid();
    identities_.push_back(*identity);
    files_.push_back(std::move(file));
  }
  if (layout().by_loader) owner_ = ::geteuid();
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::canonical(name(), ignored);
  name_in_directory_ = path.filename();
  directory_ =
      Fd(sys::openat(AT_FDCWD, path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Shows the file instead of a directory that this user may not open.
  if (!directory_) directory_ = Fd(sys::fcntl(files_[0].get(), F_DUPFD_CLOEXEC, 0));
  return {};
}

Outcome<void> Link::attach() {
  Outcome<void> attached = attach_once();
  for (int tries = 0; !attached && tries < kAttachTries; attached = attach_once()) {
    const int code = attached.error().code;
    if (code != EAGAIN && code != ECONNRESET) break;
    tries += code == EAGAIN ? 1 : kTriesPerEarlyEnd;
    ::poll(nullptr, 0, 5);
  }
  if (!attached && attached.error().code == EAGAIN) attached = attach_once(/*is_last_try=*/true);
  return attached;
}

// EAGAIN, ECONNRESET: try again.
Outcome<void> Link::attach_once(bool is_last_try) {
  auto connection = connect_or_start({.first_file = identities_[0],
                                      .owner = owner_,
                                      .budget_bytes = options_.budget_bytes,
                                      .idle_ms = options_.idle_ms,
                                      .is_last_try = is_last_try});
  if (!connection) return connection.error();
  const std::string bytes = layout().to_bytes();
  auto memory = make_sealed(bytes);
  if (!memory) return memory.error();
  std::vector<int> fds{memory->get(), directory_.get()};
  for (const Fd& file : files_) fds.push_back(file.get());
  const AttachMessage hello{.thread_count = options_.thread_count,
                            .thread_count_min = options_.thread_count_min,
                            .vertex_bytes = options_.vertex_bytes};
  const Result<void> sent = send_head(connection->get(), hello, name_in_directory_, fds);
  pollfd answer{.fd = connection->get(), .events = POLLIN, .revents = 0};
  if (sent && ::poll(&answer, 1, kWelcomeMsMax) == 0) {
    return make_error(ETIMEDOUT, "{}: its coordinator does not answer", name());
  }
  // A coordinator that is ending closes the connection: try again.
  Result<Message> message =
      sent ? receive_message(connection->get()) : Result<Message>(sent.error());
  if (!message && is_gone(message.error())) {
    return make_error(
        ECONNRESET, "{}: its coordinator ended at once, or has no free slot for this user", name());
  }
  if (!message) return os_error(message.error().code, name(), "cannot talk to its coordinator");
  if (kind_of(*message) == Kind::kRefusal) return refusal(*message);
  if (kind_of(*message) != Kind::kWelcome || !message->read(welcome_)) {
    return protocol_error();
  }
  if (!has_valid_unit_size(partition_bytes_, welcome_)) return protocol_error();
  units_ = Units(partition_bytes_, welcome_.unit_bytes);
  socket_ = std::move(*connection);
  const std::string_view updated = message->after(sizeof welcome_);
  updated_ = set_of(updated, layout().partition_count);
  sees_updates_ = !updated.empty();
  return {};
}

Error Link::lost(Errno why) {
  if (is_gone(why) || why.code == EMSGSIZE) drop();  // EMSGSIZE: part of the message was lost
  return os_error(why.code, name(), "lost its coordinator");
}

Outcome<Message> Link::receive() {
  Result<Message> message = receive_message(socket_.get());
  if (!message) return lost(message.error());
  if (kind_of(*message) == Kind::kRefusal) return refusal(*message);
  return std::move(*message);
}

Error Link::protocol_error() const {
  return make_error(EPROTO, "{}: its coordinator broke the protocol", name());
}

uint64_t Link::graph_hash() const { return share::graph_hash(layout(), identities_); }

Outcome<uint64_t> Link::update(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  auto memory = make_sealed(bytes);
  if (!memory) return memory.error();
  std::vector<Fd> writable;
  std::vector<int> fds{memory->get()};
  for (const std::string& path : options_.files) {
    if (layout().by_loader) break;
    writable.push_back(only_regular(
        Fd(sys::openat(AT_FDCWD, path.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))));
    if (!writable.back()) return os_error(errno, path, "cannot open for writing");
    fds.push_back(writable.back().get());
  }
  if (auto sent = send(UpdateMessage{.partition = partition, .chunk = chunk}, {}, fds); !sent) {
    return sent.error();
  }
  auto message = receive();
  if (!message) return message.error();
  UpdatedMessage updated;
  if (kind_of(*message) != Kind::kUpdated || !message->read(updated)) return protocol_error();
  return updated.version;
}

Outcome<StatisticsMessage> Link::statistics() {
  if (auto sent = send(PlainMessage{Kind::kAskStatistics}); !sent) return sent.error();
  auto message = receive();
  if (!message) return message.error();
  StatisticsMessage statistics;
  if (kind_of(*message) != Kind::kStatistics || !message->read(statistics)) return protocol_error();
  return statistics;
}

}  // namespace graphlane::share
