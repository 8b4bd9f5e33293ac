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

namespace graphlane {

class EdgeWriter : public EdgeSink {
 public:
  static Outcome<std::unique_ptr<EdgeWriter>> create(const EdgeListOutput& output);

  Outcome<void> prepare(EdgeBatch& batch) override;
  Outcome<void> take(EdgeBatch& batch) override;
  Outcome<void> finish();

 private:
  explicit EdgeWriter(const EdgeListOutput& output) : output_(output) {}
  Outcome<void> write(const char* data, size_t length_bytes);

  const EdgeListOutput output_;
  Staging staging_;  // empty when writing to a pipe or device
  Fd fd_;
};

}  // namespace graphlane
