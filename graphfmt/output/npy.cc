#include "graphfmt/output/npy.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kNpyBufferBytes = size_t{1} << 20;

// The text behind `'key':` in the header.
std::string_view npy_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size());
  value.remove_prefix(std::min(value.find_first_not_of(" :"), value.size()));
  return value;
}

}  // namespace

Outcome<NpyWriter> NpyWriter::create(const std::string& path, const std::string& descr,
                                     uint64_t count) {
  NpyWriter writer;
  writer.path_ = path;
  writer.fd_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!writer.fd_) return os_error(errno, path, "cannot create");
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", descr, count);
  // Numbers begin at a multiple of 64.
  const size_t head = kNpyMagic.size() + sizeof(uint16_t);
  header.append(63 - (head + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  writer.buffer_ = kNpyMagic;
  writer.buffer_.append(reinterpret_cast<const char*>(&length), sizeof length);
  writer.buffer_ += header;
  return writer;
}

Outcome<void> NpyWriter::append(const void* data, size_t bytes) {
  buffer_.append(static_cast<const char*>(data), bytes);
  return buffer_.size() < kNpyBufferBytes ? Outcome<void>() : flush();
}

Outcome<void> NpyWriter::flush() {
  auto written = write_full(fd_.get(), buffer_.data(), buffer_.size());
  if (!written) return os_error(written.error().code, path_, "cannot write");
  buffer_.clear();
  return {};
}

Outcome<void> NpyWriter::close() {
  if (auto flushed = flush(); !flushed) return flushed;
  // Servers, for one, tell only then what became of what was written.
  if (::close(fd_.release()) != 0) return os_error(errno, path_, "cannot write");
  return {};
}

Outcome<NpyReader> NpyReader::open(const std::string& path) {
  auto source = ByteSource::open(path, Compression::kNone);
  if (!source) return source.error();
  NpyReader reader;
  reader.source_ = std::move(*source);
  const std::string_view head = reader.source_->head();
  const auto bad = [&](std::string_view reason) {
    return make_error(EINVAL, "{}: {}", path, reason);
  };
  uint16_t length = 0;
  const size_t start = kNpyMagic.size() + sizeof length;
  if (head.size() < start || head.substr(0, kNpyMagic.size()) != kNpyMagic) {
    return bad("not an array of numpy, version 1.0");
  }
  std::memcpy(&length, head.data() + kNpyMagic.size(), sizeof length);
  if (head.size() < start + length) return bad("truncated head");
  const std::string_view header = head.substr(start, length);
  const std::string_view descr = npy_value(header, "'descr'");
  reader.descr_ = descr.size() > 5 ? std::string(descr.substr(1, 3)) : "";
  const bool known = reader.descr_.size() == 3 && reader.descr_[0] == '<' &&
                     std::string_view("iuf").find(reader.descr_[1]) != std::string_view::npos &&
                     (reader.descr_[2] == '4' || reader.descr_[2] == '8');
  if (!known) {
    return bad(fmt::format(
        "numbers of type '{}': int32, int64, uint32, uint64, float32 and float64 are read",
        reader.descr_));
  }
  std::string_view shape = npy_value(header, "'shape'");
  if (!shape.starts_with('(')) return bad("no shape in its head");
  shape.remove_prefix(1);
  const auto [behind, status] =
      std::from_chars(shape.data(), shape.data() + shape.size(), reader.count_);
  const std::string_view rest(behind, static_cast<size_t>(shape.data() + shape.size() - behind));
  if (status != std::errc{} || !(rest.starts_with(",)") || rest.starts_with(')'))) {
    return bad("not of one dimension");
  }
  reader.source_->skip(start + length);
  return reader;
}

Outcome<void> NpyReader::read(char* to, size_t count) {
  const size_t bytes = count * number_bytes();
  auto got = source_->read(to, bytes);
  if (!got) return got.error();
  if (*got != bytes) {
    return make_error(EINVAL, "{}: ends behind number {}, and should have {}", path(),
                      taken_ + *got / number_bytes(), count_);
  }
  taken_ += count;
  return {};
}

Outcome<void> NpyReader::read_numbers(uint64_t* to, size_t count) {
  if (number_bytes() == 8) return read(reinterpret_cast<char*>(to), count);
  if (auto grown = raw_.reserve(count * 4); !grown) return grown;
  if (auto done = read(raw_.data(), count); !done) return done;
  const auto* const from = raw_.as<uint32_t>();
  // Below 0: far too large.
  for (size_t i = 0; i < count; ++i) {
    to[i] =
        descr_[1] == 'i' ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(from[i])}) : from[i];
  }
  return {};
}

}  // namespace graphlane::graphfmt
