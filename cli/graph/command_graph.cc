// convert and gen: write graphs in the formats of graphfmt.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/command.h"
#include "cli/graph/convert_dual.h"
#include "cli/graph/convert_lists.h"
#include "cli/graph/convert_pages.h"
#include "cli/graph/convert_python.h"
#include "cli/graph/graph_output.h"
#include "graphfmt/grid/grid.h"
#include "graphfmt/input/weights.h"
#include "graphfmt/output/csr.h"
#include "graphfmt/output/metis.h"
#include "graphfmt/output/shards.h"
#include "graphfmt/rmat.h"
#include "graphfmt/staging.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/stub/stub.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
using namespace graphfmt;
namespace {

struct ConvertCommand {
  std::string input, output;
  EdgeListOptions list;               // for reading IN
  EdgeFormat to = EdgeFormat::kAuto;  // auto: by the name of OUT
  std::optional<WeightType> weights;
  bool overwrite = false;
  bool no_blocks = false;
  uint32_t partitions = 0;
  uint32_t threads = 0;
  std::optional<uint64_t> memory_bytes;
  std::string codec;  // empty: varint
  std::optional<uint64_t> page_bytes;
  // Formats of the Python package (convert_python.h); empty: another format.
  std::string python_from, python_to;
};

// Reports a wrong command line that the parser alone cannot detect.
Outcome<int> graph_usage(const std::string& reason, const std::string& command) {
  complain(fmt::format("{} (see graphlane {} --help)", reason, command));
  return kUsage;
}

void print_notes(const std::string& input, const std::vector<std::string>& notes) {
  if (quiet) return;
  std::fflush(stdout);
  for (const std::string& note : notes) complain(fmt::format("{}: note: {}", input, note));
}

// Compares names, and the files that are there.
bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code failed;
  return std::filesystem::weakly_canonical(one, failed) ==
             std::filesystem::weakly_canonical(other, failed) ||
         std::filesystem::equivalent(one, other, failed);
}

// The stream for the summary: stderr if the graph goes to stdout.
std::FILE* summary_stream(const std::string& output) {
  struct stat graph, out;
  const bool is_stdout =
      output == "-" || (::stat(output.c_str(), &graph) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 &&
                        graph.st_dev == out.st_dev && graph.st_ino == out.st_ino);
  return is_stdout ? stderr : stdout;
}

void print_edges(const std::string& output, const EdgeListSummary& summary) {
  if (quiet) return;
  fmt::print(summary_stream(output), "{}: {} vertices, {}\n",
             output == "-" ? "standard output" : output, summary.vertex_count,
             counted(summary.edge_count, "edge"));
}

// The directory for spills: that of the graph, because it has room for it.
std::string parent_of(const std::string& path) {
  std::error_code failed;
  return std::filesystem::absolute(path, failed).lexically_normal().parent_path().string();
}

// The options for reading IN, for outputs that need no others.
EdgeListOptions list_options(const ConvertCommand& options, const std::string& path,
                             uint64_t usual_memory_bytes) {
  EdgeListOptions list = options.list;
  list.path = options.input;
  list.threads = options.threads;
  list.memory_budget_bytes = options.memory_bytes.value_or(usual_memory_bytes);
  if (path != "-") list.spill_directory = parent_of(path);
  return list;
}

constexpr uint64_t kSortingMemory = uint64_t{1} << 30;

Outcome<void> to_grid(const ConvertCommand& options, const std::string& path) {
  GridOptions grid{.input = options.input,
                   .format = options.list.format,
                   .output = path,
                   .weighted = options.list.weighted,
                   .vertices = options.list.vertices,
                   .partitions = options.partitions,
                   .threads = options.threads,
                   .overwrite = options.overwrite,
                   .blocks = !options.no_blocks,
                   .reading = options.list};
  grid.reading.spill_directory = parent_of(path);
  if (options.memory_bytes) grid.memory_budget_bytes = *options.memory_bytes;
  const Outcome<GridSummary> built = build_grid(grid);
  if (!built) return built.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {} in {} x {} blocks, {}\n", options.output, built->vertex_count,
               counted(built->edge_count, "edge"), built->partitions, built->partitions,
               format_size(built->output_bytes));
  }
  print_notes(options.input, built->notes);
  return {};
}

