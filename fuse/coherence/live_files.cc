#include "fuse/coherence/live_files.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "fuse/inode/inode_table.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
namespace {

constexpr auto kIdle = std::chrono::seconds(5);

// The fraction of all descriptors for idle files: each has its parts and two for its stub.
constexpr size_t kIdleShare = 8;

size_t idle_files_max(uint32_t device_count) {
  constexpr size_t kLeast = 4;
  return std::max(kLeast, 2 * InodeTable::half_of_descriptors() / kIdleShare / (device_count + 3));
}

// Above this many files, syncing whole filesystems is cheaper than syncing each file.
constexpr size_t kSyncSinglyMax = 8;

void start_thread(std::thread* thread, std::function<void()> work) {
  sigset_t all, before;  // signals are for the session's owner thread
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  *thread = std::thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A file without a name needs no sync. Its parts have no names either, so no size is written. A
// process that has it open can reopen it through /proc.
void close_without_a_name(LiveFile& file) { (void)file.say_closed(file.change_count()); }

}  // namespace

bool has_no_name(int stub_fd) {
  struct stat st;
  return ::fstat(stub_fd, &st) == 0 && st.st_nlink == 0;
}

size_t LiveFiles::IdHash::operator()(const Uuid& id) const {
  size_t hash;  // random bytes already
  std::memcpy(&hash, id.bytes.data(), sizeof hash);
  return hash;
}

LiveFiles::LiveFiles(const Volume& volume)
    : volume_(volume), idle_max_(idle_files_max(volume.device_count())) {
  start_thread(&closer_, [this] { run(); });
}

LiveFiles::~LiveFiles() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.notify_all();
  }
  closer_.join();
}

std::shared_ptr<LiveFile> LiveFiles::find(const Uuid& file_id, const struct stat& stub) {
  MutexLock lock(mu_);
  const auto entry = entries_.find(file_id);
  return entry != entries_.end() && entry->second.is_of(stub) ? entry->second.file : nullptr;
}

std::shared_ptr<LiveFile> LiveFiles::find(const Uuid& file_id) {
  MutexLock lock(mu_);
  const auto entry = entries_.find(file_id);
  return entry != entries_.end() ? entry->second.file : nullptr;
}

bool LiveFiles::has(const Uuid& file_id) {
  MutexLock lock(mu_);
  return entries_.contains(file_id);
}

LiveFiles::Writer LiveFiles::join(const Uuid& file_id, const struct stat& stub) {
  MutexLock lock(mu_);
  const auto entry = entries_.find(file_id);
  const bool is_here = entry != entries_.end() && entry->second.is_of(stub);
  return is_here && entry->second.writer_count > 0 ? add_writer(entry->second) : Writer();
}

bool LiveFiles::has_writers(const Uuid& file_id) {
  MutexLock lock(mu_);
  const auto entry = entries_.find(file_id);
  return entry != entries_.end() && entry->second.writer_count > 0;
}

LiveFiles::Writer LiveFiles::add_writer(Entry& entry) {
  if (entry.writer_count++ == 0) generations_.advance(entry.file->file()->layout().file_id);
  return Writer(*this, entry.file);
}

Outcome<LiveFiles::Writer> LiveFiles::acquire(const Layout& layout, Fd stub, std::string_view name,
                                              std::shared_ptr<StripedFile> shared) {
  struct stat st;
  if (::fstat(stub.get(), &st) != 0) return os_error(errno, name, "cannot look at the stub");
  bool is_anothers = false;
  const auto join = [&] {
    MutexLock lock(mu_);
    const auto entry = entries_.find(layout.file_id);
    is_anothers = entry != entries_.end() && !entry->second.is_of(st);
    return entry == entries_.end() || is_anothers ? Writer() : add_writer(entry->second);
  };
  if (Writer writer = join()) return writer;
  make_room();
  const MutexLock opening(opening_);
  if (Writer writer = join()) return writer;
  if (is_anothers) return make_error(EIO, "{}: {}", name, describe(Ownership::kCopy));
  auto opened = LiveFile::open(volume_, layout, std::move(stub), name, std::move(shared));
  if (!opened) return opened.error();
  MutexLock lock(mu_);
  Entry& entry = entries_[layout.file_id];
  entry.file = std::move(*opened);
  entry.device = st.st_dev;
  entry.inode = st.st_ino;
  Writer first = add_writer(entry);
  first.is_first_ = true;
  return first;
}

void LiveFiles::follow_stub(StripedFile& file) {
  const MutexLock opening(opening_);  // no writer can begin meanwhile
  struct stat st;
  if (::fstat(file.held_stub(), &st) != 0 || find(file.layout().file_id, st)) return;
  Layout now;
  const auto verdict = read_stub(file.held_stub(), kStubSize, &now);
  if (verdict.value_or(StubVerdict::kNotAStub) != StubVerdict::kStub) return;
  file.set_size(current_layout(volume_, now).logical_size);
}

void LiveFiles::release(const LiveFile& file) {
  MutexLock lock(mu_);
  const Uuid& file_id = file.file()->layout().file_id;
  Entry& entry = entries_.at(file_id);
  entry.writer_count -= 1;
  if (entry.writer_count > 0) return;
  generations_.advance(file_id);
  entry.idle_since = Clock::now();
  if (has_no_name(file.stub_fd())) {
    close_without_a_name(*entry.file);
    entries_.erase(file_id);
  } else {
    changed_.notify_one();
  }
}

