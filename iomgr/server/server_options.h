// ServerOptions: what a server of a volume can be told, by a mount or without one: the part of
// -o LIST that both have.
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
  ExtentCacheOptions cache;  // a budget of 0: none
  // How long a read of who is first waits for those behind, at most: in all, and of that while the
  // devices do nothing for them (shared_cache.h).
  double share_hold_seconds = 20.0;
  double share_wait_seconds = 1.0;
  std::optional<bool> verifies_reads = {};  // none: as the volume says

  // Takes depth=, backend=, cache=, share_hold=, share_wait= and verify=. False: it is another one; EINVAL: the value
  // is wrong.
  Outcome<bool> take(std::string_view name, std::string_view value);
  SharedCacheOptions shared() const;
};

// "ro,threads=8,io=direct": one after the other, until the first error.
Outcome<void> for_each_option(std::string_view list,
                              const std::function<Outcome<void>(std::string_view)>& take);

// Values of options that others take.
Error bad_value(std::string_view name, std::string_view value, std::string_view expected);
Outcome<void> set_count(std::string_view name, std::string_view value, uint32_t max,
                        uint32_t* count);
Outcome<void> set_seconds(std::string_view name, std::string_view value, double* seconds);

}  // namespace graphlane
