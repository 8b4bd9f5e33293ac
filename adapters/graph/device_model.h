// DeviceModel: how long the devices of a graph take for reads, and the processors for arcs (§3.7).
#pragma once

#include <algorithm>
#include <cstdint>

#include "iomgr/base/error.h"
#include "iomgr/read/paged_files.h"

namespace graphlane {

// A number of separate places to read, and their bytes in whole pages.
struct ReadCost {
  uint64_t reads = 0;
  uint64_t bytes = 0;
  uint64_t arcs = 0;  // that are decoded
  ReadCost& operator+=(const ReadCost& more) {
    reads += more.reads;
    bytes += more.bytes;
    arcs += more.arcs;
    return *this;
  }
};

struct DeviceModel {
  double bytes_per_second = 500e6;  // of large reads, all devices together
  double reads_per_second = 50e3;   // of single pages at random places
  double arcs_per_second = 100e6;   // decoded and given to the program, all threads together
  // Bytes between two lists that are read, too, because a second read would take longer. SSDs gain
  // nothing from it.
  uint64_t gap_bytes = 0;

  // A read of one page takes 1 / reads_per_second; more pages behind it come with the throughput of
  // large reads.
  double read_seconds(const ReadCost& cost) const {
    constexpr uint64_t kPage = 4096;
    const uint64_t rest = cost.bytes - std::min(cost.bytes, cost.reads * kPage);
    return static_cast<double>(cost.reads) / reads_per_second +
           static_cast<double>(rest) / bytes_per_second;
  }
  // Reading and computing go on at the same time.
  double seconds(const ReadCost& cost) const {
    const double reading = read_seconds(cost),
                 computing = static_cast<double>(cost.arcs) / arcs_per_second;
    return std::max(reading, computing);
  }
};

// kGap measures only what gap_bytes needs, with fewer reads.
enum class Measure { kAll, kGap };

// The speed of the devices under a graph's file, as `graphlane calibrate` has measured them. Without
// it, a few reads measure them now; of a file below 1 MiB, an SSD is assumed.
Outcome<DeviceModel> measure_devices(const OpenPagedFile& file, PageReader& pages, Measure what);

}  // namespace graphlane
