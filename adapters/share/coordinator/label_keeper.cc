#include "adapters/share/coordinator/label_keeper.h"

#include "adapters/share/memory/sealed_memory.h"

namespace graphlane::share {

void LabelKeeper::want(Worker& worker) {
  if (asked_) return;
  asked_ = true;
  if (!place_.directory) {
    building_ = true;
    return;
  }
  auto memory = std::make_shared<Fd>();
  worker.post(
      [self = shared_from_this(), memory] {
        auto read = read_label_file(self->place_.directory.get(), self->place_.name,
                                    self->place_.owner, self->place_.bytes_max, self->graph_hash_,
                                    self->chunk_bytes_, self->partition_bytes_);
        if (read) *memory = std::move(*read);
      },
      [self = shared_from_this(), memory] {
        self->memory_ = std::move(*memory);
        self->building_ = !self->memory_;
        self->bytes_ = sealed_size(self->memory()).value_or(0);
      });
}

void LabelKeeper::add(uint32_t unit, std::optional<ChunkTables> tables, Worker& worker) {
  if (!building_) return;
  if (!tables) return give_up();
  bytes_ +=
      tables->chunk_ends.size() * sizeof(uint64_t) + tables->entries.size() * sizeof(ChunkEntry);
  if (bytes_ > place_.bytes_max) return give_up();
  builder_.add(unit, std::move(*tables));
  ++labelled_count_;
  if (builder_.complete()) finish(worker);
}

void LabelKeeper::give_up() {
  building_ = false;
  bytes_ = 0;
  (void)LabelBuilder(std::move(builder_));  // frees its memory
}

// On lack of memory, jobs go on without labels.
void LabelKeeper::finish(Worker& worker) {
  building_ = false;
  auto builder = std::make_shared<LabelBuilder>(std::move(builder_));
  auto memory = std::make_shared<Fd>();
  worker.post(
      [self = shared_from_this(), builder, memory] {
        // Frees the builder's tables before sealing: at most two copies exist at a time.
        const std::string bytes = LabelBuilder(std::move(*builder)).to_bytes(self->graph_hash_);
        if (auto sealed = make_sealed(bytes)) *memory = std::move(*sealed);
      },
      [self = shared_from_this(), memory, &worker] {
        self->memory_ = std::move(*memory);
        if (self->memory_) self->write(worker);
      });
}

void LabelKeeper::write(Worker& worker) {
  if (!place_.directory || !may_write_label_file(place_.owner)) return;
  worker.post(
      [self = shared_from_this()] {
        // If it cannot be written, a later coordinator makes the labels again.
        const Result<uint64_t> size_bytes = sealed_size(self->memory());
        if (!size_bytes) return;
        const auto bytes = Mapping::of_sealed(self->memory(), *size_bytes);
        if (!bytes) return;
        (void)write_label_file(self->place_.directory.get(), self->place_.name,
                               {bytes->data(), bytes->size()})
            .has_value();
      },
      [] {});
}

}  // namespace graphlane::share
