// Job: a graph job's side of the sharing: GraphM's table 1.
//
//   begin_sweep()        GetActiveVertices()   what this iteration needs
//   next()               Sharing()             a partition, when it is this job's turn
//   start(), barrier()   Start(), Barrier()    its chunks, in step with the other jobs
//
// The coordinator gives units (units.h). An engine sees partitions: start() fetches further units.
//
// Active vertices, mutated chunks and the progress of a sweep stay in the job. No other job sees
// them, and after a coordinator's death the job goes on with a new one.
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
  uint64_t active_edge_count = 0;  // without labels: all edges
  uint32_t thread_count = 1;
};

class Job {
 public:
  // Connects to the graph's coordinator, or starts it.
  static Outcome<std::unique_ptr<Job>> open(JobOptions options);

  // Begins a sweep over all partitions with an edge from an active vertex. `active` must not
  // change until the sweep ends.
  Outcome<void> begin_sweep(VertexBits active);
  // Begins a sweep over these partitions.
  Outcome<void> begin_sweep(const PartitionSet& active);

  // The next partition; none: the sweep is over. Begins a sweep over all partitions if needed.
  Outcome<std::optional<uint32_t>> next();

  // The partition's next chunk with active edges; none: there is no further one.
  Outcome<std::optional<Chunk>> start();
  void barrier();

  // From now on this job, and no other, finds `bytes` in place of the chunk.
  Outcome<void> mutate(uint32_t partition, uint32_t chunk, std::span<const char> bytes);
  // Jobs that attach from now on find `bytes` there; this one does not. Returns the new version.
  Outcome<uint64_t> update(uint32_t partition, uint32_t chunk, std::span<const char> bytes);

  Outcome<StatisticsMessage> statistics() { return link_.statistics(); }
  uint64_t chunk_bytes() const { return link_.chunk_bytes(); }
  uint32_t partition_count() const { return link_.layout().partition_count; }
  const EdgeCosts& edge_costs() const { return profile_.costs(); }

 private:
  explicit Job(JobOptions options) : link_(std::move(options)) {}

  // A unit that the job was given. Its chunks are numbered within the partition.
  struct Unit {
    uint32_t partition = 0;
    uint64_t offset = 0;  // of the unit in its partition
    bool is_last = true;  // unit of its partition
    std::shared_ptr<const Mapping> bytes;
    Mapping overlay;
    ChangedChunks updated;
    uint32_t chunk = 0;  // the next one
    uint32_t chunk_end = 0;
  };

  // The partition that the job goes through.
  struct Partition {
    Partition() {}  // clang does not see the implicit one while the class is incomplete
    uint32_t number = 0;
    Unit unit;
    uint64_t begin = 0;    // the job has had the bytes before it
    bool started = false;  // chunk unit.chunk - 1 was started and is not finished
    uint64_t started_ns = 0;
    uint64_t thread_ns = 0;  // time × threads, of the chunks so far
    uint64_t edge_count = 0;
    uint64_t active_edge_count = 0;
  };

  // The units of one message.
  struct Batch {
    std::deque<Unit> rest;  // not begun yet
    bool alone = true;
    bool one_turn = false;
    bool turn_taken = false;    // if one_turn
    uint32_t thread_count = 1;  // of the latest turn
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
  Outcome<std::shared_ptr<const Mapping>> memory_of(const GivenUnit& given,
                                                    std::span<const Fd> memory);
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
  bool all_given_ = false;  // the coordinator has ended the sweep
  PartitionSet remaining_;  // units that were not given yet
  VertexBits active_;       // empty: all are
  Mapping label_memory_;
  Labels labels_;
  // The mappings of a resident graph's units. Mapping them anew in each sweep would cost a page
  // fault every 64 KiB.
  std::map<uint32_t, std::shared_ptr<const Mapping>> kept_;
  std::optional<Partition> partition_;
  Batch batch_;
  std::map<uint32_t, uint64_t> chunk_counts_;  // of partitions of which the last unit was given
  std::map<std::pair<uint32_t, uint32_t>, std::vector<char>> mutated_;  // by partition, chunk
  std::vector<std::vector<char>> replaced_;  // old mutations that the current chunk may still use
  Profile profile_;
  bool profile_told_ = false;
};

}  // namespace graphlane::share
