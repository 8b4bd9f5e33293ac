// SharedGraph: what a coordinator knows of one graph, and does for its jobs.
//
//   GlobalTable    who needs what, and what is open            algorithm 2, formula 5
//   BufferPool     the units in memory, one copy each          within the budget
//   PackedStore    in fewer bytes, what nobody reads now       in what memory is left
//   ChunkScheduler      who goes through the chunks of one together formulas 2 to 4
//   StallBudget    who has kept others waiting for too long
//   Snapshots      what was updated, and who sees it           §3.3.2
//   LabelKeeper    the chunks' tables                          algorithm 1
//
// Jobs are told by messages, and never waited for: who does not take its answer is cut
// off. Threads: the coordinator's loop; reading and labelling happens in its Worker.
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

// Why a job does not get what it asked for, as far as that fits a message.
Result<void> send_refusal(int socket, const Error& error);

class SharedGraph : public std::enable_shared_from_this<SharedGraph> {
 public:
  struct Options {
    std::optional<uid_t> charged_to;  // the user who has made it, unless we may use all for him
    uint64_t budget_bytes = 0;  // of the coordinator
    uint64_t part_bytes = 0;    // of that, this graph's when it comes
    bool is_budget_given = false;  // for what is packed, too
    size_t buffer_count_max = 0;
    uint32_t core_count = 1;
    uint64_t chunk_bytes = 0;
    bool is_resident = false;  // no buffer has ever to make room
    GlobalTable::Batching batching;
  };
  SharedGraph(GraphFiles files, std::shared_ptr<LabelKeeper> labels, Worker& worker,
              const Options& options);

  uint64_t chunk_bytes() const { return options_.chunk_bytes; }
  bool has_jobs() const { return !jobs_.empty(); }
  // Nothing is lost if it goes.
  bool idle() const {
    return jobs_.empty() && (snapshots_.newest_version() == 0 || !files_->can_be_found());
  }

  // Jobs may keep it mapped.
  bool resident() const { return options_.is_resident; }
  // What it has to have of the budget: its largest batch, or all of it if it is resident.
  uint64_t least_bytes() const { return least_bytes_; }
  // What it takes of the budget beside that, as far as it is charged for it: its tables, labels, and
  // what was updated.
  uint64_t table_bytes() const;
  // Of which so much before there is a graph, and so much for each job.
  static uint64_t table_bytes_of(const Layout& layout, uint64_t unit_count);
  uint64_t job_bytes() const;
  std::optional<uid_t> charged_to() const { return options_.charged_to; }
  // What it has for buffers, no less than the least. What nobody reads of more is released.
  void set_budget(uint64_t bytes);

  // The job and its Welcome.
  void attach(const ChunkScheduler::Member& member, int socket, uid_t user);
  void detach(JobId job);

  // What a job said; false: it broke the rules.
  bool sweep(JobId job, PartitionSet active, const SweepMessage& message);
  bool next(JobId job, const NextMessage& message);
  bool loaded(JobId job, const LoadedMessage& message, Fd memory);
  bool turn(JobId job, const TurnMessage& message);
  bool done(JobId job);
  // Whoever calls this has checked that the job may change the graph.
  Outcome<uint64_t> update(uint32_t partition, uint32_t chunk, Fd memory);
  StatisticsMessage statistics() const;
  uint32_t unit_count() const { return files_->units.count(); }
  const GraphFiles& files() const { return *files_; }

  // Does what has become possible. When it wants to be called again at the latest;
  // UINT64_MAX: when something happens.
  uint64_t pump(uint64_t now_ns);

  // Jobs that did not take their answer; they are to be cut off.
  std::vector<JobId> take_broken() { return std::exchange(broken_, {}); }

 private:
  struct Job {
    int socket = -1;
    uid_t user = 0;
    ChunkScheduler::Member member;
    uint64_t version = 0;
    bool labels_wanted = false;
    bool labels_given = false;
    PartitionSet given;                   // if the graph is resident
    StallBudget account;
    uint64_t gathered_until_ns = 0;       // others wait for its next sweep; 0: not yet
    bool alone = true;                    // what it was told with its unit
    std::shared_ptr<ChunkScheduler> group;     // of that; none: it is late, or alone
    TurnMessage turn;                     // that it asked for last
    std::optional<uint32_t> turn_chunk;   // of that; none: not yet, of what it was given
    std::optional<uint32_t> loading;      // its loader was asked for this
    uint64_t loading_until_ns = 0;        // then another one's is
    bool overdue_loading = false;         // it was taken for dead
  };

  template <class T>
  void tell(JobId id, const T& message, std::string_view rest = {}, std::span<const int> fds = {}) {
    if (!send_head(jobs_.at(id).socket, message, rest, fds, MSG_DONTWAIT)) broken_.push_back(id);
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
  void leave_unused();
  void label_loaded();
  void ask_a_loader(uint32_t unit, uint64_t now_ns);
  void ask_loaders(uint64_t now_ns);
  void count_load(uint64_t size_bytes);
  void store(uint32_t unit, Fd memory, uint64_t size_bytes);
  void keep_packed(uint32_t unit, PackedStore::Packed packed);
  void fail(uint32_t unit, const Error& error);
  void give_turns(uint64_t now_ns);
  bool judge(uint64_t now_ns);
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
  std::vector<uint64_t> unit_bytes_;       // of those that loaders make, once they were
  std::map<uid_t, uint64_t> access_ps_;    // T(E), as measured by jobs of a user
  bool blocked_by_budget_ = false;         // the open unit waits for readers of others
  std::vector<JobId> broken_;
  StatisticsMessage counts_;
};

}  // namespace graphlane::share
