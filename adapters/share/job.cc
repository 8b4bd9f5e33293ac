#include "adapters/share/job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

// Another job starts the coordinator: 5 ms each. It ended before it answered: that is rare,
// unless it cannot run at all.
constexpr int kAttachTries = 400;
constexpr int kTriesOfAnEnd = 50;
constexpr int kReattachTries = 8;
constexpr int kWelcomeMsMax = 10'000;

bool is_gone(Errno why) {
  return why.code == ECONNRESET || why.code == EPIPE || why.code == ENOTCONN || why.code == EBADF;
}

Error refusal(const Message& message) {
  RefusalMessage refused;
  if (!message.read(refused)) return make_error(EPROTO, "the coordinator's answer is cut short");
  return Error{refused.error, std::string(message.after(sizeof refused))};
}

Kind kind_of(const Message& message) {
  PlainMessage plain{};
  (void)message.read(plain);
  return plain.kind;
}

std::string_view bytes_of(const PartitionSet& set) {
  return {reinterpret_cast<const char*>(set.words().data()), set.words().size_bytes()};
}

PartitionSet set_of(std::string_view bytes, uint32_t partition_count) {
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint64_t));
  return PartitionSet(partition_count, words);
}

}  // namespace

// --- to the coordinator, and back to another one --------------------------------

Outcome<std::unique_ptr<Job>> Job::open(JobOptions options) {
  std::unique_ptr<Job> job(new Job(std::move(options)));
  if (Outcome<void> opened = job->open_files(); !opened) return opened.error();
  if (Outcome<void> good = check(job->options_.layout, job->identities_); !good) {
    return make_error(good.error().code, "{}: {}", job->options_.files[0], good.error().text);
  }
  job->partition_bytes_ = partition_sizes(job->options_.layout);
  if (Outcome<void> attached = job->attach(); !attached) return attached.error();
  return job;
}

