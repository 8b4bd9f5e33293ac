// C++ over graphlane_share.h: a job that ends in its destructor, loops, and exceptions.
//
//   graphlane::ShareJob job = graphlane::ShareJob::grid("LiveJournal");
//   job.sweep(active, vertex_count, [&](const graphlane_share_chunk& chunk) { … });
//
// Header only, C++17. Threads, sizes and sets are as in the C header.
#ifndef GRAPHLANE_SHARE_HPP
#define GRAPHLANE_SHARE_HPP

#include <graphlane_share.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

namespace graphlane {

// code(): a positive errno. what(): the text of graphlane_share_error().
class ShareError : public std::runtime_error {
 public:
  explicit ShareError(int code) : std::runtime_error(graphlane_share_error()), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

class ShareJob {
 public:
  explicit ShareJob(const graphlane_share_options& options) {
    graphlane_share* job = nullptr;
    check(graphlane_share_init(&options, &job));
    job_.reset(job);
  }
  static ShareJob grid(const char* path, const graphlane_share_options& options = {}) {
    ShareJob job;
    graphlane_share* opened = nullptr;
    check(graphlane_share_init_grid(path, &options, &opened, &job.info_));
    job.job_.reset(opened);
    return job;
  }

  // Facts of the grid; zeros if the job is not on a grid.
  const graphlane_share_grid& info() const { return info_; }

  // One iteration: process(chunk) for each chunk with active edges.
  template <class Process>
  void sweep(const Process& process) {
    uint32_t partition;
    graphlane_share_chunk chunk;
    while (check(graphlane_share_sharing(job_.get(), &partition)) == 1) {
      while (check(graphlane_share_start(job_.get(), &chunk)) == 1) {
        process(static_cast<const graphlane_share_chunk&>(chunk));
        check(graphlane_share_barrier(job_.get()));
      }
    }
  }
  template <class Process>
  void sweep(const uint64_t* active_vertices, uint64_t vertex_count, const Process& process) {
    check(graphlane_share_get_active_vertices(job_.get(), active_vertices, vertex_count));
    sweep(process);
  }
  template <class Process>
  void sweep_partitions(const uint64_t* active_partitions, const Process& process) {
    check(graphlane_share_get_active_partitions(job_.get(), active_partitions));
    sweep(process);
  }

  void mutate(uint32_t partition, uint32_t chunk, const void* data, uint64_t size_bytes) {
    check(graphlane_share_mutate(job_.get(), partition, chunk, data, size_bytes));
  }
  void update(uint32_t partition, uint32_t chunk, const void* data, uint64_t size_bytes) {
    check(graphlane_share_update(job_.get(), partition, chunk, data, size_bytes));
  }
  graphlane_share_statistics statistics() const {
    graphlane_share_statistics statistics;
    check(graphlane_share_get_statistics(job_.get(), &statistics));
    return statistics;
  }
  graphlane_share* get() const { return job_.get(); }

 private:
  struct End {
    void operator()(graphlane_share* job) const { graphlane_share_end(job); }
  };

  ShareJob() = default;
  static int check(int result) {
    if (result < 0) throw ShareError(-result);
    return result;
  }

  std::unique_ptr<graphlane_share, End> job_;
  graphlane_share_grid info_ = {};
};

}  // namespace graphlane

#endif
