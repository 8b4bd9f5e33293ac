// Job: one graph job's end of the sharing: GraphM's table 1.
//
//   begin_sweep()        GetActiveVertices()   what this iteration needs
//   next()               Sharing()             a partition, when it is this job's turn
//   start(), barrier()   Start(), Barrier()    its chunks, in step with the other jobs
//
// The coordinator gives units (units.h), an engine sees partitions: start() fetches what follows.
//
// What is active, changed chunks, and what has been done of a sweep stay in the job: no
// other job sees them, and if the coordinator dies the job goes on with a new one.
//
// Threads: one at a time. Between start() and barrier() any thread may read the chunk.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapters/share/client/link.h"
#include "adapters/share/client/overlay.h"
#include "adapters/share/memory/sealed_memory.h"
#include "adapters/share/schedule/labels.h"
#include "adapters/share/schedule/profile.h"

namespace graphlane::share {

struct Chunk {
  uint32_t partition = 0;
  uint32_t chunk = 0;
  std::span<const char> bytes;
  uint64_t edge_count = 0;         // 0: edges are unknown
  uint64_t active_edge_count = 0;  // where that is not known, all are
  uint32_t thread_count = 1;
};

class Job {
 public:
  // Attaches to the graph's coordinator, or starts it.
  static Outcome<std::unique_ptr<Job>> open(JobOptions options);

  // The active vertices of the next sweep, to which also their number must fit; they must
  // stay as they are until it ends. All partitions with an edge from one of them come.
  Outcome<void> begin_sweep(VertexBits active);
  // The same, named by partition.
  Outcome<void> begin_sweep(const PartitionSet& active);

  // The next partition; none: the sweep is over. Without begin_sweep() one over all begins.
  Outcome<std::optional<uint32_t>> next();

  // The partition's next chunk with active edges; none: that was the last one.
  Outcome<std::optional<Chunk>> start();
  void barrier();

  // This job, and no other, finds `bytes` in place of the chunk from now on.
  Outcome<void> mutate(uint32_t partition, uint32_t chunk, std::span<const char> bytes);
  // Jobs that come from now on find `bytes` there; this one does not. The graph's version.
  Outcome<uint64_t> update(uint32_t partition, uint32_t chunk, std::span<const char> bytes);

  Outcome<StatisticsMessage> statistics() { return link_.statistics(); }
  uint64_t chunk_bytes() const { return link_.chunk_bytes(); }
  uint32_t partition_count() const { return link_.layout().partition_count; }
  const EdgeCosts& edge_costs() const { return profile_.costs(); }

 private:
  explicit Job(JobOptions options) : link_(std::move(options)) {}

  // A unit that the job was given. Chunks are numbered as in its partition.
  struct Unit {
    uint32_t partition = 0;
    uint64_t offset = 0;          // in it, in bytes
    bool is_last = true;          // of it
    std::shared_ptr<const Mapping> bytes;
    Mapping overlay;
    ChangedChunks updated;
    uint32_t chunk = 0;           // that comes next
    uint32_t chunk_end = 0;
  };

  // The partition that the job has in its hands.
  struct Partition {
    Partition() {}  // clang does not see that there is one while the class is not complete
    uint32_t number = 0;
    Unit unit;
    uint64_t begin = 0;           // of what it is still to have of it, in bytes
    bool started = false;         // unit.chunk - 1 was started, and not ended
    uint64_t started_ns = 0;
    uint64_t thread_ns = 0;       // of all threads, for the chunks so far
    uint64_t edge_count = 0;
    uint64_t active_edge_count = 0;
  };

  // What was given together.
  struct Batch {
    std::deque<Unit> rest;       // that come without asking
    bool alone = true;
    bool one_turn = false;
    bool turn_taken = false;     // if it is one
    uint32_t thread_count = 1;   // of the last turn
    uint64_t edge_count = 0;
  };

  Outcome<void> begin_sweep_over(PartitionSet units);
  bool is_changed(uint32_t partition) const;
  Outcome<void> send_sweep();
  Outcome<bool> fetch(bool leaves_partition);
  Outcome<void> ask_next(bool leaves_partition);
  Outcome<void> take_units(Message& message);
  Outcome<void> take_labels(int memory);
  Outcome<Unit> unit_of(const GivenUnit& given, std::span<const Fd> memory);
  Outcome<std::shared_ptr<const Mapping>> memory_of(const GivenUnit& given, std::span<const Fd> memory);
  Outcome<void> serve_load(const Message& message);
  Outcome<Fd> make_partition(uint32_t partition) const;
  void take_next_unit();
  bool leave_partition();
  bool forget_rest_of_partition();
  uint32_t next_of_partition() const;
  Outcome<void> check_change(uint32_t partition, std::span<const char> bytes) const;
  Outcome<void> reattach();
  void recut(const Units& before);
  Outcome<void> await_turn(const Chunk& chunk);
  Chunk chunk_at(uint32_t number) const;
  uint32_t chunk_count(uint32_t partition) const;
  bool may_be_active(uint32_t unit) const;

  Link link_;

  bool sweeping_ = false;
  bool all_given_ = false;  // the coordinator said that it is over
  PartitionSet remaining_;  // units that were not given yet
  VertexBits active_;  // empty: all are
  Mapping label_memory_;
  Labels labels_;
  // Of a resident graph, all that was given: mapped anew in each sweep it would cost a page
  // fault every 64 KiB.
  std::map<uint32_t, std::shared_ptr<const Mapping>> kept_;
  std::optional<Partition> partition_;
  Batch batch_;
  std::map<uint32_t, uint64_t> chunk_counts_;  // of partitions of which it has had the last unit
  std::map<std::pair<uint32_t, uint32_t>, std::vector<char>> mutated_;  // by partition, chunk
  std::vector<std::vector<char>> replaced_;  // of these, while a chunk is in the job's hands
  Profile profile_;
  bool profile_told_ = false;
};

}  // namespace graphlane::share
