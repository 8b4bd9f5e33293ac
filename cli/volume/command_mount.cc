// mount, umount.
#include <filesystem>

#include "cli/command.h"
#include "fuse/mount/mount.h"

namespace graphlane::cli {
namespace {

struct MountCommand {
  std::string volume;
  std::string mountpoint;
  std::vector<std::string> options;
  bool foreground = false;
};

// Whether the path itself is a volume's directory.
bool is_volume(const std::string& path) {
  const Outcome<std::string> root =
      path.empty() ? Outcome<std::string>(Error{ENOENT, ""}) : find_volume_root(path);
  std::error_code error;
  return root && std::filesystem::equivalent(*root, path, error);
}

Outcome<int> mount(const MountCommand& options) {
  fuse::MountOptions mount;
  for (const std::string& list : options.options) {
    if (Outcome<void> parsed = mount.parse(list); !parsed) {
      complain(parsed.error().text + " (see graphlane mount --help)");
      return kUsage;
    }
  }
  mount.mountpoint = options.mountpoint;
  mount.foreground = options.foreground;
  if (mount.remount) {
    if (mount.mountpoint.empty()) mount.mountpoint = options.volume;
    if (Outcome<void> done = fuse::remount(mount); !done) return done.error();
    return kOk;
  }
  auto volume = Volume::open(options.volume);
  if (!volume) {
    if (is_volume(options.mountpoint) && !is_volume(options.volume)) {
      return make_error(EINVAL, "{0}: not a volume, but {1} is: graphlane mount {1} {0}",
                        options.volume, options.mountpoint);
    }
    return volume.error();
  }
  if (Outcome<void> mounted = fuse::mount_volume(std::move(*volume), mount); !mounted) {
    return mounted.error();
  }
  return kOk;
}

struct UnmountCommand {
  std::vector<std::string> mountpoints;
};

Outcome<int> umount(const UnmountCommand& options) {
  return to_each(options.mountpoints, fuse::unmount);
}

}  // namespace

void add_mount(Parser& parser) {
  const auto options = std::make_shared<MountCommand>();
  Command* command =
      parser.add("mount", "serve a volume as a filesystem",
                 "graphlane mount graphs /mnt/graphs\n\n"
                 "Without MNT over the volume's own directory, so that its paths stay as they\n"
                 "are. Options as for mount(8): ro, allow_other, threads=N, max_read=SIZE,\n"
                 "io=auto|direct|buffered, cache=auto|0|SIZE.");
  command->add_option("VOL", options->volume, "the volume")->required();
  command->add_option("MNT", options->mountpoint, "an existing directory");
  command->add_option("-o", options->options, "mount options, with commas between them")
      ->type_name("OPTIONS")
      ->one_value_each();
  command->add_flag("-f,--foreground", options->foreground, "serve until interrupted");
  parser.on_chosen(command, options, mount);
}

void add_umount(Parser& parser) {
  const auto options = std::make_shared<UnmountCommand>();
  Command* command = parser.add("umount", "unmount a volume", "graphlane umount /mnt/graphs");
  command->add_option("MNT", options->mountpoints, "where it is mounted")->required();
  parser.on_chosen(command, options, umount);
}

}  // namespace graphlane::cli
