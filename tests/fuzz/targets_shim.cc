// volume.json and device.json, as the preload library reads them.
#include <fcntl.h>
#include <sys/stat.h>

#include <string>

#include "iomgr/base/fd.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "shim/locate/volume_json.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {

using namespace graphlane::shim;
namespace {

// VOL/.graphlane/volume.json and a device, in memory.
struct Place {
  Place() {
    directory.make(".graphlane");
    directory.make("device");
    const Fd control(
        ::open(directory.path(".graphlane").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Result<StubSeen> seen = identify_stub(control.get());
    require(control && seen);
    home = "{\"inode\": " + std::to_string(seen->identity.inode) +
           ", \"born\": " + std::to_string(seen->identity.born) + "}";
  }
  WorkDirectory directory;
  std::string home;
};

// "@home" in the input becomes that of this directory: else every input is of a copy.
std::string with_home(Bytes input, const std::string& home) {
  std::string text(input.begin(), input.end());
  for (size_t at = 0; (at = text.find("@home", at)) != std::string::npos; at += home.size()) {
    text.replace(at, 5, home);
  }
  return text;
}

void write(const Place& place, const std::string& name, const std::string& text) {
  place.directory.write(name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The input is volume.json, and after a NUL device.json.
void run_shim_json(Bytes input) {
  static Place place;
  static VolumeDevices devices;
  const std::string text = with_home(input, place.home);
  const size_t cut = std::min(text.find('\0'), text.size());
  write(place, ".graphlane/volume.json", text.substr(0, cut));
  write(place, "device/device.json", cut < text.size() ? text.substr(cut + 1) : "");
  const char* const wrong = read_volume_file(place.directory.path("file"), &devices);
  if (wrong != nullptr) {
    require(*wrong != '\0');
    return;
  }
  require(devices.count >= kDeviceCountMin && devices.count <= kDeviceCountMax);
  for (uint32_t d = 0; d < devices.count; ++d) require(devices.roots[d].view().starts_with("/"));
  (void)wants_new("s-name");
  const Fd device(::open(place.directory.path("device").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  (void)check_device_file(device.get(), devices, 1);
  (void)calibrated_depth(place.directory.path("device").c_str());
}

constexpr FuzzTarget kShimTargets[] = {{"shim_json", run_shim_json}};

}  // namespace

std::span<const FuzzTarget> shim_targets() { return kShimTargets; }

}  // namespace graphlane::fuzz
