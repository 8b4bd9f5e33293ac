#include "iomgr/io/calibration.h"

#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/json.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/volume/device_kind.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

constexpr char kKey[] = "calibration";

// One I/O at a time on a disk, because a second stream makes it seek. SSDs need 8 to 32.
constexpr uint32_t kDepthRotational = 1;
constexpr uint32_t kDepthDefault = 16;

Outcome<Json> parse_device_object(const std::string& text, std::string_view path) {
  std::optional<Json> object = Json::parse(text);
  if (object && object->is_object()) return std::move(*object);
  return make_error(EINVAL, "{}: not valid JSON (cut short or damaged)", path);
}

// A member in [min, max]; nothing if it is missing or has another value.
std::optional<uint64_t> get_bounded(const Json& object, const char* key, uint64_t min,
                                    uint64_t max) {
  const auto value = object.at_or_null(key).as_unsigned();
  return value && *value >= min && *value <= max ? value : std::nullopt;
}

}  // namespace

Outcome<std::optional<Calibration>> parse_calibration(const std::string& device_json,
                                                      std::string_view path) {
  const Outcome<Json> object = parse_device_object(device_json, path);
  if (!object) return object.error();
  const Json* found = object->find(kKey);
  if (found == nullptr) return std::optional<Calibration>();
  const auto depth = get_bounded(*found, "depth", 1, kQueueDepthMax);
  const auto streams = get_bounded(*found, "streams", 1, kQueueDepthMax);
  const auto speed = get_bounded(*found, "bytes_per_second", 0, UINT64_MAX);
  const auto small = get_bounded(*found, "small_ios_per_second", 0, UINT64_MAX);
  if (!depth || !streams || !speed || !small) {
    return make_error(EINVAL, "{}: damaged: \"{}\" is wrong (graphlane calibrate makes it anew)",
                      path, kKey);
  }
  return std::optional(Calibration{.depth = static_cast<uint32_t>(*depth),
                                   .stream_count = static_cast<uint32_t>(*streams),
                                   .bytes_per_second = *speed,
                                   .small_ios_per_second = *small});
}

Outcome<std::string> with_calibration(const std::string& device_json, std::string_view path,
                                      const Calibration& calibration) {
  Outcome<Json> object = parse_device_object(device_json, path);
  if (!object) return object.error();
  (*object)[kKey] = {{"depth", calibration.depth},
                     {"streams", calibration.stream_count},
                     {"bytes_per_second", calibration.bytes_per_second},
                     {"small_ios_per_second", calibration.small_ios_per_second}};
  return object->dump(2) + "\n";
}

Outcome<LaneDepth> lane_depth(const Device& device, uint32_t asked) {
  if (asked > kQueueDepthMax) {
    return make_error(EINVAL, "depth {}: at most {}", asked, kQueueDepthMax);
  }
  if (asked != 0) return LaneDepth{asked, LaneDepth::kUser};
  const std::string path = device.root + "/" + kDeviceJson;
  const Outcome<std::string> text = read_whole_file(device.root_fd.get(), kDeviceJson, path);
  if (!text) return text.error();
  const auto calibration = parse_calibration(*text, path);
  if (!calibration) return calibration.error();
  if (*calibration) return LaneDepth{(*calibration)->depth, LaneDepth::kCalibration};
  return is_on_disk(device.root_fd.get()) ? LaneDepth{kDepthRotational, LaneDepth::kDisk}
                                          : LaneDepth{kDepthDefault, LaneDepth::kDefault};
}

const char* name_of(LaneDepth::Source source) {
  switch (source) {
    case LaneDepth::kUser: return "user";
    case LaneDepth::kCalibration: return "calibration";
    case LaneDepth::kDisk: return "disk";
    case LaneDepth::kDefault: break;
  }
  return "default";
}

}  // namespace graphlane
