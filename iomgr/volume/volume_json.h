// volume.json and device.json: parses and prints them (FORMAT.md).
//
// The preload library reads the same files with its own parser. So the keys are part of the format:
// exactly these are read.
#pragma once

#include <string>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

// Identifies the volume's directory: others with the same uuid are copies (volume/home.h).
struct VolumeHome {
  StubIdentity directory = {};  // of VOL/.graphlane
  // f_fsid on btrfs, as its snapshots keep inode and birth time; else 0
  uint64_t filesystem = 0;
  uint64_t epoch = 0;  // raised by each process that changes striped files

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

// EILSEQ: a path or a glob is not UTF-8, so JSON cannot hold it.
Outcome<std::string> to_json(const VolumeRecord& record);
std::string to_json(const DeviceRecord& record);

// `path` is the file's name in messages. Errors name the problem; a later Graphlane's format is
// told from a damaged file.
Outcome<VolumeRecord> parse_volume_json(const std::string& text, std::string_view path);
Outcome<DeviceRecord> parse_device_json(const std::string& text, std::string_view path);

}  // namespace graphlane
