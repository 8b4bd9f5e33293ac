// ByteSource: the bytes of a file, decompressed, from a file or standard input.
//
//   file ──read──▶ member │ member │ zeros      every member counts; zeros may follow the last
//                     └─Decoder─▶ bytes          anything else behind a member is an error
//
// Errors name the file and the byte of it:
//
//   list.gz: byte 603: not gzip data behind the end of what is (`gzip -t` tells more)
//   list.gz: byte 1200: truncated gzip data
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "graphfmt/buffer.h"
#include "graphfmt/input/decoder.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {

class ByteSource {
 public:
  // "-": standard input. EISDIR: a directory. `known`: what it is compressed by, else its first
  // bytes tell.
  static Outcome<std::unique_ptr<ByteSource>> open(const std::string& path,
                                                   std::optional<Compression> known = std::nullopt);

  const std::string& name() const { return name_; }  // for messages
  Compression compression() const { return compression_; }
  // The file's own size; 0 in a pipe.
  uint64_t size_bytes() const { return size_bytes_; }

  // The first bytes, up to 64 KiB; read() gives them once more.
  std::string_view head() const { return {head_.data(), head_bytes_}; }

  // The next bytes, `length` of them but at the end. Moves the bar of progress.
  Outcome<size_t> read(char* to, size_t length);
  // Over the first `length` bytes of head(), before anything was read.
  void skip(size_t length) { head_taken_ = length; }

 private:
  ByteSource() = default;
  Outcome<void> fill_raw();
  Outcome<size_t> read_file(char* to, size_t length);
  Outcome<size_t> decode(char* to, size_t length);
  Outcome<bool> next_member();
  Outcome<bool> skip_zeros();
  std::string_view raw() const { return {raw_.data() + raw_at_, raw_end_ - raw_at_}; }

  std::string name_;
  Fd fd_;
  uint64_t size_bytes_ = 0;
  Compression compression_ = Compression::kNone;
  std::unique_ptr<Decoder> decoder_;  // null: plain
  std::unique_ptr<Progress> progress_;
  Buffer raw_;  // what was read of the file and not yet decoded
  size_t raw_at_ = 0, raw_end_ = 0;
  uint64_t raw_offset_ = 0;  // in the file, of raw_at_
  bool file_ended_ = false;
  bool member_ended_ = false;
  bool ended_ = false;
  Buffer head_;
  size_t head_bytes_ = 0, head_taken_ = 0;
};

}  // namespace graphlane::graphfmt
