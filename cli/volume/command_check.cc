#include "iomgr/admin/check.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iostream>

#include "cli/command.h"
#include "cli/graph/convert_lists.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/size.h"
#include "iomgr/base/size_text.h"

namespace graphlane::cli {
namespace {

// Exit statuses of fsck(8), which adds them.
constexpr int kCheckCorrected = 1;
constexpr int kCheckLeft = 4;  // defects remain
constexpr FailureStatus kCheckFailure{.failed = 8, .usage = 16};

struct CheckCommand {
  std::string root;
  bool repair = false;
  bool scrub = false;
  bool delete_orphans = false;
  int64_t older_than_seconds = 0;
  bool yes = false;
  bool only_looks = false, of_fsck = false;  // options of fsck(8), which change nothing here
  bool upgrade = false;
  bool checksum = false, resume = false;
  uint64_t rate = 0;
};

// "7d", "12h", "30m", "45s".
Outcome<int64_t> parse_age(const std::string& text) {
  int64_t count = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string unit(end, text.data() + text.size());
  const int64_t seconds = unit == "d"   ? 86400
                          : unit == "h" ? 3600
                          : unit == "m" ? 60
                          : unit == "s" ? 1
                                        : 0;
  if (status != std::errc{} || count < 0 || seconds == 0 || count > INT32_MAX) {
    return make_error(EINVAL, "'{}': not an age (write 7d, 12h, 30m)", text);
  }
  return count * seconds;
}

std::vector<Orphan> chosen_orphans(const CheckReport& report, const CheckCommand& options) {
  std::vector<Orphan> chosen;
  const int64_t now = std::time(nullptr);
  for (const Orphan& orphan : report.orphans) {
    const bool is_known = orphan.since_seconds != 0;
    const int64_t age = is_known ? now - orphan.since_seconds : 0;
    if (age >= options.older_than_seconds) chosen.push_back(orphan);
  }
  return chosen;
}

// Asks the user. The end of stdin means no.
bool is_confirmed(const std::vector<Orphan>& orphans, const CheckCommand& options) {
  if (options.yes) return true;
  fmt::print("delete {}? Nothing brings them back. [y/N] ", describe(orphans, std::time(nullptr)));
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "yes") return true;
  fmt::print("nothing was deleted\n");
  return false;
}

// Deletes the chosen orphans, and checks again; `report` then has the new state.
Outcome<void> delete_orphans(const Volume& volume, const CheckCommand& options,
                             CheckReport* report) {
  const std::vector<Orphan> chosen = chosen_orphans(*report, options);
  if (chosen.empty()) return {};
  if (!report->orphans_kept.empty()) {
    report->problems.push_back(fmt::format("no orphan is deleted: {}", report->orphans_kept));
    return {};
  }
  const int64_t now = std::time(nullptr);
  for (const Orphan& orphan : chosen) {
    fmt::print("orphan: {}: {}, {}, {}\n", UuidText(orphan.file_id).view(),
               counted(orphan.part_count, "part"), format_size(orphan.bytes),
               describe_age(orphan, now));
  }
  if (!is_confirmed(chosen, options)) return {};
  CheckOptions again{.repair = options.repair};
  for (const Orphan& orphan : chosen) again.delete_orphans.insert(orphan.file_id.bytes);
  Outcome<CheckReport> after = check_volume(volume, again);
  if (!after) return after.error();
  after->repaired.insert(after->repaired.begin(), report->repaired.begin(), report->repaired.end());
  *report = std::move(*after);
  return {};
}

void print_report(const Volume& volume, const CheckReport& report) {
  for (const std::string& line : report.repaired) fmt::print("repaired: {}\n", printable(line));
  for (const std::string& line : report.problems) fmt::print("problem: {}\n", printable(line));
  if (quiet) return;
  for (const std::string& line : report.open) fmt::print("open: {}\n", printable(line));
  const std::string root = printable(volume.root());
  if (!report.open.empty()) {
    fmt::print(
        "{} not closed: a mount closes a file when it opens it, or graphlane check --repair {}\n",
        report.open.size() == 1 ? "1 file is" : fmt::format("{} files are", report.open.size()),
        root);
  }
  for (const std::string& line : report.waiting) fmt::print("kind: {}\n", printable(line));
  if (!report.waiting.empty()) {
    fmt::print(
        "{} renamed; to give them the kind of their name: graphlane check --repair {}\n",
        counted(report.waiting.size(), "file") + (report.waiting.size() == 1 ? " was" : " were"),
        root);
  }
  if (!report.orphans.empty()) {
    const auto all = [&](const auto& is_so) {
      return std::all_of(report.orphans.begin(), report.orphans.end(), is_so);
    };
    const bool noted = all([](const Orphan& orphan) { return orphan.since_seconds != 0; });
    const bool readable = noted && all([](const Orphan& orphan) { return orphan.is_readable(); });
    fmt::print("{}{}; to delete: graphlane check --delete-orphans {}\n",
               describe(report.orphans, std::time(nullptr)),
               readable ? ", readable in lost+found"
               : noted  ? ", noted in lost+found"
                        : "",
               root);
  }
}

void print_scrubbed(const CheckReport& report, bool scrubbed) {
  if (quiet || !scrubbed) return;
  fmt::print("scrubbed: {} blocks match their checksums, {} do not, {} have none that holds\n",
             report.scrubbed.verified, report.scrubbed.failed, report.scrubbed.unverified);
  if (!report.without_sums.empty()) {
    fmt::print("files without checksums: {} (graphlane check --checksum gives them some)\n",
               report.without_sums.size());
  }
}

// A damaged graph counts as a remaining defect.
Outcome<int> check_graph(const std::string& path) {
  const Outcome<int> checked = check_stored_graph(path);
  if (checked || caught_signal() != 0) return checked;
  complain(checked.error().text);
  return kCheckLeft;
}

Outcome<int> check(const CheckCommand& options) {
  if (graphfmt::is_stored_graph(options.root)) return check_graph(options.root);
  const auto volume = Volume::open(options.root);
  if (!volume) return volume.error();
  catch_interrupts();
  if (options.upgrade) {
    const Outcome<BindReport> bound = upgrade_volume(**volume);
    return bound ? print_bound(*bound, (*volume)->root()) : bound.error();
  }
  Outcome<CheckReport> report = check_volume(**volume, {.repair = options.repair,
                                                        .scrub = options.scrub,
                                                        .rate_bytes_per_second = options.rate,
                                                        .resume = options.resume,
                                                        .checksum = options.checksum});
  if (!report) return report.error();
  if (options.delete_orphans && !report->stopped) {
    if (Outcome<void> done = delete_orphans(**volume, options, &*report); !done) {
      return done.error();
    }
  }
  print_report(**volume, *report);
  print_scrubbed(*report, options.scrub);
  if (report->stopped) return *report->stopped;
  if (!quiet) {
    fmt::print(
        "{}: {} ({}), {}, {}\n", printable((*volume)->root()),
        counted(report->striped_count, "striped file"), format_size(report->bytes),
        counted(report->plain_count, "plain file"),
        report->problems.empty() ? "no problems" : counted(report->problems.size(), "problem"));
  }
  return (report->repaired.empty() ? 0 : kCheckCorrected) |
         (report->problems.empty() ? 0 : kCheckLeft);
}

}  // namespace

