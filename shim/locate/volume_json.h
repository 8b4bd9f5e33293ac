// volume.json and device.json, read in place (iomgr/volume/volume_fields.h): no allocation.
//
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <span>
#include <string_view>

#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/stripe.h"
#include "iomgr/volume/volume_fields.h"
#include "shim/base/text.h"

namespace graphlane::shim {

// The device directories of a volume, with "/graphlane-<uuid>" appended.
struct VolumeDevices {
  uint32_t format = 2;   // 1: read only
  VolumeHome home = {};  // as volume.json says; it was verified
  Uuid volume;
  PathText directory;               // the volume's own
  uint64_t stripe_depth_bytes = 0;  // of new files
  bool verifies_reads = false;
  uint32_t count = 0;
  PathText roots[kDeviceCountMax];
};

// Reads the volume.json of the nearest directory above `file`, and checks that it is the volume,
// not a copy (iomgr/volume/home.h). Null on success, otherwise the reason in a few words.
const char* read_volume_file(std::string_view file, VolumeDevices* devices);

// Whether the volume of the last volume.json that was read stripes a new file of that name.
bool wants_new(const char* name);
// The least size of a striped file, by the same policy.
uint64_t size_min_bytes();

// Checks that the open directory `root_fd` is device `index` of that volume. Null if it is,
// otherwise the reason.
const char* check_device_file(int root_fd, const VolumeDevices& devices, uint32_t index);

// The number of I/Os in flight from `graphlane calibrate`; 0: not calibrated.
uint32_t calibrated_depth(const char* root);

}  // namespace graphlane::shim
