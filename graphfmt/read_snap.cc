// SNAP text from a file, plain or gzipped: zlib tells which by itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "graphfmt/edge_source.h"
#include "graphfmt/line.h"
#include "graphfmt/snap_text.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/progress.h"

namespace graphlane {
namespace {

constexpr size_t kPieceMin = size_t{64} << 10;
constexpr size_t kPieceMax = size_t{4} << 20;
constexpr unsigned kGzBufferBytes = 512 << 10;

struct Piece {
  Buffer text;  // whole lines, except at the end of the file
  size_t text_bytes = 0;
  bool overlong = false;  // not a single line end in it
  SnapParsed parsed;
  EdgeBatch batch;
};

// A piece costs its text, twice that in records, and (in a writer behind us) up
// to six times that in text again.
size_t piece_bytes(uint64_t budget_bytes, unsigned threads) {
  return std::clamp<size_t>(budget_bytes / threads / 9, kPieceMin, kPieceMax);
}

class SnapReader {
 public:
  SnapReader(const EdgeListOptions& options, EdgeSink& sink, unsigned threads)
      : options_(options),
        sink_(sink),
        threads_(threads),
        piece_bytes_(piece_bytes(options.memory_budget_bytes, threads)) {}

  Outcome<EdgeListSummary> run() {
    if (auto opened = open(); !opened) return opened.error();
    Line<Piece> line;
    line.load = [this](Piece& piece) { return load(piece); };
    line.work = [this](Piece& piece) { return parse(piece); };
    line.unload = [this](Piece& piece) { return deliver(piece); };
    line.settle = [this](Piece&) { return sink_.settle(); };
    if (auto done = line.run(threads_); !done) return done.error();
    if (summary_.edge_count == 0) return make_error(EINVAL, "{}: no edges in it", options_.path);
    return summary_;
  }

 private:
  Outcome<void> open() {
    Fd fd(::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat st{};
    if (!fd || ::fstat(fd.get(), &st) != 0) return os_error(errno, options_.path, "cannot open");
    if (S_ISDIR(st.st_mode)) return os_error(EISDIR, options_.path, "cannot read");
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    gz_.reset(::gzdopen(fd.get(), "rb"));
    if (!gz_) return os_error(ENOMEM, options_.path, "cannot open");
    fd.release();
    ::gzbuffer(gz_.get(), kGzBufferBytes);
    progress_ = std::make_unique<Progress>("read " + options_.path, static_cast<uint64_t>(st.st_size));
    if (auto grown = carry_.reserve(piece_bytes_); !grown) return grown.error();
    return {};
  }

  // The next bytes of the (decompressed) text, up to `length`; less at its end.
  Outcome<size_t> read_text(char* to, size_t length) {
    const int count = ::gzread(gz_.get(), to, static_cast<unsigned>(length));
    int status = Z_OK;
    const char* reason = ::gzerror(gz_.get(), &status);
    const bool short_read = count < 0 || static_cast<size_t>(count) < length;
    if (short_read && status == Z_ERRNO) return os_error(errno, options_.path, "cannot read");
    if (short_read && status != Z_OK && status != Z_STREAM_END) {
      // The text is "PATH: reason" or "<fd:N>: reason".
      const char* const colon = std::strrchr(reason, ':');
      return make_error(EINVAL, "{}: byte {}: {} gzip data ({})", options_.path,
                        std::max<z_off_t>(0, ::gzoffset(gz_.get())),
                        status == Z_BUF_ERROR ? "truncated" : "corrupt",
                        colon != nullptr ? colon + 2 : reason);
    }
    const z_off_t offset = ::gzoffset(gz_.get());  // -1 in a pipe
    if (offset > offset_) progress_->add(static_cast<uint64_t>(offset - std::exchange(offset_, offset)));
    return static_cast<size_t>(count);
  }

  Outcome<bool> load(Piece& piece) {
    if (auto grown = piece.text.reserve(piece_bytes_); !grown) return grown.error();
    char* const text = piece.text.data();
    std::memcpy(text, carry_.data(), carry_bytes_);
    auto count = read_text(text + carry_bytes_, piece_bytes_ - carry_bytes_);
    if (!count) return count.error();
    const bool at_end = *count < piece_bytes_ - carry_bytes_;
    piece.text_bytes = carry_bytes_ + *count;
    piece.overlong = false;
    carry_bytes_ = 0;
    if (at_end) return piece.text_bytes > 0;
    const void* newline = ::memrchr(text, '\n', piece.text_bytes);
    piece.overlong = newline == nullptr;
    if (piece.overlong) return true;
    const size_t whole_bytes = static_cast<size_t>(static_cast<const char*>(newline) + 1 - text);
    carry_bytes_ = piece.text_bytes - whole_bytes;
    std::memcpy(carry_.data(), text + whole_bytes, carry_bytes_);
    piece.text_bytes = whole_bytes;
    return true;
  }

  Outcome<void> parse(Piece& piece) {
    EdgeBatch& batch = piece.batch;
    if (auto grown = batch.records.reserve(snap_records_bytes_max(piece_bytes_)); !grown) return grown;
    const std::string_view text(piece.text.data(), piece.text_bytes);
    if (piece.overlong) {
      piece.parsed = {.issue = SnapIssue{0, "no line end in " + std::to_string(text.size()) +
                                                " bytes: " + quoted(text)}};
      return {};
    }
    piece.parsed = parse_snap(text, {.weighted = options_.weighted, .vertices = options_.vertices},
                              batch.records.data());
    batch.weighted = options_.weighted;
    batch.edge_count = piece.parsed.edge_count;
    return sink_.prepare(batch);
  }

  Outcome<void> deliver(Piece& piece) {
    const SnapParsed& parsed = piece.parsed;
    if (parsed.issue) {
      return make_error(EINVAL, "{}: line {}: {}", options_.path,
                        line_count_ + parsed.issue->line_index + 1, parsed.issue->reason);
    }
    line_count_ += parsed.line_count;
    summary_.edge_count += parsed.edge_count;
    if (parsed.edge_count == 0) return {};
    summary_.vertex_count = std::max(summary_.vertex_count, uint64_t{parsed.vertex_max} + 1);
    return sink_.take(piece.batch);
  }

  struct CloseGz {
    void operator()(gzFile gz) const { ::gzclose(gz); }
  };

  // Constant after open().
  const EdgeListOptions& options_;
  EdgeSink& sink_;
  const unsigned threads_;
  const size_t piece_bytes_;
  std::unique_ptr<Progress> progress_;
  // load() only: one thread at a time.
  std::unique_ptr<gzFile_s, CloseGz> gz_;
  z_off_t offset_ = 0;
  Buffer carry_;  // the part of a line that the last piece ended with
  size_t carry_bytes_ = 0;
  // deliver() only: one thread at a time.
  uint64_t line_count_ = 0;
  EdgeListSummary summary_;
};

}  // namespace

Outcome<EdgeListSummary> read_snap(const EdgeListOptions& options, EdgeSink& sink) {
  return SnapReader(options, sink, usable_threads(options.threads)).run();
}

}  // namespace graphlane
