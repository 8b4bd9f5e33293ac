// stripedio: GraphChi's I/O of its own files, with threads that sleep while there is no work.
//
// A session is a file that is read and written at offsets, or a compressed block, which is read and
// written whole. A shard's adjacency, opened for reading, comes from the pieces that all jobs share
// (graphlane/structure.hpp). Errors end the program with a line.
//
// Threads: any. Reads go before writes. stripedio owns a buffer from the moment it is written with
// free_after.
#ifndef GRAPHLANE_GRAPHCHI_STRIPEDIO_HPP
#define GRAPHLANE_GRAPHCHI_STRIPEDIO_HPP

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

// GraphChi's headers rely on their stripedio.hpp to include these.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "logger/logger.hpp"
#include "metrics/metrics.hpp"
#include "util/cmdopts.hpp"
#include "util/ioutil.hpp"

#include "graphlane/files.hpp"
#include "graphlane/structure.hpp"

// In place of a session number: the block is in the cache and needs no session.
#define CACHED_SESSION_ID (-1)

namespace graphchi {

static inline size_t get_filesize(std::string filename) {
  const int fd = ::open(filename.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) graphlane_graphchi::fail(filename, "cannot open", errno);
  const size_t size_bytes = graphlane_graphchi::size_of(fd, filename);
  ::close(fd);
  return size_bytes;
}

// Blocks of edges' values that stay in memory, by file name, until the budget is used up.
class block_cache {
 public:
  explicit block_cache(size_t budget_bytes) : budget_bytes_(budget_bytes) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;
  ~block_cache() {
    for (const auto& block : blocks_) free(block.second.data);
  }

  // True: the cache now owns `data`, which is from malloc().
  bool consider_caching(std::string filename, void* data, size_t size_bytes, bool compressed) {
    std::lock_guard<std::mutex> lock(mu_);
    if (closed_ || used_bytes_ + size_bytes > budget_bytes_) return false;
    if (!blocks_.insert(std::make_pair(filename, Block{data, size_bytes, compressed})).second) return false;
    used_bytes_ += size_bytes;
    return true;
  }
  void* get_cached(std::string filename) {
    std::lock_guard<std::mutex> lock(mu_);
    const auto found = blocks_.find(filename);
    return found == blocks_.end() ? nullptr : found->second.data;
  }

 private:
  friend class stripedio;
  struct Block {
    void* data;
    size_t size_bytes;
    bool compressed;
  };

