// The half of SharedGraph that brings partitions into memory: by the worker, or by a job's
// loader; and labels what is there.
#include <fcntl.h>

#include <set>
#include <utility>

#include "adapters/share/sealed_memory.h"
#include "adapters/share/shared_graph.h"

namespace graphlane::share {

void SharedGraph::release(uint32_t partition) {
  buffers_.release(partition);
  table_.set_loaded(partition, false);
}

void SharedGraph::load_wanted(uint64_t now_ns) {
  blocked_by_budget_ = false;
  const auto open = table_.open();
  for (const uint32_t partition : table_.wanted()) {
    if (buffers_.is_filling(partition)) continue;
    if (options_.by_loader) {
      ask_a_loader(partition, now_ns);
      continue;
    }
    const bool is_open = partition == open;
    if (make_room(files_->partition_bytes[partition], is_open)) {
      start_reading(partition);
    } else if (is_open) {
      blocked_by_budget_ = true;
      return;  // what comes after it is not to take its place
    }
  }
}

// For the open partition, what late jobs alone still read does not count: it would hold
// everybody up. So that much is beyond the budget. And what was loaded ahead gives way.
bool SharedGraph::make_room(uint64_t size_bytes, bool open) {
  std::set<uint32_t> read;
  uint64_t late_bytes = 0;
  for (const auto& [id, job] : jobs_) {
    if (const auto reads = table_.reads(id); reads && !table_.is_late(id)) read.insert(*reads);
  }
  for (const auto& [id, job] : jobs_) {
    const auto reads = table_.reads(id);
    if (reads && read.insert(*reads).second) late_bytes += buffers_.find(*reads)->size_bytes;
  }
  std::vector<uint32_t> released;
  bool enough = buffers_.make_room(size_bytes, open ? late_bytes : 0, released);
  if (!enough && open) {
    PartitionSet unread(partition_count());
    for (const auto& [partition, buffer] : buffers_.all()) {
      if (buffer.memory && !read.contains(partition)) unread.add(partition);
    }
    buffers_.set_spare(unread);
    enough = buffers_.make_room(size_bytes, late_bytes, released);
  }
  for (const uint32_t partition : released) table_.set_loaded(partition, false);
  return enough;
}

void SharedGraph::start_reading(uint32_t partition) {
  const uint64_t size_bytes = files_->partition_bytes[partition];
  buffers_.reserve(partition, size_bytes);
  worker_.post([self = weak_from_this(), files = files_, partition,
                size_bytes]() -> Worker::Completion {
    if (self.expired()) return [] {};
    // Shared, as a std::function must be copyable.
    auto memory = std::make_shared<Outcome<Fd>>(files->load(partition));
    return [self, partition, size_bytes, memory] {
      const auto graph = self.lock();
      if (!graph) return;
      if (*memory) {
        graph->store(partition, std::move(**memory), size_bytes);
      } else {
        graph->buffers_.release(partition);
        graph->fail(partition, memory->error());
      }
    };
  });
}

// What is in memory and not labelled yet. The task has the memory for itself, should the
// buffer be released meanwhile.
void SharedGraph::label_loaded() {
  if (!labels_ || !labels_->building()) return;
  for (const auto& [partition, buffer] : buffers_.all()) {
    if (!buffer.memory || !labels_->take(partition)) continue;
    auto memory = std::make_shared<const Fd>(sys::fcntl(buffer.memory.get(), F_DUPFD_CLOEXEC));
    worker_.post([self = weak_from_this(), labels = labels_, memory, number = partition,
                  size_bytes = buffer.size_bytes]() -> Worker::Completion {
      auto made = std::make_shared<std::optional<PartitionLabels>>();
      if (auto bytes = Mapping::of_sealed(memory->get(), size_bytes)) *made = labels->label(bytes->bytes());
      return [self, labels, number, made] {
        const auto graph = self.lock();
        if (graph) labels->add(number, std::move(*made), graph->worker_);
      };
    });
  }
}

// A job that waits for the partition makes it. If it takes long while others wait for it
// too, the next one does the same: who is first serves all.
void SharedGraph::ask_a_loader(uint32_t partition, uint64_t now_ns) {
  for (auto& [id, job] : jobs_) {
    if (job.loading != partition) continue;
    if (now_ns < job.loading_until_ns) return;
    if (table_.waits(id)) {
      table_.set_late(id);
      table_.take_back(id);
      job.overdue_loading = true;
      ++counts_.late;
    }
  }
  for (auto& [id, job] : jobs_) {
    if (job.loading || !table_.waits(id) || !table_.needs(id, partition)) continue;
    job.loading = partition;
    job.loading_until_ns = now_ns + HoldAccount::kCreditNs;
    tell(id, LoadMessage{.partition = partition});
    return;
  }
}

void SharedGraph::store(uint32_t partition, Fd memory, uint64_t size_bytes) {
  ++counts_.loaded_partitions;
  counts_.loaded_bytes += size_bytes;
  buffers_.fill(partition, std::move(memory));
  table_.set_loaded(partition, true);
}

void SharedGraph::fail(uint32_t partition, const Error& error) {
  for (const JobId id : table_.give_up(partition)) {
    refuse(id, error);
    table_.take_back(id);
  }
}

}  // namespace graphlane::share
