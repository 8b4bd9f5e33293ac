#include "graphfmt/codec/codec.h"

#include <cstring>

#include "graphfmt/codec/codec_reference.h"
#include "graphfmt/codec/codec_simd.h"
#include "graphfmt/codec/codec_varint.h"

namespace graphlane::graphfmt {
namespace {

class RawCodec final : public ListCodec {
 public:
  CodecKind kind() const override { return CodecKind::kRaw; }
  bool has_fixed_length() const override { return true; }
  size_t bytes_max(size_t count) const override { return count * sizeof(uint32_t); }

  size_t encode(std::span<const uint32_t> list, uint8_t* bytes) const override {
    if (!list.empty()) std::memcpy(bytes, list.data(), list.size_bytes());
    return list.size_bytes();
  }

  Result<size_t> count(std::span<const uint8_t> bytes) const override {
    if (bytes.size() % sizeof(uint32_t) != 0) return Errno{EIO};
    return bytes.size() / sizeof(uint32_t);
  }

  Result<void> decode(std::span<const uint8_t> bytes, std::span<uint32_t> list, uint64_t limit,
                      size_t) const override {
    if (bytes.size() != list.size_bytes()) return Errno{EIO};
    if (list.empty()) return {};
    std::memcpy(list.data(), bytes.data(), bytes.size());
    uint32_t largest = 0;
    for (const uint32_t neighbour : list) largest = neighbour > largest ? neighbour : largest;
    if (largest >= limit) return Errno{EIO};
    return {};
  }
};

}  // namespace

Outcome<CodecKind> parse_codec(std::string_view name) {
  for (const CodecKind kind :
       {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd, CodecKind::kReference}) {
    if (name == name_of(kind)) return kind;
  }
  return make_error(EINVAL, "'{}': not a codec (choose raw, varint, simd or reference)", name);
}

std::string_view name_of(CodecKind kind) {
  switch (kind) {
    case CodecKind::kRaw: return "raw";
    case CodecKind::kVarint: return "varint";
    case CodecKind::kSimd: return "simd";
    case CodecKind::kReference: return "reference";
  }
  return "?";
}

Outcome<void> check_codec_of_lists(CodecKind kind, std::string_view format) {
  if (ListCodec::of(kind).group_vertices() == 1) return {};
  return make_error(EINVAL,
                    "{} has no groups of lists, which the codec {} needs (choose raw, varint or "
                    "simd, or the format dual)",
                    format, name_of(kind));
}

size_t ListCodec::encode_group(std::span<const VertexList>, uint8_t*) const { return 0; }

Result<void> ListCodec::decode_group(std::span<const uint8_t>, std::span<const uint32_t>, uint64_t,
                                     uint64_t, std::vector<uint32_t>&,
                                     std::vector<uint32_t>&) const {
  return Errno{EIO};
}

Result<void> ListCodec::decode_lists(std::span<const uint8_t> bytes,
                                     std::span<const uint32_t> lengths,
                                     std::span<const uint32_t> degrees,
                                     std::span<uint32_t> neighbours, uint64_t limit) const {
  if (lengths.size() != degrees.size()) return Errno{EIO};
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > bytes.size() || degrees[i] > neighbours.size()) return Errno{EIO};
    const size_t behind = bytes.size() - lengths[i];
    if (auto done = decode(bytes.first(lengths[i]), neighbours.first(degrees[i]), limit, behind);
        !done) {
      return done;
    }
    bytes = bytes.subspan(lengths[i]);
    neighbours = neighbours.subspan(degrees[i]);
  }
  if (!bytes.empty() || !neighbours.empty()) return Errno{EIO};
  return {};
}

Result<size_t> ListCodec::decode_counted(std::span<const uint8_t> bytes,
                                         std::span<const uint32_t> lengths,
                                         std::span<uint32_t> starts, std::span<uint32_t> neighbours,
                                         uint64_t limit) const {
  size_t total = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0 || lengths[i] > bytes.size()) return Errno{EIO};
    const std::span<const uint8_t> list = bytes.first(lengths[i]);
    const Result<size_t> found = count(list);
    if (!found || *found > neighbours.size() - total) return Errno{EIO};
    bytes = bytes.subspan(lengths[i]);
    if (auto done = decode(list, neighbours.subspan(total, *found), limit, bytes.size()); !done) {
      return done.error();
    }
    starts[i] = static_cast<uint32_t>(total);
    total += *found;
  }
  if (!bytes.empty()) return Errno{EIO};
  starts[lengths.size()] = static_cast<uint32_t>(total);
  return total;
}

const ListCodec& ListCodec::of(CodecKind kind) {
  static const RawCodec raw;
  switch (kind) {
    case CodecKind::kVarint: return varint_codec();
    case CodecKind::kSimd: return simd_codec();
    case CodecKind::kReference: return reference_codec();
    case CodecKind::kRaw: break;
  }
  return raw;
}

}  // namespace graphlane::graphfmt
