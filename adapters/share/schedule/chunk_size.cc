#include "adapters/share/schedule/chunk_size.h"

#include <fcntl.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/size_text.h"

namespace graphlane::share {
namespace {

// The first line of a sysfs file.
std::optional<std::string> read_line(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char text[4096];
  const Result<size_t> length = read_full(file.get(), text, sizeof text);
  if (!length) return std::nullopt;
  std::string line(text, *length);
  return line.substr(0, line.find('\n'));
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The CPUs in a list: "0-3,8" has five.
std::optional<uint32_t> count_cpus(std::string_view list) {
  uint64_t count = 0;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const size_t dash = item.find('-');
    const auto first = parse_number(item.substr(0, dash));
    const auto last = dash == item.npos ? first : parse_number(item.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    count += *last - *first + 1;
  }
  if (count == 0) return std::nullopt;
  return static_cast<uint32_t>(count);
}

}  // namespace

LastLevelCache read_last_level_cache(const std::string& cpu) {
  LastLevelCache cache{.core_count = static_cast<uint32_t>(std::max(1, ::get_nprocs()))};
  uint64_t level_max = 0;
  for (int index = 0;; ++index) {
    const std::string dir = cpu + "/cache/index" + std::to_string(index) + "/";
    const auto level = read_line(dir + "level");
    if (!level) return cache;
    const auto number = parse_number(*level);
    const auto type = read_line(dir + "type");
    const auto size = read_line(dir + "size");
    if (!number || *number <= level_max || type == "Instruction" || !size) continue;
    const Result<uint64_t> bytes = parse_size_text(*size);
    if (!bytes || *bytes == 0) continue;
    level_max = *number;
    cache.size_bytes = *bytes;
    const auto shared = read_line(dir + "shared_cpu_list");
    if (const auto count = shared ? count_cpus(*shared) : std::nullopt) cache.core_count = *count;
  }
}

uint64_t chunk_size_bytes(const ChunkSizing& sizing) {
  const uint64_t unit = std::lcm<uint64_t>(std::max(sizing.record_bytes, 1u), kCacheLineBytes);
  if (sizing.cache_bytes <= sizing.reserved_bytes || sizing.graph_bytes == 0) return unit;
  // S_c ≤ (C_LLC - r) × S_G / (N × (S_G + |V| × U_v)). A product of two sizes needs 128 bits.
  using Wide = unsigned __int128;
  const Wide numerator = Wide{sizing.cache_bytes - sizing.reserved_bytes} * sizing.graph_bytes;
  const Wide whole = sizing.graph_bytes + Wide{sizing.vertex_count} * sizing.vertex_bytes;
  const auto largest = static_cast<uint64_t>(numerator / whole / std::max(sizing.core_count, 1u));
  return std::max(unit, largest / unit * unit);
}

}  // namespace graphlane::share
