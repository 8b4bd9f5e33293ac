#include "iomgr/volume/volume_fields.h"

namespace graphlane {
namespace {

// A uuid has no character that JSON escapes.
struct UuidString {
  char text[40];
  size_t length = 0;
  UuidString& operator<<(std::string_view piece) {
    for (const char c : piece) {
      if (length < sizeof text) text[length++] = c;
    }
    return *this;
  }
};

std::optional<Uuid> uuid_in(const JsonView& object, std::string_view key) {
  UuidString text;
  if (!object.at(key).append_to(text)) return std::nullopt;
  return Uuid::parse({text.text, text.length});
}

bool are_strings(const JsonView& array) {
  if (!array.is_array()) return false;
  for (const JsonView element : array.elements()) {
    if (!element.is_string()) return false;
  }
  return true;
}

Result<uint32_t, FieldError> format_in(const JsonView& object) {
  const std::optional<uint64_t> format = object.at("format").as_unsigned();
  if (!format || *format == 0 || *format > kVolumeFormatMax) {
    return FieldError{.key = "format", .format = format};
  }
  return static_cast<uint32_t>(*format);
}

std::optional<VolumeHome> home_in(const JsonView& object, uint32_t format) {
  if (format == 1) return VolumeHome{};
  const JsonView home = object.at("home");
  const auto inode = home.at("inode").as_unsigned();
  const auto born = home.at("born").as_integer();
  const std::optional<JsonView> named = home.find("filesystem");
  const auto filesystem = named ? named->as_unsigned() : std::optional<uint64_t>(0);
  const auto epoch = object.at("epoch").as_unsigned();
  if (!inode || !born || !filesystem || !epoch) return std::nullopt;
  return VolumeHome{
      .directory = {.inode = *inode, .born = *born}, .filesystem = *filesystem, .epoch = *epoch};
}

constexpr char kHomeKeys[] = "home\" or \"epoch";

}  // namespace

Result<VolumeFields, FieldError> parse_volume_fields(const JsonView& object) {
  const Result<uint32_t, FieldError> format = format_in(object);
  if (!format) return format.error();
  const auto uuid = uuid_in(object, "uuid");
  if (!uuid) return FieldError{"uuid"};
  const auto home = home_in(object, *format);
  if (!home) return FieldError{kHomeKeys};
  const JsonView devices = object.at("devices");
  const size_t device_count = devices.elements().count();
  if (!are_strings(devices) || device_count < kDeviceCountMin || device_count > kDeviceCountMax) {
    return FieldError{"devices"};
  }
  const auto depth = object.at("stripe_depth").as_unsigned();
  const StripeGeometry geometry{.stripe_depth_bytes = depth.value_or(0),
                                .device_count = static_cast<uint32_t>(device_count)};
  if (!geometry.valid()) return FieldError{"stripe_depth"};
  const std::optional<JsonView> depth_auto = object.find("stripe_depth_auto");
  if (depth_auto && !depth_auto->as_bool()) return FieldError{"stripe_depth_auto"};
  const std::optional<JsonView> verify = object.find("verify");
  if (verify && !verify->is("read") && !verify->is("scrub")) return FieldError{"verify"};
  const JsonView policy = object.at("policy");
  if (!policy.is_object()) return FieldError{"policy"};
  if (!are_strings(policy.at("stripe"))) return FieldError{"policy.stripe"};
  const auto size_min = policy.at("size_min").as_unsigned();
  if (!size_min) return FieldError{"policy.size_min"};
  return VolumeFields{.format = *format,
                      .home = *home,
                      .uuid = *uuid,
                      .devices = devices,
                      .device_count = static_cast<uint32_t>(device_count),
                      .stripe_depth_bytes = *depth,
                      .is_depth_auto = depth_auto && *depth_auto->as_bool(),
                      .verifies_reads = verify && verify->is("read"),
                      .globs = policy.at("stripe"),
                      .size_min_bytes = *size_min};
}

Result<DeviceRecord, FieldError> parse_device_fields(const JsonView& object) {
  const Result<uint32_t, FieldError> format = format_in(object);
  if (!format) return format.error();
  const auto volume = uuid_in(object, "volume");
  if (!volume) return FieldError{"volume"};
  const auto home = home_in(object, *format);
  if (!home) return FieldError{kHomeKeys};
  const auto ordinal = object.at("ordinal").as_unsigned();
  const auto count = object.at("count").as_unsigned();
  if (!count || *count < kDeviceCountMin || *count > kDeviceCountMax) return FieldError{"count"};
  if (!ordinal || *ordinal >= *count) return FieldError{"ordinal"};
  return DeviceRecord{.format = *format,
                      .home = *home,
                      .volume = *volume,
                      .ordinal = static_cast<uint32_t>(*ordinal),
                      .device_count = static_cast<uint32_t>(*count)};
}

}  // namespace graphlane
