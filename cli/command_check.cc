#include "iomgr/check.h"

#include "cli/command.h"
#include "cli/convert_lists.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

struct CheckOptions {
  std::string root;
  bool repair = false;
  bool scrub = false;
};

Outcome<int> check(const CheckOptions& options) {
  if (is_stored_graph(options.root)) return check_stored_graph(options.root);
  const auto volume = Volume::open(options.root);
  if (!volume) return volume.error();
  catch_interrupts();
  const Outcome<CheckReport> report =
      check_volume(**volume, {.repair = options.repair, .scrub = options.scrub});
  if (!report) return report.error();
  for (const std::string& line : report->repaired) fmt::print("repaired: {}\n", printable(line));
  for (const std::string& line : report->problems) fmt::print("problem: {}\n", printable(line));
  if (report->stopped) return *report->stopped;
  if (!quiet) {
    fmt::print("{}: {} striped files ({}), {} plain files, {}\n", (*volume)->root(),
               report->striped_count, format_size(report->bytes), report->plain_count,
               report->problems.empty() ? "no problems"
                                        : fmt::format("{} problems", report->problems.size()));
  }
  return report->problems.empty() ? kOk : kFailed;
}

}  // namespace

void add_check(Parser& parser) {
  const auto options = std::make_shared<CheckOptions>();
  Command* command =
      parser.add("check", "compare a volume's stubs with what is on its devices, or check a graph",
                 "graphlane check --repair graphs\n\n"
                 "Exit status 1 if there are problems (left, with --repair). It changes nothing\n"
                 "without --repair, and never removes what it does not know. Of a directory that\n"
                 "convert --to lists made, every byte is read and checked.");
  command->add_option("VOL", options->root, "the volume, or a stored graph")->required();
  command->add_flag("--repair", options->repair,
                    "close files whose writer died; remove what dead imports left");
  command->add_flag("--scrub", options->scrub, "also read every byte");
  parser.on_chosen(command, options, check);
}

}  // namespace graphlane::cli
