#include "iomgr/base/size.h"

#include "iomgr/base/size_text.h"

namespace graphlane {

Outcome<uint64_t> parse_size(std::string_view text) {
  const Result<uint64_t> size = parse_size_text(text);
  if (size) return *size;
  if (size.error().code == ERANGE) return make_error(EINVAL, "'{}': size too large", text);
  return make_error(EINVAL, "'{}': not a size (write 4096, 64K, 12M, 1G, 10MB)", text);
}

std::string format_size(uint64_t size_bytes) {
  if (size_bytes == 0) return "0";
  size_t power = 0;
  uint64_t unit = 1;
  while (power < kSizePrefixes.size() && size_bytes / unit >= 1024) {
    unit *= 1024;
    ++power;
  }
  if (power == 0) return fmt::format("{}", size_bytes);
  const char prefix = kSizePrefixes[power - 1];
  if (size_bytes % unit == 0) return fmt::format("{}{}", size_bytes / unit, prefix);
  const double value = static_cast<double>(size_bytes) / static_cast<double>(unit);
  return fmt::format("{:.{}f} {}iB", value, value < 10 ? 2 : value < 100 ? 1 : 0, prefix);
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace graphlane
