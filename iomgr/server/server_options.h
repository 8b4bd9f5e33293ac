// ServerOptions: the options of a volume's server, with or without a mount: the common part of
// -o LIST.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "iomgr/base/error.h"
#include "iomgr/io/lanes.h"
#include "iomgr/read/extent_cache.h"
#include "iomgr/server/shared_cache.h"

namespace graphlane {

struct ServerOptions {
  LaneOptions lanes;
  ExtentCacheOptions cache;  // a budget of 0: no cache
  // The longest that a leading read waits for the readers behind it. share_wait is the part of it
  // while the devices read nothing for them (shared_cache.h).
  double share_hold_seconds = 20.0;
  double share_wait_seconds = 1.0;
  std::optional<bool> verifies_reads = {};  // none: the volume's own setting

  // Takes depth=, backend=, cache=, share_hold=, share_wait= and verify=. False: another option;
  // EINVAL: an invalid value.
  Outcome<bool> take(std::string_view name, std::string_view value);
  SharedCacheOptions shared() const;
};

// "ro,threads=8,io=direct": calls take() for each option, until the first error.
Outcome<void> for_each_option(std::string_view list,
                              const std::function<Outcome<void>(std::string_view)>& take);

// Parsers for the values of other options.
Error bad_value(std::string_view name, std::string_view value, std::string_view expected);
Outcome<void> set_count(std::string_view name, std::string_view value, uint32_t max,
                        uint32_t* count);
Outcome<void> set_seconds(std::string_view name, std::string_view value, double* seconds);

}  // namespace graphlane
