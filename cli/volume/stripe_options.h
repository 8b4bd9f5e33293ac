// --stripe, --min-size and --stripe-depth, for create and import.
#pragma once

#include "cli/command.h"
#include "iomgr/admin/transfer.h"

namespace graphlane::cli {

struct StripeOptions {
  std::vector<std::string> globs;
  std::optional<uint64_t> size_min_bytes;
  std::optional<uint64_t> depth_bytes;
  bool is_depth_auto = false;

  void add_to(Command* command);

  // `fallback`, with the given options instead of its own.
  StripePolicy policy(const StripePolicy& fallback) const;
};

// Gives each file that is imported into `volume` the depth for its format.
void choose_depths(const Volume& volume, ImportOptions* options);

}  // namespace graphlane::cli
