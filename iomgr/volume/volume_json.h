// volume.json and device.json: what they say, to text and back (FORMAT.md).
//
// The preload library reads the same files with a parser of its own, so the
// keys are part of the format: exactly these, no others are looked at.
#pragma once

#include <string>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

// Which directory is the volume: others that name the same uuid are copies (volume/home.h).
struct VolumeHome {
  StubIdentity directory = {};  // of VOL/.graphlane
  uint64_t filesystem = 0;      // f_fsid on btrfs: its snapshots keep inode and birth time; else 0
  uint64_t epoch = 0;           // raised by each process that changes what the volume holds

  bool is_known() const { return directory != StubIdentity{}; }
};

struct VolumeRecord {
  uint32_t format = 2;
  VolumeHome home = {};
  Uuid uuid;
  std::vector<std::string> devices;  // absolute, in order
  uint64_t stripe_depth_bytes = 0;
  bool is_depth_auto = false;
  bool verifies_reads = false;
  StripePolicy policy;
};

struct DeviceRecord {
  uint32_t format = 2;
  VolumeHome home = {};
  Uuid volume;
  uint32_t ordinal = 0;
  uint32_t device_count = 0;
};

// EILSEQ: a path or a glob is not UTF-8, which JSON cannot hold.
Outcome<std::string> to_json(const VolumeRecord& record);
std::string to_json(const DeviceRecord& record);

// `path` is what messages call the file. Errors say what is wrong with it; a
// format of a later Graphlane is told from a damaged file.
Outcome<VolumeRecord> parse_volume_json(const std::string& text, std::string_view path);
Outcome<DeviceRecord> parse_device_json(const std::string& text, std::string_view path);

}  // namespace graphlane
