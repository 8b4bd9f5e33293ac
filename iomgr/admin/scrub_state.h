// ScrubState: how far a scrub has got, in VOL/.graphlane/scrub, so that the next one continues.
//
// Each device goes through the files in the order of their ids. The state has a line for each
// device that has begun: its ordinal, the id of its file, and the offset in the part. Then the
// problems that were found so far, each a line that begins with '!': a scrub that was killed has not
// told them. The state is removed when a scrub is complete.
//
// Threads: everything is safe from any.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class ScrubState {
 public:
  using Id = std::array<uint8_t, 16>;
  struct Place {
    Id file_id = {};
    uint64_t part_offset = 0;  // done up to here
  };

  // `resumes`: continue where the last one stopped; otherwise from the beginning.
  ScrubState(const Volume& volume, bool resumes);

  Place place(uint32_t device_index);
  // Those of the scrub that is resumed, and new ones.
  std::vector<std::string> problems();
  void found(const std::string& problem);
  // Written to disk every few seconds, and by save().
  void reached(uint32_t device_index, const Place& place);
  // Lets the next scrub continue here. Best effort.
  void save();
  // The scrub is complete: removes the state.
  void finish();

 private:
  void write() REQUIRES(mu_);

  const Volume& volume_;
  Mutex mu_;
  std::array<Place, kDeviceCountMax> places_ GUARDED_BY(mu_){};
  std::vector<std::string> problems_ GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point saved_ GUARDED_BY(mu_) = std::chrono::steady_clock::now();
};

}  // namespace graphlane
