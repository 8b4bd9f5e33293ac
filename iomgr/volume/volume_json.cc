#include "iomgr/volume/volume_json.h"

#include <optional>

#include "iomgr/base/json.h"

namespace graphlane {
namespace {

constexpr uint64_t kFormatMax = 2;

std::optional<Uuid> get_uuid(const Json& object, const char* key) {
  const std::string* text = object.at_or_null(key).as_string();
  return text != nullptr ? Uuid::parse(*text) : std::nullopt;
}

std::optional<std::vector<std::string>> get_strings(const Json& object, const char* key) {
  const Json& array = object.at_or_null(key);
  if (!array.is_array()) return std::nullopt;
  std::vector<std::string> strings;
  for (const Json& element : array.elements()) {
    if (element.as_string() == nullptr) return std::nullopt;
    strings.push_back(*element.as_string());
  }
  return strings;
}

// Parses `text` as an object of a known format.
Outcome<Json> parse_object(const std::string& text, std::string_view path) {
  std::optional<Json> object = Json::parse(text);
  if (!object || !object->is_object()) {
    return make_error(EINVAL, "{}: not valid JSON (cut short or damaged)", path);
  }
  const std::optional<uint64_t> format = object->at_or_null("format").as_unsigned();
  if (!format) return make_error(EINVAL, "{}: damaged: no \"format\"", path);
  if (*format == 0 || *format > kFormatMax) {
    return make_error(EINVAL, "{}: format {}, this Graphlane knows formats 1 and {}", path, *format,
                      kFormatMax);
  }
  return std::move(*object);
}

Error damaged(std::string_view path, std::string_view key) {
  return make_error(EINVAL, "{}: damaged: \"{}\" is missing or wrong", path, key);
}

// A birth time before 1970 comes from a wrong clock, and is written as it is.
Json home_json(const VolumeHome& home) {
  Json object = {{"inode", home.directory.inode}, {"born", home.directory.born}};
  if (home.filesystem != 0) object["filesystem"] = home.filesystem;
  return object;
}

// None in format 1.
std::optional<VolumeHome> get_home(const Json& object) {
  if (object.at_or_null("format").as_unsigned() == 1u) return VolumeHome{};
  const Json& home = object.at_or_null("home");
  const auto inode = home.at_or_null("inode").as_unsigned();
  const auto born = home.at_or_null("born").as_integer();
  const Json* filesystem = home.find("filesystem");
  const auto epoch = object.at_or_null("epoch").as_unsigned();
  if (!inode || !born || !epoch || (filesystem != nullptr && !filesystem->as_unsigned())) {
    return std::nullopt;
  }
  return VolumeHome{.directory = {.inode = *inode, .born = *born},
                    .filesystem = filesystem != nullptr ? *filesystem->as_unsigned() : 0,
                    .epoch = *epoch};
}

uint32_t format_in(const Json& object) {
  return static_cast<uint32_t>(object.at_or_null("format").as_unsigned().value_or(0));
}

}  // namespace

// Members in the order of FORMAT.md.
Outcome<std::string> to_json(const VolumeRecord& record) {
  for (const auto* texts : {&record.devices, &record.policy.globs}) {
    for (const std::string& text : *texts) {
      if (!is_utf8(text)) return make_error(EILSEQ, "{}: name is not UTF-8", text);
    }
  }
  Json object = {{"format", record.format},
                 {"uuid", UuidText(record.uuid).c_str()},
                 {"devices", record.devices},
                 {"stripe_depth", record.stripe_depth_bytes}};
  if (record.is_depth_auto) object["stripe_depth_auto"] = true;
  if (record.verifies_reads) object["verify"] = "read";
  object["policy"] = {{"stripe", record.policy.globs}, {"size_min", record.policy.size_min_bytes}};
  if (record.format > 1) {
    object["home"] = home_json(record.home);
    object["epoch"] = record.home.epoch;
  }
  return object.dump(2) + "\n";
}

std::string to_json(const DeviceRecord& record) {
  Json object = {{"format", record.format},
                 {"volume", UuidText(record.volume).c_str()},
                 {"ordinal", record.ordinal},
                 {"count", record.device_count}};
  if (record.format > 1) {
    object["home"] = home_json(record.home);
    object["epoch"] = record.home.epoch;
  }
  return object.dump(2) + "\n";
}

Outcome<VolumeRecord> parse_volume_json(const std::string& text, std::string_view path) {
  Outcome<Json> object = parse_object(text, path);
  if (!object) return object.error();
  const auto uuid = get_uuid(*object, "uuid");
  if (!uuid) return damaged(path, "uuid");
  const auto home = get_home(*object);
  if (!home) return damaged(path, "home\" or \"epoch");
  auto devices = get_strings(*object, "devices");
  if (!devices || devices->size() < kDeviceCountMin || devices->size() > kDeviceCountMax) {
    return damaged(path, "devices");
  }
  const auto depth = object->at_or_null("stripe_depth").as_unsigned();
  const StripeGeometry geometry{.stripe_depth_bytes = depth.value_or(0),
                                .device_count = static_cast<uint32_t>(devices->size())};
  if (!geometry.valid()) return damaged(path, "stripe_depth");
  const Json* depth_auto = object->find("stripe_depth_auto");
  if (depth_auto != nullptr && !depth_auto->as_bool()) return damaged(path, "stripe_depth_auto");
  const Json* verify = object->find("verify");
  const std::string* const verified = verify != nullptr ? verify->as_string() : nullptr;
  if (verify != nullptr && (verified == nullptr || (*verified != "read" && *verified != "scrub"))) {
    return damaged(path, "verify");
  }
  const Json& policy = object->at_or_null("policy");
  if (!policy.is_object()) return damaged(path, "policy");
  auto globs = get_strings(policy, "stripe");
  if (!globs) return damaged(path, "policy.stripe");
  const auto size_min = policy.at_or_null("size_min").as_unsigned();
  if (!size_min) return damaged(path, "policy.size_min");
  return VolumeRecord{.format = format_in(*object),
                      .home = *home,
                      .uuid = *uuid,
                      .devices = std::move(*devices),
                      .stripe_depth_bytes = *depth,
                      .is_depth_auto = depth_auto != nullptr && *depth_auto->as_bool(),
                      .verifies_reads = verified != nullptr && *verified == "read",
                      .policy = {.globs = std::move(*globs), .size_min_bytes = *size_min}};
}

Outcome<DeviceRecord> parse_device_json(const std::string& text, std::string_view path) {
  Outcome<Json> object = parse_object(text, path);
  if (!object) return object.error();
  const auto volume = get_uuid(*object, "volume");
  if (!volume) return damaged(path, "volume");
  const auto home = get_home(*object);
  if (!home) return damaged(path, "home\" or \"epoch");
  const auto ordinal = object->at_or_null("ordinal").as_unsigned();
  const auto count = object->at_or_null("count").as_unsigned();
  if (!count || *count < kDeviceCountMin || *count > kDeviceCountMax) return damaged(path, "count");
  if (!ordinal || *ordinal >= *count) return damaged(path, "ordinal");
  return DeviceRecord{.format = format_in(*object),
                      .home = *home,
                      .volume = *volume,
                      .ordinal = static_cast<uint32_t>(*ordinal),
                      .device_count = static_cast<uint32_t>(*count)};
}

}  // namespace graphlane
