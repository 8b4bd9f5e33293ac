// GraphTable: the graphs of a coordinator. It makes them, finds them by their files, and divides the
// budget among them.
//
// **Memory.** All graphs share one budget. A resident graph has its size of it. Each other graph with
// jobs has its largest batch, without which it cannot run, and an equal part of the rest. So no graph
// waits for another graph's jobs. A graph for which less than its largest batch is left gets that
// batch beyond the budget; for a foreign user (neither root nor ours) it is refused. A foreign user
// has at most eight graphs, and their tables, labels and updates count against the budget.
//
// Threads: the coordinator's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/share/coordinator/shared_graph.h"
#include "iomgr/base/error.h"

namespace graphlane::share {

struct CoordinatorOptions {
  uint64_t budget_bytes = 0;
  bool is_budget_given = false;      // true: packed units count against the budget too
  uint64_t idle_ns = 2'000'000'000;  // UINT64_MAX: it does not end
  LoadOrder order = LoadOrder::kPriority;
};

class GraphTable {
 public:
  GraphTable(const CoordinatorOptions& options, Worker& worker);

  // Jobs share a graph if their keys and layouts are equal. A layout can be large, so the key has its
  // hash. A loader's graph also has its user in the key.
  static std::string key_of(std::string_view layout, std::span<const FileIdentity> files,
                            std::optional<uid_t> user);
  // Null: there is none.
  std::shared_ptr<SharedGraph> find(const std::string& key, const Layout& layout) const;

  // A graph that is not in the table yet. `directory`: where its label file may lie. EDQUOT, ENOMEM:
  // more than the user may have; EFBIG: a unit is larger than the budget.
  Outcome<std::shared_ptr<SharedGraph>> make(uid_t user, GraphFiles files, Fd directory,
                                             uint32_t vertex_bytes);
  void add(const std::string& key, std::shared_ptr<SharedGraph> graph);
  void forget_idle();
  bool empty() const { return graphs_.empty(); }

  // The budget less the graphs' minimum needs.
  uint64_t rest_bytes() const { return rest().bytes; }
  // ENOMEM: the user is foreign, and less than that is left.
  Outcome<void> check_room(uid_t user, const std::string& name, uint64_t wanted_bytes) const;
  // Gives each graph its part. Call it when a job has come or gone.
  void divide_budget();

  // Takes every step that is possible now. Returns when it must be called again at the latest.
  uint64_t pump(const std::function<void(JobId)>& cut_off);

 private:
  struct Rest {
    uint64_t bytes = 0;
    size_t graph_count = 0;  // that share it
  };
  Rest rest() const;
  Outcome<void> may_make(uid_t user, const std::string& name, const Layout& layout) const;
  uint64_t part_of_new_graph(const Layout& layout, std::optional<uid_t> charged_to) const;

  const CoordinatorOptions options_;
  Worker& worker_;
  const size_t buffer_count_max_;  // for each graph
  std::multimap<std::string, std::shared_ptr<SharedGraph>> graphs_;
};

}  // namespace graphlane::share
