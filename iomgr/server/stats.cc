#include "iomgr/server/stats.h"

#include "iomgr/volume/sum/part_sums.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graphlane {

std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

namespace {

template <class Stats>
std::string counters_json(const Stats& stats) {
  std::string text;
  for_each_counter(stats, [&](const CounterName& name, uint64_t count) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name.key, count);
  });
  return text;
}

}  // namespace

std::string stats_json(const Lanes& lanes, const ExtentCacheStats& cache, const SharedStats& shared,
                       const PrefetchStats& sweeps, const std::vector<ClientSum>& preloaded) {
  std::string text =
      fmt::format("{{\"backend\":{},\"devices\":[", json_quoted(name_of(lanes.backend())));
  const char* separator = "";
  size_t index = 0;
  for (const LaneStats& lane : lanes.stats()) {
    const ClientSum client = index < preloaded.size() ? preloaded[index] : ClientSum{};
    ++index;
    text += fmt::format(
        "{}{{\"path\":{},\"ios\":{},\"bytes_read\":{},\"bytes_written\":{},\"segments\":{},"
        "\"merged\":{},\"wait\":[{}],\"service\":[{}],\"preloaded\":{{\"ios\":{},\"bytes_read\":{},"
        "\"bytes_written\":{}}}}}",
        separator, json_quoted(lane.device), lane.io_count, lane.bytes_read, lane.bytes_written,
        lane.segment_count, lane.merged_count, fmt::join(lane.wait, ","),
        fmt::join(lane.service, ","), client.io_count, client.bytes_read, client.bytes_written);
    separator = ",";
  }
  return text + fmt::format(
                    "],\"cache\":{{{}}},\"shared\":{{{}}},\"sweeps\":{{{}}},\"checksums\":{{"
                    "\"verified\":{},"
                    "\"unverified\":{},\"failed\":{}}}}}",
                    counters_json(cache), counters_json(shared), counters_json(sweeps),
                    sum_totals.verified.load(), sum_totals.unverified.load(),
                    sum_totals.failed.load());
}

}  // namespace graphlane