// Checks that --overwrite may replace the file.
Outcome<void> may_become_list(const std::string& path) {
  return Staging::may_replace(path, Staging::Kind::kFile, true);
}

Outcome<void> to_list(const ConvertCommand& options, const std::string& path) {
  const bool sorts = options.list.simple || !options.list.renumber_map.empty();
  const EdgeListOptions input =
      list_options(options, path, sorts ? kSortingMemory : EdgeListOptions().memory_budget_bytes);
  const Outcome<EdgeListSummary> written = convert_edges(
      input, {.path = path, .format = options.to, .overwrite = options.overwrite, .comment = {}});
  if (!written) return written.error();
  print_edges(options.output, *written);
  print_notes(options.input, written->notes);
  return {};
}

Outcome<void> to_metis(const ConvertCommand& options, const std::string& path) {
  const Outcome<EdgeListSummary> written =
      write_metis(list_options(options, path, kSortingMemory),
                  {.path = path, .format = EdgeFormat::kMetis, .overwrite = options.overwrite});
  if (!written) return written.error();
  print_edges(options.output, *written);
  print_notes(options.input, written->notes);
  return {};
}

ToStored to_stored(const ConvertCommand& options, const std::string& path) {
  return {.input = list_options(options, path, kSortingMemory),
          .codec = options.codec.empty() ? "varint" : options.codec,
          .overwrite = options.overwrite,
          .path = path,
          .shown = options.output};
}

Outcome<void> end_conversion(const ConvertCommand& options,
                             const Outcome<std::vector<std::string>>& notes) {
  if (!notes) return notes.error();
  print_notes(options.input, *notes);
  return {};
}

Outcome<void> to_lists(const ConvertCommand& options, const std::string& path) {
  return end_conversion(options, convert_to_lists(to_stored(options, path)));
}

Outcome<void> to_dual(const ConvertCommand& options, const std::string& path) {
  return end_conversion(options, convert_to_dual(to_stored(options, path), options.partitions));
}

Outcome<void> to_pages(const ConvertCommand& options, const std::string& path) {
  return end_conversion(options, convert_to_pages(to_stored(options, path), options.page_bytes));
}

Outcome<void> to_csr(const ConvertCommand& options, const std::string& path) {
  const Outcome<EdgeListSummary> built =
      build_csr({.list = list_options(options, path, kSortingMemory),
                 .output = path,
                 .overwrite = options.overwrite});
  if (!built) return built.error();
  print_edges(options.output, *built);
  print_notes(options.input, built->notes);
  return {};
}

Outcome<void> to_shards(const ConvertCommand& options, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given = fs::path(options.output).has_filename()
                             ? fs::path(options.output)
                             : fs::path(options.output).parent_path();
  const std::string name = given.filename().string();
  const Outcome<ShardsSummary> built =
      build_shards({.list = list_options(options, path, kSortingMemory),
                    .output = path,
                    .name = name,
                    .shards = options.partitions,
                    .overwrite = options.overwrite});
  if (!built) return built.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {} in {}; GraphChi's programs take it as: file {}\n",
               options.output, built->vertex_count, counted(built->edge_count, "edge"),
               counted(built->shards, "shard"), (given / name).string());
  }
  std::vector<std::string> notes = built->notes;
  if (built->self_loop_count > 0) {
    notes.push_back(fmt::format("{} self-loops are left out, as GraphChi's sharder leaves them out",
                                built->self_loop_count));
  }
  print_notes(options.input, notes);
  return {};
}

// An output that is a directory: the function that makes it, and the kind of directory that it may
// replace.
struct DirectoryGraph {
  Outcome<void> (*build)(const ConvertCommand& options, const std::string& path);
  Outcome<void> (*may_become)(const std::string& dir);
};

std::optional<DirectoryGraph> directory_graph(EdgeFormat format) {
  switch (format) {
    case EdgeFormat::kGrid: return DirectoryGraph{to_grid, may_become_grid};
    case EdgeFormat::kCsr: return DirectoryGraph{to_csr, may_become_csr};
    case EdgeFormat::kShards: return DirectoryGraph{to_shards, may_become_shards};
    case EdgeFormat::kLists: return DirectoryGraph{to_lists, may_become_lists};
    case EdgeFormat::kDual: return DirectoryGraph{to_dual, may_become_lists};
    case EdgeFormat::kPages: return DirectoryGraph{to_pages, may_become_lists};
    default: return std::nullopt;
  }
}

