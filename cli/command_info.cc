#include <sys/statvfs.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "iomgr/calibration.h"
#include "iomgr/base/size.h"
#include "iomgr/part_files.h"
#include "iomgr/striped_file.h"
#include "iomgr/volume_files.h"

namespace graphlane::cli {
namespace {

using json = nlohmann::ordered_json;

struct Options {
  std::string path;
  bool as_json = false;
};

Outcome<json> volume_info(const Volume& volume) {
  json devices = json::array();
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
  return json{{"path", volume.root()},
          {"uuid", UuidText(volume.uuid()).c_str()},
          {"format", 1},
          {"stripe_depth", volume.stripe_depth_bytes()},
          {"stripe_depth_auto", volume.is_depth_auto()},
          {"policy",
           {{"stripe", volume.policy().globs}, {"size_min", volume.policy().size_min_bytes}}},
          {"devices", devices}};
}

json parts_info(const Volume& volume, const Layout& layout) {
  json parts = json::array();
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    json part = {{"path", volume.part_path(d, layout.file_id)}, {"size", nullptr}};
    struct stat info;
    if (::fstatat(volume.devices()[d].root_fd.get(), PartName(layout.file_id).c_str(), &info, 0) ==
        0) {
      part["size"] = info.st_size;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Outcome<json> file_info(const Volume& volume, const std::string& below) {
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
    return json{{"path", place->shown}, {"striped", false}, {"size", info.st_size}};
  }
  if (*verdict != StubVerdict::kStub) {
    return make_error(EIO, "{}: {}", place->shown, describe(*verdict));
  }
  if (Outcome<void> accepted = volume.accept(layout, place->shown); !accepted) {
    return accepted.error();
  }
  return json{{"path", place->shown},
              {"striped", true},
              {"size", current_layout(volume, layout).logical_size},
              {"id", UuidText(layout.file_id).c_str()},
              {"stripe_depth", layout.geometry.stripe_depth_bytes},
              {"first_device", layout.geometry.first_device},
              {"state", layout.state == FileState::kOpen ? "open" : "closed"},
              {"parts", parts_info(volume, layout)}};
}

// The numbers that are bytes, as the table shows them.
std::string shown(const std::string& key, const json& value) {
  const bool is_bytes = key.starts_with("size") || key == "free" || key == "stripe_depth";
  if (is_bytes && value.is_number()) return format_size(value.get<uint64_t>());
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "missing";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {  // of globs
    std::string all;
    for (const json& one : value) all += (all.empty() ? "" : " ") + one.get<std::string>();
    return all.empty() ? "every file" : all;
  }
  return value.dump();
}

void print_text(const json& info) {
  const auto line = [](const std::string& key, const std::string& text) {
    fmt::print("{:<14}{}\n", key, text);
  };
  for (const auto& [key, value] : info.items()) {
    if (key == "stripe_depth_auto") {
      if (value.get<bool>()) line("", "imports choose by format (auto)");
    } else if (key == "policy") {
      line("striped files", fmt::format("{}, from {}", shown("stripe", value["stripe"]),
                                        shown("size_min", value["size_min"])));
    } else if (key == "devices") {
      for (size_t d = 0; d < value.size(); ++d) {
        line(fmt::format("device {}", d),
             fmt::format("{}, {} free of {}, {} I/Os at once ({})",
                         value[d]["path"].get<std::string>(), shown("free", value[d]["free"]),
                         shown("size", value[d]["size"]), value[d]["depth"].get<uint32_t>(),
                         value[d]["depth_from"].get<std::string>()));
      }
    } else if (key == "parts") {
      for (size_t d = 0; d < value.size(); ++d) {
        line(fmt::format("part {}", d), fmt::format("{:>9}  {}", shown("size", value[d]["size"]),
                                                    value[d]["path"].get<std::string>()));
      }
    } else {
      std::string label = key;
      std::replace(label.begin(), label.end(), '_', ' ');
      line(label, shown(key, value));
    }
  }
}

Outcome<int> info(const Options& options) {
  const Outcome<VolumePath> place = open_volume_of(options.path);
  if (!place) return place.error();
  const Outcome<json> about = place->below.empty() ? volume_info(*place->volume)
                                                   : file_info(*place->volume, place->below);
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
  const auto options = std::make_shared<Options>();
  CLI::App* command = parser.add("info", "show a volume, or the layout of a file in it",
                                 "graphlane info --json graphs/twitter-grid/column");
  command->add_option("PATH", options->path, "VOL or a file in it")->required();
  command->add_flag("--json", options->as_json, "as JSON, sizes in bytes");
  parser.on_chosen(command, options, info);
}

}  // namespace graphlane::cli
