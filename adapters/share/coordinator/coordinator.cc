#include "adapters/share/coordinator/coordinator.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

#include "adapters/share/coordinator/label_file.h"
#include "adapters/share/memory/sealed_memory.h"
#include "adapters/share/schedule/chunk_size.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

constexpr size_t kClientsMax = 1024;
// Connections accepted in one step of the loop, so that a flood cannot starve the jobs.
constexpr int kAcceptBatchMax = 64;
// A connection must attach within this time. link.cc waits five times as long for the answer,
// which covers the listener's queue. A job that was held up connects again.
constexpr uint64_t kAttachNs = 2'000'000'000;
constexpr uint32_t kThreadsMax = 4096;
// The first job's U_v decides the chunk size for all jobs. With a U_v of 4 GiB a chunk would be one
// cache line, at two messages each. With this limit, a graph of 16 edges to a vertex has chunks of
// a 33rd of a core's share of the cache. No limit for our own user.
constexpr uint32_t kVertexBytesOfOthersMax = 4096;
// The interval at which a full coordinator looks for free slots.
constexpr uint64_t kRoomIntervalNs = 100'000'000;
// The interval at which updated graphs without jobs are checked for changed files.
constexpr uint64_t kForgetIntervalNs = 60'000'000'000;
// The most units that jobs keep mapped: a process may have 65530 mappings.
constexpr size_t kKeptPartitionsMax = 16384;
// Smaller chunks are not worth a read from a device.
constexpr uint64_t kReadBytesMin = uint64_t{1} << 20;
constexpr uint64_t kLayoutBytesMax = uint64_t{64} << 20;
// Graphs of one foreign user: layouts of a file, or states of it. Each has a part of the budget.
constexpr size_t kGraphsOfOthersMax = 8;
// Keys of epoll events that are not from jobs.
constexpr uint64_t kListenerKey = uint64_t{1} << 32;
constexpr uint64_t kWorkerKey = kListenerKey + 1;

void watch(int epoll, int fd, uint64_t key) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Root and our own user have no limits here.
bool is_ours(uid_t user) { return user == 0 || user == ::geteuid(); }

// Raises the descriptor limit, without which jobs would be turned away. Returns it.
size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
}

// Jobs share a graph if their keys are equal. A layout can be large, so the key has its hash.
std::string graph_key(std::string_view layout, std::span<const FileIdentity> files,
                      std::optional<uid_t> user) {
  const uint64_t hash = std::hash<std::string_view>()(layout);
  std::string key(reinterpret_cast<const char*>(&hash), sizeof hash);
  key.append(reinterpret_cast<const char*>(files.data()), files.size_bytes());
  if (user) key.append(reinterpret_cast<const char*>(&*user), sizeof *user);
  return key;
}

// A new open file description, so that the job cannot change our file's flags. If the coordinator
// may not open the file itself, it keeps the job's descriptor.
Fd reopen_or_keep(Fd file) {
  Fd reopened = reopen(file.get(), O_RDONLY | O_NONBLOCK);
  return reopened ? std::move(reopened) : std::move(file);
}

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

// None: the files have several owners.
std::optional<uid_t> owner_of(std::span<const Fd> files) {
  std::optional<uid_t> owner;
  for (const Fd& file : files) {
    struct stat st;
    if (::fstat(file.get(), &st) != 0 || owner.value_or(st.st_uid) != st.st_uid ||
        !is_mapped_user(st.st_uid)) {
      return std::nullopt;
    }
    owner = st.st_uid;
  }
  return owner;
}

Outcome<std::string> read_layout(const Fd& memory, uint64_t bytes_max) {
  const Result<uint64_t> size_bytes = sealed_size(memory.get());
  if (!size_bytes || *size_bytes > bytes_max) {
    return make_error(EPROTO, "the graph's layout is not sealed, or larger than {} bytes",
                      bytes_max);
  }
  std::string bytes(*size_bytes, '\0');
  const Result<size_t> got = pread_full(memory.get(), bytes.data(), bytes.size(), 0);
  if (!got || *got != bytes.size()) return make_error(EPROTO, "the graph's layout cannot be read");
  return bytes;
}

uint64_t chunk_bytes_for(const Layout& layout, uint64_t graph_bytes, uint32_t vertex_bytes,
                         const LastLevelCache& cache) {
  if (layout.record.size_bytes == 0) return UINT64_MAX;
  const bool known = graph_bytes > 0;  // not with a loader
  return chunk_size_bytes({.cache_bytes = cache.size_bytes,
                           .reserved_bytes = cache.size_bytes / 8,
                           .core_count = cache.core_count,
                           .graph_bytes = known ? graph_bytes : UINT32_MAX,
                           .vertex_count = known ? layout.vertex_count : 0,
                           .vertex_bytes = vertex_bytes,
                           .record_bytes = layout.record.size_bytes});
}

