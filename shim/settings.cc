#include "shim/settings.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "shim/text.h"

namespace graphlane {
namespace {

Settings values;
std::atomic<bool> is_read{false};

Settings read_environment() {
  Settings settings;
  if (const char* io = getenv("GRAPHLANE_IO"); io != nullptr) {
    const Result<IoMode> mode = parse_io_mode(io);
    if (mode) settings.io_mode = *mode;
    else complain("GRAPHLANE_IO", "not auto, direct or buffered: ignored");
  }
  if (const char* name = getenv("GRAPHLANE_BACKEND"); name != nullptr) {
    const Result<IoBackend> backend = parse_io_backend(name);
    if (backend) settings.backend = *backend;
    else complain("GRAPHLANE_BACKEND", "not auto, io_uring, libaio or threads: ignored");
  }
  if (const char* size = getenv("GRAPHLANE_CACHE"); size != nullptr) {
    const Result<uint64_t> budget = parse_budget(size);
    if (budget) settings.cache.budget_bytes = *budget;
    else complain("GRAPHLANE_CACHE", "not auto, 0 or a size (64M, 2G): ignored");
  }
  if (const char* name = getenv("GRAPHLANE_CACHE_POLICY"); name != nullptr) {
    const Result<CachePolicy> policy = parse_cache_policy(name);
    if (policy) settings.cache.policy = *policy;
    else complain("GRAPHLANE_CACHE_POLICY", "not scan-resistant, lru, fifo or hot-aware: ignored");
  }
  const char* report = getenv("GRAPHLANE_REPORT");
  if (report != nullptr && *report != '\0' && std::strcmp(report, "0") != 0) {
    settings.report = report;
  }
  return settings;
}

}  // namespace

const Settings& settings() {
  // Two threads that come first at once read the same environment.
  if (!is_read.load(std::memory_order_acquire)) {
    values = read_environment();
    is_read.store(true, std::memory_order_release);
  }
  return values;
}

}  // namespace graphlane
