#include "cli/command.h"
#include "iomgr/admin/adopt.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

struct AdoptOptions {
  std::string path;
};

Outcome<int> adopt(const AdoptOptions& options) {
  const Outcome<VolumePath> place = open_volume_of(options.path, {.allows_copies = true});
  if (!place) return place.error();
  catch_interrupts();
  const Outcome<BindReport> report = adopt_volume(*place->volume, place->below);
  if (!report) return report.error();
  return print_bound(*report, place->volume->root());
}

}  // namespace

Outcome<int> print_bound(const BindReport& report, const std::string& root) {
  for (const std::string& line : report.left) fmt::print("left: {}\n", printable(line));
  if (report.stopped) return *report.stopped;
  if (!quiet) {
    fmt::print("{}: {} bound to their parts, {} were, {} left\n", root,
               counted(report.bound_count, "stub"), report.kept_count, report.left.size());
  }
  return report.left.empty() ? kOk : kFailed;
}

void add_adopt(Parser& parser) {
  const auto options = std::make_shared<AdoptOptions>();
  Command* command = parser.add(
      "adopt", "make a restored, copied or moved directory the volume of its devices",
      "graphlane adopt /srv/graphs\n\n"
      "A volume knows its directory by the inode. One that was restored from a backup,\n"
      "rsynced or moved to another filesystem is refused until it is adopted; another\n"
      "directory of the same volume is refused from then on. Stubs that alone name their\n"
      "parts are bound to them, the rest is listed: adopt VOL/FILE binds one of those.\n"
      "Exit status 1 if any is left.");
  command->add_option("PATH", options->path, "VOL, or a file in it")->required();
  parser.on_chosen(command, options, adopt);
}

}  // namespace graphlane::cli
