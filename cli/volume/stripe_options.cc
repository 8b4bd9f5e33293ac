#include "cli/volume/stripe_options.h"

#include "graphfmt/depth_chooser.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {

void StripeOptions::add_to(Command* command) {
  const auto parse = [this](const std::string& text) -> Outcome<void> {
    is_depth_auto = text == "auto";
    if (is_depth_auto) return {};
    const Outcome<uint64_t> parsed = parse_size(text);
    if (!parsed) return parsed.error();
    depth_bytes = *parsed;
    return {};
  };
  command
      ->add_option("--stripe-depth", parse,
                   "bytes on one device before the next one's turn, a multiple of 4096")
      ->type_name("SIZE|auto");
  command->add_option("--stripe", globs, "stripe files of this name only (may be repeated)")
      ->type_name("GLOB")
      ->one_value_each();
  add_size(command, "--min-size", &size_min_bytes, "stripe files of this size and more");
}

StripePolicy StripeOptions::policy(const StripePolicy& fallback) const {
  return {.globs = globs.empty() ? fallback.globs : globs,
          .size_min_bytes = size_min_bytes.value_or(fallback.size_min_bytes)};
}

void choose_depths(const Volume& volume, ImportOptions* options) {
  const auto chooser =
      std::make_shared<graphfmt::DepthChooser>(volume.device_count(), volume.is_on_ssds());
  options->choose_depth = [chooser](const std::string& path) -> Outcome<uint64_t> {
    const Outcome<graphfmt::AutoDepth> depth = chooser->choose(path);
    if (!depth) return depth.error();
    return depth->bytes;
  };
}

}  // namespace graphlane::cli
