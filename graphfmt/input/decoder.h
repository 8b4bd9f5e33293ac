// Decoder: one compressed member at a time, by the codec's own library.
//
// Each library stops where a member ends and says so. The caller judges the bytes
// behind it (byte_source.h). Libarchive was not taken for this reason: its
// gzip filter takes any bytes behind a member for the end of the file.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

enum class Compression { kNone, kGzip, kXz, kLzma, kZstd, kBzip2, kLz4, kZlib };

// The compression that the first bytes of a file, or of a member, show; kZlib has no magic. `head`
// may be short.
Compression compression_of(std::string_view head);
std::string_view name_of(Compression compression);
// Whether `head` begins another member or frame behind one of `compression`.
bool may_follow(std::string_view head, Compression compression);

struct DecodedStep {
  size_t taken = 0;    // bytes of the input
  size_t made = 0;     // bytes of output
  bool ended = false;  // the member is complete
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  // Decodes some of `in` to `out`. Neither may be empty, but that `in` is at the end of the file.
  // The error's text is the library's reason alone, "incorrect data check"; E2BIG: sound data that
  // need too much memory, and what reads them.
  virtual Outcome<DecodedStep> decode(std::string_view in, char* out, size_t room) = 0;

  // Prepares for the next member.
  virtual Outcome<void> restart() = 0;

  // `compression` is not kNone.
  static Outcome<std::unique_ptr<Decoder>> create(Compression compression);
};

}  // namespace graphlane::graphfmt
