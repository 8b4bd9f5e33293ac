#include "iomgr/volume_json.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace graphlane {
namespace {

using json = nlohmann::ordered_json;  // keys in the order of FORMAT.md

constexpr uint64_t kFormat = 1;

// Member `key` as a T, or nothing when it is missing or something else. Values
// are taken by pointer: nlohmann's own conversions throw.
std::optional<uint64_t> get_number(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_number_unsigned()) return std::nullopt;
  return *member->get_ptr<const json::number_unsigned_t*>();
}

std::optional<Uuid> get_uuid(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_string()) return std::nullopt;
  return Uuid::parse(*member->get_ptr<const std::string*>());
}

std::optional<std::vector<std::string>> get_strings(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_array()) return std::nullopt;
  std::vector<std::string> strings;
  for (const json& element : *member) {
    if (!element.is_string()) return std::nullopt;
    strings.push_back(*element.get_ptr<const std::string*>());
  }
  return strings;
}

// The object that `text` is, if it is one of a format that we know.
Outcome<json> parse_object(const std::string& text, std::string_view path) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return make_error(EINVAL, "{}: not valid JSON (cut short or damaged)", path);
  }
  const std::optional<uint64_t> format = get_number(object, "format");
  if (!format) return make_error(EINVAL, "{}: damaged: no \"format\"", path);
  if (*format != kFormat) {
    return make_error(EINVAL, "{}: format {}, this Graphlane knows format {}", path, *format,
                      kFormat);
  }
  return object;
}

Error damaged(std::string_view path, std::string_view key) {
  return make_error(EINVAL, "{}: damaged: \"{}\" is missing or wrong", path, key);
}

}  // namespace

Outcome<std::string> to_json(const VolumeRecord& record) {
  json object = {{"format", kFormat},
                 {"uuid", UuidText(record.uuid).c_str()},
                 {"devices", record.devices},
                 {"stripe_depth", record.stripe_depth_bytes}};
  if (record.is_depth_auto) object["stripe_depth_auto"] = true;
  object["policy"] = {{"stripe", record.policy.globs}, {"size_min", record.policy.size_min_bytes}};
  const auto printable = [](const std::string& text) {
    // Text that is not UTF-8 comes back changed.
    const std::string dumped =
        json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return json::parse(dumped, nullptr, false) == json(text);
  };
  for (const auto* texts : {&record.devices, &record.policy.globs}) {
    for (const std::string& text : *texts) {
      if (!printable(text)) return make_error(EILSEQ, "{}: name is not UTF-8", text);
    }
  }
  return object.dump(2) + "\n";
}

std::string to_json(const DeviceRecord& record) {
  const json object = {{"format", kFormat},
                       {"volume", UuidText(record.volume).c_str()},
                       {"ordinal", record.ordinal},
                       {"count", record.device_count}};
  return object.dump(2) + "\n";
}

Outcome<VolumeRecord> parse_volume_json(const std::string& text, std::string_view path) {
  Outcome<json> object = parse_object(text, path);
  if (!object) return object.error();
  const auto uuid = get_uuid(*object, "uuid");
  if (!uuid) return damaged(path, "uuid");
  auto devices = get_strings(*object, "devices");
  if (!devices || devices->size() < kDeviceCountMin || devices->size() > kDeviceCountMax) {
    return damaged(path, "devices");
  }
  const auto depth = get_number(*object, "stripe_depth");
  const StripeGeometry geometry{.stripe_depth_bytes = depth.value_or(0),
                                .device_count = static_cast<uint32_t>(devices->size())};
  if (!geometry.valid()) return damaged(path, "stripe_depth");
  const auto depth_auto = object->find("stripe_depth_auto");
  if (depth_auto != object->end() && !depth_auto->is_boolean()) {
    return damaged(path, "stripe_depth_auto");
  }
  const bool is_depth_auto = depth_auto != object->end() && *depth_auto == true;
  const auto policy = object->find("policy");
  if (policy == object->end() || !policy->is_object()) return damaged(path, "policy");
  auto globs = get_strings(*policy, "stripe");
  if (!globs) return damaged(path, "policy.stripe");
  const auto size_min = get_number(*policy, "size_min");
  if (!size_min) return damaged(path, "policy.size_min");
  return VolumeRecord{.uuid = *uuid,
                      .devices = std::move(*devices),
                      .stripe_depth_bytes = *depth,
                      .is_depth_auto = is_depth_auto,
                      .policy = {.globs = std::move(*globs), .size_min_bytes = *size_min}};
}

Outcome<DeviceRecord> parse_device_json(const std::string& text, std::string_view path) {
  Outcome<json> object = parse_object(text, path);
  if (!object) return object.error();
  const auto volume = get_uuid(*object, "volume");
  if (!volume) return damaged(path, "volume");
  const auto ordinal = get_number(*object, "ordinal");
  const auto count = get_number(*object, "count");
  if (!count || *count < kDeviceCountMin || *count > kDeviceCountMax) return damaged(path, "count");
  if (!ordinal || *ordinal >= *count) return damaged(path, "ordinal");
  return DeviceRecord{.volume = *volume,
                      .ordinal = static_cast<uint32_t>(*ordinal),
                      .device_count = static_cast<uint32_t>(*count)};
}

}  // namespace graphlane
