#include "cli/command.h"
#include "cli/volume/unused_volume.h"
#include "iomgr/admin/relocate.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

struct RelocateCommand {
  std::string volume, device, to;
};

// Of a disk that is mounted elsewhere now, the device is missing.
Outcome<std::shared_ptr<const Volume>> open_with_or_without(const std::string& root) {
  auto volume = Volume::open(root);
  return volume || volume.error().code != ENODEV
             ? volume
             : Volume::open(root, {.allows_missing_devices = true});
}

Outcome<int> relocate(const RelocateCommand& options) {
  const auto volume = open_with_or_without(options.volume);
  if (!volume) return volume.error();
  const Outcome<VolumeLock> lock = VolumeLock::take(**volume, VolumeLock::kExclusive);
  if (!lock) return lock.error();
  const Outcome<Fd> unused = check_unused(**volume);
  if (!unused) return unused.error();
  catch_interrupts();
  const Outcome<RelocateReport> report = relocate_device(**volume, options.device, options.to);
  if (!report) return report.error();
  if (!report->left.empty()) complain(fmt::format("{} (remove it)", report->left));
  if (quiet) return kOk;
  const std::string how = report->ended_killed_run ? "what an interrupted run had left is removed"
                          : report->was_there      ? "it was there already"
                          : report->copied_bytes > 0
                              ? fmt::format("{} copied", format_size(report->copied_bytes))
                              : "renamed";
  fmt::print("{}: {} is at {} now ({})\n", (*volume)->root(), report->from, report->to, how);
  return kOk;
}

}  // namespace

void add_relocate(Parser& parser) {
  const auto options = std::make_shared<RelocateCommand>();
  Command* command = parser.add(
      "relocate", "move a device's directory, or say where it was moved",
      "graphlane relocate graphs /mnt/d1 /mnt/new1\n\n"
      "Moves what the volume has in DEVICE to NEW, which may be on another disk. If it was\n"
      "moved already, or the disk is mounted there now, the volume takes note of it.\n"
      "The volume must not be in use.");
  command->add_option("VOL", options->volume, "the volume")->required();
  command
      ->add_option("DEVICE", options->device,
                   "the device's directory, as graphlane info VOL shows it")
      ->required();
  command->add_option("NEW", options->to, "its new directory, which exists")->required();
  parser.on_chosen(command, options, relocate);
}

}  // namespace graphlane::cli
