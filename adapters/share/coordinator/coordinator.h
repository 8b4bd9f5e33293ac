// Coordinator: the process in which the jobs of a graph meet.
//
//   jobs ──Unix socket──▶ Coordinator ──▶ SharedGraph (one for each layout of the files)
//                              └─ Worker: reads, labels
//
// The first job starts it (rendezvous.h), with no more rights than that job. It ends when it is
// idle for a while and holds no updates.
//
// **Access.** A job shows a descriptor, open for reading, of each of the graph's files. It is
// attached only to a graph of the same files in the same state. What a loader makes is shared
// among jobs of one user. To update a graph, a job shows descriptors that are open for writing.
//
// **Memory.** All graphs share one budget. A resident graph has its size of it. Each other graph
// with jobs has its largest batch, without which it cannot run, and an equal part of the rest. So
// no graph waits for another graph's jobs. A graph for which less than its largest batch is left
// gets that batch beyond the budget; for a foreign user (neither root nor ours) it is refused. A
// foreign user has at most eight graphs, and their tables, labels and updates count against the
// budget.
//
// **Slots.** A connection that does not attach in time is cut off. A foreign user has at most as
// many slots as remain free: one such user half of them, two a third each.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "adapters/share/coordinator/shared_graph.h"
#include "adapters/share/wire/message_socket.h"
#include "iomgr/base/error.h"

namespace graphlane::share {

struct CoordinatorOptions {
  uint64_t budget_bytes = 0;
  bool is_budget_given = false;      // true: packed units count against the budget too
  uint64_t idle_ns = 2'000'000'000;  // UINT64_MAX: it does not end
  LoadOrder order = LoadOrder::kPriority;
};

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options) : options_(options) {}
  ~Coordinator();

  // Serves the jobs of `listener` and of `connection`, each if given, until it has been idle for
  // options.idle_ns.
  Outcome<void> run(Fd listener, Fd connection);

 private:
  struct Client {
    Fd socket;
    uid_t user = 0;
    uint64_t attach_until_ns = 0;
    std::shared_ptr<SharedGraph> graph;  // null: not attached yet
    std::vector<FileIdentity> files;     // that the job has shown
    bool by_loader = false;
  };

  // Starts or stops accepting. Without a free slot, connections wait in the listener's queue.
  void listen(bool wanted);
  void take_connections();
  bool has_slot(uid_t user) const;
  void add_client(Fd socket);
  // Cuts off connections that have not attached in time. Returns the next such deadline.
  uint64_t disconnect_unattached();
  // Handles one message of the client; false: cut it off.
  bool serve(JobId id);
  bool dispatch(JobId id, Client& client, Message& message);
  bool dispatch_attached(JobId id, Client& client, Message& message);
  Outcome<void> attach(JobId id, Client& client, Message& message);
  std::shared_ptr<SharedGraph> find_graph(const std::string& key, const Layout& layout) const;
  Outcome<void> may_make_graph(uid_t user, const std::string& name, const Layout& layout) const;
  // ENOMEM: the user is foreign and the budget has less than that left.
  Outcome<void> check_room(uid_t user, const std::string& name, uint64_t wanted_bytes) const;
  // EFBIG: a unit is larger than the budget.
  Outcome<std::shared_ptr<SharedGraph>> make_graph(uid_t user, GraphFiles files, Fd directory,
                                                   uint32_t vertex_bytes);
  Outcome<uint64_t> update(const Client& client, Message& message);
  void cut_off(JobId id);
  uint64_t pump_graphs();

  // The budget that graphs' minimum needs leave, and how many graphs share it.
  struct Rest {
    uint64_t bytes = 0;
    size_t graph_count = 0;
  };
  Rest rest_of_budget() const;
  void forget_idle();
  void divide_budget();

  const CoordinatorOptions options_;
  Worker worker_;
  Fd epoll_;
  Fd listener_;
  bool listens_ = false;
  JobId last_id_ = 0;
  size_t buffer_count_max_ = 0;  // for each graph
  std::map<JobId, Client> clients_;
  // graph_key() to graph. find_graph() tells layouts of equal hash apart.
  std::multimap<std::string, std::shared_ptr<SharedGraph>> graphs_;
};

}  // namespace graphlane::share
