// Volume: a directory whose large files are striped over devices, which are
// directories too, each on a block device of its own.
//
//   VOL/.graphlane/volume.json                      format, uuid, devices, depth, policy
//   VOL/.graphlane/run/                             lock, sockets
//   VOL/.graphlane/tmp/                             imports under construction
//   VOL/NAME                                        plain file, or the stub of a striped one
//   DEVICE_i/graphlane-<uuid>/device.json           volume uuid, ordinal i, count N
//   DEVICE_i/graphlane-<uuid>/parts/<xx>/<file-id>  part i, xx = the id's first two digits
//
// Opening a volume checks every device's identity; a missing, swapped or
// foreign one is named in the error, and nothing is opened.
//
// Threads: a Volume does not change once it is open; share it freely.
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
// An eighth of the 24 MiB that engines read at once: one such read keeps up to eight devices
// busy, each with one run of its part (experiments/LOG.md has what was measured). CSMqGraph §4
// found 12 MiB best, with a thread for every device to keep it busy.
inline constexpr uint64_t kStripeDepthDefault = 3u << 20;
// Where no device has a head to be moved: a read waits for the device with most of it, and of finer
// units all have as much.
inline constexpr uint64_t kStripeDepthSsd = 512u << 10;
constexpr uint64_t stripe_depth_default(bool on_ssds) {
  return on_ssds ? kStripeDepthSsd : kStripeDepthDefault;
}
inline constexpr uint64_t kStripedSizeMinDefault = 1u << 20;

// Which files become striped.
struct StripePolicy {
  std::vector<std::string> globs;  // matched against the file's last name; none: every file
  uint64_t size_min_bytes = kStripedSizeMinDefault;

  // When it is imported.
  bool wants(std::string_view name, uint64_t size_bytes) const;
  // When it is made, and its size is to come: only what a glob names.
  bool wants_new(std::string_view name) const;
};

// One directory with its identity checked.
struct Device {
  std::string directory;  // as the user gave it, made absolute
  std::string root;       // directory/graphlane-<uuid>
  Fd root_fd;             // O_DIRECTORY | O_RDONLY on `root`
};

struct VolumeOptions {
  std::string root = {};                  // must not exist, or be an empty directory
  std::vector<std::string> devices = {};  // existing, writable, distinct directories
  std::optional<uint64_t> stripe_depth_bytes = {};  // none: the default of such devices
  bool is_depth_auto = false;
  bool verifies_reads = false;  // compares what is read with its checksums, unless a program says otherwise
  StripePolicy policy = {};
};

struct OpenOptions {
  // Leaves out a device that cannot be found: its root_fd is empty. For a salvage.
  bool allows_missing_devices = false;
  // Accepts a copy of the volume's directory, too: for `adopt` and for a salvage.
  bool allows_copies = false;
};

class Volume {
 public:
  // Makes root and devices; on an error nothing of it is left behind.
  static Outcome<std::shared_ptr<const Volume>> create(const VolumeOptions& options);

  // Also from the root of a mount of it. Where a mount covers the volume's own
  // root, takes the directory beneath; EBUSY: we may not (only root may).
  // Refuses (ESTALE) a copy of the volume's directory: one that lies in another inode than it says,
  // or one that the devices know to be old.
  static Outcome<std::shared_ptr<const Volume>> open(const std::string& root, OpenOptions how = {});

  const std::string& root() const { return root_; }  // absolute, no symbolic links
  int root_fd() const { return root_fd_.get(); }     // O_DIRECTORY | O_RDONLY, from before any mount
  const Uuid& uuid() const { return uuid_; }
  // 2, or 1: then it is only read, until `graphlane check --upgrade`.
  uint32_t format() const { return format_; }
  const std::vector<Device>& devices() const { return devices_; }
  std::span<const int> device_roots() const { return device_roots_; }  // their descriptors
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.size()); }
  // Whether all devices are known to be.
  bool is_on_ssds() const;
  // Devices that share a disk with an earlier one, if any: stripes gain nothing from them. Pairs of
  // ordinals, the earlier one first.
  std::vector<std::pair<uint32_t, uint32_t>> devices_on_one_disk() const;
  // Call it before the first change of a striped file in this process: raises the volume's epoch
  // (volume/home.h).
  Outcome<void> note_change() const;
  uint64_t stripe_depth_bytes() const { return stripe_depth_bytes_; }
  // Whether an import chooses each file's depth by its format; what is made in a mount
  // gets stripe_depth_bytes() all the same.
  bool is_depth_auto() const { return is_depth_auto_; }
  bool verifies_reads() const { return verifies_reads_; }
  const StripePolicy& policy() const { return policy_; }

  // "/mnt/d1/graphlane-<uuid>/parts/3f/3f0c…", for messages and for openat on
  // the device: part_name() is the piece below the device's root.
  std::string part_path(uint32_t device_index, const Uuid& file_id) const;

  // Whether the stub is one of this volume's; the reason if not.
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

// The root of the volume that holds `path` (which need not exist): the nearest
// directory above it, or itself, with a .graphlane/volume.json. ENOENT: none.
Outcome<std::string> find_volume_root(const std::string& path);

}  // namespace graphlane
