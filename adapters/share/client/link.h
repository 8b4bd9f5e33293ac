// Link: a job's files, and its connection to their coordinator.
//
// The job's files stay open: they are its right to the graph, to be shown again to another
// coordinator should this one die. What that one had updated is lost with it.
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

// Called with no memory: the partition's size in bytes. Then with memory of that size:
// fills it, and returns the size again. −errno: it cannot.
using Loader = std::function<int64_t(uint32_t partition, char* memory, uint64_t size_bytes)>;

struct JobOptions {
  std::vector<std::string> files;
  Layout layout;
  Loader loader;                // if layout.by_loader
  uint32_t thread_count = 1;
  uint32_t thread_count_min = 1;
  uint32_t vertex_bytes = 8;    // U_v
  uint64_t budget_bytes = 0;    // for a coordinator that this job starts; 0: it chooses
  uint64_t idle_ms = 0;         // likewise
};

class Link {
 public:
  explicit Link(JobOptions options) : options_(std::move(options)) {}

  // Opens the files, and attaches to the graph's coordinator, or starts it.
  Outcome<void> open();
  // Once more, after it was lost. ESTALE: the new one has another version of the graph, or,
  // where they are to be the same, other chunks: their size is as the first job that comes
  // to it wants it.
  Outcome<void> reattach(bool same_chunks);
  bool connected() const { return static_cast<bool>(socket_); }
  // As if it were gone: what it has given last does not count.
  void drop() { socket_.reset(); }

  const JobOptions& options() const { return options_; }
  const Layout& layout() const { return options_.layout; }
  const std::string& name() const { return options_.files[0]; }  // for messages
  const std::vector<uint64_t>& partition_bytes() const { return partition_bytes_; }
  // As its coordinator cuts the partitions.
  const Units& units() const { return units_; }
  uint64_t graph_hash() const;
  uint64_t chunk_bytes() const { return welcome_.chunk_bytes; }
  uint64_t access_ps() const { return welcome_.access_ps; }
  // What the coordinator has given once stays in memory, and is not given again.
  bool resident() const { return welcome_.resident != 0; }
  // The updates that this job sees.
  bool sees_updates() const { return sees_updates_; }
  bool is_updated(uint32_t partition) const { return sees_updates_ && updated_.has(partition); }

  // An error of either leaves connected() false if the coordinator is gone.
  template <class T>
  Outcome<void> send(const T& head, std::string_view rest = {}, std::span<const int> fds = {}) {
    const Result<void> sent =
        socket_ ? send_head(socket_.get(), head, rest, fds) : Result<void>(Errno{ENOTCONN});
    return sent ? Outcome<void>() : Outcome<void>(lost(sent.error()));
  }
  // A Refusal is an error.
  Outcome<Message> receive();
  // The coordinator said something that it should not.
  Error confused() const;

  // Questions with one answer.
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
  std::vector<uint64_t> partition_bytes_;  // zeros of loaders' partitions
  Fd directory_;
  std::string name_in_directory_;  // of the first file
  uid_t owner_ = 0;

  Fd socket_;  // none: the coordinator is gone
  WelcomeMessage welcome_;
  Units units_;
  PartitionSet updated_;
  bool sees_updates_ = false;
};

// What kind of message it is.
Kind kind_of(const Message& message);

}  // namespace graphlane::share