// The chunk size of a graph that does not fit: at most a 32nd of the budget, because the units that
// are unpacked and read take room from those that could stay. A power of two, so that labels stay
// valid while the budget changes little.
uint64_t smaller_chunk_bytes(uint64_t chunk_bytes, RecordFormat record, uint64_t budget_bytes) {
  const uint64_t wanted = std::bit_floor(std::max(budget_bytes / 32, kReadBytesMin));
  const uint64_t step = std::lcm<uint64_t>(record.size_bytes, kCacheLineBytes);
  return std::min(chunk_bytes, std::max(step, wanted / step * step));
}

GlobalTable::Batching batching_of(const Units& units, bool is_resident, uint64_t chunk_bytes,
                                  uint64_t budget_bytes, LoadOrder order) {
  const uint64_t most_bytes = budget_bytes / (is_resident ? 8 : 24);
  GlobalTable::Batching batching{
      .unit_bytes = {},
      .batch_bytes = chunk_bytes == UINT64_MAX ? 0 : std::min(chunk_bytes, most_bytes),
      .ahead_bytes = budget_bytes / 8,
      .order = order,
      .first_of_same = {}};
  for (uint32_t unit = 0; unit < units.count(); ++unit) {
    batching.unit_bytes.push_back(units.bytes_of(unit));
    batching.first_of_same.push_back(units.first_of(units.partition_of(unit)));
  }
  return batching;
}

}  // namespace

Coordinator::~Coordinator() = default;

Outcome<void> Coordinator::run(Fd listener, Fd connection) {
  buffer_count_max_ = raise_descriptor_limit() / 4;  // the rest is for jobs and their files
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return os_error(errno, "epoll", "cannot make");
  watch(epoll_.get(), worker_.event(), kWorkerKey);
  listener_ = std::move(listener);
  if (listener_) {
    ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    listen(true);
  }
  if (connection) add_client(std::move(connection));

  uint64_t idle_since_ns = monotonic_ns();
  for (;;) {
    uint64_t deadline_ns = disconnect_unattached();
    deadline_ns = std::min(deadline_ns, pump_graphs());
    if (clients_.empty() && !graphs_.empty()) {
      forget_idle();
      deadline_ns = std::min(deadline_ns, monotonic_ns() + kForgetIntervalNs);
    }
    if (!clients_.empty() || !graphs_.empty() || !worker_.idle()) {
      idle_since_ns = monotonic_ns();
    } else if (!listener_ || monotonic_ns() - idle_since_ns >= options_.idle_ns) {
      return {};  // a job that connects now finds no listener, and starts another coordinator
    } else if (options_.idle_ns != UINT64_MAX) {
      deadline_ns = std::min(deadline_ns, idle_since_ns + options_.idle_ns);
    }
    const uint64_t now_ns = monotonic_ns();
    if (!listens_ && listener_) deadline_ns = std::min(deadline_ns, now_ns + kRoomIntervalNs);
    const int timeout_ms =
        deadline_ns == UINT64_MAX ? -1
        : deadline_ns <= now_ns
            ? 0
            : static_cast<int>(std::min<uint64_t>((deadline_ns - now_ns) / 1'000'000 + 1, INT_MAX));
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
    listen(true);  // a slot may be free again
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[i].data.u64;
      if (key == kListenerKey) {
        take_connections();
      } else if (key == kWorkerKey) {
        worker_.finish();
      } else if (!serve(static_cast<JobId>(key))) {
        cut_off(static_cast<JobId>(key));
      }
    }
  }
}

// --- connections --------------------------------------------------------------

void Coordinator::listen(bool wanted) {
  if (wanted == listens_ || !listener_) return;
  if (wanted) {
    watch(epoll_.get(), listener_.get(), kListenerKey);
  } else {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  }
  listens_ = wanted;
}

void Coordinator::take_connections() {
  for (int i = 0; clients_.size() < kClientsMax; ++i) {
    if (i == kAcceptBatchMax) return;
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket && errno == EAGAIN) return;
    if (!socket && errno != EINTR && errno != ECONNABORTED) break;  // no descriptors or no memory
    if (socket) add_client(std::move(socket));
  }
  listen(false);
}

