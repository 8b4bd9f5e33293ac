// Renumberer: vertices of any names become 0 … n-1, within a memory budget.
//
// Names are whole numbers from -2^63 to 2^64-1 as they are usually written, which are numbered
// first, by their value, and any other words, by their bytes. "07" is a word. MAP gets a line for
// each vertex:
//
//   0<TAB>17            NUMBER<TAB>NAME, in order of the numbers
//   1<TAB>alice
//
//   names ─▶ a run: its names, and its edges as places among them ─▶ spill file: names sorted, edges by rank
//   merge of all runs' names ─▶ MAP, and for each run a table: rank in the run ─▶ number
//   each run's edges through its table ─▶ the sink, in the order of the input
//
// Threads: one at a time, but for the sink's prepare().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphfmt/buffer.h"
#include "graphfmt/input/edge_source.h"
#include "graphfmt/staging.h"

namespace graphlane::graphfmt {

class Renumberer : public NameSink {
 public:
  // Makes MAP beside its name. Errors: as Staging::create().
  static Outcome<std::unique_ptr<Renumberer>> create(const EdgeListOptions& options);

  Outcome<void> take_names(const char* names, size_t names_bytes, size_t edge_count) override;
  // After the last edge: all to the sink, then MAP gets its name. The number of vertices.
  Outcome<uint64_t> hand_on(EdgeSink& sink, unsigned threads);

 private:
  struct Run {
    uint64_t names_offset = 0, names_bytes = 0;  // in the spill file
    uint64_t edges_offset = 0, edge_count = 0;
    uint64_t table_offset = 0, name_count = 0;
  };
  struct Cursor;
  struct Item;

  Renumberer(const EdgeListOptions& options, Staging map, Fd spill);
  Outcome<void> reserve();
  uint32_t place_of(std::string_view key);
  std::string_view key_at(uint32_t place) const;
  Outcome<void> close_run();
  Outcome<void> spill(const char* data, size_t bytes);
  Outcome<uint64_t> merge_names();
  Outcome<bool> load(Item& item);
  Outcome<void> translate(Item& item) const;

  const EdgeListOptions& options_;
  const size_t weight_bytes_;
  const size_t edge_bytes_;  // of a run's edge: two places, and the weight
  Staging map_;
  Fd spill_;
  uint64_t spill_bytes_ = 0;
  std::vector<Run> runs_;

  // The run that is filling. A name is its length in 4 bytes and its key.
  Buffer names_;
  size_t names_bytes_ = 0;
  Buffer offsets_;  // uint32: where the name of a place begins
  uint32_t name_count_ = 0;
  Buffer slots_;  // uint32: a place + 1; 0: free. A power of two of them.
  size_t slot_mask_ = 0;
  Buffer edges_;
  size_t edges_bytes_ = 0;

  // hand_on(): the run that is read.
  size_t run_ = 0;
  uint64_t run_edge_ = 0;
  std::shared_ptr<Buffer> table_;
};

}  // namespace graphlane::graphfmt