void LiveFiles::drop(const Uuid& file_id) {
  MutexLock lock(mu_);
  const auto entry = entries_.find(file_id);
  if (entry == entries_.end() || entry->second.writer_count > 0) return;
  close_without_a_name(*entry->second.file);
  entries_.erase(entry);
}

std::vector<std::shared_ptr<LiveFile>> LiveFiles::take_idle(Clock::time_point since) {
  std::vector<std::shared_ptr<LiveFile>> files;
  for (const auto& [id, entry] : entries_) {
    if (entry.writer_count == 0 && entry.idle_since <= since) files.push_back(entry.file);
  }
  return files;
}

void LiveFiles::close_now(const std::vector<std::shared_ptr<LiveFile>>& files) {
  close(files);
  const MutexLock lock(mu_);
  drop_closed(files);
}

// The next open for writing waits for it: else files would come faster than they go.
// The next open for writing waits for it, because files could otherwise come faster than they
// close.
void LiveFiles::make_room() {
  std::vector<std::shared_ptr<LiveFile>> older;
  {
    const MutexLock lock(mu_);
    if (entries_.size() < idle_max_) return;
    std::vector<Clock::time_point> times;
    for (const auto& [id, entry] : entries_) {
      if (entry.writer_count == 0) times.push_back(entry.idle_since);
    }
    if (times.size() < idle_max_) return;
    const auto median = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), median, times.end());
    older = take_idle(*median);
  }
  close_now(older);
}

bool LiveFiles::close_idle() {
  std::vector<std::shared_ptr<LiveFile>> idle;
  {
    const MutexLock lock(mu_);
    idle = take_idle(Clock::time_point::max());
  }
  if (idle.empty()) return false;
  close_now(idle);
  return true;
}

void LiveFiles::run() {
  struct Held {
    Generations& generations;
    ~Held() { generations.release(); }
  } const held{generations_};
  generations_.hold();
  MutexLock lock(mu_);
  for (;;) {
    const bool last = stopping_;
    const Clock::time_point now = Clock::now();
    auto idle = take_idle(last ? Clock::time_point::max() : now - kIdle);
    if (!idle.empty()) {
      mu_.unlock();
      // Processes that want to write a file need not wait for its checksums.
      for (const auto& file : idle) {
        if (last) file->give_way();
      }
      close(idle);
      mu_.lock();
      drop_closed(idle);
      idle.clear();  // at once, because their locks keep other writers out
    }
    if (last) return;
    if (stopping_) continue;
    if (entries_.empty()) {
      changed_.wait(mu_);
    } else {
      changed_.wait_until(mu_, now + kIdle);
    }
  }
}

// Syncs the filesystems of all devices in parallel. False: one of them failed.
bool LiveFiles::sync_devices() const {
  std::atomic<bool> all{true};
  parallel_for(volume_.device_count(), [&](uint32_t d) {
    if (::syncfs(volume_.devices()[d].root_fd.get()) != 0) all = false;
  });
  return all;
}

// Syncs the data first, then the parts' records, then the stub with state `closed`.
void LiveFiles::close(const std::vector<std::shared_ptr<LiveFile>>& files) {
  struct Closing {
    LiveFile& file;
    uint64_t change_count;
    Result<void> done;
  };
  std::vector<Closing> closing;
  for (const auto& file : files) {
    const uint64_t change_count = file->change_count();
    if (file->needs_close() && !has_no_name(file->stub_fd())) {
      closing.push_back({*file, change_count, {}});
    }
  }
  const bool together = closing.size() > kSyncSinglyMax;
  if (together && !sync_devices()) {
    for (Closing& one : closing) {
      one.done = Errno{EIO};
      one.file.file()->count_sync_error(EIO);
    }
  }
  for (Closing& one : closing) {
    if (!together) one.done = one.file.sync(true);
    if (one.done) one.done = one.file.update_sums(one.change_count);
    if (one.done) one.done = one.file.record_close(one.change_count);
  }
  const bool recorded = !together || sync_devices();
  for (Closing& one : closing) {
    if (one.done && !recorded) one.done = Errno{EIO};
    if (one.done && !together) one.done = one.file.sync_records();
    if (one.done) one.done = one.file.say_closed(one.change_count);
    // The stub stays `open`, which loses nothing.
    if (!one.done && one.done.error().code != EAGAIN) {
      log_line("{}: cannot be closed: {}", one.file.file()->name(),
               error_text(one.done.error().code));
    }
  }
}

void LiveFiles::drop_closed(const std::vector<std::shared_ptr<LiveFile>>& files) {
  for (const auto& file : files) {
    const auto entry = entries_.find(file->file()->layout().file_id);
    if (entry == entries_.end() || entry->second.writer_count > 0) continue;
    if (file->is_open() && !has_no_name(file->stub_fd())) {
      entry->second.idle_since = Clock::now();
    } else {
      entries_.erase(entry);
    }
  }
}

}  // namespace graphlane::fuse
