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
  auto found = std::make_shared<std::optional<std::string>>();
  worker.post(
      [self = shared_from_this(), found] {
        auto bytes = read_label_file(self->place_.directory.get(), self->place_.name, self->place_.owner,
                                     self->graph_hash_, self->chunk_bytes_, self->partition_bytes_);
        if (bytes) *found = std::move(*bytes);
      },
      [self = shared_from_this(), found] {
        if (*found) self->keep(**found);
        self->building_ = !self->memory_;
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
  worker.post(
      [self = shared_from_this(), bytes = std::move(bytes)] {
        // Where it cannot be written the labels are made again another time.
        (void)write_label_file(self->place_.directory.get(), self->place_.name, bytes).has_value();
      },
      [] {});
}

// Without memory for them, jobs do without.
void LabelKeeper::keep(const std::string& bytes) {
  if (auto memory = make_sealed(bytes)) memory_ = std::move(*memory);
}

}  // namespace graphlane::share