// Rejects a stub, which would otherwise be reported as a bad edge.
Outcome<void> check_no_stub(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != kStubSize) return {};
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(file.get(), &layout);
  if (!verdict || *verdict == StubVerdict::kNotAStub) return {};
  return make_error(EINVAL,
                    "{}: is a striped file: give its path in a mount, or use `graphlane run -- "
                    "graphlane convert …`",
                    path);
}

// Rejects an input inside of a grid that the output would replace.
Outcome<void> check_not_replaced(const ConvertCommand& options) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!options.overwrite || !fs::is_directory(options.output, failed)) return {};
  const fs::path input = fs::canonical(options.input, failed);
  if (failed || !is_within(input, fs::canonical(options.output, failed))) return {};
  return make_error(EINVAL, "{}: is in {}, which is to be replaced", options.input, options.output);
}

bool is_graph_directory(EdgeFormat format) { return directory_graph(format).has_value(); }

// The type of OUT's weights. Text keeps full precision; binary lists have the type of --weights, or
// of IN.
WeightType kept_weights(const ConvertCommand& options) {
  if (options.to == EdgeFormat::kMetis) return WeightType::kFloat64;
  if (is_stored_graph(options.input) && !options.weights) {
    if (const auto stored = stored_weights(options.input)) return *stored;
  }
  const bool from_binary =
      options.list.format == EdgeFormat::kBin || options.list.format == EdgeFormat::kU32;
  switch (options.to) {
    case EdgeFormat::kGrid:
    case EdgeFormat::kShards: return WeightType::kFloat32;
    case EdgeFormat::kLists:
    case EdgeFormat::kDual:
    case EdgeFormat::kPages: return options.weights.value_or(WeightType::kFloat32);
    case EdgeFormat::kBin:
    case EdgeFormat::kU32: return options.weights.value_or(WeightType::kFloat32);
    case EdgeFormat::kU64: return options.weights.value_or(WeightType::kFloat64);
    default:
      return options.weights.value_or(from_binary ? WeightType::kFloat32 : WeightType::kFloat64);
  }
}

bool is_binary_list(EdgeFormat format) {
  return format == EdgeFormat::kBin || format == EdgeFormat::kU32 || format == EdgeFormat::kU64;
}

// The format for the extension of an output's name; none: it implies no format.
std::optional<EdgeFormat> format_of_extension(const std::string& path) {
  static const std::map<std::string, EdgeFormat> kExtensions = {
      {".bin", EdgeFormat::kBin},       {".u32", EdgeFormat::kU32},
      {".u64", EdgeFormat::kU64},       {".csv", EdgeFormat::kCsv},
      {".tsv", EdgeFormat::kTsv},       {".txt", EdgeFormat::kSnap},
      {".snap", EdgeFormat::kSnap},     {".el", EdgeFormat::kSnap},
      {".wel", EdgeFormat::kSnap},      {".edges", EdgeFormat::kSnap},
      {".mtx", EdgeFormat::kMtx},       {".gr", EdgeFormat::kDimacs},
      {".dimacs", EdgeFormat::kDimacs}, {".konect", EdgeFormat::kKonect},
      {".metis", EdgeFormat::kMetis},   {".graph", EdgeFormat::kMetis},
      {".grid", EdgeFormat::kGrid},     {".csr", EdgeFormat::kCsr},
      {".shards", EdgeFormat::kShards}, {".lists", EdgeFormat::kLists},
      {".dual", EdgeFormat::kDual},     {".pages", EdgeFormat::kPages}};
  const auto found = kExtensions.find(std::filesystem::path(path).extension().string());
  return found == kExtensions.end() ? std::nullopt : std::optional(found->second);
}

// The format without --to. A volume's directory, or a name without a known extension, becomes a
// grid.
EdgeFormat format_of_output(const std::string& path) {
  struct stat st;
  const bool is_directory =
      path.ends_with('/') || (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode));
  if (is_directory) return EdgeFormat::kGrid;
  return format_of_extension(path).value_or(EdgeFormat::kGrid);
}

