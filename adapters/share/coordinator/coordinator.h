// Coordinator: the process in which the jobs of a graph meet.
//
//   jobs ──Unix socket──▶ Coordinator ──▶ SharedGraph (one for each layout of the files)
//                              └─ Worker: reads, labels
//
// It is started by the first job (rendezvous.h), needs no more rights than that one, and
// ends when no job has come for a while and nothing would be lost.
//
// **Who gets what.** A job shows a descriptor of each of the graph's files that it has
// open for reading; only with the same files, in the same state, does it get to a graph.
// What jobs' loaders make is shared among jobs of one user. To update a graph a job
// shows descriptors that are open for writing.
//
// **Who has how much memory.** The budget is for all graphs together. A resident one has what it is;
// each other one that has jobs its largest batch, which it cannot do without, and an equal part of the
// rest. So nobody waits for what another graph's jobs have. Who finds less than its largest batch has
// that on top, or is refused if it is neither root's nor ours. Such a user has eight graphs at most, and
// what their tables, labels and updates take is of the budget, too.
//
// **Who has a place.** Who connects has to attach soon, or is cut off. A user who is neither root nor
// ours has no more places than are left then: one half of all, two a third each.
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
  bool is_budget_given = false;  // then nothing is kept beyond it, packed or not
  uint64_t idle_ns = 2'000'000'000;  // UINT64_MAX: it does not end
  LoadOrder order = LoadOrder::kPriority;
};

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options) : options_(options) {}
  ~Coordinator();

  // Takes jobs from `listener`, if there is one, and `connection`, if there is one, until
  // it has been idle for as long as the options say.
  Outcome<void> run(Fd listener, Fd connection);

 private:
  struct Client {
    Fd socket;
    uid_t user = 0;
    uint64_t attach_until_ns = 0;
    std::shared_ptr<SharedGraph> graph;  // null: it has not attached yet
    std::vector<FileIdentity> files;     // that it has shown
    bool by_loader = false;
  };

  // Who finds no room waits in the listener's queue.
  void listen(bool wanted);
  void take_connections();
  bool has_place(uid_t user) const;
  void add_client(Fd socket);
  // Who has not attached in time. When the next one's time is over.
  uint64_t disconnect_unattached();
  // What the client has said; false: it is to be cut off.
  bool serve(JobId id);
  bool dispatch(JobId id, Client& client, Message& message);
  bool dispatch_attached(JobId id, Client& client, Message& message);
  Outcome<void> attach(JobId id, Client& client, Message& message);
  std::shared_ptr<SharedGraph> find_graph(const std::string& key, const Layout& layout) const;
  Outcome<void> may_make_graph(uid_t user, const std::string& name, const Layout& layout) const;
  // Of others only what is left of the budget is taken: ENOMEM.
  Outcome<void> check_room(uid_t user, const std::string& name, uint64_t wanted_bytes) const;
  // EFBIG: something of it is larger than the budget.
  Outcome<std::shared_ptr<SharedGraph>> make_graph(uid_t user, GraphFiles files, Fd directory,
                                                   uint32_t vertex_bytes);
  Outcome<uint64_t> update(const Client& client, Message& message);
  void cut_off(JobId id);
  uint64_t pump_graphs();

  // What is left of the budget when each graph has what it needs, and how many can use more.
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
  size_t buffer_count_max_ = 0;  // of one graph
  std::map<JobId, Client> clients_;
  // By graph_key(); layouts of the same hash are told apart by find_graph().
  std::multimap<std::string, std::shared_ptr<SharedGraph>> graphs_;
};

}  // namespace graphlane::share
