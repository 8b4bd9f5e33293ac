#include <sys/statvfs.h>

#include "cli/command.h"
#include "cli/graph/convert_lists.h"
#include "iomgr/base/size.h"
#include "iomgr/io/calibration.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/sum/sum_file.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

struct InfoOptions {
  std::string path;
  bool as_json = false;
};

Outcome<Json> volume_info(const Volume& volume) {
  Json devices = Json::array();
  for (const Device& device : volume.devices()) {
    struct statvfs space = {};
    (void)::fstatvfs(device.root_fd.get(), &space);
    const Outcome<LaneDepth> depth = lane_depth(device, /*asked=*/0);
    if (!depth) return depth.error();
    devices.push_back({{"path", device.directory},
                       {"size", space.f_blocks * space.f_frsize},
                       {"free", space.f_bavail * space.f_frsize},
                       {"depth", depth->io_count},
                       {"depth_from", name_of(depth->source)}});
  }
  return Json{
      {"path", volume.root()},
      {"uuid", UuidText(volume.uuid()).c_str()},
      {"format", volume.format()},
      {"stripe_depth", volume.stripe_depth_bytes()},
      {"stripe_depth_auto", volume.is_depth_auto()},
      {"verify", volume.verifies_reads() ? "read" : "scrub"},
      {"policy", {{"stripe", volume.policy().globs}, {"size_min", volume.policy().size_min_bytes}}},
      {"devices", devices}};
}

// "of each block", and what of the part has none that holds.
std::string block_checksums_of(const PartOf& part, int part_fd, const PartRecord& record) {
  const Result<SumFile> sums = SumFile::open(part, part_fd, record.ordinal, O_RDONLY);
  SumHeader header;
  SumVerdict verdict = SumVerdict::kGood;
  if (!sums) {
    verdict = verdict_of_error(sums.error().code);
    if (verdict == SumVerdict::kGood) return "of each block";  // this user may not read them
  } else {
    verdict = sums->read_header(&header).value_or(SumVerdict::kDamaged);
    if (verdict == SumVerdict::kGood && !fits_generation(header.generation, record.generation)) {
      verdict = SumVerdict::kStale;
    }
  }
  if (verdict != SumVerdict::kGood)
    return fmt::format("of each block, but they {}", describe(verdict));
  struct stat st;
  if (::fstat(part_fd, &st) != 0) return "of each block";
  const auto bytes = static_cast<uint64_t>(st.st_size);
  const uint64_t covered = std::min(bytes, header.covered_bytes);
  uint64_t without = bytes - covered;
  for (uint64_t at = 0; at < covered; at += header.region_bytes) {
    if (sums->is_dirty(header.region_of(at)).value_or(false)) {
      without += std::min(header.region_bytes, covered - at);
    }
  }
  if (without == 0) return "of each block";
  return fmt::format("of each block, but {} have none that holds{}", format_size(without),
                     header.is_partial ? " (check --checksum goes on)" : "");
}

// The state of a part's checksums.
std::string checksums_of(const Volume& volume, const Layout& layout, uint32_t d) {
  const int root_fd = volume.devices()[d].root_fd.get();
  const Fd part = open_part(root_fd, layout.file_id);
  PartRecord record;
  if (!part || read_part_record(part.get(), part_of(root_fd, layout), &record)
                       .value_or(RecordVerdict::kNone) != RecordVerdict::kRecord) {
    return "none";
  }
  if ((record.flags & PartRecord::kBlockSums) != 0) {
    return block_checksums_of(part_of(root_fd, layout), part.get(), record);
  }
  return (record.flags & PartRecord::kSummed) != 0 ? "of the part" : "none";
}

Json parts_info(const Volume& volume, const Layout& layout) {
  Json parts = Json::array();
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    Json part = {{"path", volume.part_path(d, layout.file_id)}, {"size", nullptr}};
    struct stat info;
    if (::fstatat(volume.devices()[d].root_fd.get(), PartName(layout.file_id).c_str(), &info, 0) ==
        0) {
      part["size"] = info.st_size;
    }
    part["checksums"] = checksums_of(volume, layout, d);
    parts.push_back(std::move(part));
  }
  return parts;
}

