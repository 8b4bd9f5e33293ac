#include "graphfmt/output/edge_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "graphfmt/output/snap_text.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {
namespace {

// Something that cannot be replaced by a rename, only written to.
bool is_pipe_or_device(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

// The style of a text format; none for others.
std::optional<LineStyle> line_style(EdgeFormat format) {
  switch (format) {
    case EdgeFormat::kSnap:
    case EdgeFormat::kTsv: return LineStyle{};
    case EdgeFormat::kCsv: return LineStyle{.delimiter = ','};
    case EdgeFormat::kMtx:
    case EdgeFormat::kKonect: return LineStyle{.delimiter = ' ', .base = 1};
    case EdgeFormat::kDimacs: return LineStyle{.delimiter = ' ', .base = 1, .prefix = 'a'};
    default: return std::nullopt;
  }
}

// Room for the counts, which are known at the end: the line has blanks at its end.
constexpr size_t kCountsRoom = 64;

// The lines before the edges; *counts_at: where the counts go.
std::string first_lines(const EdgeListOutput& output, uint64_t* counts_at) {
  std::string text;
  if (output.format == EdgeFormat::kKonect) {
    // A weight of any sign, of which several edges between two vertices may have one each.
    text = output.weighted ? "% asym multiweighted\n" : "% asym unweighted\n";
  }
  if (output.format == EdgeFormat::kMtx) {
    const char* const field = !output.weighted                           ? "pattern"
                              : output.weight_type == WeightType::kInt64 ? "integer"
                                                                         : "real";
    text = fmt::format("%%MatrixMarket matrix coordinate {} general\n", field);
  }
  if (!begins_with_counts(output.format)) return text;
  *counts_at = text.size();
  return text + std::string(kCountsRoom, ' ') + "\n";
}

// Records with vertices of 8 bytes, to `to`; the end.
char* widen_records(const EdgeBatch& batch, char* to) {
  const size_t edge_bytes = batch.edge_bytes();
  const char* from = batch.records.data();
  for (size_t i = 0; i < batch.edge_count; ++i, from += edge_bytes) {
    Edge edge;
    std::memcpy(&edge, from, sizeof edge);
    const uint64_t ends[2] = {edge.source, edge.target};
    std::memcpy(to, ends, sizeof ends);
    std::memcpy(to + sizeof ends, from + sizeof edge, edge_bytes - sizeof edge);
    to += sizeof ends + edge_bytes - sizeof edge;
  }
  return to;
}

std::string comment_lines(std::string_view comment) {
  std::string lines = "# ";
  for (const char c : comment) {
    lines += c;
    if (c == '\n') lines += "# ";
  }
  return lines + "\n";
}

}  // namespace

bool is_written_format(EdgeFormat format) {
  return line_style(format) || format == EdgeFormat::kBin || format == EdgeFormat::kU32 ||
         format == EdgeFormat::kU64;
}

bool begins_with_counts(EdgeFormat format) {
  return format == EdgeFormat::kMtx || format == EdgeFormat::kDimacs;
}

Outcome<std::unique_ptr<EdgeWriter>> EdgeWriter::create(const EdgeListOutput& output) {
  if (output.format == EdgeFormat::kLists || output.format == EdgeFormat::kDual ||
      output.format == EdgeFormat::kPages) {
    return make_error(EINVAL, "{}: {} are made by `graphlane convert --to {}`, of an edge list",
                      output.path, name_of(output.format), name_of(output.format));
  }
  std::unique_ptr<EdgeWriter> writer(new EdgeWriter(output));
  if (!is_written_format(output.format)) {
    return make_error(EINVAL, "'{}': a format that is read, but not written",
                      name_of(output.format));
  }
  if (output.format == EdgeFormat::kDimacs && !output.weighted) {
    return make_error(EINVAL, "{}: arcs of dimacs have weights (-w), and these have none",
                      output.path);
  }
  if (begins_with_counts(output.format) && (output.path == "-" || is_pipe_or_device(output.path))) {
    return make_error(
        ESPIPE, "{}: {} begins with the number of edges, so it is written to a file, not to a pipe",
        output.path == "-" ? "standard output" : output.path, name_of(output.format));
  }
  if (output.path == "-") {
    writer->fd_ = Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!writer->fd_) return os_error(errno, "standard output", "cannot open");
  } else if (is_pipe_or_device(output.path)) {
    writer->fd_ = Fd(::open(output.path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!writer->fd_) return os_error(errno, output.path, "cannot open");
  } else {
    auto staging = Staging::create(output.path, Staging::Kind::kFile, output.overwrite);
    if (!staging) return staging.error();
    writer->staging_ = std::move(*staging);
  }
  if (line_style(output.format)) {
    if (auto done = writer->begin_text(); !done) return done.error();
  }
  return writer;
}

Outcome<void> EdgeWriter::begin_text() {
  std::string lines = first_lines(output_, &counts_at_);
  const bool has_own_comments = output_.format != EdgeFormat::kSnap &&
                                output_.format != EdgeFormat::kCsv &&
                                output_.format != EdgeFormat::kTsv;
  if (!output_.comment.empty() && !has_own_comments) lines += comment_lines(output_.comment);
  return lines.empty() ? Outcome<void>() : write(lines.data(), lines.size());
}

Outcome<void> EdgeWriter::prepare(EdgeBatch& batch) {
  const std::optional<LineStyle> style = line_style(output_.format);
  if (!style && output_.format != EdgeFormat::kU64) return {};
  const size_t edge_bytes =
      style ? snap_line_bytes_max(batch.weighted) : batch.edge_bytes() + sizeof(Edge);
  if (auto grown = batch.text.reserve(batch.edge_count * edge_bytes); !grown) return grown;
  char* const text = batch.text.data();
  char* const end = style ? format_snap(batch, text, *style) : widen_records(batch, text);
  batch.text_bytes = static_cast<size_t>(end - text);
  return {};
}

Outcome<void> EdgeWriter::take(EdgeBatch& batch) {
  const bool as_is = output_.format == EdgeFormat::kBin || output_.format == EdgeFormat::kU32;
  return as_is ? write(batch.records.data(), batch.records_bytes())
               : write(batch.text.data(), batch.text_bytes);
}

Outcome<void> EdgeWriter::finish(const EdgeListSummary& summary) {
  if (fd_) return {};
  if (begins_with_counts(output_.format)) {
    if (auto done = write_counts(summary); !done) return done;
  }
  return staging_.commit();
}

Outcome<void> EdgeWriter::write_counts(const EdgeListSummary& summary) {
  const std::string counts =
      output_.format == EdgeFormat::kDimacs
          ? fmt::format("p sp {} {}", summary.vertex_count, summary.edge_count)
          : fmt::format("{0} {0} {1}", summary.vertex_count, summary.edge_count);
  const auto done = pwrite_full(staging_.fd(), counts.data(), counts.size(), counts_at_);
  if (!done) return os_error(done.error().code, output_.path, "cannot write");
  return {};
}

Outcome<void> EdgeWriter::write(const char* data, size_t length_bytes) {
  auto done = write_full(fd_ ? fd_.get() : staging_.fd(), data, length_bytes);
  const std::string_view name =
      output_.path == "-" ? "standard output" : std::string_view(output_.path);
  if (!done) return os_error(done.error().code, name, "cannot write");
  return {};
}

}  // namespace graphlane::graphfmt
