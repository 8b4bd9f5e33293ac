#include "iomgr/base/size.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace graphlane {
namespace {

constexpr uint64_t kSizeMax = std::numeric_limits<int64_t>::max();
constexpr std::string_view kPrefixes = "KMGT";

// The factor of a suffix, or 0 for none that we know.
uint64_t suffix_factor(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 1;
  const char letter = suffix[0] >= 'a' ? static_cast<char>(suffix[0] - 'a' + 'A') : suffix[0];
  const size_t power = kPrefixes.find(letter);
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

Outcome<uint64_t> parse_size(std::string_view text) {
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  const uint64_t factor = suffix_factor(suffix);
  if (status != std::errc{} || factor == 0) {
    return make_error(EINVAL, "'{}': not a size (write 4096, 64K, 12M, 1G, 10MB)", text);
  }
  if (number > kSizeMax / factor) return make_error(EINVAL, "'{}': size too large", text);
  return number * factor;
}

std::string format_size(uint64_t size_bytes) {
  if (size_bytes == 0) return "0";
  size_t power = 0;
  uint64_t unit = 1;
  while (power < kPrefixes.size() && size_bytes / unit >= 1024) {
    unit *= 1024;
    ++power;
  }
  if (power == 0) return fmt::format("{}", size_bytes);
  const char prefix = kPrefixes[power - 1];
  if (size_bytes % unit == 0) return fmt::format("{}{}", size_bytes / unit, prefix);
  const double value = static_cast<double>(size_bytes) / static_cast<double>(unit);
  return fmt::format("{:.{}f} {}iB", value, value < 10 ? 2 : value < 100 ? 1 : 0, prefix);
}

}  // namespace graphlane