Outcome<void> Job::open_files() {
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
    // Files of several owners: nobody but root and ourselves may see all of them.
    owner_ = files_.empty() || owner_ == st.st_uid ? st.st_uid : ::geteuid();
    identities_.push_back(*identity);
    files_.push_back(std::move(file));
  }
  if (options_.layout.by_loader) owner_ = ::geteuid();
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::canonical(options_.files[0], ignored);
  name_ = path.filename();
  directory_ = Fd(sys::openat(AT_FDCWD, path.parent_path().c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Who may read the file but not list its directory shows the file in its place.
  if (!directory_) directory_ = Fd(sys::fcntl(files_[0].get(), F_DUPFD_CLOEXEC, 0));
  return {};
}

Outcome<void> Job::attach() {
  Outcome<void> attached = attach_once();
  for (int tries = 0; !attached && tries < kAttachTries; attached = attach_once()) {
    const int code = attached.error().code;
    if (code != EAGAIN && code != ECONNRESET) break;
    tries += code == EAGAIN ? 1 : kTriesOfAnEnd;
    ::poll(nullptr, 0, 5);
  }
  return attached;
}

// EAGAIN, ECONNRESET: to be tried again.
Outcome<void> Job::attach_once() {
  auto connection = meet({.first_file = identities_[0],
                          .owner = owner_,
                          .budget_bytes = options_.budget_bytes,
                          .idle_ms = options_.idle_ms});
  if (!connection) return connection.error();
  const std::string layout = options_.layout.to_bytes();
  auto memory = make_sealed(layout);
  if (!memory) return memory.error();
  std::vector<int> fds{memory->get(), directory_.get()};
  for (const Fd& file : files_) fds.push_back(file.get());
  const AttachMessage hello{.thread_count = options_.thread_count,
                            .vertex_bytes = options_.vertex_bytes};
  const Result<void> sent = send_head(connection->get(), hello, name_, fds);
  pollfd answer{.fd = connection->get(), .events = POLLIN, .revents = 0};
  if (sent && ::poll(&answer, 1, kWelcomeMsMax) == 0) {
    return make_error(ETIMEDOUT, "{}: its coordinator does not answer", options_.files[0]);
  }
  // One that ends just now is not an error.
  Result<Message> message = sent ? receive_message(connection->get()) : Result<Message>(sent.error());
  if (!message && is_gone(message.error())) {
    return make_error(ECONNRESET, "{}: its coordinator ended at once", options_.files[0]);
  }
  if (!message) return os_error(message.error().code, options_.files[0], "cannot talk to its coordinator");
  if (kind_of(*message) == Kind::kRefusal) return refusal(*message);
  if (kind_of(*message) != Kind::kWelcome || !message->read(welcome_)) {
    return make_error(EPROTO, "{}: its coordinator does not know its part", options_.files[0]);
  }
  socket_ = std::move(*connection);
  const std::string_view updated = message->after(sizeof welcome_);
  updated_ = set_of(updated, partition_count());
  sees_updates_ = !updated.empty();
  profile_ = Profile(welcome_.access_ps);
  return {};
}

// A coordinator that died is replaced, at the next partition; what it had updated is lost
// with it, and a job that has seen that cannot go on.
Error Job::lost(Errno why) {
  if (is_gone(why)) socket_.reset();
  return os_error(why.code, options_.files[0], "lost its coordinator");
}

Outcome<Message> Job::receive() {
  Result<Message> message = receive_message(socket_.get());
  if (!message) return lost(message.error());
  if (kind_of(*message) == Kind::kRefusal) return refusal(*message);
  return std::move(*message);
}

// --- a sweep ---------------------------------------------------------------------

Outcome<void> Job::begin_sweep(VertexBits active) {
  PartitionSet partitions(partition_count());
  active_ = active;
  const bool any = std::ranges::any_of(active, [](uint64_t word) { return word != 0; });
  for (uint32_t p = 0; any && p < partition_count(); ++p) {
    if (may_be_active(p)) partitions.add(p);
  }
  return begin_sweep_over(std::move(partitions));
}

Outcome<void> Job::begin_sweep(const PartitionSet& active) {
  active_ = {};
  return begin_sweep_over(active);
}

Outcome<void> Job::begin_sweep_over(PartitionSet partitions) {
  finish_partition();
  for (uint32_t p = 0; p < partition_count(); ++p) {
    if (partitions.has(p) && is_empty(p)) partitions.remove(p);
  }
  remaining_ = std::move(partitions);
  sweeping_ = true;
  return send_sweep();
}

// Nothing to load and nothing to see.
bool Job::is_empty(uint32_t partition) const {
  return !options_.layout.by_loader && partition_bytes_[partition] == 0 && !is_changed(partition);
}

bool Job::is_changed(uint32_t partition) const {
  if (sees_updates_ && updated_.has(partition)) return true;
  const auto mutated = mutated_.lower_bound({partition, 0});
  return mutated != mutated_.end() && mutated->first.first == partition;
}

// Whether a chunk has an edge from an active vertex. What the labels do not know may.
bool Job::may_be_active(uint32_t partition) const {
  if (!labels_ || is_changed(partition)) return true;
  for (uint32_t k = 0; k < labels_.chunk_count(partition); ++k) {
    if (any_active_edge(labels_.table(partition, k), active_)) return true;
  }
  return false;
}

Outcome<void> Job::send_sweep() {
  if (!socket_) return {};  // next() finds another coordinator, and tells that one
  const SweepMessage sweep{.wants_labels = !active_.empty() && !labels_};
  const Result<void> sent = send_head(socket_.get(), sweep, bytes_of(remaining_));
  if (!sent && !is_gone(sent.error())) return lost(sent.error());
  if (!sent) socket_.reset();
  return {};
}

Outcome<std::optional<uint32_t>> Job::next() {
  if (!sweeping_) {
    if (auto begun = begin_sweep(PartitionSet(partition_count(), true)); !begun) return begun.error();
  }
  finish_partition();
  Outcome<void> answered = ask_next();
  for (int i = 0; !answered && !socket_ && !sees_updates_ && i < kReattachTries; ++i) {
    const uint64_t version = welcome_.version;
    const uint64_t chunk_bytes = welcome_.chunk_bytes;
    if (auto attached = attach(); !attached) return attached.error();
    if (welcome_.version != version || welcome_.chunk_bytes != chunk_bytes) {
      return make_error(ESTALE, "{}: was updated while its coordinator was gone", options_.files[0]);
    }
    if (auto sent = send_sweep(); !sent) return sent.error();
    answered = ask_next();
  }
  if (!answered) return answered.error();
  if (partition_) return std::optional(partition_->number);
  sweeping_ = false;
  active_ = {};
  return std::optional<uint32_t>();
}

// Leaves the next partition in partition_, or nothing at the end.
Outcome<void> Job::ask_next() {
  NextMessage ask;
  if (profile_.costs().access_measured && !profile_told_) {
    ask.access_ps = profile_.costs().access_ps;
    profile_told_ = true;
  }
  if (Result<void> sent = socket_ ? send_head(socket_.get(), ask) : Errno{ENOTCONN}; !sent) {
    return lost(sent.error());
  }
  for (;;) {
    auto message = receive();
    if (!message) return message.error();
    switch (kind_of(*message)) {
      case Kind::kPartition: return take_partition(*message);
      case Kind::kSweepEnd: return {};
      case Kind::kLoad:
        if (auto loaded = serve_load(*message); !loaded) return loaded;
        break;
      default: return make_error(EPROTO, "{}: its coordinator does not know its part", options_.files[0]);
    }
  }
}

Outcome<void> Job::take_partition(Message& message) {
  PartitionMessage given;
  const Error bad = make_error(EPROTO, "{}: its coordinator gave something else", options_.files[0]);
  if (!message.read(given) || given.partition >= partition_count() ||
      message.fds.size() != size_t{1} + given.has_labels + given.has_overlay) {
    return bad;
  }
  const Result<uint64_t> size_bytes = sealed_size(message.fds[0].get());
  if (!size_bytes || *size_bytes != given.size_bytes) return bad;
  auto bytes = Mapping::of_sealed(message.fds[0].get(), given.size_bytes);
  if (!bytes) return bytes.error();
  if (given.has_labels) {
    const int memory = message.fds[1].get();
    const Result<uint64_t> label_bytes = sealed_size(memory);
    if (!label_bytes) return bad;
    auto mapped = Mapping::of_sealed(memory, *label_bytes);
    if (!mapped) return mapped.error();
    label_memory_ = std::move(*mapped);
    auto labels = Labels::parse(label_memory_.bytes(), graph_hash(options_.layout, identities_),
                                partition_bytes_);
    if (labels && labels->chunk_bytes() != welcome_.chunk_bytes) return bad;
    if (!labels) return make_error(EPROTO, "{}: labels: {}", options_.files[0], labels.error().text);
    labels_ = *labels;
  }
  Partition partition;
  partition.number = given.partition;
  partition.bytes = std::move(*bytes);
  partition.alone = given.alone != 0;
  if (given.has_overlay) {
    const int memory = message.fds.back().get();
    const Result<uint64_t> overlay_bytes = sealed_size(memory);
    if (!overlay_bytes) return bad;
    auto mapped = Mapping::of_sealed(memory, *overlay_bytes);
    if (!mapped) return mapped.error();
    partition.overlay = std::move(*mapped);
    auto updated = parse_overlay(partition.overlay.bytes());
    if (!updated) return updated.error();
    partition.updated = std::move(*updated);
  }
  remaining_.remove(given.partition);
  partition_ = std::move(partition);
  return {};
}

void Job::finish_partition() {
  if (!partition_) return;
  barrier();
  profile_.add(partition_->active_edge_count, partition_->edge_count, partition_->elapsed_ns);
  partition_.reset();
}

// --- the loader --------------------------------------------------------------------

Outcome<void> Job::serve_load(const Message& message) {
  LoadMessage load;
  if (!message.read(load) || !options_.loader || load.partition >= partition_count()) {
    return make_error(EPROTO, "{}: asked to load what it cannot", options_.files[0]);
  }
  LoadedMessage loaded{.partition = load.partition};
  const Outcome<Fd> memory = make_partition(load.partition);
  if (!memory) loaded.error = memory.error().code;
  const int fd = memory ? memory->get() : -1;
  const Result<void> sent = send_head(socket_.get(), loaded, {}, std::span(&fd, memory ? 1 : 0));
  if (!sent) return lost(sent.error());
  return {};
}

Outcome<Fd> Job::make_partition(uint32_t partition) const {
  const int64_t size_bytes = options_.loader(partition, nullptr, 0);
  if (size_bytes < 0) return make_error(static_cast<int>(-size_bytes), "the loader failed");
  auto memory = make_memory(static_cast<uint64_t>(size_bytes));
  if (!memory) return memory.error();
  {
    auto mapping = Mapping::for_filling(memory->get(), static_cast<uint64_t>(size_bytes));
    if (!mapping) return mapping.error();
    const int64_t filled =
        options_.loader(partition, mapping->data(), static_cast<uint64_t>(size_bytes));
    if (filled != size_bytes) {
      return make_error(filled < 0 ? static_cast<int>(-filled) : EIO, "the loader failed");
    }
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

// --- chunks ------------------------------------------------------------------------

// Changed chunks may stand behind those of the graph.
uint32_t Job::chunk_count() const {
  uint64_t count = chunk_count_of(partition_->bytes.size(), welcome_.chunk_bytes);
  if (!partition_->updated.empty()) {
    count = std::max<uint64_t>(count, partition_->updated.rbegin()->first + uint64_t{1});
  }
  const auto behind = mutated_.lower_bound({partition_->number + 1, 0});
  if (behind != mutated_.begin() && std::prev(behind)->first.first == partition_->number) {
    count = std::max<uint64_t>(count, std::prev(behind)->first.second + uint64_t{1});
  }
  return static_cast<uint32_t>(count);
}

Chunk Job::chunk_at(uint32_t number) const {
  const Partition& partition = *partition_;
  Chunk chunk{.partition = partition.number, .chunk = number, .bytes = {}};
  const auto mutated = mutated_.find({partition.number, number});
  const auto updated = partition.updated.find(number);
  bool changed = true;
  if (mutated != mutated_.end()) {
    chunk.bytes = mutated->second;
  } else if (updated != partition.updated.end()) {
    chunk.bytes = updated->second;
  } else {
    const uint64_t size_bytes = partition.bytes.size();
    const uint64_t begin = number == 0 ? 0 : std::min(number * welcome_.chunk_bytes, size_bytes);
    chunk.bytes =
        partition.bytes.bytes().subspan(begin, std::min(welcome_.chunk_bytes, size_bytes - begin));
    changed = number >= chunk_count_of(size_bytes, welcome_.chunk_bytes);
  }
  const RecordFormat& record = options_.layout.record;
  if (record.size_bytes == 0) return chunk;
  chunk.edge_count = chunk.bytes.size() / record.size_bytes;
  chunk.active_edge_count = chunk.edge_count;
  if (active_.empty()) return chunk;
  if (changed) {
    std::vector<ChunkEntry> table;
    label_chunk(chunk.bytes, record, table);
    chunk.active_edge_count = count_active_edges(table, active_);
  } else if (labels_) {
    chunk.active_edge_count = count_active_edges(labels_.table(partition.number, number), active_);
  }
  return chunk;
}

Outcome<std::optional<Chunk>> Job::start() {
  if (!partition_) return make_error(EINVAL, "{}: no partition to start with", options_.files[0]);
  barrier();
  Partition& partition = *partition_;
  const bool skips = options_.layout.record.size_bytes != 0;
  while (partition.chunk < chunk_count()) {
    const Chunk chunk = chunk_at(partition.chunk++);
    if (skips && chunk.active_edge_count == 0) continue;
    if (auto given = await_turn(chunk); !given) return given.error();
    partition.started = true;
    partition.started_ns = monotonic_ns();
    partition.edge_count += chunk.edge_count;
    partition.active_edge_count += chunk.active_edge_count;
    return std::optional(chunk);
  }
  return std::optional<Chunk>();
}

// Without a coordinator the chunk is this job's alone.
Outcome<void> Job::await_turn(const Chunk& chunk) {
  if (!socket_) return {};
  const ChunkLoad load = profile_.load(chunk.active_edge_count, chunk.edge_count);
  const Result<void> sent = send_head(
      socket_.get(), TurnMessage{.chunk = chunk.chunk, .process_ns = load.process_ns, .access_ns = load.access_ns});
  if (!sent) {
    const Error error = lost(sent.error());
    return socket_ ? Outcome<void>(error) : Outcome<void>();
  }
  if (partition_->alone) return {};
  auto message = receive();
  if (!message) return socket_ ? Outcome<void>(message.error()) : Outcome<void>();
  if (kind_of(*message) != Kind::kTurnGiven) {
    return make_error(EPROTO, "{}: its coordinator does not know its part", options_.files[0]);
  }
  return {};
}

void Job::barrier() {
  if (!partition_ || !partition_->started) return;
  partition_->started = false;
  partition_->elapsed_ns += monotonic_ns() - partition_->started_ns;
  if (socket_ && !send_head(socket_.get(), PlainMessage{Kind::kDone})) socket_.reset();
}

// --- changes -----------------------------------------------------------------------

Outcome<void> Job::mutate(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  if (partition >= partition_count()) {
    return make_error(EINVAL, "{}: partition {} of {}", options_.files[0], partition, partition_count());
  }
  const uint32_t record_bytes = options_.layout.record.size_bytes;
  if (record_bytes != 0 && bytes.size() % record_bytes != 0) {
    return make_error(EINVAL, "{} bytes are not whole edges of {}", bytes.size(), record_bytes);
  }
  mutated_[{partition, chunk}].assign(bytes.begin(), bytes.end());
  return {};
}

Outcome<uint64_t> Job::update(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  const uint32_t record_bytes = options_.layout.record.size_bytes;
  if (record_bytes != 0 && bytes.size() % record_bytes != 0) {
    return make_error(EINVAL, "{} bytes are not whole edges of {}", bytes.size(), record_bytes);
  }
  if (!socket_) return make_error(ENOTCONN, "{}: lost its coordinator", options_.files[0]);
  auto memory = make_sealed(bytes);
  if (!memory) return memory.error();
  std::vector<Fd> writable;
  std::vector<int> fds{memory->get()};
  for (const std::string& path : options_.files) {
    if (options_.layout.by_loader) break;
    writable.emplace_back(sys::openat(AT_FDCWD, path.c_str(), O_RDWR | O_CLOEXEC));
    if (!writable.back()) return os_error(errno, path, "cannot open for writing");
    fds.push_back(writable.back().get());
  }
  const Result<void> sent =
      send_head(socket_.get(), UpdateMessage{.partition = partition, .chunk = chunk}, {}, fds);
  if (!sent) return lost(sent.error());
  auto message = receive();
  if (!message) return message.error();
  UpdatedMessage updated;
  if (kind_of(*message) != Kind::kUpdated || !message->read(updated)) {
    return make_error(EPROTO, "{}: its coordinator does not know its part", options_.files[0]);
  }
  return updated.version;
}

Outcome<StatisticsMessage> Job::statistics() {
  const Result<void> sent =
      socket_ ? send_head(socket_.get(), PlainMessage{Kind::kAskStatistics}) : Errno{ENOTCONN};
  if (!sent) return lost(sent.error());
  auto message = receive();
  if (!message) return message.error();
  StatisticsMessage statistics;
  if (kind_of(*message) != Kind::kStatistics || !message->read(statistics)) {
    return make_error(EPROTO, "{}: its coordinator does not know its part", options_.files[0]);
  }
  return statistics;
}

}  // namespace graphlane::share
