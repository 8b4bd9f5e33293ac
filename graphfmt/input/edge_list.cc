#include "graphfmt/edge_list.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "graphfmt/input/edge_source.h"
#include "graphfmt/input/mirror_sink.h"
#include "graphfmt/input/renumber.h"
#include "graphfmt/input/simple_sink.h"
#include "graphfmt/output/edge_writer.h"
#include "graphfmt/sort/line.h"

namespace graphlane::graphfmt {
namespace {

constexpr std::pair<EdgeFormat, std::string_view> kFormatNames[] = {
    {EdgeFormat::kSnap, "snap"},     {EdgeFormat::kBin, "bin"},
    {EdgeFormat::kU32, "u32"},       {EdgeFormat::kU64, "u64"},
    {EdgeFormat::kCsv, "csv"},       {EdgeFormat::kTsv, "tsv"},
    {EdgeFormat::kMtx, "mtx"},       {EdgeFormat::kKonect, "konect"},
    {EdgeFormat::kDimacs, "dimacs"}, {EdgeFormat::kMetis, "metis"},
    {EdgeFormat::kGrid, "grid"},     {EdgeFormat::kCsr, "csr"},
    {EdgeFormat::kShards, "shards"}, {EdgeFormat::kLists, "lists"},
    {EdgeFormat::kDual, "dual"},     {EdgeFormat::kPages, "pages"},
    {EdgeFormat::kAuto, "auto"},
};

bool is_binary_format(EdgeFormat format) {
  return format == EdgeFormat::kBin || format == EdgeFormat::kU32 || format == EdgeFormat::kU64;
}

bool is_directory_format(EdgeFormat format) {
  return format == EdgeFormat::kGrid || format == EdgeFormat::kCsr ||
         format == EdgeFormat::kShards || format == EdgeFormat::kLists ||
         format == EdgeFormat::kDual || format == EdgeFormat::kPages;
}

bool is_directory(const std::string& path) {
  struct stat st;
  return path != "-" && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Error options_error(const std::string& reason) { return make_error(EINVAL, "{}", reason); }

Outcome<void> check_options(const EdgeListOptions& options) {
  if (options.vertices > options.vertex_count_max) {
    return options_error(fmt::format("{} vertices: this output has at most {}", options.vertices,
                                     options.vertex_count_max));
  }
  if (is_binary_format(options.format) &&
      (options.columns.source != 0 || options.columns.delimiter != 0 || options.columns.header)) {
    return options_error("--columns, --delimiter and --header are for text");
  }
  return {};
}

// Whether the bytes are what they are taken for.
Outcome<void> check_look(const ByteSource& source, const EdgeListOptions& options,
                         EdgeFormat format) {
  if (options.as_given) return {};
  const std::string_view head = source.head();
  const std::string& path = source.name();
  if (auto kind = foreign_kind(options.path, head, is_binary_format(format))) {
    return make_error(EINVAL, "{}: {}", path, *kind);
  }
  if (source.compression() != Compression::kNone && compression_of(head) != Compression::kNone) {
    return make_error(EINVAL,
                      "{}: is {} data within {} data: `{} -dc FILE | graphlane convert - OUT` "
                      "reads it",
                      path, name_of(compression_of(head)), name_of(source.compression()),
                      name_of(source.compression()));
  }
  if (auto lacks = why_incomplete(head, is_binary_format(format)))
    return make_error(EINVAL, "{}: {}", path, *lacks);
  const uint64_t size_bytes = source.compression() == Compression::kNone ? source.size_bytes() : 0;
  if (is_binary_format(format)) {
    if (is_text(head)) {
      return make_error(EINVAL,
                        "{}: is text: --from snap, csv or another format of text reads it "
                        "(--as-given believes that it is binary)",
                        path);
    }
    EdgeListOptions looked = options;
    looked.format = format;
    if (auto why = why_not_layout(head, size_bytes, layout_of(looked))) {
      return make_error(EINVAL, "{}: {}", path, *why);
    }
    return {};
  }
  if (is_binary(head)) {
    return make_error(EINVAL, "{}: is not text: {}", path, guess_layout(head, size_bytes));
  }
  const auto banner = banner_of(head);
  if (banner && *banner != format && *banner != EdgeFormat::kKonect &&
      options.columns.source == 0) {
    return make_error(EINVAL, "{}: is {}: --from {} reads it", path,
                      *banner == EdgeFormat::kMtx ? "a Matrix Market file" : "a DIMACS graph",
                      name_of(*banner));
  }
  return {};
}

// The stations between a reader and the caller's sink, the last one first.
class EdgeStations {
 public:
  EdgeStations(const EdgeListOptions& options, EdgeSink& sink) : options_(options), sink_(sink) {
    // Half for the reader, half for what sorts; a part of it for each of two.
    const uint64_t stations = (options.simple ? 1u : 0u) + (options.renumber_map.empty() ? 0u : 1u);
    share_bytes_ = options.memory_budget_bytes / (stations + 1);
    reading_ = options;
    reading_.memory_budget_bytes = share_bytes_;
  }

  ReadResult run() { return is_directory(options_.path) ? read_directory() : read_file(); }

 private:
  ReadResult read_directory() {
    return read_through({.mirrored = options_.undirected}, [&](const EdgeTarget& target) {
      return read_graph_directory(reading_, target);
    });
  }

  ReadResult read_file() {
    std::optional<Compression> known;
    if (options_.as_given && is_binary_format(options_.format)) known = Compression::kNone;
    auto source = ByteSource::open(options_.path, known);
    if (!source) return source.error();
    reading_.format = resolve_format(options_, (*source)->head());
    if (auto looked = check_look(**source, options_, reading_.format); !looked) {
      return looked.error();
    }
    if (auto checked = check_options(reading_); !checked) return checked.error();
    if (is_directory_format(reading_.format)) {
      return make_error(ENOTDIR, "{}: is a file, and {} is a directory", (*source)->name(),
                        name_of(reading_.format));
    }
    if (is_binary_format(reading_.format)) {
      return read_through({.mirrored = options_.undirected}, [&](const EdgeTarget& target) {
        return read_binary(**source, reading_, target);
      });
    }
    if (reading_.format == EdgeFormat::kMetis) {
      return read_through(
          {}, [&](const EdgeTarget& target) { return read_metis(**source, reading_, target); });
    }
    const Outcome<TextPlan> plan = plan_text(reading_, reading_.format, (*source)->head());
    if (!plan) return make_error(plan.error().code, "{}: {}", (*source)->name(), plan.error().text);
    return read_through(
        {.mirrored = plan->mirror || options_.undirected, .negated = plan->negate},
        [&](const EdgeTarget& target) { return read_text(**source, *plan, reading_, target); });
  }

  struct Way {
    bool mirrored = false;
    bool negated = false;
  };

  template <class Read>
  ReadResult read_through(const Way& way, const Read& read) {
    std::optional<SimpleSink> simple;
    if (options_.simple) {
      simple.emplace(sink_, options_.weighted, options_.weight_type, share_bytes_,
                     options_.spill_directory);
    }
    EdgeSink& sorted = simple ? static_cast<EdgeSink&>(*simple) : sink_;
    std::optional<MirrorSink> mirror;
    if (way.mirrored) mirror.emplace(sorted, way.negated);
    EdgeSink& first = mirror ? static_cast<EdgeSink&>(*mirror) : sorted;
    ReadResult result = read_numbered(first, read);
    if (!result) return result;
    if (mirror) result->edge_count = mirror->edge_count();
    if (!simple) return result;
    if (auto done = simple->hand_on(options_.threads); !done) return done.error();
    if (simple->edge_count() == 0) {
      return make_error(EINVAL, "{}: no edges but self-loops in it", options_.path);
    }
    result->edge_count = simple->edge_count();
    return result;
  }

  template <class Read>
  ReadResult read_numbered(EdgeSink& sink, const Read& read) {
    if (options_.renumber_map.empty()) return read(EdgeTarget{.numbers = &sink});
    EdgeListOptions options = options_;
    options.memory_budget_bytes = share_bytes_;
    auto renumberer = Renumberer::create(options);
    if (!renumberer) return renumberer.error();
    ReadResult result = read(EdgeTarget{.names = renumberer->get()});
    if (!result) return result;
    auto vertex_count = (*renumberer)->hand_on(sink, options_.threads);
    if (!vertex_count) return vertex_count.error();
    result->vertex_count = *vertex_count;
    return result;
  }

  const EdgeListOptions& options_;
  EdgeSink& sink_;
  uint64_t share_bytes_ = 0;
  EdgeListOptions reading_;
};

// Notes a graph with ten times more vertices than edges: numbers with gaps waste memory.
void note_gaps(const EdgeListOptions& options, EdgeListSummary& summary) {
  constexpr uint64_t kGapsMin = 1000;
  if (options.vertices != 0 || !options.renumber_map.empty() || summary.vertex_count < kGapsMin) {
    return;
  }
  if (summary.vertex_count / 10 < summary.edge_count) return;
  std::string note = fmt::format(
      "{} vertices, but only {} edges: --renumber MAP numbers those that have edges 0 to n-1",
      summary.vertex_count, summary.edge_count);
  if (options.note_now) {
    options.note_now(note);
  } else {
    summary.notes.push_back(std::move(note));
  }
}

}  // namespace

Outcome<EdgeFormat> parse_edge_format(std::string_view name) {
  if (name == "txt") return EdgeFormat::kSnap;
  if (name == "gr") return EdgeFormat::kDimacs;
  for (const auto& [format, known] : kFormatNames) {
    if (name == known) return format;
  }
  return make_error(EINVAL,
                    "'{}': not an edge list format (choose snap, csv, tsv, mtx, konect, dimacs, "
                    "metis, bin, u32, u64, grid, csr, shards, lists, dual or pages)",
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
    ReadResult result = EdgeStations(options, sink).run();
    if (!result) return result;
    if (options.vertices != 0) result->vertex_count = options.vertices;
    note_gaps(options, *result);
    return result;
  });
}

Outcome<EdgeListSummary> convert_edges(const EdgeListOptions& input, const EdgeListOutput& output) {
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    EdgeListOutput typed = output;
    typed.weighted = input.weighted;
    typed.weight_type = input.weight_type;
    auto writer = EdgeWriter::create(typed);
    if (!writer) return writer.error();
    auto summary = read_edges(input, **writer);
    if (!summary) return summary.error();
    if (auto finished = (*writer)->finish(*summary); !finished) return finished.error();
    return summary;
  });
}

}  // namespace graphlane::graphfmt
