// LabelKeeper: reads, makes and stores a graph's labels.
//
// When the first job names active vertices, labels are read from the file beside the graph
// (label_file.h). If the file is missing, damaged, of another graph or not trusted, each unit is
// labelled once it is in memory, which costs no extra read. After the last unit the file is
// written. Until then a job takes unlabelled chunks for active.
//
// Threads: as SharedGraph. The Worker runs label() and whatever handles all labels at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/share/coordinator/label_file.h"
#include "adapters/share/coordinator/worker.h"

namespace graphlane::share {

class LabelKeeper : public std::enable_shared_from_this<LabelKeeper> {
 public:
  struct Place {
    Fd directory;                     // none: no file, labels stay in memory
    std::string name;                 // of the graph's first file
    uid_t owner = 0;                  // of the graph's files
    uint64_t bytes_max = UINT64_MAX;  // of labels in memory; beyond it, jobs go on without
  };
  LabelKeeper(Place place, uint64_t graph_hash, RecordFormat record, uint64_t chunk_bytes,
              std::vector<uint64_t> partition_bytes, const Units& units)
      : place_(std::move(place)),
        graph_hash_(graph_hash),
        record_(record),
        chunk_bytes_(chunk_bytes),
        partition_bytes_(std::move(partition_bytes)),
        taken_(units.count()),
        builder_(units, record, chunk_bytes) {
    // Empty units are never loaded, so they are labelled here.
    for (uint32_t unit = 0; unit < units.count(); ++unit) {
      if (units.bytes_of(unit) == 0 && take(unit)) builder_.add(unit, ChunkTables());
    }
  }

  // A job wants labels: begins to read or make them.
  void want(Worker& worker);
  bool building() const { return building_; }
  // Whether the caller is to label the unit: true once per unit.
  bool take(uint32_t unit) {
    const bool was_taken = taken_[unit];
    taken_[unit] = true;
    return !was_taken;
  }
  ChunkTables label(std::span<const char> bytes) const {
    return label_chunks(bytes, record_, chunk_bytes_);
  }
  // No tables: there was no memory for them, and jobs go on without labels.
  void add(uint32_t unit, std::optional<ChunkTables> tables, Worker& worker);

  // All labels in sealed memory; -1: not ready.
  int memory() const { return memory_.get(); }
  uint64_t labelled_count() const { return labelled_count_; }
  uint64_t bytes() const { return bytes_; }  // of all labels

 private:
  void give_up();
  void finish(Worker& worker);
  void write(Worker& worker);

  const Place place_;
  const uint64_t graph_hash_;
  const RecordFormat record_;
  const uint64_t chunk_bytes_;
  const std::vector<uint64_t> partition_bytes_;
  bool asked_ = false;
  bool building_ = false;
  uint64_t labelled_count_ = 0;  // units
  uint64_t bytes_ = 0;
  std::vector<bool> taken_;
  LabelBuilder builder_;
  Fd memory_;
};

}  // namespace graphlane::share
