// RunStats: the work of an engine's run, for its summary and for experiments.
#pragma once

#include <cstdint>

namespace graphlane {

struct RunStats {
  uint64_t iterations = 0;
  uint64_t vertices_run = 0;  // run() calls
  uint64_t lists_given = 0;   // run_on_vertex() calls
  uint64_t ranges_read = 0;   // that the lists were merged into
  uint64_t messages = 0;      // delivered
  uint64_t device_reads = 0;
  uint64_t device_bytes = 0;
  uint64_t value_bytes_read = 0;  // of vertices' values that are in a file
  uint64_t value_bytes_written = 0;
  double open_seconds = 0;  // header, index, and lists of a graph in memory
  double run_seconds = 0;   // the algorithm

  // Adds a part of a run; the caller sets the seconds and the devices' work for the whole.
  RunStats& operator+=(const RunStats& part) {
    iterations += part.iterations;
    vertices_run += part.vertices_run;
    lists_given += part.lists_given;
    ranges_read += part.ranges_read;
    messages += part.messages;
    return *this;
  }
};

}  // namespace graphlane
