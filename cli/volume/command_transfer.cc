// import, export, rm.
#include <filesystem>

#include "cli/volume/stripe_options.h"
#include "iomgr/admin/transfer.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

void print_summary(std::string_view done, const TransferSummary& summary) {
  if (quiet) return;
  fmt::print("{}: {} striped and {}, {}\n", done, summary.striped_count,
             counted(summary.plain_count, "plain file"), format_size(summary.bytes));
}

struct ImportCommand {
  std::vector<std::string> operands;  // the sources, then the destination
  bool overwrite = false;
  StripeOptions stripe;
};

// Imports one source, and adds it to the summary.
Outcome<void> import_one(const ImportCommand& options, const VolumePath& to,
                         const std::string& source, TransferSummary* all) {
  const StripePolicy policy = options.stripe.policy(to.volume->policy());
  ImportOptions import{.source = source,
                       .destination = to.below,
                       .stripe_depth_bytes = options.stripe.depth_bytes.value_or(0),
                       .overwrite = options.overwrite,
                       .policy = &policy};
  const bool volume_chooses = to.volume->is_depth_auto() && !options.stripe.depth_bytes;
  if (options.stripe.is_depth_auto || volume_chooses) choose_depths(*to.volume, &import);
  const Outcome<TransferSummary> summary = import_files(*to.volume, import);
  if (!summary) return summary.error();
  all->striped_count += summary->striped_count;
  all->plain_count += summary->plain_count;
  all->bytes += summary->bytes;
  return {};
}

Outcome<int> import(const ImportCommand& options) {
  if (options.operands.size() < 2) {
    complain("DST is required (see graphlane import --help)");
    return kUsage;
  }
  if (options.operands.front() == "-") {
    complain(
        fmt::format("-: import takes files and directories: … | graphlane run -- sh -c 'cat > {}'",
                    options.operands.back()));
    return kUsage;
  }
  const std::vector<std::string> sources(options.operands.begin(), options.operands.end() - 1);
  const std::string& destination = options.operands.back();
  const Outcome<VolumePath> to = open_volume_of(destination);
  if (!to) return to.error();
  std::error_code error;
  if (sources.size() > 1 && !std::filesystem::is_directory(destination, error)) {
    return make_error(ENOTDIR, "{}: no directory, and {} things are to go there", destination,
                      sources.size());
  }
  if (options.stripe.depth_bytes) {
    if (Outcome<void> valid = check_stripe_depth(*options.stripe.depth_bytes); !valid) {
      return valid.error();
    }
  }
  catch_interrupts();
  TransferSummary all;
  const Outcome<int> status = to_each(
      sources, [&](const std::string& source) { return import_one(options, *to, source, &all); });
  if (status && (*status == kOk || sources.size() > 1)) print_summary("imported", all);
  return status;
}

struct ExportCommand {
  std::string source;
  std::string destination;
  bool overwrite = false;
  bool salvage = false;
};

Outcome<int> export_(const ExportCommand& options) {
  if (options.destination == "-") {
    complain(
        fmt::format("-: export makes files: graphlane run -- cat {} prints one", options.source));
    return kUsage;
  }
  const Outcome<VolumePath> from =
      open_volume_of(options.source, {.allows_missing_devices = options.salvage});
  if (!from) return from.error();
  // VOL/. means the contents, as for any directory.
  const bool contents_of_all = from->below.empty() && options.source.ends_with("/.");
  catch_interrupts();
  const Outcome<TransferSummary> summary =
      export_files(*from->volume, {.source = contents_of_all ? "." : from->below,
                                   .destination = options.destination,
                                   .overwrite = options.overwrite,
                                   .salvage = options.salvage});
  if (!summary) return summary.error();
  for (const SalvagedFile& file : summary->salvaged) {
    fmt::print("missing: {}: {} in {}: {}\n", printable(file.shown),
               format_size(file.missing_bytes), counted(file.range_count, "range"),
               printable(file.list_shown));
  }
  print_summary("exported", *summary);
  return summary->salvaged.empty() ? kOk : kFailed;
}

struct RemoveCommand {
  std::vector<std::string> paths;
  bool recursive = false;
};

Outcome<int> remove(const RemoveCommand& options) {
  catch_interrupts();
  return to_each(options.paths, [&](const std::string& path) -> Outcome<void> {
    const Outcome<VolumePath> place = open_volume_of(path);
    if (!place) return place.error();
    return remove_files(*place->volume, place->below, options.recursive);
  });
}

}  // namespace

void add_import(Parser& parser) {
  const auto options = std::make_shared<ImportCommand>();
  Command* command = parser.add(
      "import", "copy files into a volume, striping large ones",
      "graphlane import twitter-grid graphs\n\n"
      "Names and attributes are treated as `cp -a` treats them. A file that is named\n"
      "itself is always striped; of a directory's files, those that the volume's policy,\n"
      "or --stripe and --min-size here, say. With --stripe-depth auto, or in a volume\n"
      "made with it, each file gets the depth that `graphlane advise SRC` explains.\n"
      "Nothing of a SRC appears before all of it is there.");
  command
      ->add_option("SRC", options->operands,
                   "files or directories; and the last, DST: VOL or a path in it")
      ->type_name("... DST")
      ->required();
  command->add_flag("-f,--overwrite", options->overwrite, "replace files that are there");
  options->stripe.add_to(command);
  parser.on_chosen(command, options, import);
}

void add_export(Parser& parser) {
  const auto options = std::make_shared<ExportCommand>();
  Command* command =
      parser.add("export", "copy files out of a volume, as plain files",
                 "graphlane export graphs/twitter-grid /backup\n\n"
                 "With --salvage damaged files are copied, too, as far as they are there: zeros\n"
                 "for what is missing, NAME.missing lists it, and the exit status is 1.");
  command->add_option("SRC", options->source, "VOL or a path in it")->required();
  command->add_option("DST", options->destination, "file or directory outside")->required();
  command->add_flag("-f,--overwrite", options->overwrite, "replace files that are there");
  command->add_flag("--salvage", options->salvage,
                    "damaged files, too, with lists of what is missing");
  parser.on_chosen(command, options, export_);
}

void add_rm(Parser& parser) {
  const auto options = std::make_shared<RemoveCommand>();
  Command* command =
      parser.add("rm", "remove files from a volume, with their parts",
                 "graphlane rm --recursive graphs/twitter-grid\n\n"
                 "rm(1) in the volume's directory leaves the parts on the devices, where\n"
                 "`graphlane check` finds them, and --delete-orphans deletes them.");
  command->add_option("PATH", options->paths, "in a volume")->required();
  command->add_flag("-r,--recursive", options->recursive, "directories with all in them");
  parser.on_chosen(command, options, remove);
}

}  // namespace graphlane::cli
