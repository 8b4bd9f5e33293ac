// SharedGraph: one graph of a coordinator, and what it does for the graph's jobs.
//
//   GlobalTable     which job needs which units, and the open one   algorithm 2, formula 5
//   BufferPool      units in memory, one copy each                  within the budget
//   PackedStore     unread units, packed                            in the remaining memory
//   ChunkScheduler  turns of jobs at the chunks of a partition      formulas 2 to 4
//   StallBudget     how long a job may hold others up
//   Snapshots       updates, and which job sees them                §3.3.2
//   LabelKeeper     the chunks' tables                              algorithm 1
//
// Messages to jobs never block: a job that does not read its answer is cut off. Threads: the
// coordinator's loop; its Worker reads and labels.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/share/coordinator/graph_files.h"
#include "adapters/share/coordinator/label_keeper.h"
#include "adapters/share/coordinator/snapshots.h"
#include "adapters/share/coordinator/worker.h"
#include "adapters/share/memory/buffer_pool.h"
#include "adapters/share/memory/packed_store.h"
#include "adapters/share/schedule/chunk_scheduler.h"
#include "adapters/share/schedule/global_table.h"
#include "adapters/share/schedule/stall_budget.h"
#include "adapters/share/wire/message_socket.h"
#include "adapters/share/wire/protocol.h"

namespace graphlane::share {

// Sends the error to a job, truncated to one message.
Result<void> send_refusal(int socket, const Error& error);

class SharedGraph : public std::enable_shared_from_this<SharedGraph> {
 public:
  struct Options {
    std::optional<uid_t> charged_to;  // the foreign user that made it; none: no limits apply
    uint64_t budget_bytes = 0;        // of the coordinator
    uint64_t part_bytes = 0;          // of that, this graph's when it is made
    bool is_budget_given = false;     // true: it limits packed units too
    size_t buffer_count_max = 0;
    uint32_t core_count = 1;
    uint64_t chunk_bytes = 0;
    bool is_resident = false;  // all units fit, and none is ever evicted
    GlobalTable::Batching batching;
  };
  SharedGraph(GraphFiles files, std::shared_ptr<LabelKeeper> labels, Worker& worker,
              const Options& options);

  uint64_t chunk_bytes() const { return options_.chunk_bytes; }
  bool has_jobs() const { return !jobs_.empty(); }
  // Dropping it loses nothing: it has no jobs, and no updates that a job could still attach to.
  bool idle() const {
    return jobs_.empty() && (snapshots_.newest_version() == 0 || !files_->can_be_found());
  }

  // All units stay in memory, and jobs may keep them mapped.
  bool resident() const { return options_.is_resident; }
  // The least budget it can run with: its largest batch, or its size if it is resident.
  uint64_t least_bytes() const { return least_bytes_; }
  // The budget that tables, labels and updates take; 0 unless charged to a user.
  uint64_t table_bytes() const;
  // The part of it that is known before the graph is made, and the part of each job.
  static uint64_t table_bytes_of(const Layout& layout, uint64_t unit_count);
  uint64_t job_bytes() const;
  std::optional<uid_t> charged_to() const { return options_.charged_to; }
  // The budget for buffers, at least least_bytes(). Evicts unread buffers beyond it.
  void set_budget(uint64_t bytes);

  // Adds the job and sends its Welcome.
  void attach(const ChunkScheduler::Member& member, int socket, uid_t user);
  void detach(JobId job);

  // A job's message; false: it broke the protocol.
  bool sweep(JobId job, PartitionSet active, const SweepMessage& message);
  bool next(JobId job, const NextMessage& message);
  bool loaded(JobId job, const LoadedMessage& message, Fd memory);
  bool turn(JobId job, const TurnMessage& message);
  bool done(JobId job);
  // Precondition: the caller has checked that the job may write the graph's files.
  Outcome<uint64_t> update(uint32_t partition, uint32_t chunk, Fd memory);
  StatisticsMessage statistics() const;
  uint32_t unit_count() const { return files_->units.count(); }
  const GraphFiles& files() const { return *files_; }

  // Takes every step that is possible now. Returns when it must be called again at the latest;
  // UINT64_MAX: at the next event.
  uint64_t pump(uint64_t now_ns);

  // Jobs that did not read their answer; the caller cuts them off.
  std::vector<JobId> take_unresponsive() { return std::exchange(unresponsive_, {}); }

 private:
  struct Job {
    int socket = -1;
    uid_t user = 0;
    ChunkScheduler::Member member;
    uint64_t version = 0;
    bool labels_wanted = false;
    bool labels_given = false;
    PartitionSet given;  // units, if the graph is resident
    StallBudget stall_budget;
    uint64_t gathered_until_ns = 0;         // others wait for its next sweep until then; 0: not set
    bool alone = true;                      // no other job has its units: it takes no turns
    std::shared_ptr<ChunkScheduler> group;  // of its units; none: it is late, or alone
    TurnMessage turn;                       // its latest
    std::optional<uint32_t> turn_chunk;     // of that; none: not since it was given its units
    std::optional<uint32_t> loading;        // the partition that its loader makes
    uint64_t loading_until_ns = 0;          // after that another job's loader is asked
    bool overdue_loading = false;           // its loader exceeded that time
  };

  template <class T>
  void tell(JobId id, const T& message, std::string_view rest = {}, std::span<const int> fds = {}) {
    if (!send_head(jobs_.at(id).socket, message, rest, fds, MSG_DONTWAIT)) {
      unresponsive_.push_back(id);
    }
  }
  void refuse(JobId id, const Error& error);

  uint64_t least() const;
  void give(const GlobalTable::Grant& grant);
  void give_buffers(JobId id, bool alone, bool one_turn);
  void release(uint32_t unit);
  void release_all(const PartitionSet& loaded);
  bool make_room(uint64_t size_bytes, size_t count, bool open);
  void load_wanted(uint64_t now_ns);
  void read_ahead(std::span<const GlobalTable::Batch> wanted);
  bool load(GlobalTable::Batch batch, bool open);
  void start_filling(const GlobalTable::Batch& batch);
  void read_run(const GlobalTable::Batch& batch);
  void unpack(uint32_t unit, PackedStore::Packed packed);
  void retire_unused();
  void label_loaded();
  void ask_a_loader(uint32_t unit, uint64_t now_ns);
  void ask_loaders(uint64_t now_ns);
  void count_load(uint64_t size_bytes);
  void store(uint32_t unit, Fd memory, uint64_t size_bytes);
  void keep_packed(uint32_t unit, PackedStore::Packed packed);
  void fail(uint32_t unit, const Error& error);
  void give_turns(uint64_t now_ns);
  bool mark_late_jobs(uint64_t now_ns);
  std::set<JobId> holders() const;
  void leave_group(Job& job, JobId id, uint64_t now_ns);
  uint64_t next_deadline_ns(uint64_t now_ns) const;

  const Options options_;
  const std::shared_ptr<const GraphFiles> files_;
  const uint64_t least_bytes_;
  Worker& worker_;
  const std::shared_ptr<LabelKeeper> labels_;  // null: edges are unknown
  GlobalTable table_;
  Snapshots snapshots_;
  std::map<JobId, Job> jobs_;
  BufferPool buffers_;
  PackedStore packed_;
  std::vector<uint64_t> unit_bytes_;     // with a loader: known once it was made
  std::map<uid_t, uint64_t> access_ps_;  // T(E), as measured by a user's jobs
  bool blocked_by_budget_ = false;       // the open unit waits for readers of other units
  std::vector<JobId> unresponsive_;
  StatisticsMessage counts_;
};

}  // namespace graphlane::share
