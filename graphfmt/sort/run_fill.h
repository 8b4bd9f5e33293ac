// fill_runs(): cuts a stream of records into runs of equal size, for external sorts.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "graphfmt/buffer.h"

namespace graphlane::graphfmt {

// Appends the records to `run`, of which `filled_bytes` are filled. `close()` ends a full run: it sets
// `filled_bytes` to 0, and may move the buffer away. ENOMEM, or close()'s error.
template <class Close>
Outcome<void> fill_runs(std::string_view records, size_t run_bytes, Buffer& run,
                        size_t& filled_bytes, const Close& close) {
  while (!records.empty()) {
    if (!run) {
      if (auto grown = run.reserve(run_bytes); !grown) return grown;
    }
    const size_t count = std::min(records.size(), run_bytes - filled_bytes);
    std::memcpy(run.data() + filled_bytes, records.data(), count);
    filled_bytes += count;
    records.remove_prefix(count);
    if (filled_bytes < run_bytes) continue;
    if (Outcome<void> closed = close(); !closed) return closed;
  }
  return {};
}

}  // namespace graphlane::graphfmt
