// Volume: a directory with large files striped over devices. Devices are directories too, each on a
// block device of its own.
//
//   VOL/.graphlane/volume.json                      format, uuid, devices, depth, policy
//
//   VOL/.graphlane/run/                             lock, sockets
//   VOL/.graphlane/tmp/                             imports under construction
//   VOL/NAME                                        plain file, or the stub of a striped one
//
//   DEVICE_i/graphlane-<uuid>/device.json           volume uuid, ordinal i, count N
//   DEVICE_i/graphlane-<uuid>/parts/<xx>/<file-id>  part i, xx = the id's first two digits
//
// Opening a volume checks every device's identity. A missing, swapped or foreign device is named in
// the error, and nothing is opened.
//
// Threads: an open Volume does not change; share it freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/stripe.h"
#include "iomgr/volume/stub/stub.h"

namespace graphlane {

inline constexpr std::string_view kControlDirectory = ".graphlane";
// An eighth of the 24 MiB that engines read at once: one such read keeps up to eight devices busy,
// each with one run of its part (experiments/LOG.md has the measurements). CSMqGraph §4 found 12
// MiB best, with a thread for every device.
inline constexpr uint64_t kStripeDepthDefault = 3u << 20;
// For devices without seeks. A read waits for the device with the largest share, and finer units
// make the shares equal.
inline constexpr uint64_t kStripeDepthSsd = 512u << 10;
constexpr uint64_t stripe_depth_default(bool on_ssds) {
  return on_ssds ? kStripeDepthSsd : kStripeDepthDefault;
}
inline constexpr uint64_t kStripedSizeMinDefault = 1u << 20;

// Which files become striped.
struct StripePolicy {
  std::vector<std::string> globs;  // matched against the file's last name; none: every file
  uint64_t size_min_bytes = kStripedSizeMinDefault;

  // For a file that is imported.
  bool wants(std::string_view name, uint64_t size_bytes) const;
  // For a new file of unknown size: only if a glob matches the name, or its final_name() (kind.h).
  bool wants_new(std::string_view name) const;
};

// One directory with its identity checked.
struct Device {
  std::string directory;  // as the user gave it, made absolute
  std::string root;       // directory/graphlane-<uuid>
  Fd root_fd;             // O_DIRECTORY | O_RDONLY on `root`
};

struct VolumeOptions {
  std::string root = {};                            // must not exist, or be an empty directory
  std::vector<std::string> devices = {};            // existing, writable, distinct directories
  std::optional<uint64_t> stripe_depth_bytes = {};  // none: the default for such devices
  bool is_depth_auto = false;
  bool verifies_reads = false;  // verifies checksums of reads, unless a program says otherwise
  StripePolicy policy = {};
};

struct OpenOptions {
  // Leaves out a missing device: its root_fd is empty. For a salvage.
  bool allows_missing_devices = false;
  // Accepts a copy of the volume's directory. For `adopt` and for a salvage.
  bool allows_copies = false;
};

class Volume {
 public:
  // Makes root and devices. After an error nothing is left behind.
  static Outcome<std::shared_ptr<const Volume>> create(const VolumeOptions& options);

  // `root` may also be the root of a mount of it. Where a mount covers the volume's own root, opens
  // the directory beneath; EBUSY: only root may. ESTALE: a copy of the volume's directory, which
  // lies in another inode than it records, or is older than the devices.
  static Outcome<std::shared_ptr<const Volume>> open(const std::string& root, OpenOptions how = {});

  const std::string& root() const { return root_; }  // absolute, no symbolic links
  int root_fd() const { return root_fd_.get(); }  // O_DIRECTORY | O_RDONLY, from before any mount
  const Uuid& uuid() const { return uuid_; }
  // 2, or 1: read only until `graphlane check --upgrade`.
  uint32_t format() const { return format_; }
  const std::vector<Device>& devices() const { return devices_; }
  std::span<const int> device_roots() const { return device_roots_; }  // their descriptors
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.size()); }
  // Whether all devices are known to be SSDs.
  bool is_on_ssds() const;
  // Devices that share a disk with an earlier one: striping gains nothing from them. Pairs of
  // ordinals, the earlier one first.
  std::vector<std::pair<uint32_t, uint32_t>> devices_on_one_disk() const;
  // Call it before this process's first change of a striped file: raises the volume's epoch
  // (volume/home.h).
  Outcome<void> note_change() const;
  uint64_t stripe_depth_bytes() const { return stripe_depth_bytes_; }
  // Whether an import chooses each file's depth by its format. New files in a mount get
  // stripe_depth_bytes() in any case.
  bool is_depth_auto() const { return is_depth_auto_; }
  bool verifies_reads() const { return verifies_reads_; }
  const StripePolicy& policy() const { return policy_; }

  // "/mnt/d1/graphlane-<uuid>/parts/3f/3f0c…", for messages.
  std::string part_path(uint32_t device_index, const Uuid& file_id) const;

  // An error if the stub is not one of this volume's.
  Outcome<void> accept(const Layout& layout, std::string_view name) const;

 private:
  Volume() = default;
  static Outcome<std::shared_ptr<const Volume>> open_once(const std::string& root, OpenOptions how);

  std::string root_;
  Fd root_fd_;
  Uuid uuid_;
  uint32_t format_ = 2;
  std::vector<Device> devices_;
  std::vector<int> device_roots_;
  uint64_t stripe_depth_bytes_ = 0;
  bool is_depth_auto_ = false;
  bool verifies_reads_ = false;
  StripePolicy policy_;

  mutable Mutex changed_mu_;
  mutable bool is_changed_ GUARDED_BY(changed_mu_) = false;
};

// The root of the volume that holds `path` (which need not exist): the nearest directory from
// `path` upwards with a .graphlane/volume.json. ENOENT: none.
Outcome<std::string> find_volume_root(const std::string& path);

}  // namespace graphlane
