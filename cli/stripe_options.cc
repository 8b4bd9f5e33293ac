#include "cli/stripe_options.h"

namespace graphlane::cli {

void StripeOptions::add_to(CLI::App* command) {
  add_size(command, "--stripe-depth", &depth_bytes,
           "bytes on one device before the next one's turn, a multiple of 4096");
  command->add_option("--stripe", globs, "stripe files of this name only (may be repeated)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  add_size(command, "--min-size", &size_min_bytes, "stripe files of this size and more");
}

StripePolicy StripeOptions::policy(const StripePolicy& fallback) const {
  return {.globs = globs.empty() ? fallback.globs : globs,
          .size_min_bytes = size_min_bytes.value_or(fallback.size_min_bytes)};
}

}  // namespace graphlane::cli
