// try: measures what Graphlane gains, on the user's own graph and devices.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/measure/trial.h"
#include "graphfmt/graph_requests.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/striped_volume.h"

namespace graphlane::cli {
namespace {

// A smaller difference is noise.
constexpr double kDifference = 1.1;

struct TryCommand {
  std::string graph;
  std::vector<std::string> devices;
  std::optional<uint64_t> memory_bytes;
  std::vector<std::string> command;
  bool as_json = false;
};

// The stand-in engine: installed beside the library, or built beside the program.
std::string stand_in() {
  std::error_code error;
  const auto bin = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : {"../lib/graphlane/grid_engine", "../engines/grid_engine"}) {
    const std::string path = (bin / place).lexically_normal();
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// The default command: PageRank for a grid, else a read of each file in 24 MiB blocks.
std::vector<std::string> default_command(const std::string& graph) {
  const std::string engine = stand_in();
  struct stat info = {};
  if (!engine.empty() && ::stat((graph + "/column_offset").c_str(), &info) == 0) {
    return {engine, "pagerank", "{}", "--iterations", "2"};
  }
  // The shell makes the word that find replaces from "{"}: a plain {} here would become the graph's
  // path.
  return {"sh", "-c",
          "find \"$1\" -type f -exec sh -c 'for file; do dd if=\"$file\" of=/dev/null bs=24M "
          "status=none || exit 1; done' "
          "sh \"{\"} +",
          "sh", "{}"};
}

const Timing& named(const std::vector<Timing>& timings, std::string_view way) {
  return *std::ranges::find_if(timings, [&](const Timing& one) { return one.way == way; });
}

// The verdict: how much faster or slower, why, and what to do.
// `striped`: what the OS has striped the graph's own directory over, or "".
std::string verdict(const std::vector<Timing>& timings, uint64_t graph_bytes, uint64_t memory_bytes,
                    const std::string& striped) {
  const Timing& here = named(timings, "where it is");
  const Timing& disk = named(timings, "one disk");
  const Timing& preloaded = named(timings, "preloaded");
  const Timing& mounted = named(timings, "mounted");
  const Timing& theirs = here.cold_seconds <= disk.cold_seconds ? here : disk;
  const Timing& ours = preloaded.cold_seconds <= mounted.cold_seconds ? preloaded : mounted;
  const double gain = theirs.cold_seconds / std::max(ours.cold_seconds, 1e-9);
  const std::string how = ours.way == "preloaded" ? "graphlane run" : "graphlane mount";
  const std::string where = theirs.way == "one disk" ? "on one disk"
                            : striped.empty()        ? theirs.way
                                                     : fmt::format("{} ({})", theirs.way, striped);
  if (graph_bytes < memory_bytes / 2) {
    const std::string first =
        gain >= kDifference
            ? fmt::format("only the first sweep is faster, {:.2g} times by {}", gain, how)
            : "nor is the first sweep faster";
    return fmt::format(
        "The page cache holds this graph ({} of {}), so there is little to gain: {}.",
        format_size(graph_bytes), format_size(memory_bytes), first);
  }
  if (gain >= kDifference) {
    return fmt::format("{:.2g} times as fast as {}: use {}.", gain, where, how);
  }
  if (gain > 1 / kDifference) {
    return fmt::format("As fast as {}: there is nothing to gain for this program on these disks.",
                       where);
  }
  return fmt::format("{:.2g} times slower than {}: leave this graph where it is.", 1 / gain, where);
}

Json json_of(const std::vector<Timing>& timings, const std::string& striped,
             const std::string& sentence) {
  Json ways = Json::array();
  for (const Timing& timing : timings) {
    ways.push_back({{"way", timing.way},
                    {"cold_seconds", timing.cold_seconds},
                    {"warm_seconds", timing.warm_seconds}});
  }
  return {{"ways", std::move(ways)},
          {"os_striped_volume", striped.empty() ? Json(nullptr) : Json(striped)},
          {"verdict", sentence}};
}

Outcome<int> try_graph(const TryCommand& options) {
  catch_interrupts();
  if (options.devices.size() < 2) {
    return make_error(EINVAL, "--device: give a directory on each of two or more disks");
  }
  TrialOptions trial_options{
      .graph = options.graph,
      .devices = options.devices,
      .command = options.command.empty() ? default_command(options.graph) : options.command,
      .memory_bytes = options.memory_bytes};
  if (std::ranges::none_of(trial_options.command,
                           [](const std::string& word) { return word.find("{}") != word.npos; })) {
    return make_error(EINVAL, "{}: no {{}} in its words, which stands for the graph's place",
                      trial_options.command[0]);
  }
  for (const std::string& device : options.devices) {
    const std::string striped = os_striped_volume(device);
    if (!striped.empty()) {
      complain(
          fmt::format("{}: is {} itself; Graphlane is made for the single disks", device, striped));
    }
  }
  const auto trial = Trial::begin(trial_options);
  if (!trial) return trial.error();
  const auto timings = (*trial)->measure([](const std::string& way) {
    if (!quiet) fmt::print(stderr, "try: {} …\n", way);
  });
  if (!timings) return timings.error();
  const uint64_t memory = options.memory_bytes.value_or(memory_available_bytes());
  const std::string striped = os_striped_volume(options.graph);
  const std::string sentence = verdict(*timings, (*trial)->graph_bytes(), memory, striped);
  if (options.as_json) {
    print_json(json_of(*timings, striped, sentence));
    return kOk;
  }
  fmt::print("{:<12} {:>8} {:>8}  seconds\n", "", "cold", "warm");
  for (const Timing& timing : *timings) {
    fmt::print("{:<12} {:>8.2f} {:>8.2f}\n", timing.way, timing.cold_seconds, timing.warm_seconds);
  }
  if (!striped.empty()) fmt::print("where it is: {}\n", striped);
  fmt::print("{}\n", sentence);
  return kOk;
}

}  // namespace

void add_try(Parser& parser) {
  const auto options = std::make_shared<TryCommand>();
  Command* command = parser.add(
      "try", "tell whether Graphlane is worth it for a graph, on your disks",
      "graphlane try LiveJournal -d /mnt/d0 -d /mnt/d1 --memory 4G -- ./pagerank {} 5 4\n\n"
      "Runs COMMAND, in which {} is the graph's place, on the graph where it is, on a\n"
      "copy on the first disk, and on a volume over all disks, preloaded and mounted;\n"
      "each with nothing in the page cache, and again. Without COMMAND a grid is read\n"
      "by PageRank, and other files from begin to end. All copies are removed. --memory\n"
      "needs root: it makes a control group.");
  command->add_option("GRAPH", options->graph, "a file or a directory")->required();
  command->add_option("-d,--device", options->devices, "a directory on a disk; give two or more")
      ->type_name("DIR")
      ->one_value_each();
  add_size(command, "--memory", &options->memory_bytes,
           "what the program and the page cache may have together");
  command->add_flag("--json", options->as_json, "print JSON");
  command->take_rest(&options->command);
  parser.on_chosen(command, options, try_graph);
}

}  // namespace graphlane::cli
