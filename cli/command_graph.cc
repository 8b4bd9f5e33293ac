// convert and gen: graphs from graphfmt, to where they are wanted.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/graph_output.h"
#include "graphfmt/grid.h"
#include "graphfmt/rmat.h"
#include "graphfmt/staging.h"
#include "iomgr/base/size.h"
#include "iomgr/stub.h"
#include "iomgr/volume_files.h"

namespace graphlane::cli {
namespace {

constexpr char kGrid[] = "grid";

struct ConvertCommand {
  std::string input, output;
  std::string from, to = kGrid;
  bool weighted = false;
  bool overwrite = false;
  uint64_t vertices = 0;
  uint32_t partitions = 0;
  unsigned threads = 0;
  std::optional<uint64_t> memory_bytes;
};

// --from and --to unless given: what the file's name says.
Outcome<EdgeFormat> format_of(const std::string& given, const std::string& path) {
  if (!given.empty()) return parse_edge_format(given);
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".bin") return EdgeFormat::kBin;
  if (extension == ".u32") return EdgeFormat::kU32;
  return EdgeFormat::kSnap;
}

Outcome<void> to_grid(const ConvertCommand& options, EdgeFormat from, const std::string& path) {
  GridOptions grid{.input = options.input,
                   .format = from,
                   .output = path,
                   .weighted = options.weighted,
                   .vertices = options.vertices,
                   .partitions = options.partitions,
                   .threads = options.threads,
                   .overwrite = options.overwrite};
  if (options.memory_bytes) grid.memory_budget_bytes = *options.memory_bytes;
  const Outcome<GridSummary> built = build_grid(grid);
  if (!built) return built.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {} edges in {} x {} blocks, {}\n", options.output,
               built->vertex_count, built->edge_count, built->partitions, built->partitions,
               format_size(built->output_bytes));
  }
  return {};
}

// On stderr where the edges went to stdout.
void print_edges(const std::string& output, const EdgeListSummary& summary) {
  if (quiet) return;
  struct stat edges, out;
  const bool is_stdout = ::stat(output.c_str(), &edges) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 &&
                         edges.st_dev == out.st_dev && edges.st_ino == out.st_ino;
  fmt::print(is_stdout ? stderr : stdout, "{}: {} vertices, {} edges\n", output,
             summary.vertex_count, summary.edge_count);
}

// With --overwrite.
Outcome<void> may_become_list(const std::string& path) {
  return Staging::may_replace(path, Staging::Kind::kFile, true);
}

Outcome<void> may_become_grid_directory(const std::string& path) {
  const Outcome<void> may = Staging::may_replace(path, Staging::Kind::kDirectory, true);
  return may ? may_become_grid(path) : may;
}

Outcome<void> to_list(const ConvertCommand& options, EdgeFormat from, EdgeFormat to,
                      const std::string& path) {
  EdgeListOptions input{.path = options.input,
                        .format = from,
                        .weighted = options.weighted,
                        .vertices = options.vertices,
                        .threads = options.threads};
  if (options.memory_bytes) input.memory_budget_bytes = *options.memory_bytes;
  const Outcome<EdgeListSummary> written = convert_edges(
      input, {.path = path, .format = to, .overwrite = options.overwrite, .comment = {}});
  if (!written) return written.error();
  print_edges(options.output, *written);
  return {};
}

// Its reader would tell of a bad edge.
Outcome<void> check_no_stub(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != kStubSize) return {};
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(file.get(), &layout);
  if (!verdict || *verdict == StubVerdict::kNotAStub) return {};
  return make_error(EINVAL, "{}: is a striped file: give its path in a mount, or use `graphlane run -- "
                    "graphlane convert …`", path);
}

// A grid that is replaced goes with all that is in it.
Outcome<void> check_not_replaced(const ConvertCommand& options) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!options.overwrite || !fs::is_directory(options.output, failed)) return {};
  const fs::path input = fs::canonical(options.input, failed);
  if (failed || !is_within(input, fs::canonical(options.output, failed))) return {};
  return make_error(EINVAL, "{}: is in {}, which is to be replaced", options.input, options.output);
}

