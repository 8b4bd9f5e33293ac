#include "iomgr/base/size_text.h"

#include <cerrno>
#include <charconv>
#include <limits>

namespace graphlane {
namespace {

constexpr uint64_t kSizeMax = std::numeric_limits<int64_t>::max();

// The factor of a suffix; 0: an unknown one.
uint64_t suffix_factor(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 1;
  const char letter = suffix[0] >= 'a' ? static_cast<char>(suffix[0] - 'a' + 'A') : suffix[0];
  const size_t power = kSizePrefixes.find(letter);
  if (power == std::string_view::npos) return 0;
  const std::string_view unit = suffix.substr(1);
  uint64_t base = 0;
  if (unit.empty() || unit == "iB" || unit == "ib") base = 1024;
  if (unit == "B" || unit == "b") base = 1000;
  uint64_t factor = base;
  for (size_t i = 0; i < power; ++i) factor *= base;
  return factor;
}

}  // namespace

Result<uint64_t> parse_size_text(std::string_view text) {
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  const uint64_t factor = suffix_factor(suffix);
  if (status != std::errc{} || factor == 0) return Errno{EINVAL};
  if (number > kSizeMax / factor) return Errno{ERANGE};
  return number * factor;
}

}  // namespace graphlane
