#include "graphfmt/edge_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "graphfmt/snap_text.h"
#include "iomgr/base/file_io.h"

namespace graphlane {
namespace {

// Something that cannot be replaced by a rename, only written to.
bool is_pipe_or_device(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
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

Outcome<std::unique_ptr<EdgeWriter>> EdgeWriter::create(const EdgeListOutput& output) {
  std::unique_ptr<EdgeWriter> writer(new EdgeWriter(output));
  if (is_pipe_or_device(output.path)) {
    writer->fd_ = Fd(::open(output.path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!writer->fd_) return os_error(errno, output.path, "cannot open");
  } else {
    auto staging = Staging::create(output.path, Staging::Kind::kFile, output.overwrite);
    if (!staging) return staging.error();
    writer->staging_ = std::move(*staging);
  }
  if (output.format == EdgeFormat::kSnap && !output.comment.empty()) {
    const std::string lines = comment_lines(output.comment);
    if (auto done = writer->write(lines.data(), lines.size()); !done) return done.error();
  }
  return writer;
}

Outcome<void> EdgeWriter::prepare(EdgeBatch& batch) {
  if (output_.format != EdgeFormat::kSnap) return {};
  if (auto grown = batch.text.reserve(batch.edge_count * snap_line_bytes_max(batch.weighted)); !grown) {
    return grown;
  }
  batch.text_bytes = static_cast<size_t>(format_snap(batch, batch.text.data()) - batch.text.data());
  return {};
}

Outcome<void> EdgeWriter::take(EdgeBatch& batch) {
  if (output_.format == EdgeFormat::kSnap) return write(batch.text.data(), batch.text_bytes);
  return write(batch.records.data(), batch.records_bytes());
}

Outcome<void> EdgeWriter::finish() {
  return fd_ ? Outcome<void>() : staging_.commit();
}

Outcome<void> EdgeWriter::write(const char* data, size_t length_bytes) {
  auto done = write_full(fd_ ? fd_.get() : staging_.fd(), data, length_bytes);
  if (!done) return os_error(done.error().code, output_.path, "cannot write");
  return {};
}

}  // namespace graphlane
