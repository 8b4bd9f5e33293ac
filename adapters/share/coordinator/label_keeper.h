// LabelKeeper: how a graph's labels come about.
//
// When the first job names active vertices, they are read from the file beside the graph
// (label_file.h). If it is missing, damaged, of another graph or of a stranger, every
// unit is labelled once it is in memory, which costs no reading of its own; when the last
// one is, the file is written. Until then a job takes what it does not know for active.
//
// Threads: as SharedGraph; label(), and what has to do with all labels together, by its Worker.
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
    Fd directory;      // none: the labels are kept in memory alone
    std::string name;  // of the graph's first file
    uid_t owner = 0;   // of the graph's files
    uint64_t bytes_max = UINT64_MAX;  // that they may have in memory; of more, jobs do without
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
    // Nobody goes through an empty one, so it would never be in memory to be labelled.
    for (uint32_t unit = 0; unit < units.count(); ++unit) {
      if (units.bytes_of(unit) == 0 && take(unit)) builder_.add(unit, ChunkTables());
    }
  }

  // A job wants them: from now on they are made.
  void want(Worker& worker);
  bool building() const { return building_; }
  // Whether the unit is to be labelled: true once.
  bool take(uint32_t unit) {
    const bool was_taken = taken_[unit];
    taken_[unit] = true;
    return !was_taken;
  }
  ChunkTables label(std::span<const char> bytes) const { return label_chunks(bytes, record_, chunk_bytes_); }
  // None: there was no memory to make them in. Jobs do without them, then.
  void add(uint32_t unit, std::optional<ChunkTables> tables, Worker& worker);

  // All of them, in sealed memory; -1: not yet.
  int memory() const { return memory_.get(); }
  uint64_t labelled_count() const { return labelled_count_; }
  uint64_t bytes() const { return bytes_; }  // that they have

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