Outcome<Json> file_info(const Volume& volume, const std::string& below) {
  const Outcome<TreePlace> place = locate_in_volume(volume, below);
  if (!place) return place.error();
  const Fd fd(::openat(place->directory_fd, place->path.c_str(),
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd || ::fstat(fd.get(), &info) != 0) return place->error(errno, "cannot open");
  if (!S_ISREG(info.st_mode)) return make_error(EINVAL, "{}: not a file", place->shown);
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(fd.get(), &layout);
  if (!verdict) return place->error(verdict.error().code, "cannot read");
  if (*verdict == StubVerdict::kNotAStub) {
    return Json{{"path", place->shown}, {"striped", false}, {"size", info.st_size}};
  }
  if (*verdict != StubVerdict::kStub) {
    return make_error(EIO, "{}: {}", place->shown, describe(*verdict));
  }
  if (Outcome<void> accepted = volume.accept(layout, place->shown); !accepted) {
    return accepted.error();
  }
  return Json{{"path", place->shown},
              {"striped", true},
              {"size", current_layout(volume, layout).logical_size},
              {"id", UuidText(layout.file_id).c_str()},
              {"stripe_depth", layout.geometry.stripe_depth_bytes},
              {"first_device", layout.geometry.first_device},
              {"state", layout.state == FileState::kOpen ? "open" : "closed"},
              {"parts", parts_info(volume, layout)}};
}

// A value as the table shows it: some numbers are sizes in bytes.
std::string shown(const std::string& key, const Json& value) {
  const bool is_bytes = key.starts_with("size") || key == "free" || key == "stripe_depth";
  if (is_bytes && value.as_unsigned()) return format_size(*value.as_unsigned());
  if (const std::string* text = value.as_string()) return *text;
  if (value.is_null()) return "missing";
  if (value.as_bool()) return *value.as_bool() ? "yes" : "no";
  if (value.is_array()) {  // of globs
    std::string all;
    for (const Json& one : value.elements()) all += (all.empty() ? "" : " ") + shown("", one);
    return all.empty() ? "every file" : all;
  }
  return value.dump();
}

std::string shown_member(const Json& object, const std::string& key) {
  return shown(key, object.at_or_null(key));
}

void print_text(const Json& info) {
  const auto line = [](const std::string& key, const std::string& text) {
    fmt::print("{:<14}{}\n", key, text);
  };
  for (const auto& [key, value] : info.members()) {
    if (key == "stripe_depth_auto") {
      if (value == Json(true)) line("", "imports choose by format (auto)");
    } else if (key == "policy") {
      line("striped files", fmt::format("{}, from {}", shown_member(value, "stripe"),
                                        shown_member(value, "size_min")));
    } else if (key == "devices") {
      int ordinal = 0;
      for (const Json& device : value.elements()) {
        line(fmt::format("device {}", ordinal++),
             fmt::format("{}, {} free of {}, {} I/Os at once ({})", shown_member(device, "path"),
                         shown_member(device, "free"), shown_member(device, "size"),
                         shown_member(device, "depth"), shown_member(device, "depth_from")));
      }
    } else if (key == "parts") {
      int ordinal = 0;
      for (const Json& part : value.elements()) {
        line(fmt::format("part {}", ordinal++),
             fmt::format("{:>9}  {}, checksums: {}", shown_member(part, "size"),
                         shown_member(part, "path"), shown_member(part, "checksums")));
      }
    } else {
      std::string label = key;
      std::replace(label.begin(), label.end(), '_', ' ');
      line(label, shown(key, value));
    }
  }
}

Outcome<int> info(const InfoOptions& options) {
  if (graphfmt::is_stored_graph(options.path))
    return show_stored_graph(options.path, options.as_json);
  const Outcome<VolumePath> place = open_volume_of(options.path);
  if (!place) return place.error();
  const Outcome<Json> about =
      place->below.empty() ? volume_info(*place->volume) : file_info(*place->volume, place->below);
  if (!about) return about.error();
  if (options.as_json) {
    print_json(*about);
  } else {
    print_text(*about);
  }
  return kOk;
}

}  // namespace

void add_info(Parser& parser) {
  const auto options = std::make_shared<InfoOptions>();
  Command* command =
      parser.add("info", "show a volume, the layout of a file in it, or a stored graph",
                 "graphlane info --json graphs/twitter-grid/column");
  command
      ->add_option("PATH", options->path,
                   "VOL, a file in it, or a graph that convert --to lists made")
      ->required();
  command->add_flag("--json", options->as_json, "as JSON, sizes in bytes");
  parser.on_chosen(command, options, info);
}

}  // namespace graphlane::cli