bool Coordinator::has_slot(uid_t user) const {
  if (is_ours(user)) return true;
  size_t count = 0;
  for (const auto& [id, client] : clients_) count += client.user == user;
  return count < kClientsMax - clients_.size();
}

void Coordinator::add_client(Fd socket) {
  const Result<uid_t> user = peer_user(socket.get());
  if (!user || !has_slot(*user)) return;
  enlarge_buffers(socket.get());
  const JobId id = ++last_id_;
  watch(epoll_.get(), socket.get(), id);
  clients_[id] = {.socket = std::move(socket),
                  .user = *user,
                  .attach_until_ns = monotonic_ns() + kAttachNs,
                  .graph = nullptr,
                  .files = {}};
}

uint64_t Coordinator::disconnect_unattached() {
  uint64_t deadline_ns = UINT64_MAX;
  std::vector<JobId> unattached;
  const uint64_t now_ns = monotonic_ns();
  for (const auto& [id, client] : clients_) {
    if (client.graph) continue;
    if (client.attach_until_ns <= now_ns) {
      unattached.push_back(id);
    } else {
      deadline_ns = std::min(deadline_ns, client.attach_until_ns);
    }
  }
  // A late loop must not cost a client its connection: serve what it has sent meanwhile.
  for (const JobId id : unattached) {
    if (!serve(id) || !clients_.at(id).graph) cut_off(id);
  }
  return deadline_ns;
}

void Coordinator::cut_off(JobId id) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  const std::shared_ptr<SharedGraph> graph = client->second.graph;
  if (graph) graph->detach(id);
  clients_.erase(client);
  forget_idle();
  divide_budget();
}

void Coordinator::forget_idle() {
  std::erase_if(graphs_, [](const auto& entry) { return entry.second->idle(); });
}

Coordinator::Rest Coordinator::rest_of_budget() const {
  Rest rest{.bytes = options_.budget_bytes};
  for (const auto& [key, graph] : graphs_) {
    rest.bytes -= std::min(rest.bytes, graph->table_bytes());
    if (!graph->has_jobs()) continue;
    rest.bytes -= std::min(rest.bytes, graph->least_bytes());
    rest.graph_count += !graph->resident();
  }
  return rest;
}

void Coordinator::divide_budget() {
  const Rest rest = rest_of_budget();
  const uint64_t part_bytes = rest.bytes / std::max<size_t>(rest.graph_count, 1);
  for (const auto& [key, graph] : graphs_) graph->set_budget(graph->least_bytes() + part_bytes);
}

uint64_t Coordinator::pump_graphs() {
  for (;;) {
    uint64_t deadline_ns = UINT64_MAX;
    std::vector<JobId> unresponsive;
    for (const auto& [key, graph] : graphs_) {
      deadline_ns = std::min(deadline_ns, graph->pump(monotonic_ns()));
      for (const JobId id : graph->take_unresponsive()) unresponsive.push_back(id);
    }
    if (unresponsive.empty()) return deadline_ns;
    for (const JobId id : unresponsive) cut_off(id);
  }
}

// --- messages -----------------------------------------------------------------

bool Coordinator::serve(JobId id) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return true;  // cut off after epoll reported it
  try {
    Result<Message> message = receive_message(client->second.socket.get(), MSG_DONTWAIT);
    if (!message) return message.error().code == EAGAIN;
    return dispatch(id, client->second, *message);
  } catch (const std::bad_alloc&) {
    return false;  // the message needed more memory than there is
  }
}

bool Coordinator::dispatch(JobId id, Client& client, Message& message) {
  if (client.graph) return dispatch_attached(id, client, message);
  const Outcome<void> attached = or_no_memory([&] { return attach(id, client, message); });
  if (attached) return true;
  (void)send_refusal(client.socket.get(), attached.error()).has_value();
  return false;
}

bool Coordinator::dispatch_attached(JobId id, Client& client, Message& message) {
  SharedGraph& graph = *client.graph;
  PlainMessage plain;
  if (!message.read(plain)) return false;
  if (is_question(plain.kind) && has_unread(client.socket.get())) return false;
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
      const Outcome<uint64_t> version = update(client, message);
      const int socket = client.socket.get();
      const Result<void> sent =
          version ? send_head(socket, UpdatedMessage{.version = *version}, {}, {}, MSG_DONTWAIT)
                  : send_refusal(socket, version.error());
      return sent.has_value();
    }
    case Kind::kAskStatistics:
      return send_head(client.socket.get(), graph.statistics(), {}, {}, MSG_DONTWAIT).has_value();
    default: return false;
  }
}

