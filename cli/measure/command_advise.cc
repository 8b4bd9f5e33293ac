#include "cli/command.h"
#include "graphfmt/graph_requests.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
using graphfmt::DepthReason;
using graphfmt::devices_touched;
using graphfmt::GraphFormat;
using graphfmt::Sweep;
namespace {

constexpr uint32_t kDevicesAssumed = 4;

struct AdviseOptions {
  std::string path;
  std::optional<uint32_t> device_count;
  bool on_ssds = false;
  uint32_t thread_count = graphfmt::engine_thread_count();
  bool as_json = false;
};

struct Advice {
  std::string path;
  graphfmt::GraphRequests graph;
  std::vector<uint64_t> depths_now;  // of each sweep; 0: plain, or several files
  uint32_t device_count = 0;
  bool are_devices_assumed = false;
  bool on_ssds = false;
  uint32_t thread_count = 0;
  uint64_t memory_bytes = 0;  // for the page cache

  uint64_t swept_bytes() const {
    uint64_t bytes = 0;
    for (const Sweep& sweep : graph.sweeps) bytes += sweep.bytes;
    return bytes;
  }
  graphfmt::AutoDepth depth_of(const Sweep& sweep) const {
    return graphfmt::auto_depth(sweep.requests, sweep.bytes, device_count, on_ssds, thread_count);
  }
  bool fits_memory() const { return swept_bytes() <= memory_bytes; }
  // The values for --stripe.
  std::vector<std::string> globs() const {
    switch (graph.format) {
      case GraphFormat::kGrid: return {"column", "row"};
      case GraphFormat::kShards: return {"*.adj"};
      case GraphFormat::kUnknown: break;
    }
    return {};
  }
};

const char* name_of(GraphFormat format) {
  switch (format) {
    case GraphFormat::kGrid: return "grid";
    case GraphFormat::kShards: return "shards";
    case GraphFormat::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(DepthReason reason) {
  switch (reason) {
    case DepthReason::kRequests: return "requests";
    case DepthReason::kUnknown: return "default";
    case DepthReason::kThreads: return "threads";
    case DepthReason::kBalance: return "balance";
    case DepthReason::kSsds: return "ssds";
    case DepthReason::kLeast: break;
  }
  return "least";
}

std::string explain(DepthReason reason, const Advice& advice) {
  switch (reason) {
    case DepthReason::kRequests: return "the mean request, rounded up, at most the largest";
    case DepthReason::kUnknown: return "nothing is known of the requests";
    case DepthReason::kThreads:
      return fmt::format("deeper, {} thread{} would leave some of {} devices idle",
                         advice.thread_count, advice.thread_count == 1 ? "" : "s",
                         advice.device_count);
    case DepthReason::kBalance:
      return fmt::format("deeper, {} devices would get less than {} units each",
                         advice.device_count, graphfmt::kUnitsPerDevice);
    case DepthReason::kSsds: return "on SSDs no seek is saved by more, and less is more even";
    case DepthReason::kLeast: break;
  }
  return "never less";
}

std::string describe(const graphfmt::GraphRequests& graph) {
  if (graph.grid) {
    return fmt::format("GridGraph's grid: {} vertices, {} edges{}, {} x {} partitions",
                       graph.grid->vertex_count, graph.grid->edge_count,
                       graph.grid->weighted ? " with weights" : "", graph.grid->partitions,
                       graph.grid->partitions);
  }
  if (graph.format == GraphFormat::kShards) return "GraphChi's shards";
  return "none that is known (a grid has column_offset, shards have NAME.p_S.adj)";
}

Json sweep_json(const Advice& advice, const Sweep& sweep, uint64_t depth_now) {
  const graphfmt::AutoDepth depth = advice.depth_of(sweep);
  const uint64_t median = sweep.requests.median_bytes();
  Json about = {{"name", sweep.name},
                {"files", sweep.file_count},
                {"size", sweep.bytes},
                {"rewritten", sweep.is_rewritten},
                {"requests",
                 {{"count", sweep.requests.count()},
                  {"mean", sweep.requests.mean_bytes()},
                  {"median", median},
                  {"max", sweep.requests.max_bytes()}}},
                {"stripe_depth_auto", depth.bytes},
                {"reason", name_of(depth.reason)},
                {"devices_a_request", devices_touched(median, depth.bytes, advice.device_count)}};
  if (depth_now != 0) about["stripe_depth"] = depth_now;
  return about;
}

Json json_of(const Advice& advice) {
  Json about = {{"path", advice.path}, {"format", name_of(advice.graph.format)}};
  if (advice.graph.grid) {
    about["vertices"] = advice.graph.grid->vertex_count;
    about["edges"] = advice.graph.grid->edge_count;
    about["weighted"] = advice.graph.grid->weighted;
    about["partitions"] = advice.graph.grid->partitions;
  }
  about["devices"] = advice.device_count;
  about["ssds"] = advice.on_ssds;
  about["threads"] = advice.thread_count;
  about["swept"] = advice.swept_bytes();
  about["memory"] = advice.memory_bytes;
  about["fits_memory"] = advice.fits_memory();
  about["stripe"] = advice.globs();
  about["stripe_depth_default"] = stripe_depth_default(advice.on_ssds);
  Json sweeps = Json::array();
  for (size_t s = 0; s < advice.graph.sweeps.size(); ++s) {
    sweeps.push_back(sweep_json(advice, advice.graph.sweeps[s], advice.depths_now[s]));
  }
  about["sweeps"] = sweeps;
  return about;
}

void print_sweep(const Advice& advice, const Sweep& sweep, uint64_t depth_now) {
  const graphfmt::RequestSizes& requests = sweep.requests;
  fmt::print("\n{}: {}", sweep.name, format_size(sweep.bytes));
  if (sweep.file_count != 1) fmt::print(" in {} files", sweep.file_count);
  if (sweep.is_rewritten) fmt::print(", rewritten by every iteration: better plain");
  if (depth_now != 0) fmt::print(", striped now at {}", format_size(depth_now));
  fmt::print("\n  requests      {} a sweep: mean {}, median {}, largest {}\n", requests.count(),
             format_size(requests.mean_bytes()), format_size(requests.median_bytes()),
             format_size(requests.max_bytes()));
  const graphfmt::AutoDepth depth = advice.depth_of(sweep);
  fmt::print("  auto depth    {} ({})\n", format_size(depth.bytes), explain(depth.reason, advice));
  fmt::print("  devices       a typical request uses {:.1f} of {}\n",
             devices_touched(requests.median_bytes(), depth.bytes, advice.device_count),
             advice.device_count);
}

void print_text(const Advice& advice) {
  fmt::print("format          {}\n", describe(advice.graph));
  fmt::print("devices         {}{}{}\n", advice.device_count, advice.on_ssds ? " SSDs" : "",
             advice.are_devices_assumed ? " (assumed; --devices says otherwise)" : "");
  if (advice.graph.format == GraphFormat::kUnknown) {
    fmt::print("auto depth      {}, or less where {} devices would get less than {} units each\n",
               format_size(stripe_depth_default(advice.on_ssds)), advice.device_count,
               graphfmt::kUnitsPerDevice);
    return;
  }
  fmt::print("memory          {} to sweep, {} for it: {}\n", format_size(advice.swept_bytes()),
             format_size(advice.memory_bytes),
             advice.fits_memory() ? "fits, so only the first sweep needs the devices"
                                  : "does not fit, so every sweep needs the devices");
  fmt::print("to be striped  ");
  for (const std::string& glob : advice.globs()) fmt::print(" --stripe '{}'", glob);
  fmt::print("\n");
  for (size_t s = 0; s < advice.graph.sweeps.size(); ++s) {
    print_sweep(advice, advice.graph.sweeps[s], advice.depths_now[s]);
  }
}

Outcome<int> advise(const AdviseOptions& options) {
  const Outcome<graphfmt::GraphDirectory> directory = graphfmt::GraphDirectory::open(options.path);
  if (!directory) return directory.error();
  Outcome<graphfmt::GraphRequests> requests = graphfmt::find_requests(*directory);
  if (!requests) return requests.error();
  // The volume of the directory. If it cannot be opened, an earlier step has reported a stub in the
  // directory as an error.
  const Outcome<VolumePath> place = open_volume_of(options.path);
  const bool supposes = options.device_count || options.on_ssds || !place;
  Advice advice{
      .path = directory->path(),
      .graph = std::move(*requests),
      .depths_now = {},
      .device_count = options.device_count.value_or(place ? place->volume->device_count() : 0),
      .on_ssds = supposes ? options.on_ssds : place->volume->is_on_ssds(),
      .thread_count = options.thread_count,
      .memory_bytes = memory_available_bytes()};
  if (advice.device_count == 0) {
    advice.device_count = kDevicesAssumed;
    advice.are_devices_assumed = true;
  }
  for (const Sweep& sweep : advice.graph.sweeps) {
    const auto file =
        directory->has(sweep.name) ? directory->look(sweep.name) : graphfmt::GraphFile{};
    if (!file) return file.error();
    advice.depths_now.push_back(file->stripe_depth_bytes);
  }
  if (options.as_json) {
    print_json(json_of(advice));
  } else {
    print_text(advice);
  }
  return kOk;
}

}  // namespace

void add_advise(Parser& parser) {
  const auto options = std::make_shared<AdviseOptions>();
  Command* command =
      parser.add("advise", "tell how a graph is best striped, and why",
                 "graphlane advise twitter-grid\n\n"
                 "Tells the format of the graph in a directory, plain or in a volume; by requests\n"
                 "of which sizes engines will sweep its files; the stripe depth that\n"
                 "`--stripe-depth auto` takes for them, and why; over how many devices it spreads\n"
                 "a request; and whether the graph fits into memory anyway.");
  command->add_option("PATH", options->path, "the directory of a graph")->required();
  command->add_option("--devices", options->device_count, "for a volume of so many devices")
      ->in_range(kDeviceCountMin, kDeviceCountMax)
      ->type_name("N");
  command->add_flag("--ssds", options->on_ssds, "for a volume whose devices are SSDs");
  command
      ->add_option("--threads", options->thread_count,
                   "for an engine of so many threads, not one a processor")
      ->in_range(1, 4096)
      ->type_name("N");
  command->add_flag("--json", options->as_json, "as JSON, sizes in bytes");
  parser.on_chosen(command, options, advise);
}

}  // namespace graphlane::cli
