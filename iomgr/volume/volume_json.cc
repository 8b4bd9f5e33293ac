#include "iomgr/volume/volume_json.h"

#include <optional>

#include "iomgr/base/json.h"
#include "iomgr/base/utf8.h"

namespace graphlane {
namespace {

struct StringSink {
  std::string text;
  StringSink& operator<<(std::string_view piece) {
    text += piece;
    return *this;
  }
};

std::vector<std::string> strings_of(const JsonView& array) {
  std::vector<std::string> strings;
  for (const JsonView element : array.elements()) {
    StringSink sink;
    (void)element.append_to(sink);
    strings.push_back(std::move(sink.text));
  }
  return strings;
}

// Parses `text` as an object.
Outcome<JsonView> parse_object(const std::string& text, std::string_view path) {
  const std::optional<JsonView> object = JsonView::parse(text);
  if (object && object->is_object()) return *object;
  return make_error(EINVAL, "{}: not valid JSON (cut short or damaged)", path);
}

Error damaged(std::string_view path, const FieldError& error) {
  if (error.format) {
    return make_error(EINVAL, "{}: format {}, this Graphlane knows formats 1 and {}", path,
                      *error.format, kVolumeFormatMax);
  }
  return make_error(EINVAL, "{}: damaged: \"{}\" is missing or wrong", path, error.key);
}

// A birth time before 1970 comes from a wrong clock, and is written as it is.
Json home_json(const VolumeHome& home) {
  Json object = {{"inode", home.directory.inode}, {"born", home.directory.born}};
  if (home.filesystem != 0) object["filesystem"] = home.filesystem;
  return object;
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
  const Outcome<JsonView> object = parse_object(text, path);
  if (!object) return object.error();
  const Result<VolumeFields, FieldError> fields = parse_volume_fields(*object);
  if (!fields) return damaged(path, fields.error());
  return VolumeRecord{
      .format = fields->format,
      .home = fields->home,
      .uuid = fields->uuid,
      .devices = strings_of(fields->devices),
      .stripe_depth_bytes = fields->stripe_depth_bytes,
      .is_depth_auto = fields->is_depth_auto,
      .verifies_reads = fields->verifies_reads,
      .policy = {.globs = strings_of(fields->globs), .size_min_bytes = fields->size_min_bytes}};
}

Outcome<DeviceRecord> parse_device_json(const std::string& text, std::string_view path) {
  const Outcome<JsonView> object = parse_object(text, path);
  if (!object) return object.error();
  const Result<DeviceRecord, FieldError> record = parse_device_fields(*object);
  if (!record) return damaged(path, record.error());
  return *record;
}

}  // namespace graphlane