// The compression program that OUT's name implies; else empty.
std::string compression_of_name(const ConvertCommand& options) {
  static const std::map<std::string, std::string> kPrograms = {
      {".gz", "gzip"}, {".xz", "xz"}, {".zst", "zstd"}, {".bz2", "bzip2"}, {".lz4", "lz4"}};
  const auto found = kPrograms.find(std::filesystem::path(options.output).extension().string());
  return found == kPrograms.end() ? std::string() : found->second;
}

// A conflict between the options; empty: none.
std::string convert_usage(const ConvertCommand& options) {
  if (const std::string compressed = compression_of_name(options); !compressed.empty()) {
    return options.output + ": convert does not compress: --to csv - | " + compressed + " does";
  }
  if (options.output == "-" && begins_with_counts(options.to)) {
    return fmt::format(
        "a {} begins with the number of edges and cannot go to standard output: --to snap or csv "
        "can",
        name_of(options.to));
  }
  if (options.to == EdgeFormat::kDimacs && !options.list.weighted) {
    return "--to dimacs: its arcs have weights: -w";
  }
  if (options.output == "-" && is_graph_directory(options.to)) {
    return fmt::format(
        "a {} is a directory and cannot go to standard output: --to snap, csv, bin, u32 or u64 can",
        name_of(options.to));
  }
  if (!is_graph_directory(options.to) && options.to != EdgeFormat::kMetis &&
      !is_written_format(options.to)) {
    return fmt::format("--to {}: a format that is read, but not written", name_of(options.to));
  }
  if (options.output == "-" && ::isatty(STDOUT_FILENO) != 0 && is_binary_list(options.to)) {
    return "standard output is a terminal: --to snap is readable there";
  }
  if (options.partitions != 0 && options.to != EdgeFormat::kGrid &&
      options.to != EdgeFormat::kShards && options.to != EdgeFormat::kDual) {
    return "-p is for grids, shards and dual";
  }
  const EdgeColumns& columns = options.list.columns;
  if (is_binary_list(options.list.format) &&
      (columns.source != 0 || columns.delimiter != 0 || columns.header)) {
    return "--columns, --delimiter and --header are for text";
  }
  if (options.no_blocks && options.to != EdgeFormat::kGrid) return "--no-blocks is for grids";
  if (!options.codec.empty() && options.to != EdgeFormat::kLists &&
      options.to != EdgeFormat::kDual && options.to != EdgeFormat::kPages) {
    return "--codec is for lists, dual and pages";
  }
  if (options.codec == "reference" && options.to != EdgeFormat::kDual) {
    return "--codec reference is for dual";
  }
  if (options.page_bytes && options.to != EdgeFormat::kPages) return "--page is for pages";
  if (options.list.renumber_map == "-") return "--renumber -: the map is a file";
  for (const std::string& path : {options.input, options.output}) {
    if (!options.list.renumber_map.empty() && is_same_file(options.list.renumber_map, path)) {
      return fmt::format("--renumber {}: the map would replace {}", options.list.renumber_map,
                         path);
    }
  }
  if (options.list.vertices > options.list.vertex_count_max) {
    return fmt::format("--vertices {}: a {} has at most {}{}", options.list.vertices,
                       name_of(options.to), options.list.vertex_count_max,
                       options.list.vertex_count_max == kListVertexCountMax
                           ? ""
                           : " (an edge list may have 4294967295)");
  }
  return {};
}

