// volume.json and device.json as records: parses and prints them. volume_fields.h has the keys.
#pragma once

#include <string>
#include <vector>

#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_fields.h"

namespace graphlane {

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

// EILSEQ: a path or a glob is not UTF-8, so JSON cannot hold it.
Outcome<std::string> to_json(const VolumeRecord& record);
std::string to_json(const DeviceRecord& record);

// `path` is the file's name in messages. Errors name the problem; a later Graphlane's format is
// told from a damaged file.
Outcome<VolumeRecord> parse_volume_json(const std::string& text, std::string_view path);
Outcome<DeviceRecord> parse_device_json(const std::string& text, std::string_view path);

}  // namespace graphlane
