#include "graphfmt/input/decoder.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace graphlane::graphfmt {
namespace {

using namespace std::string_view_literals;

// zlib and bzip2 count in unsigned int.
unsigned as_count(size_t bytes) { return static_cast<unsigned>(std::min<size_t>(bytes, UINT_MAX)); }

Error codec_error(std::string_view reason) { return make_error(EINVAL, "{}", reason); }

class GzipDecoder : public Decoder {
 public:
  // zlib's window, and 16 more for gzip's head.
  explicit GzipDecoder(int window_bits) : window_bits_(window_bits) {}
  ~GzipDecoder() override { ::inflateEnd(&z_); }

  Outcome<void> restart() override {
    ::inflateEnd(&z_);
    z_ = {};
    if (::inflateInit2(&z_, window_bits_) != Z_OK) return codec_error("out of memory");
    return {};
  }

  Outcome<DecodedStep> decode(std::string_view in, char* out, size_t room) override {
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    z_.avail_in = as_count(in.size());
    z_.next_out = reinterpret_cast<Bytef*>(out);
    z_.avail_out = as_count(room);
    const unsigned given_in = z_.avail_in, given_out = z_.avail_out;
    const int status = ::inflate(&z_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      return codec_error(z_.msg != nullptr ? z_.msg : "unknown reason");
    }
    return DecodedStep{given_in - z_.avail_in, given_out - z_.avail_out, status == Z_STREAM_END};
  }

 private:
  const int window_bits_;
  z_stream z_{};
};

class LzmaDecoder : public Decoder {
 public:
  explicit LzmaDecoder(bool alone) : alone_(alone) {}
  ~LzmaDecoder() override { ::lzma_end(&stream_); }

  Outcome<void> restart() override {
    const lzma_ret status = alone_ ? ::lzma_alone_decoder(&stream_, UINT64_MAX)
                                   : ::lzma_stream_decoder(&stream_, UINT64_MAX, 0);
    if (status != LZMA_OK) return codec_error("out of memory");
    return {};
  }

  Outcome<DecodedStep> decode(std::string_view in, char* out, size_t room) override {
    stream_.next_in = reinterpret_cast<const uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(out);
    stream_.avail_out = room;
    const lzma_ret status = ::lzma_code(&stream_, LZMA_RUN);
    switch (status) {
      case LZMA_OK:
      case LZMA_BUF_ERROR:
      case LZMA_STREAM_END: break;
      case LZMA_MEM_ERROR: return codec_error("out of memory");
      case LZMA_FORMAT_ERROR: return codec_error("not the format that its first bytes say");
      case LZMA_OPTIONS_ERROR: return codec_error("options that this liblzma does not know");
      default: return codec_error("incorrect data check");
    }
    return DecodedStep{in.size() - stream_.avail_in, room - stream_.avail_out,
                       status == LZMA_STREAM_END};
  }

 private:
  const bool alone_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class ZstdDecoder : public Decoder {
 public:
  ~ZstdDecoder() override { ::ZSTD_freeDCtx(context_); }

  Outcome<void> restart() override {
    if (context_ == nullptr) context_ = ::ZSTD_createDCtx();
    if (context_ == nullptr) return codec_error("out of memory");
    ::ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    return {};
  }

  Outcome<DecodedStep> decode(std::string_view in, char* out, size_t room) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const size_t left = ::ZSTD_decompressStream(context_, &to, &from);
    if (::ZSTD_isError(left)) {
      if (::ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge) {
        return make_error(
            E2BIG,
            "zstd data with a window of more than 128 MiB: `zstd -dc --long=31 FILE | "
            "graphlane convert - OUT` reads it");
      }
      return codec_error(::ZSTD_getErrorName(left));
    }
    return DecodedStep{from.pos, to.pos, left == 0};
  }

 private:
  ZSTD_DCtx* context_ = nullptr;
};

class Bzip2Decoder : public Decoder {
 public:
  ~Bzip2Decoder() override { ::BZ2_bzDecompressEnd(&stream_); }

  Outcome<void> restart() override {
    ::BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    if (::BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) return codec_error("out of memory");
    return {};
  }

  Outcome<DecodedStep> decode(std::string_view in, char* out, size_t room) override {
    stream_.next_in = const_cast<char*>(in.data());
    stream_.avail_in = as_count(in.size());
    stream_.next_out = out;
    stream_.avail_out = as_count(room);
    const unsigned given_in = stream_.avail_in, given_out = stream_.avail_out;
    const int status = ::BZ2_bzDecompress(&stream_);
    if (status == BZ_MEM_ERROR) return codec_error("out of memory");
    if (status != BZ_OK && status != BZ_STREAM_END) return codec_error("incorrect data check");
    return DecodedStep{given_in - stream_.avail_in, given_out - stream_.avail_out,
                       status == BZ_STREAM_END};
  }

