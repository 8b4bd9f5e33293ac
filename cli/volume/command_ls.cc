#include <unistd.h>

#include <optional>

#include "cli/command.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/kind.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

struct LsOptions {
  std::vector<std::string> paths;
  bool recursive = false;
  bool devices = false;
};

// Escapes a name for a terminal; other programs get it as it is.
std::string shown(const std::string& name) {
  static const bool to_terminal = ::isatty(STDOUT_FILENO) != 0;
  return to_terminal ? printable(name) : name;
}

// "3M x 4 from 2": the layout of a striped file; else the file's kind.
std::string describe_node(const Volume& volume, const TreePlace& place, const struct stat& info,
                          uint64_t* size_bytes, std::optional<Layout>* striped) {
  if (S_ISDIR(info.st_mode)) return "directory";
  if (S_ISLNK(info.st_mode)) return "link";
  if (!S_ISREG(info.st_mode)) return "special";
  const Fd fd = open_place(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return "unreadable";
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(fd.get(), &layout);
  if (!verdict) return "unreadable";
  const std::optional<FileKind> wished = wished_kind(fd.get());
  if (*verdict == StubVerdict::kNotAStub) {
    return wished == FileKind::kStriped ? "plain, to stripe" : "plain";
  }
  if (*verdict != StubVerdict::kStub) return describe(*verdict);
  *striped = current_layout(volume, layout);
  *size_bytes = (*striped)->logical_size;
  const char* state = layout.state == FileState::kClosed ? ""
                      : is_being_changed(fd.get())       ? ", in use"
                                                         : ", not closed";
  return fmt::format("{} x {} from {}{}{}", format_size(layout.geometry.stripe_depth_bytes),
                     layout.geometry.device_count, layout.geometry.first_device, state,
                     wished == FileKind::kPlain ? ", to be plain" : "");
}

// How much of the file lies on which device.
void print_parts(const Volume& volume, const Layout& layout) {
  if (layout.geometry.device_count != volume.device_count()) return;
  const StripeMap map = layout.map();
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    fmt::print("{:>9}  {:<16}  {}\n", "", format_size(map.part_size(d, layout.logical_size)),
               shown(volume.devices()[d].directory));
  }
}

void print_node(const Volume& volume, const TreePlace& place, const struct stat& info,
                const std::string& name, const LsOptions& options) {
  uint64_t size_bytes = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  std::optional<Layout> striped;
  const std::string what = describe_node(volume, place, info, &size_bytes, &striped);
  const std::string size = S_ISREG(info.st_mode) ? format_size(size_bytes) : "-";
  fmt::print("{:>9}  {:<16}  {}{}\n", size, what, shown(name), S_ISDIR(info.st_mode) ? "/" : "");
  if (options.devices && striped) print_parts(volume, *striped);
}

Outcome<void> list(const VolumePath& path, const LsOptions& options) {
  std::string below = path.below;
  if (below.ends_with("/.")) below.resize(below.size() - 2);
  const Outcome<TreePlace> top = locate_in_volume(*path.volume, below);
  if (!top) return top.error();
  const Outcome<std::vector<TreeNode>> nodes =
      options.recursive ? list_tree(*top) : list_directory(*top);
  if (!nodes) return nodes.error();
  for (const TreeNode& node : *nodes) {
    const bool is_directory = S_ISDIR(node.info.st_mode);
    if (top->path == "." && is_within(node.path, kControlDirectory)) continue;
    if (!node.path.empty()) {
      print_node(*path.volume, top->at(node.path), node.info, node.path, options);
    } else if (!is_directory) {
      print_node(*path.volume, *top, node.info,
                 std::filesystem::path(top->shown).filename().string(), options);
    }
  }
  return {};
}

Outcome<int> ls(const LsOptions& options) {
  return to_each(options.paths, [&](const std::string& path) -> Outcome<void> {
    const Outcome<VolumePath> place = open_volume_of(path);
    if (!place) return place.error();
    if (options.paths.size() > 1) fmt::print("{}:\n", shown(path));
    return list(*place, options);
  });
}

}  // namespace

void add_ls(Parser& parser) {
  const auto options = std::make_shared<LsOptions>();
  Command* command = parser.add(
      "ls", "list files with their true sizes and layouts",
      "graphlane ls graphs/twitter-grid\n\n"
      "\"3M x 4 from 2\" is a striped file: stripe depth, devices, the first device.\n"
      "\"plain, to stripe\" and \"…, to be plain\": the file was renamed, and gets the kind of\n"
      "its new name from its mount, or from graphlane check --repair.\n"
      "With --devices a line for each device says how much of the file lies there.");
  command->add_option("PATH", options->paths, "VOL or a path in it")->required();
  command->add_flag("-R,--recursive", options->recursive, "directories with all in them");
  command->add_flag("-d,--devices", options->devices,
                    "how much of each striped file lies on which device");
  parser.on_chosen(command, options, ls);
}

}  // namespace graphlane::cli
