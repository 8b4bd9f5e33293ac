#include <sys/xattr.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "iomgr/base/size.h"
#include "iomgr/mount_table.h"

namespace graphlane::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr char kStatsXattr[] = "user.graphlane.stats";

struct Options {
  std::string path;
  bool as_json = false;
};

// The mount that is at `path`, or of the volume that is there.
Outcome<std::string> find_mount(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error) return os_error(error.value(), path, "cannot open");
  if (const auto mount = find_volume_mount(real)) return mount->point;
  for (const VolumeMount& mount : list_volume_mounts()) {
    if (mount.volume_root == real) return mount.point;
  }
  return make_error(ENODEV, "{}: not mounted (graphlane mount {})", path, path);
}

Outcome<std::string> read_stats(const std::string& mount) {
  std::string text(1 << 16, '\0');  // the most that an attribute can have
  const ssize_t length = ::getxattr(mount.c_str(), kStatsXattr, text.data(), text.size());
  if (length < 0) return os_error(errno, mount, "cannot read the statistics");
  text.resize(static_cast<size_t>(length));
  return text;
}

// 0 for what is missing or something else: nlohmann's conversions throw.
uint64_t number(const json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_number_unsigned() ? member->get<uint64_t>() : 0;
}

std::string text(const json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "?";
}

void print_table(const std::string& mount, const json& stats) {
  fmt::print("{}: {}\n", mount, text(stats, "backend"));
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", "I/Os", "merged", "read", "written",
             "segments", "device");
  for (const json& device : stats.value("devices", json::array())) {
    fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", number(device, "ios"),
               number(device, "merged"),
               format_size(number(device, "bytes_read")),
               format_size(number(device, "bytes_written")), number(device, "segments"),
               text(device, "path"));
  }
}

Outcome<int> stat(const Options& options) {
  const Outcome<std::string> mount = find_mount(options.path);
  if (!mount) return mount.error();
  const Outcome<std::string> stats = read_stats(*mount);
  if (!stats) return stats.error();
  const json parsed = json::parse(*stats, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return make_error(EPROTO, "{}: statistics that this program does not understand", *mount);
  }
  if (options.as_json) {
    fmt::print("{}\n", parsed.dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    print_table(*mount, parsed);
  }
  return kOk;
}

}  // namespace

void add_stat(Parser& parser) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = parser.add("stat", "show what a mounted volume's devices have done",
                                 "graphlane stat --json graphs\n\n"
                                 "I/Os, bytes and stripe units of each device since the mount.");
  command->add_option("PATH", options->path, "VOL, or where it is mounted")->required();
  command->add_flag("--json", options->as_json, "as JSON, sizes in bytes");
  parser.on_chosen(command, options, stat);
}

}  // namespace graphlane::cli
