#include "adapters/share/coordinator/coordinator.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "adapters/share/coordinator/attach_request.h"
#include "adapters/share/memory/sealed_memory.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

constexpr uint32_t kThreadsMax = 4096;
// The first job's U_v decides the chunk size for all jobs. With a U_v of 4 GiB a chunk would be one
// cache line, at two messages each. With this limit, a graph of 16 edges to a vertex has chunks of a
// 33rd of a core's share of the cache. No limit for our own user.
constexpr uint32_t kVertexBytesOfOthersMax = 4096;
// The interval at which updated graphs without jobs are checked for changed files.
constexpr uint64_t kForgetIntervalNs = 60'000'000'000;
constexpr uint64_t kLayoutBytesMax = uint64_t{64} << 20;

// Messages that a job sends only after it has read every answer.
bool is_question(Kind kind) {
  return kind == Kind::kNext || kind == Kind::kTurn || kind == Kind::kUpdate ||
         kind == Kind::kAskStatistics;
}

// Whether the other end has not yet read all that was sent. It may hold descriptors in flight, of
// which the kernel limits the number per user.
bool has_unread(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

// Whether one of the descriptors may write the file.
bool shows_right_to_write(std::span<const Fd> shown, const FileIdentity& file) {
  return std::ranges::any_of(shown, [&](const Fd& fd) {
    if ((::fcntl(fd.get(), F_GETFL) & (O_ACCMODE | O_PATH)) != O_RDWR) return false;
    const Result<FileIdentity> identity = identify(fd.get());
    return identity && identity->device == file.device && identity->inode == file.inode;
  });
}

}  // namespace

Coordinator::~Coordinator() = default;

Outcome<void> Coordinator::run(Fd listener, Fd connection) {
  const bool listens = static_cast<bool>(listener);
  if (Outcome<void> opened = connections_.open(std::move(listener), worker_.event()); !opened) {
    return opened;
  }
  if (connection) connections_.add(std::move(connection));

  uint64_t idle_since_ns = monotonic_ns();
  for (;;) {
    uint64_t deadline_ns = disconnect_unattached();
    deadline_ns = std::min(deadline_ns, graphs_.pump([this](JobId id) { cut_off(id); }));
    if (connections_.empty() && !graphs_.empty()) {
      graphs_.forget_idle();
      deadline_ns = std::min(deadline_ns, monotonic_ns() + kForgetIntervalNs);
    }
    if (!connections_.empty() || !graphs_.empty() || !worker_.idle()) {
      idle_since_ns = monotonic_ns();
    } else if (!listens || monotonic_ns() - idle_since_ns >= options_.idle_ns) {
      return {};  // a job that connects now finds no listener, and starts another coordinator
    } else if (options_.idle_ns != UINT64_MAX) {
      deadline_ns = std::min(deadline_ns, idle_since_ns + options_.idle_ns);
    }
    connections_.wait(deadline_ns, [this](JobId id) { serve(id); }, [this] { worker_.finish(); });
  }
}

uint64_t Coordinator::disconnect_unattached() {
  const uint64_t now_ns = monotonic_ns();
  const uint64_t next_ns = connections_.next_deadline_ns(now_ns);
  // A late loop must not cost a client its connection: serve what it has sent meanwhile.
  for (const JobId id : connections_.overdue(now_ns)) {
    serve(id);
    if (!connections_.is_attached(id)) cut_off(id);
  }
  return next_ns;
}

void Coordinator::cut_off(JobId id) {
  if (connections_.find(id) == nullptr) return;
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    const std::shared_ptr<SharedGraph> graph = std::move(job->second.graph);
    jobs_.erase(job);
    graph->detach(id);
  }
  connections_.end(id);
  graphs_.forget_idle();
  graphs_.divide_budget();
}

// --- messages -----------------------------------------------------------------

void Coordinator::serve(JobId id) {
  const Connections::Connection* const connection = connections_.find(id);
  if (connection == nullptr) return;  // cut off after epoll reported it
  bool is_good = false;
  try {
    Result<Message> message = receive_message(connection->socket.get(), MSG_DONTWAIT);
    is_good = message ? dispatch(id, *message) : message.error().code == EAGAIN;
  } catch (const std::bad_alloc&) {
    // The message needed more memory than there is.
  }
  if (!is_good) cut_off(id);
}

bool Coordinator::dispatch(JobId id, Message& message) {
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    return dispatch_attached(id, job->second, message);
  }
  const Outcome<void> attached = graphfmt::or_no_memory([&] { return attach(id, message); });
  if (attached) return true;
  (void)send_refusal(connections_.find(id)->socket.get(), attached.error()).has_value();
  return false;
}