Outcome<int> convert(const ConvertCommand& options) {
  if (Outcome<void> plain = check_no_stub(options.input); !plain) return plain.error();
  if (Outcome<void> kept = check_not_replaced(options); !kept) return kept.error();
  const Outcome<EdgeFormat> from = format_of(options.from, options.input);
  if (!from) return from.error();
  std::optional<EdgeFormat> list;
  if (options.to != kGrid) {
    const Outcome<EdgeFormat> to = parse_edge_format(options.to);
    if (!to) return to.error();
    list = *to;
  }
  const Outcome<void> written = write_graph(
      {.path = options.output,
       .overwrite = options.overwrite,
       .may_replace = list ? may_become_list : may_become_grid_directory,
       .build = [&](const std::string& path) {
         return list ? to_list(options, *from, *list, path) : to_grid(options, *from, path);
       }});
  if (!written) return written.error();
  return kOk;
}

struct RmatCommand {
  std::string output;
  std::string to;
  bool overwrite = false;
  bool scramble = false;
  unsigned scale = 16;
  std::optional<uint64_t> edges;
  uint64_t seed = 1;
  unsigned threads = 0;
};

Outcome<int> generate(const RmatCommand& options) {
  const Outcome<EdgeFormat> to =
      options.to.empty() && !std::filesystem::path(options.output).has_extension()
          ? Outcome<EdgeFormat>(EdgeFormat::kBin)
          : format_of(options.to, options.output);
  if (!to) return to.error();
  const RmatOptions rmat{.scale = options.scale,
                         .edges = options.edges.value_or(uint64_t{16} << std::min(options.scale, 32u)),
                         .seed = options.seed,
                         .scramble = options.scramble,
                         .threads = options.threads};
  const auto build = [&](const std::string& path) -> Outcome<void> {
    const Outcome<EdgeListSummary> list = write_rmat(
        rmat, {.path = path, .format = *to, .overwrite = options.overwrite, .comment = {}});
    if (!list) return list.error();
    print_edges(options.output, *list);
    return {};
  };
  const Outcome<void> written = write_graph(
      {.path = options.output,
       .overwrite = options.overwrite,
       .may_replace = may_become_list,
       .build = build});
  if (!written) return written.error();
  return kOk;
}

}  // namespace

void add_convert(Parser& parser) {
  const auto options = std::make_shared<ConvertCommand>();
  Command* command = parser.add(
      "convert", "turn an edge list into a GridGraph grid, or another edge list",
      "graphlane convert --from snap --to grid -p 8 soc-LiveJournal1.txt.gz graphs/livejournal\n\n"
      "snap: text, a pair of vertex numbers a line, also gzipped. bin: pairs of int32.\n"
      "u32: pairs of uint32. Without --from the name decides: .bin, .u32, else snap.");
  command->add_option("IN", options->input, "edge list")->required();
  command->add_option("OUT", options->output, "file or directory, which may lie in a volume")
      ->required();
  command->add_option("--from", options->from, "snap, bin or u32")->type_name("FORMAT");
  command->add_option("--to", options->to, "grid (unless given), snap, bin or u32")
      ->type_name("FORMAT");
  command->add_option("-p,--partitions", options->partitions, "the grid has P x P blocks")
      ->type_name("P");
  command->add_flag("-w,--weighted", options->weighted, "edges have weights");
  command->add_option("--vertices", options->vertices, "how many there are, else largest + 1")
      ->type_name("N");
  add_size(command, "--memory", &options->memory_bytes, "use no more than this (1G for a grid)");
  command->add_option("--threads", options->threads, "use so many (all cores)")->type_name("N");
  command->add_flag("-f,--overwrite", options->overwrite, "replace what is there");
  parser.on_chosen(command, options, convert);
}

void add_gen(Parser& parser) {
  Command* gen = parser.add("gen", "generate a graph", "graphlane gen rmat --scale 20 rmat20.bin");
  gen->require_command();
  const auto options = std::make_shared<RmatCommand>();
  Command* command =
      gen->add_command("rmat", "an R-MAT graph, as Graph500 makes them, as an edge list",
                       "graphlane gen rmat --scale 20 --edges 16M --seed 1 rmat20.bin");
  command->add_option("OUT", options->output, "file, which may lie in a volume")->required();
  command->add_option("--scale", options->scale, "2^N vertices (16)")->type_name("N");
  add_size(command, "--edges", &options->edges, "how many, as 16M (16 a vertex)")->type_name("N");
  command->add_option("--seed", options->seed, "the same seed, the same graph (1)")
      ->type_name("N");
  command->add_flag("--scramble", options->scramble, "permute the vertex numbers");
  command->add_option("--to", options->to, "bin, snap or u32; else what the name says")
      ->type_name("FORMAT");
  command->add_option("--threads", options->threads, "use so many (all cores)")->type_name("N");
  command->add_flag("-f,--overwrite", options->overwrite, "replace what is there");
  parser.on_chosen(command, options, generate);
}

}  // namespace graphlane::cli
