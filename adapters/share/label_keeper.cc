#include "adapters/share/label_keeper.h"

#include "adapters/share/sealed_memory.h"

namespace graphlane::share {

void LabelKeeper::want(Worker& worker) {
  if (asked_) return;
  asked_ = true;
  if (!place_.directory) {
    building_ = true;
    return;
  }
  worker.post([self = shared_from_this()]() -> Worker::Completion {
    auto bytes = read_label_file(self->place_.directory.get(), self->place_.name, self->place_.owner,
                                 self->graph_hash_, self->chunk_bytes_, self->partition_bytes_);
    return [self, bytes = std::move(bytes)] {
      if (bytes) self->keep(*bytes);
      self->building_ = !self->memory_;
    };
  });
}

void LabelKeeper::add(uint32_t partition, std::optional<PartitionLabels> labels, Worker& worker) {
  if (!labels) {
    taken_[partition] = false;
    return;
  }
  builder_.add(partition, std::move(*labels));
  ++labelled_count_;
  if (!builder_.complete()) return;
  std::string bytes = builder_.to_bytes(graph_hash_);
  keep(bytes);
  building_ = false;
  if (!place_.directory || !may_write_label_file(place_.owner)) return;
  worker.post([self = shared_from_this(), bytes = std::move(bytes)]() -> Worker::Completion {
    // Where it cannot be written the labels are made again another time.
    (void)write_label_file(self->place_.directory.get(), self->place_.name, bytes).has_value();
    return [] {};
  });
}

// Without memory for them, jobs do without.
void LabelKeeper::keep(const std::string& bytes) {
  if (auto memory = make_sealed(bytes)) memory_ = std::move(*memory);
}

}  // namespace graphlane::share