Outcome<void> Coordinator::attach(JobId id, Client& client, Message& message) {
  AttachMessage attach;
  if (!message.read(attach) || attach.kind != Kind::kAttach) return make_error(EPROTO, "not a job");
  if (attach.version != kProtocolVersion) {
    return make_error(EPROTO, "this job speaks version {}, its coordinator version {}",
                      attach.version, kProtocolVersion);
  }
  if (message.fds.size() < 3) return make_error(EPROTO, "the job shows no files");
  const std::string name(message.after(sizeof attach));
  if (name.size() > NAME_MAX) {
    return make_error(EPROTO, "the name of the graph's first file has more than {} bytes",
                      NAME_MAX);
  }
  const uint64_t bytes_max =
      is_ours(client.user) ? kLayoutBytesMax : std::min(kLayoutBytesMax, rest_of_budget().bytes);
  auto layout_bytes = read_layout(message.fds[0], bytes_max);
  if (!layout_bytes) return layout_bytes.error();
  auto layout = Layout::from_bytes(*layout_bytes);
  if (!layout) return layout.error();

  GraphFiles files{
      .name = name, .files = {}, .direct = {}, .identities = {}, .layout = {}, .units = {}};
  for (size_t i = 2; i < message.fds.size(); ++i) {
    const Result<FileIdentity> identity = identify(message.fds[i].get());
    if (!identity) {
      return make_error(EACCES, "{}: file {} is not one that the job has open for reading", name,
                        i - 2);
    }
    files.identities.push_back(*identity);
    files.direct.push_back(reopen(message.fds[i].get(), O_RDONLY | O_NONBLOCK | O_DIRECT));
    files.files.push_back(reopen_or_keep(std::move(message.fds[i])));
  }
  if (Outcome<void> good = check(*layout, files.identities); !good) {
    return make_error(good.error().code, "{}: {}", name, good.error().text);
  }
  client.files = files.identities;
  client.by_loader = layout->by_loader;
  const std::string key = graph_key(*layout_bytes, files.identities,
                                    layout->by_loader ? std::optional(client.user) : std::nullopt);
  std::string().swap(*layout_bytes);
  std::shared_ptr<SharedGraph> graph = find_graph(key, *layout);
  const bool is_new = graph == nullptr;
  if (is_new) {
    forget_idle();  // drops graphs of the file's earlier states
    if (Outcome<void> may = may_make_graph(client.user, name, *layout); !may) return may;
    files.layout = std::move(*layout);
    const uint32_t vertex_bytes = client.user == ::geteuid()
                                      ? attach.vertex_bytes
                                      : std::min(attach.vertex_bytes, kVertexBytesOfOthersMax);
    auto made = make_graph(client.user, std::move(files), std::move(message.fds[1]), vertex_bytes);
    if (!made) return made.error();
    graph = std::move(*made);
  }
  const uint64_t wanted_bytes = graph->job_bytes() +
                                (graph->has_jobs() ? 0 : graph->least_bytes()) +
                                (is_new ? graph->table_bytes() : 0);
  if (Outcome<void> fits = check_room(client.user, name, wanted_bytes); !fits) return fits;
  if (is_new) graphs_.emplace(key, graph);
  client.graph = graph;
  const uint32_t thread_count = std::clamp(attach.thread_count, 1u, kThreadsMax);
  graph->attach({.job = id,
                 .thread_count = thread_count,
                 .thread_count_min = std::clamp(attach.thread_count_min, 1u, thread_count)},
                client.socket.get(), client.user);
  divide_budget();
  return {};
}

std::shared_ptr<SharedGraph> Coordinator::find_graph(const std::string& key,
                                                     const Layout& layout) const {
  const auto [begin, end] = graphs_.equal_range(key);
  const auto found = std::find_if(
      begin, end, [&](const auto& entry) { return entry.second->files().layout == layout; });
  return found == end ? nullptr : found->second;
}

Outcome<void> Coordinator::check_room(uid_t user, const std::string& name,
                                      uint64_t wanted_bytes) const {
  const uint64_t rest_bytes = rest_of_budget().bytes;
  if (is_ours(user) || wanted_bytes <= rest_bytes) return {};
  return make_error(ENOMEM, "{}: wants {} bytes of the buffers' budget, other graphs leave {}",
                    name, wanted_bytes, rest_bytes);
}

Outcome<void> Coordinator::may_make_graph(uid_t user, const std::string& name,
                                          const Layout& layout) const {
  if (is_ours(user)) return {};
  const auto count = std::ranges::count_if(
      graphs_, [user](const auto& entry) { return entry.second->charged_to() == user; });
  if (static_cast<size_t>(count) >= kGraphsOfOthersMax) {
    return make_error(EDQUOT, "{}: this user has {} graphs here already", name, count);
  }
  return check_room(user, name, SharedGraph::table_bytes_of(layout, layout.partition_count));
}