// Runs the package's command with the options that apply to it.
Outcome<int> convert_by_python(const ConvertCommand& options) {
  const EdgeListOptions& list = options.list;
  const bool is_parquet = options.python_from == kParquetFormat;
  if (!options.python_from.empty() && !options.python_to.empty()) {
    return graph_usage("--from graphar or parquet goes with one of our formats", "convert");
  }
  if (list.simple || list.columns.source != 0 || list.columns.header ||
      !list.renumber_map.empty() || list.as_given || list.vertices != 0 ||
      options.partitions != 0 || options.no_blocks || options.page_bytes || options.weights ||
      (list.undirected && !is_parquet)) {
    return graph_usage(
        "with graphar and parquet go --codec, --weighted, --memory, --threads and --overwrite; "
        "with parquet "
        "--undirected, too",
        "convert");
  }
  std::vector<std::string> words;
  if (!options.python_to.empty()) {
    if (!options.codec.empty()) {
      return graph_usage("--codec is for lists, dual and pages", "convert");
    }
    words = {"to-graphar", options.input, options.output};
    if (list.weighted) words.emplace_back("--weighted");
    if (options.threads != 0) {
      words.insert(words.end(), {"--threads", std::to_string(options.threads)});
    }
  } else {
    const EdgeFormat to =
        options.to == EdgeFormat::kAuto ? format_of_output(options.output) : options.to;
    if (!is_graph_directory(to)) {
      return graph_usage(fmt::format("--to {}: {} becomes lists, dual, pages, grid, csr or shards",
                                     name_of(to), options.python_from),
                         "convert");
    }
    words = {"from-" + options.python_from, options.input, options.output, "--to",
             std::string(name_of(to))};
    if (!options.codec.empty()) words.insert(words.end(), {"--codec", options.codec});
    if (is_parquet && list.weighted) words.insert(words.end(), {"--weight", "weight"});
    if (list.undirected) words.emplace_back("--undirected");
  }
  if (options.memory_bytes) {
    words.insert(words.end(), {"--memory", std::to_string(*options.memory_bytes)});
  }
  if (options.overwrite) words.emplace_back("--overwrite");
  if (quiet) words.emplace_back("--quiet");
  return run_python_package(words, /*needs_arrow=*/true);
}

Outcome<int> convert(const ConvertCommand& given) {
  if (!given.python_from.empty() || !given.python_to.empty()) return convert_by_python(given);
  ConvertCommand options = given;
  if (options.to == EdgeFormat::kAuto) options.to = format_of_output(options.output);
  const bool is_int32 = options.to == EdgeFormat::kGrid || options.to == EdgeFormat::kShards ||
                        options.to == EdgeFormat::kBin;
  options.list.overwrite_map = options.overwrite;
  options.list.note_now = [&](const std::string& note) { print_notes(options.input, {note}); };
  options.list.vertex_count_max = is_int32 ? kVertexCountMax : kListVertexCountMax;
  options.list.weighted |= options.weights.has_value() || options.list.columns.weight != 0;
  options.list.stored_weights = options.weights;
  if (options.list.format == EdgeFormat::kAuto) {
    const std::string extension = std::filesystem::path(options.input).extension().string();
    if (extension == ".bin") options.list.format = EdgeFormat::kBin;
    if (extension == ".u32") options.list.format = EdgeFormat::kU32;
  }
  options.list.weight_type = kept_weights(options);
  if (const std::string wrong = convert_usage(options); !wrong.empty()) {
    return graph_usage(wrong, "convert");
  }
  if (Outcome<void> plain = check_no_stub(options.input); !plain) return plain.error();
  if (Outcome<void> kept = check_not_replaced(options); !kept) return kept.error();
  const auto directory = directory_graph(options.to);
  const auto may_replace = [&](const std::string& path) -> Outcome<void> {
    if (!directory) return may_become_list(path);
    const Outcome<void> may = Staging::may_replace(path, Staging::Kind::kDirectory, true);
    return may ? directory->may_become(path) : may;
  };
  const auto build = [&](const std::string& path) -> Outcome<void> {
    if (directory) return directory->build(options, path);
    return options.to == EdgeFormat::kMetis ? to_metis(options, path) : to_list(options, path);
  };
  const Outcome<void> written = write_graph({.path = options.output,
                                             .overwrite = options.overwrite,
                                             .may_replace = may_replace,
                                             .build = build});
  if (!written) return written.error();
  return kOk;
}

struct RmatCommand {
  std::string output;
  std::optional<EdgeFormat> to;
  bool overwrite = false;
  bool scramble = false;
  uint32_t scale = 16;
  std::optional<uint64_t> edges;
  uint64_t seed = 1;
  uint32_t threads = 0;
};

// The format of the name's extension; without one, bin.
EdgeFormat format_of_name(const std::string& path) {
  if (std::filesystem::path(path).extension().empty()) return EdgeFormat::kBin;
  return format_of_extension(path).value_or(EdgeFormat::kSnap);
}

