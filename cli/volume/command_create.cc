#include "cli/volume/filesystem_features.h"
#include "cli/volume/stripe_options.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

struct CreateOptions {
  std::string root;
  std::vector<std::string> devices;
  StripeOptions stripe;
  std::string verify = "scrub";
};

// Tells what the filesystems of devices lack, a line for each of those devices.
void tell_missing_features(const Volume& volume) {
  for (const Device& device : volume.devices()) {
    const Result<FilesystemFeatures> features = try_filesystem(device.root_fd.get());
    if (!features) continue;  // the import will tell
    const std::string missing = missing_features(*features);
    if (missing.empty()) continue;
    complain(fmt::format(
        "note: {}: its filesystem has no {}: all works there, but slower (see graphlane-create(1))",
        device.directory, missing));
  }
}

Outcome<int> create(const CreateOptions& options) {
  catch_interrupts();
  const auto volume = Volume::create({.root = options.root,
                                      .devices = options.devices,
                                      .stripe_depth_bytes = options.stripe.depth_bytes,
                                      .is_depth_auto = options.stripe.is_depth_auto,
                                      .verifies_reads = options.verify == "read",
                                      .policy = options.stripe.policy({})});
  if (!volume) return volume.error();
  if (const auto shared = (*volume)->devices_on_one_disk(); !shared.empty()) {
    const auto& [first, second] = shared.front();
    complain(
        fmt::format("warning: {} and {}{} are on one disk: stripes over them gain nothing",
                    (*volume)->devices()[first].directory, (*volume)->devices()[second].directory,
                    shared.size() > 1 ? fmt::format(" (and {} more)", shared.size() - 1) : ""));
  }
  if (!quiet) tell_missing_features(**volume);
  if (!quiet) {
    fmt::print("created {}: {}, stripe depth {}\n", (*volume)->root(),
               counted((*volume)->device_count(), "device"),
               (*volume)->is_depth_auto() ? "auto" : format_size((*volume)->stripe_depth_bytes()));
  }
  return kOk;
}

}  // namespace

void add_create(Parser& parser) {
  const auto options = std::make_shared<CreateOptions>();
  Command* command = parser.add(
      "create", "make a volume over several devices",
      "graphlane create graphs --device /mnt/d0 --device /mnt/d1 --stripe column\n\n"
      "A device is a directory, best on a disk of its own: two on one disk are warned of,\n"
      "one inside another is refused. The stripe depth is 3M\n"
      "unless given, 512K on SSDs; with auto an import chooses one for each file, by the\n"
      "format of its graph (graphlane advise tells). Without --stripe all files of at\n"
      "least --min-size (1M) are striped when they are imported.");
  command->add_option("VOL", options->root, "new or empty directory")->required();
  command->add_option("-d,--device", options->devices, "a device, in order (at least two)")
      ->type_name("DIR")
      ->one_value_each()
      ->required();
  options->stripe.add_to(command);
  command
      ->add_option("--verify", options->verify,
                   "when checksums are compared: by check --scrub alone (scrub), or by each read, "
                   "too (read)")
      ->one_of({"scrub", "read"})
      ->type_name("WHEN");
  parser.on_chosen(command, options, create);
}

}  // namespace graphlane::cli
