// Coordinator: the process in which the jobs of a graph meet.
//
//   jobs ──Unix socket──▶ Connections ──▶ Coordinator ──▶ GraphTable ──▶ SharedGraph (one for each
//                          (slots)         (messages)      (budget)        layout of the files)
//                                                             └─ Worker: reads, labels
//
// The first job starts it (rendezvous.h), with no more rights than that job. It ends when it is
// idle for a while and holds no updates.
//
// **Access.** A job is attached to a graph whose files it shows (attach_request.h). What a loader
// makes is shared among jobs of one user. To update a graph, a job shows descriptors that are open for
// writing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/share/coordinator/connections.h"
#include "adapters/share/coordinator/graph_table.h"
#include "adapters/share/wire/message_socket.h"
#include "iomgr/base/error.h"

namespace graphlane::share {

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options) : options_(options) {}
  ~Coordinator();

  // Serves the jobs of `listener` and of `connection`, each if given, until it has been idle for
  // options.idle_ns.
  Outcome<void> run(Fd listener, Fd connection);

 private:
  // A job with a graph.
  struct Job {
    std::shared_ptr<SharedGraph> graph;
    std::vector<FileIdentity> files;  // that it has shown
    bool by_loader = false;
  };

  // Cuts off connections that have not attached in time. Returns the next such deadline.
  uint64_t disconnect_unattached();
  // Handles one message of the connection; cuts it off if it breaks the protocol.
  void serve(JobId id);
  bool dispatch(JobId id, Message& message);
  bool dispatch_attached(JobId id, const Job& job, Message& message);
  Outcome<void> attach(JobId id, Message& message);
  Outcome<uint64_t> update(JobId id, const Job& job, Message& message);
  void cut_off(JobId id);

  const CoordinatorOptions options_;
  Worker worker_;
  Connections connections_;
  GraphTable graphs_{options_, worker_};
  std::map<JobId, Job> jobs_;
};

}  // namespace graphlane::share
