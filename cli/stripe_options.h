// --stripe, --min-size and --stripe-depth, which create and import share.
#pragma once

#include "cli/command.h"

namespace graphlane::cli {

struct StripeOptions {
  std::vector<std::string> globs;
  std::optional<uint64_t> size_min_bytes;
  std::optional<uint64_t> depth_bytes;

  void add_to(CLI::App* command);

  // `fallback`, with what was given in place of its own.
  StripePolicy policy(const StripePolicy& fallback) const;
};

}  // namespace graphlane::cli