bool Coordinator::dispatch_attached(JobId id, const Job& job, Message& message) {
  SharedGraph& graph = *job.graph;
  const int socket = connections_.find(id)->socket.get();
  PlainMessage plain;
  if (!message.read(plain)) return false;
  if (is_question(plain.kind) && has_unread(socket)) return false;
  switch (plain.kind) {
    case Kind::kSweep: {
      SweepMessage sweep;
      const std::string_view bits = message.after(sizeof sweep);
      const size_t word_count = (graph.unit_count() + 63) / 64;
      if (!message.read(sweep) || bits.size() != word_count * sizeof(uint64_t)) return false;
      std::vector<uint64_t> words(word_count);
      std::memcpy(words.data(), bits.data(), bits.size());
      return graph.sweep(id, PartitionSet(graph.unit_count(), words), sweep);
    }
    case Kind::kNext: {
      NextMessage next;
      return message.read(next) && graph.next(id, next);
    }
    case Kind::kLoaded: {
      LoadedMessage loaded;
      if (!message.read(loaded)) return false;
      return graph.loaded(id, loaded, message.fds.empty() ? Fd() : std::move(message.fds[0]));
    }
    case Kind::kTurn: {
      TurnMessage turn;
      return message.read(turn) && graph.turn(id, turn);
    }
    case Kind::kDone: return graph.done(id);
    case Kind::kUpdate: {
      const Outcome<uint64_t> version = update(id, job, message);
      const Result<void> sent =
          version ? send_head(socket, UpdatedMessage{.version = *version}, {}, {}, MSG_DONTWAIT)
                  : send_refusal(socket, version.error());
      return sent.has_value();
    }
    case Kind::kAskStatistics:
      return send_head(socket, graph.statistics(), {}, {}, MSG_DONTWAIT).has_value();
    default: return false;
  }
}

Outcome<void> Coordinator::attach(JobId id, Message& message) {
  const uid_t user = connections_.find(id)->user;
  const uint64_t layout_bytes_max =
      is_ours(user) ? kLayoutBytesMax : std::min(kLayoutBytesMax, graphs_.rest_bytes());
  Outcome<AttachRequest> request = read_attach_request(message, layout_bytes_max);
  if (!request) return request.error();
  const AttachMessage& wanted = request->message;
  const std::string name = request->files.name;
  Job job{.graph = nullptr,
          .files = request->files.identities,
          .by_loader = request->files.layout.by_loader};
  const std::string key = GraphTable::key_of(request->layout_bytes, job.files,
                                             job.by_loader ? std::optional(user) : std::nullopt);
  std::string().swap(request->layout_bytes);  // it may be large
  job.graph = graphs_.find(key, request->files.layout);
  const bool is_new = job.graph == nullptr;
  if (is_new) {
    const uint32_t vertex_bytes = user == ::geteuid()
                                      ? wanted.vertex_bytes
                                      : std::min(wanted.vertex_bytes, kVertexBytesOfOthersMax);
    auto made =
        graphs_.make(user, std::move(request->files), std::move(request->directory), vertex_bytes);
    if (!made) return made.error();
    job.graph = std::move(*made);
  }
  SharedGraph& graph = *job.graph;
  const uint64_t wanted_bytes = graph.job_bytes() + (graph.has_jobs() ? 0 : graph.least_bytes()) +
                                (is_new ? graph.table_bytes() : 0);
  if (Outcome<void> fits = graphs_.check_room(user, name, wanted_bytes); !fits) return fits;
  if (is_new) graphs_.add(key, job.graph);
  jobs_[id] = std::move(job);
  connections_.set_attached(id);
  const uint32_t thread_count = std::clamp(wanted.thread_count, 1u, kThreadsMax);
  graph.attach({.job = id,
                .thread_count = thread_count,
                .thread_count_min = std::clamp(wanted.thread_count_min, 1u, thread_count)},
               connections_.find(id)->socket.get(), user);
  graphs_.divide_budget();
  return {};
}

Outcome<uint64_t> Coordinator::update(JobId id, const Job& job, Message& message) {
  UpdateMessage update;
  if (!message.read(update) || message.fds.empty()) return make_error(EPROTO, "not an update");
  const std::string& name = job.graph->files().name;
  // A loader's bytes are shared within one user only, so no file's permission applies.
  for (size_t i = 0; !job.by_loader && i < job.files.size(); ++i) {
    if (shows_right_to_write(message.fds, job.files[i])) continue;
    return make_error(EACCES, "{}: an update needs the right to write its files", name);
  }
  const Result<uint64_t> size_bytes = sealed_size(message.fds[0].get());
  const uid_t user = connections_.find(id)->user;
  if (Outcome<void> fits = graphs_.check_room(user, name, size_bytes ? *size_bytes : 0); !fits) {
    return fits.error();
  }
  return job.graph->update(update.partition, update.chunk, std::move(message.fds[0]));
}

}  // namespace graphlane::share
