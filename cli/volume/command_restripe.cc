#include "iomgr/admin/restripe.h"

#include "cli/command.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

struct RestripeOptions {
  std::vector<std::string> paths;
  std::optional<uint64_t> depth_bytes;
  uint32_t wait_seconds = 15;
  bool dry_run = false;
  bool as_json = false;
};

bool says_something(const RestripeReport& report) {
  return !report.changed.empty() || !report.left.empty() || report.kept_count > 0;
}

void add_to(RestripeReport* all, RestripeReport report) {
  std::move(report.changed.begin(), report.changed.end(), std::back_inserter(all->changed));
  std::move(report.left.begin(), report.left.end(), std::back_inserter(all->left));
  all->kept_count += report.kept_count;
  all->stopped = std::move(report.stopped);
}

RestripeReport restripe_path(const std::string& path, const RestripeOptions& options) {
  const auto restriped = [&]() -> Outcome<RestripeReport> {
    const Outcome<VolumePath> place = open_volume_of(path);
    if (!place) return place.error();
    return restripe_files(*place->volume, {.path = place->below,
                                           .stripe_depth_bytes = options.depth_bytes.value_or(0),
                                           .dry_run = options.dry_run,
                                           .patience = std::chrono::seconds(options.wait_seconds)});
  };
  Outcome<RestripeReport> report = restriped();
  if (report) return std::move(*report);
  RestripeReport nothing;
  nothing.stopped = report.error();
  return nothing;
}

Json json_of(const RestripeReport& report) {
  Json changed = Json::array(), left = Json::array();
  for (const RestripedFile& file : report.changed) {
    changed.push_back({{"path", file.shown},
                       {"size", file.bytes},
                       {"stripe_depth_before", file.from.stripe_depth_bytes},
                       {"stripe_depth", file.to.stripe_depth_bytes}});
  }
  for (const Error& error : report.left) left.push_back(error.text);
  return {{"changed", changed}, {"kept", report.kept_count}, {"left", left}};
}

void print_text(const RestripeReport& report, bool dry_run) {
  uint64_t bytes = 0;
  for (const RestripedFile& file : report.changed) {
    bytes += file.bytes;
    if (quiet && !dry_run) continue;
    fmt::print("{}: {}: {} -> {}, {}\n", dry_run ? "would restripe" : "restriped",
               printable(file.shown), format_size(file.from.stripe_depth_bytes),
               format_size(file.to.stripe_depth_bytes), format_size(file.bytes));
  }
  for (const Error& error : report.left) fmt::print("left: {}\n", printable(error.text));
  if (quiet) return;
  fmt::print("{}: {} ({}), {} as they were to be, {} left\n",
             dry_run ? "would restripe" : "restriped", counted(report.changed.size(), "file"),
             format_size(bytes), report.kept_count, report.left.size());
}

Outcome<int> restripe(const RestripeOptions& options) {
  if (options.depth_bytes) {
    if (Outcome<void> valid = check_stripe_depth(*options.depth_bytes); !valid) {
      return valid.error();
    }
  }
  catch_interrupts();
  RestripeReport all;
  for (const std::string& path : options.paths) {
    if (!all.stopped) add_to(&all, restripe_path(path, options));
  }
  if (all.stopped && !says_something(all)) return *all.stopped;
  if (options.as_json) {
    print_json(json_of(all));
  } else {
    print_text(all, options.dry_run);
  }
  if (all.stopped) return *all.stopped;
  return all.left.empty() ? kOk : kFailed;
}

}  // namespace

void add_restripe(Parser& parser) {
  const auto options = std::make_shared<RestripeOptions>();
  Command* command =
      parser.add("restripe", "give striped files another stripe depth, while the volume is in use",
                 "graphlane restripe --stripe-depth 1M graphs\n\n"
                 "For a whole volume the depth also becomes that of new files; without\n"
                 "--stripe-depth files get the depth of their volume, so a run can be continued.\n"
                 "A file that a program writes or has open is skipped, and so is one for which\n"
                 "there is no room. Exit status 1 if one was skipped.");
  command->add_option("PATH", options->paths, "VOL, or files and directories in it")->required();
  add_size(command, "--stripe-depth", &options->depth_bytes,
           "bytes on one device before the next one's turn, a multiple of 4096");
  command
      ->add_option("--wait", options->wait_seconds,
                   "how long to try again, at the end, with files in use (15)")
      ->type_name("SECONDS");
  command->add_flag("-n,--dry-run", options->dry_run, "only tell which files it would be");
  command->add_flag("--json", options->as_json, "as JSON, sizes in bytes");
  parser.on_chosen(command, options, restripe);
}

}  // namespace graphlane::cli