Outcome<int> generate(const RmatCommand& options) {
  const EdgeFormat to = options.to.value_or(options.output == "-" ? EdgeFormat::kSnap
                                                                  : format_of_name(options.output));
  if (!is_written_format(to)) {
    return graph_usage(fmt::format("--to {}: not a list that is written", name_of(to)), "gen rmat");
  }
  const RmatOptions rmat{
      .scale = options.scale,
      .edges = options.edges.value_or(uint64_t{16} << std::min(options.scale, 32u)),
      .seed = options.seed,
      .scramble = options.scramble,
      .threads = options.threads};
  const auto build = [&](const std::string& path) -> Outcome<void> {
    const Outcome<EdgeListSummary> list = write_rmat(
        rmat, {.path = path, .format = to, .overwrite = options.overwrite, .comment = {}});
    if (!list) return list.error();
    print_edges(options.output, *list);
    return {};
  };
  const Outcome<void> written = write_graph({.path = options.output,
                                             .overwrite = options.overwrite,
                                             .may_replace = may_become_list,
                                             .build = build});
  if (!written) return written.error();
  return kOk;
}

// Adds an option that names a format. A name in `python_formats` is stored in `python`, unless that
// is null.
template <class Format>
Option* add_format(Command* command, const std::string& names, Format* format,
                   const std::string& description, std::string* python = nullptr,
                   std::vector<std::string> python_formats = {}) {
  const auto parse = [format, python, python_formats](const std::string& text) -> Outcome<void> {
    if (std::ranges::find(python_formats, text) != python_formats.end()) {
      *python = text;
      return {};
    }
    const Outcome<EdgeFormat> parsed = parse_edge_format(text);
    if (!parsed) return parsed.error();
    *format = *parsed;
    return {};
  };
  return command->add_option(names, parse, description)->type_name("FORMAT");
}

// "1,2" or "1,2,3".
Outcome<void> parse_columns_option(const std::string& text, EdgeColumns* columns) {
  unsigned* const all[] = {&columns->source, &columns->target, &columns->weight};
  size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (count < std::size(all)) {
    const auto [behind, status] = std::from_chars(at, end, *all[count]);
    if (status != std::errc{} || *all[count] == 0) break;
    ++count;
    at = behind;
    if (at == end || *at != ',') break;
    ++at;
  }
  if (count >= 2 && columns->source == columns->target) {
    return make_error(EINVAL, "'{}': source and target are one column", text);
  }
  if (at == end && count >= 2 && !text.ends_with(',')) return {};
  return make_error(
      EINVAL, "'{}': columns are SOURCE,TARGET or SOURCE,TARGET,WEIGHT, counted from 1", text);
}

// Parses one character, or a name for one that is hard to type in shells.
Outcome<void> parse_delimiter(const std::string& text, EdgeColumns* columns) {
  if (text == "tab" || text == "\\t") {
    columns->delimiter = '\t';
  } else if (text == "space") {
    columns->delimiter = ' ';
  } else if (text.size() == 1 && text != "\"" && text != "\n" && (text[0] < '0' || text[0] > '9')) {
    columns->delimiter = text[0];
  } else {
    return make_error(
        EINVAL, "'{}': one character is expected, or tab, or space (blanks and tabs, any number)",
        text);
  }
  return {};
}

}  // namespace

