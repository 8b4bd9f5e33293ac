#include "iomgr/server/server_options.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>

namespace graphlane {
namespace {

Outcome<void> set_backend(std::string_view value, IoBackend* backend) {
  for (const IoBackend known :
       {IoBackend::kAuto, IoBackend::kUring, IoBackend::kAio, IoBackend::kThreads}) {
    if (value == name_of(known)) return *backend = known, Outcome<void>{};
  }
  return bad_value("backend", value, "auto, io_uring, libaio or threads");
}

Outcome<void> set_cache(std::string_view value, uint64_t* budget_bytes) {
  const Result<uint64_t> budget = parse_budget(value);
  if (!budget) return bad_value("cache", value, "auto, 0 or a size (64M, 2G)");
  *budget_bytes = *budget;
  return {};
}

Outcome<void> set_verify(std::string_view value, std::optional<bool>* verifies_reads) {
  if (value != "scrub" && value != "read") return bad_value("verify", value, "scrub or read");
  *verifies_reads = value == "read";
  return {};
}

}  // namespace

Outcome<bool> ServerOptions::take(std::string_view name, std::string_view value) {
  Outcome<void> set;
  if (name == "depth") {
    set = set_count(name, value, kQueueDepthMax, &lanes.depth);
  } else if (name == "backend") {
    set = set_backend(value, &lanes.backend);
  } else if (name == "cache") {
    set = set_cache(value, &cache.budget_bytes);
  } else if (name == "share_hold") {
    set = set_seconds(name, value, &share_hold_seconds);
  } else if (name == "share_wait") {
    set = set_seconds(name, value, &share_wait_seconds);
  } else if (name == "verify") {
    set = set_verify(value, &verifies_reads);
  } else {
    return false;
  }
  if (!set) return set.error();
  return true;
}

SharedCacheOptions ServerOptions::shared() const {
  const auto milliseconds = [](double seconds) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(seconds));
  };
  return {.budget_bytes = cache.budget_bytes,
          .hold_max = milliseconds(share_hold_seconds),
          .idle_hold_max = milliseconds(share_wait_seconds)};
}

Outcome<void> for_each_option(std::string_view list,
                              const std::function<Outcome<void>(std::string_view)>& take) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view option = list.substr(0, comma);
    if (!option.empty()) {
      if (Outcome<void> taken = take(option); !taken) return taken;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return {};
}

Error bad_value(std::string_view name, std::string_view value, std::string_view expected) {
  return make_error(EINVAL, "option {}={}: expected {}", name, value, expected);
}

Outcome<void> set_count(std::string_view name, std::string_view value, uint32_t max,
                        uint32_t* count) {
  uint32_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < 1 || number > max) {
    return bad_value(name, value, fmt::format("a number from 1 to {}", max));
  }
  *count = number;
  return {};
}

Outcome<void> set_seconds(std::string_view name, std::string_view value, double* seconds) {
  const std::string text(value);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(number >= 0 && number <= 1e9)) {
    return bad_value(name, value, "seconds");
  }
  *seconds = number;
  return {};
}

}  // namespace graphlane
