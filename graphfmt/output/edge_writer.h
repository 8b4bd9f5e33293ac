// EdgeWriter: a sink that writes an edge list.
//
// Text is formatted by all threads (prepare) and written in order (take). The
// list is built beside its final name and renamed by finish(); a writer that is
// destroyed, or killed, before that leaves nothing under the final name. A pipe
// or device (/dev/stdout) is written to directly.
#pragma once

#include <memory>

#include "graphfmt/edge_list.h"
#include "graphfmt/staging.h"
#include "iomgr/base/fd.h"

namespace graphlane::graphfmt {

class EdgeWriter : public EdgeSink {
 public:
  static Outcome<std::unique_ptr<EdgeWriter>> create(const EdgeListOutput& output);

  Outcome<void> prepare(EdgeBatch& batch) override;
  Outcome<void> take(EdgeBatch& batch) override;
  // `summary`: of all edges that were taken. Some formats have it in their first lines.
  Outcome<void> finish(const EdgeListSummary& summary);

 private:
  explicit EdgeWriter(const EdgeListOutput& output) : output_(output) {}
  Outcome<void> write(const char* data, size_t length_bytes);
  Outcome<void> begin_text();
  Outcome<void> write_counts(const EdgeListSummary& summary);

  const EdgeListOutput output_;
  uint64_t counts_at_ = 0;  // where the line of counts lies, if the format has one
  Staging staging_;         // empty when writing to a pipe or device
  Fd fd_;
};

}  // namespace graphlane::graphfmt
