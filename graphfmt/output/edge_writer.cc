#include "graphfmt/output/edge_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "graphfmt/output/snap_text.h"
#include "iomgr/base/file_io.h"

namespace graphlane {
namespace {

// Something that cannot be replaced by a rename, only written to.
bool is_pipe_or_device(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

// The delimiter of a text format.
std::optional<char> text_delimiter(EdgeFormat format) {
  switch (format) {
    case EdgeFormat::kSnap:
    case EdgeFormat::kTsv: return '\t';
    case EdgeFormat::kCsv: return ',';
    default: return std::nullopt;
  }
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
  return text_delimiter(format) || format == EdgeFormat::kBin || format == EdgeFormat::kU32 ||
         format == EdgeFormat::kU64;
}

Outcome<std::unique_ptr<EdgeWriter>> EdgeWriter::create(const EdgeListOutput& output) {
  if (output.format == EdgeFormat::kLists || output.format == EdgeFormat::kDual || output.format == EdgeFormat::kPages) {
    return make_error(EINVAL, "{}: {} are made by `graphlane convert --to {}`, of an edge list", output.path,
                      name_of(output.format), name_of(output.format));
  }
  std::unique_ptr<EdgeWriter> writer(new EdgeWriter(output));
  if (!is_written_format(output.format)) {
    return make_error(EINVAL, "'{}': a format that is read, but not written", name_of(output.format));
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
  if (text_delimiter(output.format) && !output.comment.empty()) {
    const std::string lines = comment_lines(output.comment);
    if (auto done = writer->write(lines.data(), lines.size()); !done) return done.error();
  }
  return writer;
}

Outcome<void> EdgeWriter::prepare(EdgeBatch& batch) {
  const std::optional<char> delimiter = text_delimiter(output_.format);
  if (!delimiter && output_.format != EdgeFormat::kU64) return {};
  const size_t edge_bytes = delimiter ? snap_line_bytes_max(batch.weighted) : batch.edge_bytes() + sizeof(Edge);
  if (auto grown = batch.text.reserve(batch.edge_count * edge_bytes); !grown) return grown;
  char* const text = batch.text.data();
  char* const end = delimiter ? format_snap(batch, text, *delimiter) : widen_records(batch, text);
  batch.text_bytes = static_cast<size_t>(end - text);
  return {};
}

Outcome<void> EdgeWriter::take(EdgeBatch& batch) {
  const bool as_is = output_.format == EdgeFormat::kBin || output_.format == EdgeFormat::kU32;
  return as_is ? write(batch.records.data(), batch.records_bytes()) : write(batch.text.data(), batch.text_bytes);
}

Outcome<void> EdgeWriter::finish() {
  return fd_ ? Outcome<void>() : staging_.commit();
}

Outcome<void> EdgeWriter::write(const char* data, size_t length_bytes) {
  auto done = write_full(fd_ ? fd_.get() : staging_.fd(), data, length_bytes);
  const std::string_view name = output_.path == "-" ? "standard output" : std::string_view(output_.path);
  if (!done) return os_error(done.error().code, name, "cannot write");
  return {};
}

}  // namespace graphlane
