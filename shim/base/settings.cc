#include "shim/base/settings.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "iomgr/server/mount_request.h"
#include "shim/base/text.h"

namespace graphlane::shim {
namespace {

Settings loaded;
std::atomic<bool> is_read{false};

// "lanes,cache". False: an unknown word.
bool leave_out(std::string_view names, Settings* settings) {
  while (!names.empty()) {
    const size_t length = names.find(',');
    const std::string_view name = names.substr(0, length);
    names.remove_prefix(length == names.npos ? names.size() : length + 1);
    if (name == "lanes") {
      settings->lanes = false;
    } else if (name == "merging") {
      settings->merging = false;
    } else if (name == "prefetch") {
      settings->cache.reads_ahead = false;
    } else if (name == "cache") {
      settings->cache.keeps = false;
    } else if (name == "packing") {
      settings->cache.packs = false;
    } else {
      return false;
    }
  }
  return true;
}

// False: not a depth.
bool parse_depth(std::string_view text, uint32_t* depth) {
  static_assert(kQueueDepthMax == 64);  // the message says 64
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 ||
      number > kQueueDepthMax) {
    return false;
  }
  *depth = number;
  return true;
}

Settings read_environment() {
  Settings settings;
  if (const char* io = getenv("GRAPHLANE_IO"); io != nullptr) {
    const Result<IoMode> mode = parse_io_mode(io);
    if (mode) {
      settings.io_mode = *mode;
    } else {
      complain("GRAPHLANE_IO", "not auto, direct or buffered: ignored");
    }
  }
  if (const char* name = getenv("GRAPHLANE_BACKEND"); name != nullptr) {
    const Result<IoBackend> backend = parse_io_backend(name);
    if (backend) {
      settings.backend = *backend;
    } else {
      complain("GRAPHLANE_BACKEND", "not auto, io_uring, libaio or threads: ignored");
    }
  }
  if (const char* depth = getenv("GRAPHLANE_DEPTH"); depth != nullptr) {
    if (!parse_depth(depth, &settings.depth)) {
      complain("GRAPHLANE_DEPTH", "not a number from 1 to 64: ignored");
    }
  }
  if (const char* size = getenv("GRAPHLANE_CACHE"); size != nullptr) {
    const Result<uint64_t> budget = parse_budget(size);
    if (budget) {
      settings.cache.budget_bytes = *budget;
    } else {
      complain("GRAPHLANE_CACHE", "not auto, 0 or a size (64M, 2G): ignored");
    }
  }
  if (const char* name = getenv("GRAPHLANE_CACHE_POLICY"); name != nullptr) {
    const Result<CachePolicy> policy = parse_cache_policy(name);
    if (policy) {
      settings.cache.policy = *policy;
    } else {
      complain("GRAPHLANE_CACHE_POLICY", "not scan-resistant, lru, fifo or hot-aware: ignored");
    }
  }
  if (const char* share = getenv("GRAPHLANE_SHARE"); share != nullptr) {
    settings.shares = std::strcmp(share, "no") != 0;
    settings.maps = std::strcmp(share, "map") == 0;
    if (settings.shares && !settings.maps && std::strcmp(share, "auto") != 0) {
      complain("GRAPHLANE_SHARE", "not auto, no or map: ignored");
    }
  }
  if (const char* names = getenv("GRAPHLANE_DISABLE"); names != nullptr) {
    const Settings before = settings;
    if (!leave_out(names, &settings)) {
      settings = before;
      complain("GRAPHLANE_DISABLE",
               "not some of lanes, merging, prefetch, cache, packing: ignored");
    }
  }
  if (const char* verify = getenv("GRAPHLANE_VERIFY"); verify != nullptr && *verify != '\0') {
    settings.verify = std::strcmp(verify, "read") == 0 ? Verify::kRead : Verify::kScrub;
    if (settings.verify == Verify::kScrub && std::strcmp(verify, "scrub") != 0) {
      complain("GRAPHLANE_VERIFY", "not scrub or read: ignored");
      settings.verify = Verify::kByVolume;
    }
  }
  settings.mounter = getenv(kMounterVariable);
  const char* changes = getenv(kChangesVariable);
  if (changes != nullptr && *changes != '\0') settings.changes = changes;
  settings.program = getenv(kProgramVariable);
  settings.no_mount = getenv(kNoMountVariable) != nullptr;
  const char* report = getenv("GRAPHLANE_REPORT");
  if (report != nullptr && *report != '\0' && std::strcmp(report, "0") != 0) {
    settings.report = report;
    settings.reported = getenv(kReportedVariable);
  }
  return settings;
}

}  // namespace

const Settings& settings() {
  // Two threads that both come first read the same environment.
  if (!is_read.load(std::memory_order_acquire)) {
    loaded = read_environment();
    is_read.store(true, std::memory_order_release);
  }
  return loaded;
}

}  // namespace graphlane::shim
