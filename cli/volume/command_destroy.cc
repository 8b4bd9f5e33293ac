// destroy: removes a volume with all its files, and its directories on the devices.
//
// All checks come first. The devices' directories go before VOL, and VOL/.graphlane goes last: so a
// destroy that was interrupted can be run again.
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/volume/unused_volume.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

struct DestroyCommand {
  std::string volume;
  bool yes = false;
};

// Makes the user type the volume's name.
Outcome<void> ask(const Volume& volume) {
  const std::string name = fs::path(volume.root()).filename();
  if (::isatty(STDIN_FILENO) == 0) {
    return make_error(EINVAL, "{}: destroys all files in it, and asks on a terminal only: --yes",
                      volume.root());
  }
  fmt::print(stderr, "{}: all files in it will be gone. Type {} to go on: ", volume.root(), name);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == name) return {};
  return make_error(ECANCELED, "{}: left as it is", volume.root());
}

Outcome<void> remove_directory(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return os_error(error.value(), path.string(), "cannot remove");
  return {};
}

Outcome<void> remove_root(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename() == kControlDirectory) continue;
    if (Outcome<void> gone = remove_directory(at->path()); !gone) return gone;
  }
  if (error) return os_error(error.value(), root.string(), "cannot read");
  if (Outcome<void> gone = remove_directory(root / kControlDirectory); !gone) return gone;
  if (::rmdir(root.c_str()) != 0) {
    return os_error(errno, root.string(), "is empty now, but cannot be removed");
  }
  return {};
}

Outcome<int> destroy(const DestroyCommand& options) {
  const auto volume =
      Volume::open(options.volume, {.allows_missing_devices = true, .allows_copies = false});
  if (!volume) return volume.error();
  const fs::path root = (*volume)->root();
  std::error_code error;
  if (fs::is_symlink(fs::path(options.volume).lexically_normal(), error)) {
    return make_error(EINVAL, "{}: a link: destroy {} itself", options.volume, root.string());
  }
  const Outcome<VolumeLock> lock = VolumeLock::take(**volume, VolumeLock::kExclusive);
  if (!lock) return lock.error();
  const Outcome<Fd> unused = check_unused(**volume);
  if (!unused) return unused.error();
  if (::access(root.parent_path().c_str(), W_OK) != 0) {
    return os_error(errno, root.parent_path().string(),
                    "cannot remove the volume's directory from it");
  }
  for (const Device& device : (*volume)->devices()) {
    if (device.root_fd && ::access(device.directory.c_str(), W_OK) != 0) {
      return os_error(errno, device.directory, "cannot remove the volume's directory from it");
    }
  }
  if (!options.yes) {
    if (Outcome<void> agreed = ask(**volume); !agreed) return agreed.error();
  }
  for (const Device& device : (*volume)->devices()) {
    if (!device.root_fd) {
      complain(fmt::format("{}: not found; it is left where it is", device.root));
      continue;
    }
    if (Outcome<void> gone = remove_directory(device.root); !gone) return gone.error();
  }
  if (Outcome<void> gone = remove_root(root); !gone) return gone.error();
  if (!quiet) fmt::print("destroyed {}\n", root.string());
  return kOk;
}

}  // namespace

void add_destroy(Parser& parser) {
  const auto options = std::make_shared<DestroyCommand>();
  Command* command = parser.add(
      "destroy", "remove a volume with all files in it",
      "graphlane destroy graphs\n\n"
      "It asks for the volume's name before. Directories of the volume on its devices go, too;\n"
      "of a device that is not found its own stays.");
  command->add_option("VOL", options->volume, "the volume")->required();
  command->add_flag("--yes", options->yes, "do not ask");
  parser.on_chosen(command, options, destroy);
}

}  // namespace graphlane::cli
