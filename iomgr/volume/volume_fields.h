// The fields of volume.json and device.json: the one list of their keys, and of what is valid
// (FORMAT.md). volume_json.h makes records of them; the preload library reads them in place.
//
// No I/O, no allocation, no exceptions.
#pragma once

#include <cstdint>
#include <optional>

#include "iomgr/base/json_view.h"
#include "iomgr/base/result.h"
#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/part_record.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

inline constexpr uint64_t kVolumeFormatMax = 2;

// Identifies the volume's directory: others with the same uuid are copies (volume/home.h).
struct VolumeHome {
  StubIdentity directory = {};  // of VOL/.graphlane
  uint64_t filesystem = 0;  // f_fsid on btrfs, as its snapshots keep inode and birth time; else 0
  uint64_t epoch = 0;       // raised by each process that changes striped files

  bool is_known() const { return directory != StubIdentity{}; }
};

// Views of the text that was parsed.
struct VolumeFields {
  uint32_t format = 2;
  VolumeHome home = {};  // none in format 1
  Uuid uuid;
  JsonView devices;  // strings: absolute paths, in order
  uint32_t device_count = 0;
  uint64_t stripe_depth_bytes = 0;
  bool is_depth_auto = false;
  bool verifies_reads = false;
  JsonView globs;  // strings: names of files to stripe
  uint64_t size_min_bytes = 0;
};

struct DeviceRecord {
  uint32_t format = 2;
  VolumeHome home = {};
  Uuid volume;
  uint32_t ordinal = 0;
  uint32_t device_count = 0;
};

// The key that is missing or wrong. Of "format": also its value, if it is an unknown number.
struct FieldError {
  const char* key = "";
  std::optional<uint64_t> format = {};
};

Result<VolumeFields, FieldError> parse_volume_fields(const JsonView& object);
Result<DeviceRecord, FieldError> parse_device_fields(const JsonView& object);

}  // namespace graphlane