 private:
  bz_stream stream_{};
};

class Lz4Decoder : public Decoder {
 public:
  ~Lz4Decoder() override { ::LZ4F_freeDecompressionContext(context_); }

  Outcome<void> restart() override {
    if (context_ == nullptr &&
        ::LZ4F_isError(::LZ4F_createDecompressionContext(&context_, LZ4F_VERSION))) {
      return codec_error("out of memory");
    }
    ::LZ4F_resetDecompressionContext(context_);
    return {};
  }

  Outcome<DecodedStep> decode(std::string_view in, char* out, size_t room) override {
    size_t taken = in.size(), made = room;
    const size_t left = ::LZ4F_decompress(context_, out, &made, in.data(), &taken, nullptr);
    if (::LZ4F_isError(left)) return codec_error(::LZ4F_getErrorName(left));
    return DecodedStep{taken, made, left == 0};
  }

 private:
  LZ4F_dctx* context_ = nullptr;
};

constexpr std::string_view kLz4Magic = "\x04\x22\x4d\x18"sv;

// 0x184D2A50 to 0x184D2A5F: frames that zstd and lz4 skip.
bool is_skippable_frame(std::string_view head) {
  return head.size() >= 4 && (static_cast<unsigned char>(head[0]) & 0xf0) == 0x50 &&
         head.substr(1, 3) == "\x2a\x4d\x18"sv;
}

// The compression of the first frame behind skippable ones; zstd, if that frame cannot be seen.
Compression compression_behind_skippable(std::string_view head) {
  constexpr size_t kFrameHead = 8;
  while (is_skippable_frame(head)) {
    uint32_t length = 0;
    if (head.size() >= kFrameHead) std::memcpy(&length, head.data() + 4, sizeof length);
    head.remove_prefix(std::min(head.size(), kFrameHead + length));
  }
  return head.starts_with(kLz4Magic) ? Compression::kLz4 : Compression::kZstd;
}

}  // namespace

bool may_follow(std::string_view head, Compression compression) {
  if (compression_of(head) == compression) return true;
  return is_skippable_frame(head) &&
         (compression == Compression::kZstd || compression == Compression::kLz4);
}

Compression compression_of(std::string_view head) {
  if (head.starts_with("\x1f\x8b\x08"sv)) return Compression::kGzip;
  if (head.starts_with("\xfd"
                       "7zXZ\0"sv)) {
    return Compression::kXz;
  }
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::kZstd;
  if (is_skippable_frame(head)) return compression_behind_skippable(head);
  if (head.starts_with("BZh"sv) && head.size() > 3 && head[3] >= '1' && head[3] <= '9') {
    return Compression::kBzip2;
  }
  if (head.starts_with(kLz4Magic)) return Compression::kLz4;
  // No magic: the usual properties, a dictionary of 4 KiB to 4 GiB, and a size that is unknown.
  if (head.starts_with("\x5d\0\0"sv) && head.size() >= 13 &&
      head.substr(5, 8) == "\xff\xff\xff\xff\xff\xff\xff\xff"sv) {
    return Compression::kLzma;
  }
  return Compression::kNone;
}

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::kNone: return "plain";
    case Compression::kGzip: return "gzip";
    case Compression::kXz: return "xz";
    case Compression::kLzma: return "lzma";
    case Compression::kZstd: return "zstd";
    case Compression::kBzip2: return "bzip2";
    case Compression::kLz4: return "lz4";
    case Compression::kZlib: return "zlib";
  }
  return "?";
}

Outcome<std::unique_ptr<Decoder>> Decoder::create(Compression compression) {
  std::unique_ptr<Decoder> decoder;
  switch (compression) {
    case Compression::kGzip: decoder = std::make_unique<GzipDecoder>(15 + 16); break;
    case Compression::kZlib: decoder = std::make_unique<GzipDecoder>(15); break;
    case Compression::kXz: decoder = std::make_unique<LzmaDecoder>(false); break;
    case Compression::kLzma: decoder = std::make_unique<LzmaDecoder>(true); break;
    case Compression::kZstd: decoder = std::make_unique<ZstdDecoder>(); break;
    case Compression::kBzip2: decoder = std::make_unique<Bzip2Decoder>(); break;
    case Compression::kLz4: decoder = std::make_unique<Lz4Decoder>(); break;
    case Compression::kNone: return codec_error("plain data need no decoder");
  }
  if (auto ready = decoder->restart(); !ready) return ready.error();
  return decoder;
}

}  // namespace graphlane::graphfmt