  std::mutex mu_;
  size_t budget_bytes_;
  size_t used_bytes_ = 0;
  bool closed_ = false;
  std::map<std::string, Block> blocks_;
};

class stripedio {
 public:
  explicit stripedio(metrics& m) : metrics_(m), cache_(0) {
    if (get_option_int("multiplex", 1) > 1) {
      graphlane_graphchi::fail("multiplex: several devices are for a Graphlane volume, not for this option");
    }
    const int count = std::max(1, get_option_int("niothreads", 1));
    metrics_.set("niothreads", static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
  }
  stripedio(const stripedio&) = delete;
  stripedio& operator=(const stripedio&) = delete;
  ~stripedio() {
    wait_for_reads();
    wait_for_writes();
    {
      std::lock_guard<std::mutex> lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    for (Session& session : sessions_) {
      if (session.fd >= 0) ::close(session.fd);
    }
    for (const auto& mapped : mapped_) ::munmap(mapped.second.first, mapped.second.second);
  }

  // --- sessions -------------------------------------------------------------------

  int open_session(std::string filename, bool readonly = false, bool compressed = false) {
    Session session;
    session.filename = filename;
    session.compressed = compressed;
    if (readonly && !compressed) {
      auto adjacency = std::make_shared<graphlane_graphchi::Adjacency>(filename);
      if (adjacency->structure()) session.adjacency = adjacency;
    }
    if (!session.adjacency) {
      session.fd = ::open(filename.c_str(), (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
      if (session.fd < 0) graphlane_graphchi::fail(filename, "cannot open", errno);
    }
    std::lock_guard<std::mutex> lock(mu_);
    // Numbers are not reused, because GraphChi's own code closes some sessions twice.
    sessions_.push_back(session);
    return static_cast<int>(sessions_.size()) - 1;
  }
  void close_session(int session) {
    std::lock_guard<std::mutex> lock(mu_);
    Session& it = sessions_.at(static_cast<size_t>(session));
    if (it.fd >= 0) ::close(it.fd);
    it.fd = -1;
    it.adjacency.reset();
  }
  std::string& get_session_filename(int session) { return at(session).filename; }
  void print_session(int session) { std::cout << "file: " << at(session).filename << std::endl; }
  void truncate(int session, size_t size_bytes) {
    const Session& it = at(session);
    if (::ftruncate(it.fd, static_cast<off_t>(size_bytes)) != 0) {
      graphlane_graphchi::fail(it.filename, "cannot resize", errno);
    }
  }
  bool compressed_session(int session) { return at(session).compressed; }

  // --- synchronous ----------------------------------------------------------------

  template <typename T>
  void preada_now(int session, T* data, size_t size_bytes, size_t offset, bool /*dupfd*/ = false) {
    read(at(session), reinterpret_cast<char*>(data), size_bytes, offset);
  }
  template <typename T>
  void pwritea_now(int session, T* data, size_t size_bytes, size_t offset) {
    write(at(session), reinterpret_cast<const char*>(data), size_bytes, offset);
  }

  // --- asynchronous, by the threads -------------------------------------------------

  // Decrements *done when the bytes are there.
  template <typename T>
  void preada_async(int session, T* data, size_t size_bytes, size_t offset, volatile int* done = nullptr) {
    Task task;
    task.session = session;
    task.data = reinterpret_cast<char*>(data);
    task.size_bytes = size_bytes;
    task.offset = offset;
    task.done = done;
    push(task, reads_, pending_reads_);
  }
  template <typename T>
  void pwritea_async(int session, T* data, size_t size_bytes, size_t offset, bool free_after,
                     bool close_fd = false) {
    Task task;
    task.session = session;
    task.data = reinterpret_cast<char*>(data);
    task.size_bytes = size_bytes;
    task.offset = offset;
    task.is_write = true;
    task.free_after = free_after;
    task.close_after = close_fd;
    push(task, writes_, pending_writes_);
  }
  void wait_for_reads() { wait_for(pending_reads_); }
  void wait_for_writes() { wait_for(pending_writes_); }

  // --- GraphChi's names for these, with buffers by address ------------------------------

  template <typename T>
  void managed_malloc(int session, T** data, size_t size_bytes, size_t /*offset*/) {
    *data = static_cast<T*>(malloc(std::max<size_t>(size_bytes, 1)));
    if (*data == nullptr) {
      graphlane_graphchi::fail(at(session).filename + ": no memory for " + std::to_string(size_bytes) + " bytes");
    }
  }
  template <typename T>
  void managed_release(int /*session*/, T** data) {
    assert(*data != nullptr);
    free(*data);
    *data = nullptr;
  }
  template <typename T>
  void managed_preada_now(int session, T** data, size_t size_bytes, size_t offset) {
    preada_now(session, *data, size_bytes, offset);
  }
  template <typename T>
  void managed_pwritea_now(int session, T** data, size_t size_bytes, size_t offset) {
    pwritea_now(session, *data, size_bytes, offset);
  }
  template <typename T>
  void managed_preada_async(int session, T** data, size_t size_bytes, size_t offset, volatile int* done = nullptr) {
    preada_async(session, *data, size_bytes, offset, done);
  }
  template <typename T>
  void managed_pwritea_async(int session, T** data, size_t size_bytes, size_t offset, bool free_after,
                             bool close_fd = false) {
    pwritea_async(session, *data, size_bytes, offset, free_after, close_fd);
  }

  // --- the cache --------------------------------------------------------------------

  block_cache& get_block_cache() { return cache_; }
  void set_cache_budget(size_t budget_bytes) {
    std::lock_guard<std::mutex> lock(cache_.mu_);
    cache_.budget_bytes_ = budget_bytes;
    cache_.closed_ = false;
  }
  void commit_cached_blocks() {
    for (const auto& block : cache_.blocks_) {
      const int session = open_session(block.first, false, block.second.compressed);
      pwritea_now(session, static_cast<char*>(block.second.data), block.second.size_bytes, 0);
      close_session(session);
    }
  }

  // Call it after each pass over the graph. It stops further caching, and adds the coordinator's
  // statistics to the metrics.
  void first_pass_finished() {
    {
      std::lock_guard<std::mutex> lock(cache_.mu_);
      cache_.closed_ = true;
    }
    std::shared_ptr<graphlane_graphchi::Structure> structure;
    {
      std::lock_guard<std::mutex> lock(mu_);
      structure = structure_;
    }
    if (!structure) return;
    graphlane_share_statistics seen;
    if (!structure->get_statistics(seen)) return;
    metrics_.set("graphlane.jobs", static_cast<size_t>(seen.jobs));
    metrics_.set("graphlane.loaded_bytes", static_cast<size_t>(seen.loaded_bytes));
    metrics_.set("graphlane.shared_bytes", static_cast<size_t>(seen.shared_bytes));
    metrics_.set("graphlane.late", static_cast<size_t>(seen.late));
  }

  // Not GraphChi's: opens a shard's adjacency, of the shared graph if it has one.
  std::shared_ptr<graphlane_graphchi::Adjacency> open_adjacency(const std::string& filename) {
    auto adjacency = std::make_shared<graphlane_graphchi::Adjacency>(filename);
    std::lock_guard<std::mutex> lock(mu_);
    if (adjacency->structure()) structure_ = adjacency->structure();
    return adjacency;
  }

  // --- interface for several devices, of which there is one here ------------------------

  bool multiplexed() { return false; }
  std::string multiplexprefix(int) { return ""; }
  std::string multiplexprefix_random() { return ""; }

  void* get_mmaped_file(std::string& filename, bool write) {
    const std::string key = write ? filename + "?w" : filename;
    std::lock_guard<std::mutex> lock(mu_);
    const auto known = mapped_.find(key);
    if (known != mapped_.end()) return known->second.first;
    const int fd = ::open(filename.c_str(), (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) graphlane_graphchi::fail(filename, "cannot open", errno);
    const size_t size_bytes = graphlane_graphchi::size_of(fd, filename);
    void* address = ::mmap(nullptr, size_bytes, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) graphlane_graphchi::fail(filename, "cannot map", errno);
    ::close(fd);
    mapped_[key] = std::make_pair(address, size_bytes);
    return address;
  }

 private:
  struct Session {
    std::string filename;
    int fd = -1;
    bool compressed = false;
    std::shared_ptr<graphlane_graphchi::Adjacency> adjacency;
  };
  struct Task {
    int session = 0;
    char* data = nullptr;
    size_t size_bytes = 0;
    size_t offset = 0;
    bool is_write = false;
    bool free_after = false;
    bool close_after = false;
    volatile int* done = nullptr;
  };

  // Sessions never move, because they are in a deque.
  Session& at(int session) {
    std::lock_guard<std::mutex> lock(mu_);
    return sessions_.at(static_cast<size_t>(session));
  }

  void read(Session& session, char* data, size_t size_bytes, size_t offset) {
    if (session.adjacency) {
      session.adjacency->copy(data, size_bytes, offset);
    } else if (session.compressed) {
      assert(offset == 0);
      read_block(session, data, size_bytes);
    } else {
      graphlane_graphchi::read_at(session.fd, session.filename, data, size_bytes, offset);
    }
  }
  void write(Session& session, const char* data, size_t size_bytes, size_t offset) {
    if (session.compressed) {
      assert(offset == 0);
      write_block(session, data, size_bytes);
    } else {
      graphlane_graphchi::write_at(session.fd, session.filename, data, size_bytes, offset);
    }
  }

#ifndef GRAPHCHI_DISABLE_COMPRESSION
  static void read_block(const Session& session, char* data, size_t size_bytes) {
    std::vector<char> packed(graphlane_graphchi::size_of(session.fd, session.filename));
    graphlane_graphchi::read_at(session.fd, session.filename, packed.data(), packed.size(), 0);
    uLongf length_bytes = size_bytes;
    const int result = ::uncompress(reinterpret_cast<Bytef*>(data), &length_bytes,
                                    reinterpret_cast<const Bytef*>(packed.data()), packed.size());
    if (result != Z_OK || length_bytes != size_bytes) {
      graphlane_graphchi::fail(session.filename + ": damaged: no zlib stream of " + std::to_string(size_bytes) +
                               " bytes");
    }
  }
  static void write_block(const Session& session, const char* data, size_t size_bytes) {
    uLongf length_bytes = ::compressBound(size_bytes);
    std::unique_ptr<char[]> packed(new char[length_bytes]);
    if (::compress2(reinterpret_cast<Bytef*>(packed.get()), &length_bytes, reinterpret_cast<const Bytef*>(data),
                    size_bytes, Z_BEST_SPEED) != Z_OK) {
      graphlane_graphchi::fail(session.filename + ": cannot compress");
    }
    replace(session, packed.get(), length_bytes);
  }
#else
  static void read_block(const Session& session, char* data, size_t size_bytes) {
    graphlane_graphchi::read_at(session.fd, session.filename, data, size_bytes, 0);
  }
  static void write_block(const Session& session, const char* data, size_t size_bytes) {
    replace(session, data, size_bytes);
  }
#endif

  // Replaces the file's bytes under its lock, for programs that copy it (graphlane/values.hpp).
  static void replace(const Session& session, const char* data, size_t size_bytes) {
    while (::flock(session.fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    graphlane_graphchi::write_at(session.fd, session.filename, data, size_bytes, 0);
    if (::ftruncate(session.fd, static_cast<off_t>(size_bytes)) != 0) {
      graphlane_graphchi::fail(session.filename, "cannot resize", errno);
    }
    ::flock(session.fd, LOCK_UN);
  }

  void push(const Task& task, std::deque<Task>& queue, size_t& pending) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      queue.push_back(task);
      ++pending;
    }
    changed_.notify_one();
  }
  void wait_for(const size_t& pending) {
    std::unique_lock<std::mutex> lock(mu_);
    idle_.wait(lock, [&] { return pending == 0; });
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !reads_.empty() || !writes_.empty(); });
      if (reads_.empty() && writes_.empty()) return;
      std::deque<Task>& queue = reads_.empty() ? writes_ : reads_;
      const Task task = queue.front();
      queue.pop_front();
      Session& session = sessions_.at(static_cast<size_t>(task.session));
      lock.unlock();
      if (task.is_write) {
        write(session, task.data, task.size_bytes, task.offset);
        if (task.free_after) free(task.data);
        if (task.close_after) close_session(task.session);
      } else {
        read(session, task.data, task.size_bytes, task.offset);
      }
      if (task.done != nullptr) __sync_sub_and_fetch(task.done, 1);
      lock.lock();
      size_t& pending = task.is_write ? pending_writes_ : pending_reads_;
      if (--pending == 0) idle_.notify_all();
    }
  }

  metrics& metrics_;
  block_cache cache_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::deque<Session> sessions_;
  std::deque<Task> reads_;
  std::deque<Task> writes_;
  size_t pending_reads_ = 0;
  size_t pending_writes_ = 0;
  bool stopping_ = false;
  std::shared_ptr<graphlane_graphchi::Structure> structure_;
  std::map<std::string, std::pair<void*, size_t>> mapped_;
  std::vector<std::thread> threads_;  // last, because they use the members above
};

}  // namespace graphchi

#endif
