// cache_jobs GRID VARIANT JOBS CHUNK_BYTES: jobs on one grid, for counting misses of the last-level
// cache (last_level_cache.py). One thread runs WCC, PageRank and BFS in turn, so that cachegrind,
// which simulates one process and one cache, sees their effect on each other.
//
//   in-turn   one after the other
//   at-once   interleaved by a few edges, as on several cores, each from its own copy
//   chunks    interleaved by chunks, all from one copy, as with adapters/share
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kIterations = 3;  // of PageRank
// Of a job beside others: what its core's first cache holds.
constexpr size_t kEdgesAtOnce = 4096;

struct Edge {
  uint32_t source;
  uint32_t target;
};

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

// The edges, from memory: loading them is not counted.
class Edges {
 public:
  explicit Edges(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY);
    struct stat status;
    if (file < 0 || ::fstat(file, &status) < 0) fail(path);
    const auto size_bytes = static_cast<size_t>(status.st_size);
    void* memory =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail(path);
    for (size_t at = 0; at < size_bytes;) {
      const ssize_t got =
          ::pread(file, static_cast<char*>(memory) + at, size_bytes - at, static_cast<off_t>(at));
      if (got <= 0) fail(path);
      at += static_cast<size_t>(got);
    }
    ::close(file);
    begin_ = static_cast<const Edge*>(memory);
    count_ = size_bytes / sizeof(Edge);
  }
  const Edge* begin() const { return begin_; }
  size_t count() const { return count_; }

 private:
  const Edge* begin_;
  size_t count_;
};

class Job {
 public:
  virtual ~Job() = default;
  virtual void process(const Edge* begin, const Edge* end) = 0;
  // Whether there is another one to come.
  virtual bool end_sweep() = 0;
};

class Components : public Job {
 public:
  explicit Components(uint32_t vertex_count) : label_(vertex_count) {
    std::iota(label_.begin(), label_.end(), 0u);
  }
  void process(const Edge* begin, const Edge* end) override {
    for (const Edge* edge = begin; edge != end; ++edge) {
      uint32_t& source = label_[edge->source];
      uint32_t& target = label_[edge->target];
      if (source == target) continue;
      source = target = std::min(source, target);
      changed_ = true;
    }
  }
  bool end_sweep() override { return std::exchange(changed_, false); }

 private:
  std::vector<uint32_t> label_;
  bool changed_ = false;
};

class PageRank : public Job {
 public:
  explicit PageRank(uint32_t vertex_count)
      : degree_(vertex_count), share_(vertex_count), sum_(vertex_count) {}
  void process(const Edge* begin, const Edge* end) override {
    if (sweeps_ == 0) {
      for (const Edge* edge = begin; edge != end; ++edge) ++degree_[edge->source];
    } else {
      for (const Edge* edge = begin; edge != end; ++edge) {
        sum_[edge->target] += share_[edge->source];
      }
    }
  }
  bool end_sweep() override {
    for (size_t v = 0; v < sum_.size(); ++v) {
      const float rank = 0.15f + 0.85f * std::exchange(sum_[v], 0.0f);
      share_[v] = rank / static_cast<float>(std::max(1u, degree_[v]));
    }
    return ++sweeps_ <= kIterations;
  }

 private:
  std::vector<uint32_t> degree_;
  std::vector<float> share_, sum_;
  int sweeps_ = 0;
};

class Levels : public Job {
 public:
  Levels(uint32_t vertex_count, uint32_t root) : level_(vertex_count, kNone) { level_[root] = 0; }
  void process(const Edge* begin, const Edge* end) override {
    for (const Edge* edge = begin; edge != end; ++edge) {
      if (level_[edge->source] != here_ || level_[edge->target] != kNone) continue;
      level_[edge->target] = here_ + 1;
      reached_ = true;
    }
  }
  bool end_sweep() override {
    ++here_;
    return std::exchange(reached_, false);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> level_;
  uint32_t here_ = 0;
  bool reached_ = false;
};

std::unique_ptr<Job> make_job(size_t number, uint32_t vertex_count) {
  if (number % 3 == 0) return std::make_unique<Components>(vertex_count);
  if (number % 3 == 1) return std::make_unique<PageRank>(vertex_count);
  return std::make_unique<Levels>(vertex_count,
                                  static_cast<uint32_t>(number * 7919 % vertex_count));
}

// All sweeps of these jobs, `step` edges each by turns; the n-th from the n-th copy, if there
// are several.
void run(std::vector<Job*> jobs, const std::vector<Edges>& copies, size_t step) {
  const size_t count = copies[0].count();
  std::vector<size_t> place(jobs.size());
  std::iota(place.begin(), place.end(), 0u);
  while (!jobs.empty()) {
    for (size_t at = 0; at < count; at += step) {
      for (size_t i = 0; i < jobs.size(); ++i) {
        const Edge* edges = copies[place[i] % copies.size()].begin();
        jobs[i]->process(edges + at, edges + std::min(count, at + step));
      }
    }
    for (size_t i = jobs.size(); i-- > 0;) {
      if (jobs[i]->end_sweep()) continue;
      jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(i));
      place.erase(place.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: cache_jobs GRID in-turn|at-once|chunks JOBS CHUNK_BYTES\n", stderr);
    return 2;
  }
  const std::string grid = argv[1], variant = argv[2];
  const size_t job_count = std::strtoul(argv[3], nullptr, 10);
  const size_t chunk_edges = std::max<size_t>(1, std::strtoul(argv[4], nullptr, 10) / sizeof(Edge));
  uint32_t kind = 0, vertex_count = 0;
  if (!(std::ifstream(grid + "/meta") >> kind >> vertex_count) || kind != 0) {
    std::fprintf(stderr, "%s: no grid without weights\n", grid.c_str());
    return 1;
  }
  std::vector<std::unique_ptr<Job>> owned;
  std::vector<Job*> jobs;
  std::vector<Edges> copies;
  for (size_t i = 0; i < job_count; ++i) {
    owned.push_back(make_job(i, vertex_count));
    jobs.push_back(owned.back().get());
    if (i == 0 || variant == "at-once") copies.emplace_back(grid + "/column");
  }
  if (variant == "in-turn") {
    for (Job* job : jobs) run({job}, copies, copies[0].count());
  } else {
    run(jobs, copies, variant == "chunks" ? chunk_edges : kEdgesAtOnce);
  }
}
