// volume.json and device.json, read with jsmn: no allocation. The format is in
// iomgr/volume/FORMAT.md; iomgr/volume/volume.cc writes it.
//
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <span>
#include <string_view>

#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/part_record.h"
#include "iomgr/volume/stub/stripe.h"
#include "shim/base/text.h"

namespace graphlane {

// The device directories of a volume, with "/graphlane-<uuid>" appended.
struct VolumeDevices {
  uint32_t format = 2;  // 1: only read
  StubIdentity home = {};  // of .graphlane, as volume.json says; it is in that place
  uint64_t epoch = 0;
  Uuid volume;
  PathText directory;  // the volume's own
  uint64_t stripe_depth_bytes = 0;  // of new files
  bool verifies_reads = false;
  uint32_t count = 0;
  PathText roots[kDeviceCountMax];
};

// Reads the volume.json of the nearest directory above `file`, and looks whether that is the volume or a copy
// of it (iomgr/volume/home.h). Null on success, else the reason in a few words.
const char* read_volume_file(std::string_view file, VolumeDevices* devices);

// Whether a new file of that name is to be striped in the volume whose volume.json
// was read last.
bool wants_new(const char* name);

// Whether the open directory `root_fd` is device `index` of that volume. Null if
// so, else the reason.
const char* check_device_file(int root_fd, const VolumeDevices& devices, uint32_t index);

// How many I/Os in flight serve the device best, as `graphlane calibrate` found; 0: nobody knows.
uint32_t calibrated_depth(const char* root);

}  // namespace graphlane
