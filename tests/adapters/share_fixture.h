// Fixture for tests of whole jobs: a small graph in a temporary directory, jobs in processes of
// their own, and a view of the coordinator.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <graphlane_share.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "adapters/share/schedule/chunk_size.h"

namespace graphlane::share {

struct TestEdge {
  uint32_t source;
  uint32_t target;
};

// Each edge adds a random value. The sum does not depend on the order, so a sweep's total shows
// whether each edge came once.
inline uint64_t edge_hash(const TestEdge& edge) {
  uint64_t x = (uint64_t{edge.source} << 32 | edge.target) + 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

inline uint64_t hash_of(const void* edges, uint64_t size_bytes) {
  uint64_t sum = 0;
  for (uint64_t at = 0; at + sizeof(TestEdge) <= size_bytes; at += sizeof(TestEdge)) {
    TestEdge edge;
    std::memcpy(&edge, static_cast<const char*>(edges) + at, sizeof edge);
    sum += edge_hash(edge);
  }
  return sum;
}

inline constexpr unsigned kHangSeconds = 60;

// A number shared between processes.
template <class T>
class Shared {
 public:
  Shared()
      : value_(new(::mmap(nullptr, sizeof(std::atomic<T>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<T>(T{})) {}
  ~Shared() { ::munmap(static_cast<void*>(value_), sizeof(std::atomic<T>)); }
  Shared(const Shared&) = delete;
  std::atomic<T>& operator*() { return *value_; }
  std::atomic<T>* operator->() { return value_; }
  // A job's alarm ends a hang; in the test's own process, this one does.
  void await(T value) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2 * kHangSeconds);
    while (value_->load() < value) {
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waits for ever");
      ::usleep(1000);
    }
  }

 private:
  std::atomic<T>* value_;
};

// A job in its own process. It passes if `body` returns, and no expectation failed.
class JobProcess {
 public:
  explicit JobProcess(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(kHangSeconds);
    try {
      body();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  JobProcess(JobProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  JobProcess& operator=(JobProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~JobProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }

  pid_t pid() const { return pid_; }
  void send(int number) const { ::kill(pid_, number); }
  // Exit status; −signal.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void await_stop() const {
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

 private:
  pid_t pid_;
};

class ShareTest : public testing::Test {
 protected:
  static constexpr uint32_t kVertices = 1000;
  static constexpr uint32_t kGrid = 4;
  static constexpr uint32_t kPartitions = kGrid * kGrid;

  ShareTest() {
    std::string name = (std::filesystem::temp_directory_path() / "share-XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
    ::chmod(dir_.c_str(), 0755);
    // Tells the coordinators which jobs belong to this test.
    ::setenv("GRAPHLANE_SHARE_TEST", dir_.c_str(), 1);
    // A coordinator that crashed would be replaced unnoticed.
    ::setenv("GRAPHLANE_SHARE_LOG", path("log").c_str(), 1);
    std::ofstream(path("log")).close();
    ::chmod(path("log").c_str(), 0666);
    make_grid(20'000, 1);
  }
  ~ShareTest() override {
    for (const pid_t pid : coordinators()) ::kill(pid, SIGKILL);
    await_end_of_coordinators();
    std::ifstream log(path("log"));
    for (std::string line; std::getline(log, line);) {
      // LeakSanitizer counts a joined thread that the kernel still lists.
      if (line.find("Unable to get registers from thread") == line.npos) ADD_FAILURE() << line;
    }
    std::filesystem::remove_all(dir_);
  }

  // The files of a GridGraph grid that the kit reads.
  void make_grid(size_t edge_count, uint32_t seed) {
    std::mt19937 twister(seed);
    const auto random = [&] { return static_cast<uint32_t>(twister()); };
    std::vector<std::vector<TestEdge>> blocks(kPartitions);
    const uint32_t width = kVertices / kGrid;
    for (size_t i = 0; i < edge_count; ++i) {
      const TestEdge edge{random() % kVertices, random() % kVertices};
      blocks[edge.target / width * kGrid + edge.source / width].push_back(edge);
    }
    std::ofstream column(path("column"), std::ios::binary);
    std::ofstream offsets(path("column_offset"), std::ios::binary);
    int64_t offset = 0;
    edges_.clear();
    block_begin_.clear();
    for (const auto& block : blocks) {
      offsets.write(reinterpret_cast<const char*>(&offset), sizeof offset);
      block_begin_.push_back(edges_.size());
      column.write(reinterpret_cast<const char*>(block.data()),
                   static_cast<std::streamsize>(block.size() * sizeof(TestEdge)));
      edges_.insert(edges_.end(), block.begin(), block.end());
      offset += static_cast<int64_t>(block.size() * sizeof(TestEdge));
    }
    block_begin_.push_back(edges_.size());
    offsets.write(reinterpret_cast<const char*>(&offset), sizeof offset);
    std::ofstream(path("meta")) << "0 " << kVertices << " " << edge_count << " " << kGrid;
    hash_ = hash_of(edges_.data(), edges_.size() * sizeof(TestEdge));
  }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  uint64_t graph_bytes() const { return edges_.size() * sizeof(TestEdge); }
  uint64_t partition_bytes_max() const {
    uint64_t most = 0;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      most = std::max<uint64_t>(most, (block_begin_[p + 1] - block_begin_[p]) * sizeof(TestEdge));
    }
    return most;
  }

  graphlane_share_options options() const {
    graphlane_share_options options{};
    options.budget_bytes = budget_bytes_;
    options.idle_ms = 200;
    options.vertex_bytes = vertex_bytes_for_small_chunks();
    return options;
  }
  // Formula 1 makes chunks small where vertices are large: about 1 KiB here, a tenth of a
  // partition.
  uint32_t vertex_bytes_for_small_chunks() const {
    const LastLevelCache cache = read_last_level_cache();
    return static_cast<uint32_t>(cache.size_bytes / 1024 * graph_bytes() / cache.core_count /
                                 kVertices);
  }
  ShareJob job() const { return ShareJob::grid(dir_.c_str(), options()); }
  // Another graph of the same file, cut into so many equal partitions.
  ShareJob job_by_parts(uint32_t partition_count) const {
    return job_by_parts(partition_count, options());
  }
  ShareJob job_by_parts(uint32_t partition_count, graphlane_share_options options) const {
    const std::string name = path("column");
    const char* files[] = {name.c_str()};
    std::vector<graphlane_share_range> ranges;
    const uint64_t length_bytes = graph_bytes() / partition_count;
    for (uint32_t p = 0; p < partition_count; ++p) {
      ranges.push_back({p, 0, p * length_bytes, length_bytes});
    }
    options.files = files;
    options.file_count = 1;
    options.partition_count = partition_count;
    options.ranges = ranges.data();
    options.range_count = partition_count;
    options.record_bytes = sizeof(TestEdge);
    options.vertex_count = kVertices;
    return ShareJob(options);
  }

  // Sweeps once over all partitions. Returns the hash of the edges.
  static uint64_t sweep(ShareJob& job, const std::function<void()>& at_chunk = [] {}) {
    uint64_t sum = 0;
    job.sweep([&](const graphlane_share_chunk& chunk) {
      at_chunk();
      sum += hash_of(chunk.data, chunk.size_bytes);
    });
    return sum;
  }

  // The processes that serve this test's graph.
  std::vector<pid_t> coordinators() const {
    const std::string mark = "GRAPHLANE_SHARE_TEST=" + dir_;
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      std::ifstream file(entry.path() / "environ");
      const std::string words{std::istreambuf_iterator<char>(file), {}};
      if (words.find(mark) != words.npos) found.push_back(std::stoi(name));
    }
    return found;
  }
  pid_t coordinator() const {
    const std::vector<pid_t> found = coordinators();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? 0 : found[0];
  }
  static size_t descriptor_count(pid_t pid) {
    std::error_code ignored;
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
      ++count;
    }
    return count;
  }
  void await_end_of_coordinators() const {
    for (unsigned i = 0; i < 100 * kHangSeconds && !coordinators().empty(); ++i) ::usleep(10'000);
    EXPECT_TRUE(coordinators().empty());
  }

  std::string dir_;
  uint64_t budget_bytes_ = uint64_t{1} << 30;
  std::vector<TestEdge> edges_;      // as `column` holds them
  std::vector<size_t> block_begin_;  // in edges_
  uint64_t hash_ = 0;
};

}  // namespace graphlane::share