void add_convert(Parser& parser) {
  const auto options = std::make_shared<ConvertCommand>();
  Command* command = parser.add(
      "convert",
      "turn an edge list into a GridGraph grid, GraphChi's shards, adjacency lists, a "
      "CSR of numpy, or another list",
      "graphlane convert -p 8 soc-LiveJournal1.txt.gz graphs/livejournal\n"
      "  graphlane convert --columns 2,3 --header --to u32 calls.csv.zst calls.u32\n\n"
      "FORMAT, plain or compressed by gzip, xz, zstd, bzip2 or lz4: snap, csv, tsv, mtx "
      "(Matrix Market), konect, dimacs, metis (undirected graphs); bin, u32, u64 (pairs of "
      "int32, uint32, uint64); grid, csr, shards, lists, dual and pages, as --to makes them. "
      "Without --from the name and the first bytes decide. --to graphar, --from graphar and --from "
      "parquet run the Python package: pip install build/wheel/*.whl "
      "pyarrow pyyaml.");
  EdgeListOptions& list = options->list;
  list.format = EdgeFormat::kAuto;
  command->add_option("IN", options->input, "edge list; -: standard input")->required();
  command
      ->add_option("OUT", options->output,
                   "file or directory, which may lie in a volume; -: standard output")
      ->required();
  add_format(command, "--from", &list.format, "what IN is", &options->python_from,
             {kGraphArFormat, kParquetFormat});
  add_format(command, "--to", &options->to,
             "what OUT is; unless given, what its name ends in (.csv, .mtx, .bin …), else grid",
             &options->python_to, {kGraphArFormat});
  command
      ->add_option("-p,--partitions", options->partitions,
                   "the grid, or dual, has P x P blocks; or so many shards")
      ->in_range(uint32_t{1}, kPartitionsMax)
      ->help_text("P");
  command->add_flag("-w,--weighted", list.weighted, "edges have weights");
  command
      ->add_option(
          "--weights",
          [options](const std::string& text) -> Outcome<void> {
            options->weights = parse_weight_type(text);
            if (!options->weights) {
              return make_error(EINVAL, "'{}': float32, float64 or int64", text);
            }
            return {};
          },
          "-w, and what they are in binary lists: float32 (of u64 float64), float64 or int64")
      ->type_name("TYPE");
  command->add_flag("--round", list.round_weights,
                    "weights that OUT does not hold become the nearest that it does");
  command
      ->add_option(
          "--columns",
          [options](const std::string& text) {
            return parse_columns_option(text, &options->list.columns);
          },
          "of text: the columns of source, target, and weight")
      ->type_name("S,T[,W]");
  command
      ->add_option(
          "--delimiter",
          [options](const std::string& text) {
            return parse_delimiter(text, &options->list.columns);
          },
          "of text: what is between columns: one character, tab, or space")
      ->type_name("C");
  command->add_flag("--header", list.columns.header,
                    "of text: skip the first line that is no comment");
  command->add_flag("--undirected", list.undirected, "every edge both ways, a self-loop once");
  command->add_flag("--simple", list.simple,
                    "sorted, without self-loops and duplicates (the first stays)");
  command
      ->add_option(
          "--renumber", list.renumber_map,
          "vertices of any numbers or words become 0 to n-1; MAP gets a line NUMBER NAME for each")
      ->type_name("MAP");
  command->add_flag("--no-blocks", options->no_blocks,
                    "of a grid: block-i-j, which engines do not read, take no space");
  command
      ->add_option(
          "--codec", options->codec,
          "of lists, dual and pages: raw, varint (unless given) or simd; of dual also reference")
      ->one_of({"raw", "varint", "simd", "reference"});
  add_size(command, "--page", &options->page_bytes, "the size of pages (8K), a multiple of 4K");
  command->add_flag("--as-given", list.as_given, "believe --from, whatever IN looks like");
  command->add_option("--vertices", list.vertices, "how many there are, else largest + 1")
      ->type_name("N");
  add_size(command, "--memory", &options->memory_bytes,
           "use no more than this (1G for what is sorted)");
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
  command->add_option("OUT", options->output, "file, which may lie in a volume; -: standard output")
      ->required();
  command->add_option("--scale", options->scale, "2^N vertices (16)")
      ->in_range(uint32_t{1}, uint32_t{kRmatScaleMax})
      ->type_name("N");
  add_size(command, "--edges", &options->edges, "how many, as 16M (16 a vertex)")->type_name("N");
  command->add_option("--seed", options->seed, "the same seed, the same graph (1)")->type_name("N");
  command->add_flag("--scramble", options->scramble, "permute the vertex numbers");
  add_format(command, "--to", &options->to,
             "snap, csv, tsv, mtx, konect, bin, u32 or u64; else what the name says");
  command->add_option("--threads", options->threads, "use so many (all cores)")->type_name("N");
  command->add_flag("-f,--overwrite", options->overwrite, "replace what is there");
  parser.on_chosen(command, options, generate);
}

}  // namespace graphlane::cli
