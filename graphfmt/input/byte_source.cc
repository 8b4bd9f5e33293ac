#include "graphfmt/input/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kRawBytes = size_t{512} << 10;
constexpr size_t kHeadBytes = size_t{64} << 10;
constexpr size_t kMagicBytes = 16;

// A command that shows the damage at more length.
std::string_view test_command(Compression compression) {
  switch (compression) {
    case Compression::kGzip: return "gzip -t";
    case Compression::kBzip2: return "bzip2 -t";
    case Compression::kZstd: return "zstd -t";
    case Compression::kLz4: return "lz4 -t";
    default: return "xz -t";
  }
}

}  // namespace

Outcome<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path,
                                                      std::optional<Compression> known) {
  std::unique_ptr<ByteSource> source(new ByteSource);
  source->name_ = path == "-" ? "standard input" : path;
  source->fd_ = Fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st{};
  if (!source->fd_ || ::fstat(source->fd_.get(), &st) != 0) {
    return os_error(errno, source->name_, "cannot open");
  }
  if (S_ISDIR(st.st_mode)) return os_error(EISDIR, source->name_, "cannot read");
  if (S_ISREG(st.st_mode)) source->size_bytes_ = static_cast<uint64_t>(st.st_size);
  ::posix_fadvise(source->fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  source->progress_ = std::make_unique<Progress>("read " + source->name_, source->size_bytes_);
  for (auto [buffer, bytes] : {std::pair{&source->raw_, kRawBytes}, {&source->head_, kHeadBytes}}) {
    if (auto grown = buffer->reserve(bytes); !grown) return grown.error();
  }
  if (auto filled = source->fill_raw(); !filled) return filled.error();
  source->compression_ = known ? *known : compression_of(source->raw());
  if (source->compression_ != Compression::kNone) {
    auto decoder = Decoder::create(source->compression_);
    if (!decoder) return make_error(EINVAL, "{}: {}", source->name_, decoder.error().text);
    source->decoder_ = std::move(*decoder);
  }
  // The first read follows; its bytes are given once more.
  source->head_taken_ = 0;
  auto count = source->decoder_ ? source->decode(source->head_.data(), kHeadBytes)
                                : source->read_file(source->head_.data(), kHeadBytes);
  if (!count) return count.error();
  source->head_bytes_ = *count;
  return source;
}

// Reads on, behind what is left.
Outcome<void> ByteSource::fill_raw() {
  if (file_ended_) return {};
  std::memmove(raw_.data(), raw_.data() + raw_at_, raw_end_ - raw_at_);
  raw_end_ -= std::exchange(raw_at_, 0);
  const size_t room = raw_.size() - raw_end_;
  auto count = read_full(fd_.get(), raw_.data() + raw_end_, room);
  if (!count) return os_error(count.error().code, name_, "cannot read");
  file_ended_ = *count < room;
  raw_end_ += *count;
  progress_->add(*count);
  return {};
}

Outcome<size_t> ByteSource::read(char* to, size_t length) {
  const size_t from_head = std::min(length, head_bytes_ - head_taken_);
  std::memcpy(to, head_.data() + head_taken_, from_head);
  head_taken_ += from_head;
  if (from_head == length) return length;
  auto count = decoder_ ? decode(to + from_head, length - from_head)
                        : read_file(to + from_head, length - from_head);
  if (!count) return count.error();
  return from_head + *count;
}

// Plain data: first the bytes that were read for sniffing, then the rest without a copy.
Outcome<size_t> ByteSource::read_file(char* to, size_t length) {
  const size_t looked_at = std::min(length, raw().size());
  std::memcpy(to, raw().data(), looked_at);
  raw_at_ += looked_at;
  if (looked_at == length || file_ended_) return looked_at;
  auto count = read_full(fd_.get(), to + looked_at, length - looked_at);
  if (!count) return os_error(count.error().code, name_, "cannot read");
  file_ended_ = *count < length - looked_at;
  progress_->add(*count);
  return looked_at + *count;
}

Outcome<size_t> ByteSource::decode(char* to, size_t length) {
  size_t done = 0;
  while (done < length && !ended_) {
    if (raw().size() < kMagicBytes && !file_ended_) {
      if (auto filled = fill_raw(); !filled) return filled.error();
    }
    if (member_ended_) {
      auto more = next_member();
      if (!more) return more.error();
      if (!*more) break;
    }
    auto step = decoder_->decode(raw(), to + done, length - done);
    if (!step && step.error().code == E2BIG) {
      return make_error(EINVAL, "{}: {}", name_, step.error().text);
    }
    if (!step) {
      return make_error(EINVAL, "{}: byte {}: corrupt {} data ({})", name_, raw_offset_,
                        name_of(compression_), step.error().text);
    }
    raw_at_ += step->taken;
    raw_offset_ += step->taken;
    done += step->made;
    member_ended_ = step->ended;
    const bool stuck = step->taken == 0 && step->made == 0 && !step->ended;
    if (stuck && file_ended_) {
      return make_error(EINVAL, "{}: byte {}: truncated {} data", name_, raw_offset_ + raw().size(),
                        name_of(compression_));
    }
    if (stuck) {  // wants more than there is
      const size_t before = raw().size();
      if (auto filled = fill_raw(); !filled) return filled.error();
      if (raw().size() == before && !file_ended_) {
        return make_error(EIO, "{}: cannot be decoded", name_);
      }
    }
  }
  return done;
}

// Behind a member: another one, or the end.
Outcome<bool> ByteSource::next_member() {
  if (raw().empty()) {
    ended_ = true;
    return false;
  }
  if (raw().front() == '\0') {
    auto more = skip_zeros();
    if (!more) return more.error();
    ended_ = !*more;
    if (ended_) return false;
  }
  if (!may_follow(raw(), compression_)) {
    return make_error(
        EINVAL, "{}: byte {}: what follows the end of the {} data is no {} data (`{}` tells more)",
        name_, raw_offset_, name_of(compression_), name_of(compression_),
        test_command(compression_));
  }
  member_ended_ = false;
  if (auto ready = decoder_->restart(); !ready) {
    return make_error(EINVAL, "{}: {}", name_, ready.error().text);
  }
  return true;
}

// Tapes and block devices pad so, to the end. Between xz streams there may be zeros, four at a time.
// Whether there is more than zeros.
Outcome<bool> ByteSource::skip_zeros() {
  uint64_t skipped = 0;
  while (true) {
    const std::string_view rest = raw();
    const size_t zeros = std::min(rest.find_first_not_of('\0'), rest.size());
    skipped += zeros;
    if (zeros < rest.size() && compression_ == Compression::kXz && skipped % 4 == 0) {
      raw_at_ += zeros;
      raw_offset_ += zeros;
      if (auto filled = fill_raw(); !filled) return filled.error();
      return true;
    }
    if (zeros < rest.size()) {
      return make_error(EINVAL,
                        "{}: byte {}: neither {} data nor zeros behind the end of the {} data",
                        name_, raw_offset_ + zeros, name_of(compression_), name_of(compression_));
    }
    raw_at_ += zeros;
    raw_offset_ += zeros;
    if (file_ended_) return false;
    if (auto filled = fill_raw(); !filled) return filled.error();
  }
}

}  // namespace graphlane::graphfmt
