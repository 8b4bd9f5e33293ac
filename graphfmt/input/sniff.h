// Sniff: checks that the first bytes of an input fit its name or --from. A format that is not read
// is refused by name, with the program that makes it readable.
//
// Pure functions of the bytes; --as-given switches the refusals off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graphfmt/edge_list.h"

namespace graphlane::graphfmt {

// A binary list's records: two vertices of 4 or 8 bytes, perhaps a weight.
struct BinaryLayout {
  unsigned vertex_bytes = 4;
  std::optional<WeightType> weight = {};

  size_t record_bytes() const;
  // "--from u64 -w --weights int64"
  std::string options() const;
};

// The layout that `options` say, with the format's own type of weights unless another is given.
BinaryLayout layout_of(const EdgeListOptions& options);

// A description of a file of a foreign kind: "a zip archive: `unzip -p a.zip | graphlane convert -
// OUT` reads a file in it". With `binary_expected`, magics that could be four bytes of a vertex are
// ignored.
std::optional<std::string> foreign_kind(const std::string& path, std::string_view head,
                                        bool binary_expected);

// Text of ASCII characters, of which up to one in eight may be of another character set; perhaps
// behind a UTF-8 byte order mark.
bool is_text(std::string_view head);
// Bytes that no text has.
bool is_binary(std::string_view head);

// Zeros where a file that was not written to its end has them; nothing: none were seen.
std::optional<std::string> why_incomplete(std::string_view head, bool binary_expected);

// Why the bytes do not look like records of `layout`, with the options that read them; nothing if
// they do. `size_bytes`: of all, 0: unknown.
std::optional<std::string> why_not_layout(std::string_view head, uint64_t size_bytes,
                                          const BinaryLayout& layout);
// The options that would read the bytes, as far as they tell, for input without --from.
std::string guess_layout(std::string_view head, uint64_t size_bytes);

// kAuto becomes what the name and the bytes say; another format is returned as it is.
EdgeFormat resolve_format(const EdgeListOptions& options, std::string_view head);
// Whether a text begins so, in capitals or not.
bool is_mtx_banner(std::string_view text);
// Another format that the text is one of by its banner, if `format` is not it.
std::optional<EdgeFormat> banner_of(std::string_view head);

}  // namespace graphlane::graphfmt
