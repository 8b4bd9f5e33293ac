#include "graphfmt/edge_list.h"

#include <sys/stat.h>

#include <utility>

#include "graphfmt/edge_writer.h"
#include "graphfmt/input/edge_source.h"
#include "graphfmt/input/mirror_sink.h"
#include "graphfmt/line.h"

namespace graphlane {
namespace {

constexpr std::pair<EdgeFormat, std::string_view> kFormatNames[] = {
    {EdgeFormat::kSnap, "snap"},     {EdgeFormat::kBin, "bin"},     {EdgeFormat::kU32, "u32"},
    {EdgeFormat::kU64, "u64"},       {EdgeFormat::kCsv, "csv"},     {EdgeFormat::kTsv, "tsv"},
    {EdgeFormat::kMtx, "mtx"},       {EdgeFormat::kKonect, "konect"}, {EdgeFormat::kDimacs, "dimacs"},
    {EdgeFormat::kMetis, "metis"},   {EdgeFormat::kGrid, "grid"},   {EdgeFormat::kCsr, "csr"},
    {EdgeFormat::kShards, "shards"}, {EdgeFormat::kLists, "lists"},
    {EdgeFormat::kAuto, "auto"},
};

bool is_binary_format(EdgeFormat format) {
  return format == EdgeFormat::kBin || format == EdgeFormat::kU32 || format == EdgeFormat::kU64;
}

bool is_directory_format(EdgeFormat format) {
  return format == EdgeFormat::kGrid || format == EdgeFormat::kCsr || format == EdgeFormat::kShards ||
         format == EdgeFormat::kLists;
}

bool is_directory(const std::string& path) {
  struct stat st;
  return path != "-" && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Error options_error(const std::string& reason) { return make_error(EINVAL, "{}", reason); }

Outcome<void> check_options(const EdgeListOptions& options) {
  if (options.vertices > options.vertex_count_max) {
    return options_error(fmt::format("{} vertices: this output has at most {}", options.vertices, options.vertex_count_max));
  }
  if (is_binary_format(options.format) &&
      (options.columns.source != 0 || options.columns.delimiter != 0 || options.columns.header)) {
    return options_error("--columns, --delimiter and --header are for text");
  }
  return {};
}

// Whether the bytes are what they are taken for.
Outcome<void> check_look(const ByteSource& source, const EdgeListOptions& options, EdgeFormat format) {
  if (options.as_given) return {};
  const std::string_view head = source.head();
  const std::string& path = source.name();
  if (auto kind = foreign_kind(options.path, head, is_binary_format(format))) return make_error(EINVAL, "{}: {}", path, *kind);
  const uint64_t size_bytes = source.compression() == Compression::kNone ? source.size_bytes() : 0;
  if (is_binary_format(format)) {
    if (is_text(head)) {
      return make_error(EINVAL, "{}: is text: leave --from {} out, or name the text's format (--as-given believes that "
                        "it is binary)", path, name_of(format));
    }
    EdgeListOptions looked = options;
    looked.format = format;
    if (auto why = why_not_layout(head, size_bytes, layout_of(looked))) return make_error(EINVAL, "{}: {}", path, *why);
    return {};
  }
  if (is_binary(head)) {
    return make_error(EINVAL, "{}: is not text: {}", path, guess_layout(head, size_bytes));
  }
  const auto banner = banner_of(head);
  if (banner && *banner != format && *banner != EdgeFormat::kKonect && options.columns.source == 0) {
    return make_error(EINVAL, "{}: is {}: --from {} reads it", path,
                      *banner == EdgeFormat::kMtx ? "a Matrix Market file" : "a DIMACS graph", name_of(*banner));
  }
  return {};
}

// The stations between a reader and the caller's sink.
class EdgeStations {
 public:
  EdgeStations(const EdgeListOptions& options, EdgeSink& sink) : options_(options), sink_(sink) {}

  ReadResult read_directory() {
    return read_through(options_.undirected, false,
                        [&](const EdgeTarget& target) { return read_graph_directory(options_, target); });
  }

  ReadResult read_file() {
    auto source = ByteSource::open(options_.path);
    if (!source) return source.error();
    EdgeListOptions options = options_;
    options.format = resolve_format(options_, (*source)->head());
    if (auto looked = check_look(**source, options_, options.format); !looked) return looked.error();
    if (auto checked = check_options(options); !checked) return checked.error();
    if (is_directory_format(options.format)) {
      return make_error(ENOTDIR, "{}: is a file, and a {} is a directory", (*source)->name(), name_of(options.format));
    }
    if (is_binary_format(options.format)) {
      return read_through(options.undirected, false,
                          [&](const EdgeTarget& target) { return read_binary(**source, options, target); });
    }
    if (options.format == EdgeFormat::kMetis) {
      return read_through(false, false, [&](const EdgeTarget& target) { return read_metis(**source, options, target); });
    }
    const Outcome<TextPlan> plan = plan_text(options, options.format, (*source)->head());
    if (!plan) return make_error(plan.error().code, "{}: {}", (*source)->name(), plan.error().text);
    return read_through(plan->mirror || options.undirected, plan->negate,
                        [&](const EdgeTarget& target) { return read_text(**source, *plan, options, target); });
  }

 private:
  template <class Read>
  ReadResult read_through(bool mirrored, bool negated, const Read& read) {
    if (!mirrored) return read(EdgeTarget{.numbers = &sink_});
    MirrorSink mirror(sink_, negated);
    ReadResult result = read(EdgeTarget{.numbers = &mirror});
    if (result) result->edge_count = mirror.edge_count();
    return result;
  }

  const EdgeListOptions& options_;
  EdgeSink& sink_;
};

// Ten times more vertices than edges: numbers with gaps, and much memory for nothing.
void note_gaps(const EdgeListOptions& options, EdgeListSummary& summary) {
  constexpr uint64_t kGapsMin = 1000;
  if (options.vertices != 0 || summary.vertex_count < kGapsMin) return;
  if (summary.vertex_count / 10 < summary.edge_count) return;
  summary.notes.push_back(fmt::format("{} vertices, but only {} edges: --renumber MAP numbers those that have edges 0 to n-1",
                                      summary.vertex_count, summary.edge_count));
}

}  // namespace

Outcome<EdgeFormat> parse_edge_format(std::string_view name) {
  if (name == "txt") return EdgeFormat::kSnap;
  if (name == "gr") return EdgeFormat::kDimacs;
  for (const auto& [format, known] : kFormatNames) {
    if (name == known) return format;
  }
  return make_error(EINVAL, "'{}': not an edge list format (choose snap, csv, tsv, mtx, konect, dimacs, metis, bin, u32 or u64)",
                    name);
}

std::string_view name_of(EdgeFormat format) {
  for (const auto& [known, name] : kFormatNames) {
    if (format == known) return name;
  }
  return "?";
}

Outcome<EdgeListSummary> read_edges(const EdgeListOptions& options, EdgeSink& sink) {
  if (auto checked = check_options(options); !checked) return checked.error();
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    EdgeStations stations(options, sink);
    ReadResult result = is_directory(options.path) ? stations.read_directory() : stations.read_file();
    if (!result) return result;
    if (options.vertices != 0) result->vertex_count = options.vertices;
    note_gaps(options, *result);
    return result;
  });
}

Outcome<EdgeListSummary> convert_edges(const EdgeListOptions& input, const EdgeListOutput& output) {
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    auto writer = EdgeWriter::create(output);
    if (!writer) return writer.error();
    auto summary = read_edges(input, **writer);
    if (!summary) return summary.error();
    if (auto finished = (*writer)->finish(); !finished) return finished.error();
    return summary;
  });
}

}  // namespace graphlane