Outcome<std::shared_ptr<SharedGraph>> Coordinator::make_graph(uid_t user, GraphFiles files,
                                                              Fd directory, uint32_t vertex_bytes) {
  const Layout& layout = files.layout;
  const std::vector<uint64_t> sizes = partition_sizes(layout);
  const uint64_t graph_bytes = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  const LastLevelCache cache = read_last_level_cache();
  const std::optional<uid_t> charged_to = is_ours(user) ? std::nullopt : std::optional(user);
  Rest rest = rest_of_budget();
  if (charged_to) {
    rest.bytes -= std::min(rest.bytes, SharedGraph::table_bytes_of(layout, sizes.size()));
  }
  const uint64_t part_bytes = rest.bytes / (rest.graph_count + 1);
  // An eighth stays free for later graphs. The size of a loader's graph is unknown.
  const bool is_resident = !layout.by_loader && graph_bytes <= part_bytes / 8 * 7 &&
                           sizes.size() <= std::min(buffer_count_max_, kKeptPartitionsMax);
  const bool has_edges = layout.record.size_bytes != 0 && !layout.by_loader;
  uint64_t chunk_bytes = chunk_bytes_for(layout, graph_bytes, vertex_bytes, cache);
  if (has_edges && !is_resident) {
    chunk_bytes = smaller_chunk_bytes(chunk_bytes, layout.record, part_bytes);
  }
  files.units =
      Units(sizes, has_edges && !is_resident ? unit_bytes_for(chunk_bytes, graph_bytes) : kUncut);
  for (uint32_t unit = 0; unit < files.units.count(); ++unit) {
    if (files.units.bytes_of(unit) <= options_.budget_bytes) continue;
    const uint32_t partition = files.units.partition_of(unit);
    return make_error(EFBIG, "{}: partition {} has {} bytes, the buffers' budget is {}", files.name,
                      partition, sizes[partition], options_.budget_bytes);
  }
  const SharedGraph::Options options{
      .charged_to = charged_to,
      .budget_bytes = options_.budget_bytes,
      .part_bytes = part_bytes,
      .is_budget_given = options_.is_budget_given,
      .buffer_count_max = buffer_count_max_,
      .core_count = cache.core_count,
      .chunk_bytes = chunk_bytes,
      .is_resident = is_resident,
      .batching = batching_of(files.units, is_resident, chunk_bytes, part_bytes, options_.order)};
  std::shared_ptr<LabelKeeper> labels;
  if (has_edges) {
    LabelKeeper::Place place{.directory = Fd(), .name = files.name};
    if (charged_to) place.bytes_max = part_bytes / 2;
    const std::optional<uid_t> owner = owner_of(files.files);
    if (owner && is_beside(directory.get(), files.name, files.identities[0])) {
      place.directory = std::move(directory);
      place.owner = *owner;
    }
    labels = std::make_shared<LabelKeeper>(std::move(place), graph_hash(layout, files.identities),
                                           layout.record, chunk_bytes, sizes, files.units);
  }
  return std::make_shared<SharedGraph>(std::move(files), std::move(labels), worker_, options);
}

Outcome<uint64_t> Coordinator::update(const Client& client, Message& message) {
  UpdateMessage update;
  if (!message.read(update) || message.fds.empty()) return make_error(EPROTO, "not an update");
  const std::string& name = client.graph->files().name;
  // A loader's bytes are shared within one user only, so no file's permission applies.
  for (size_t i = 0; !client.by_loader && i < client.files.size(); ++i) {
    const bool shown = std::ranges::any_of(message.fds, [&](const Fd& file) {
      if ((::fcntl(file.get(), F_GETFL) & (O_ACCMODE | O_PATH)) != O_RDWR) return false;
      const Result<FileIdentity> identity = identify(file.get());
      return identity && identity->device == client.files[i].device &&
             identity->inode == client.files[i].inode;
    });
    if (!shown) return make_error(EACCES, "{}: an update needs the right to write its files", name);
  }
  const Result<uint64_t> size_bytes = sealed_size(message.fds[0].get());
  if (Outcome<void> fits = check_room(client.user, name, size_bytes ? *size_bytes : 0); !fits) {
    return fits.error();
  }
  return client.graph->update(update.partition, update.chunk, std::move(message.fds[0]));
}

}  // namespace graphlane::share
