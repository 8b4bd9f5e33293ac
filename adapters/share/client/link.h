// Link: a job's files, and its connection to their coordinator.
//
// The job's files stay open. They prove its right to the graph to each coordinator that it
// attaches to. If a coordinator dies, its updates are lost.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/share/schedule/partition_set.h"
#include "adapters/share/schedule/units.h"
#include "adapters/share/wire/layout.h"
#include "adapters/share/wire/message_socket.h"
#include "adapters/share/wire/protocol.h"

namespace graphlane::share {

// Called with no memory it returns the partition's size in bytes. Called with memory of that size
// it fills it and returns the size again. −errno: failure.
using Loader = std::function<int64_t(uint32_t partition, char* memory, uint64_t size_bytes)>;

struct JobOptions {
  std::vector<std::string> files;
  Layout layout;
  Loader loader;  // if layout.by_loader
  uint32_t thread_count = 1;
  uint32_t thread_count_min = 1;
  uint32_t vertex_bytes = 8;  // U_v
  uint64_t budget_bytes = 0;  // if this job starts the coordinator; 0: its default
  uint64_t idle_ms = 0;       // as budget_bytes
};

class Link {
 public:
  explicit Link(JobOptions options) : options_(std::move(options)) {}

  // Opens the files, and connects to the graph's coordinator or starts it.
  Outcome<void> open();
  // Connects again after a loss. ESTALE: the new coordinator has another version of the graph; or,
  // with `same_chunks`, another chunk size, which the first job to attach decides.
  Outcome<void> reattach(bool same_chunks);
  bool connected() const { return static_cast<bool>(socket_); }
  // Disconnects. What the coordinator gave last does not count.
  void drop() { socket_.reset(); }

  const JobOptions& options() const { return options_; }
  const Layout& layout() const { return options_.layout; }
  const std::string& name() const { return options_.files[0]; }  // for messages
  const std::vector<uint64_t>& partition_bytes() const { return partition_bytes_; }
  // The coordinator's cut of the partitions.
  const Units& units() const { return units_; }
  uint64_t graph_hash() const;
  uint64_t chunk_bytes() const { return welcome_.chunk_bytes; }
  uint64_t access_ps() const { return welcome_.access_ps; }
  // The coordinator gives each unit once, and the job keeps it mapped.
  bool resident() const { return welcome_.resident != 0; }
  // Whether the graph that this job sees has updates.
  bool sees_updates() const { return sees_updates_; }
  bool is_updated(uint32_t partition) const { return sees_updates_ && updated_.has(partition); }

  // On failure of send() or receive(), connected() is false if the coordinator is gone.
  template <class T>
  Outcome<void> send(const T& head, std::string_view rest = {}, std::span<const int> fds = {}) {
    const Result<void> sent =
        socket_ ? send_head(socket_.get(), head, rest, fds) : Result<void>(Errno{ENOTCONN});
    return sent ? Outcome<void>() : Outcome<void>(lost(sent.error()));
  }
  // A Refusal becomes an error.
  Outcome<Message> receive();
  // The error for an unexpected message.
  Error protocol_error() const;

  // Requests with one answer.
  Outcome<uint64_t> update(uint32_t partition, uint32_t chunk, std::span<const char> bytes);
  Outcome<StatisticsMessage> statistics();

 private:
  Outcome<void> open_files();
  Outcome<void> attach();
  Outcome<void> attach_once(bool is_last_try = false);
  Error lost(Errno why);

  const JobOptions options_;
  std::vector<Fd> files_;
  std::vector<FileIdentity> identities_;
  std::vector<uint64_t> partition_bytes_;  // zeros with a loader
  Fd directory_;
  std::string name_in_directory_;  // of the first file
  uid_t owner_ = 0;

  Fd socket_;  // none: not connected
  WelcomeMessage welcome_;
  Units units_;
  PartitionSet updated_;
  bool sees_updates_ = false;
};

// The kind of a message.
Kind kind_of(const Message& message);

}  // namespace graphlane::share