void add_check(Parser& parser) {
  const auto options = std::make_shared<CheckCommand>();
  Command* command = parser.add(
      "check", "compare a volume's stubs with what is on its devices, or check a graph",
      "graphlane check --repair graphs\n\n"
      "Exit status as fsck(8) has it: 0 all is right, 1 something was corrected, 4 something\n"
      "is left, 5 both, 8 busy or failed, 16 wrong command line. A file that is merely open\n"
      "is right. It changes nothing without --repair, and no repair deletes data: parts that\n"
      "no stub names are noted in VOL/lost+found, for their stubs may return.\n"
      "As fsck.fuse.graphlane it is what fsck(8) calls. Of a directory that\n"
      "convert --to lists made, every byte is read and checked.",
      kCheckFailure);
  command->add_option("VOL", options->root, "the volume, or a stored graph")->required();
  Option* repair =
      command->add_flag("--repair", options->repair,
                        "close files whose writer died; note parts without a stub in lost+found");
  Option* scrub =
      command->add_flag("--scrub", options->scrub, "also read every byte and compare its checksum");
  command->add_flag("--resume", options->resume, "go on with a scrub that was stopped")
      ->needs(scrub);
  command->add_flag(
      "--checksum", options->checksum,
      "give files without checksums theirs, and bring those up to date that writers left behind");
  command
      ->add_option(
          "--limit-rate",
          [options](const std::string& text) -> Outcome<void> {
            const Result<uint64_t> rate = parse_size_text(text);
            if (!rate) return make_error(EINVAL, "'{}': not a size", text);
            options->rate = *rate;
            return {};
          },
          "read at most so many bytes a second of each device: 50M")
      ->type_name("SIZE");
  Option* erase = command->add_flag("--delete-orphans", options->delete_orphans,
                                    "list the parts that no stub names, ask, and delete them");
  command
      ->add_option(
          "--older-than",
          [options](const std::string& text) -> Outcome<void> {
            const Outcome<int64_t> age = parse_age(text);
            if (!age) return age.error();
            options->older_than_seconds = *age;
            return {};
          },
          "only those that a repair has noted so long ago: 7d, 12h")
      ->type_name("AGE")
      ->needs(erase);
  command->add_flag("--yes", options->yes, "do not ask")->needs(erase);
  Option* as_repair = command->add_flag("-a,-p,-y", options->repair, "as --repair, for fsck(8)");
  command->add_flag("-n", options->only_looks, "only look, for fsck(8)")
      ->excludes(repair)
      ->excludes(as_repair);
  command->add_flag("-f,-v", options->of_fsck, "taken from fsck(8), without effect");
  command->add_flag("--upgrade", options->upgrade,
                    "make a volume of format 1 one of format 2: bind its stubs to their parts");
  parser.on_chosen(command, options, check);
}

}  // namespace graphlane::cli
