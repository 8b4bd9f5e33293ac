// The paths of a volume's own files, and its lock, for code that makes, moves and checks them
// (volume.h has the picture).
//
//   .graphlane/tmp/       imports under construction, on the volume's filesystem, so that a rename
//                         puts them in place; see staging.h
//
//   .graphlane/run/lock   shared by processes that make or remove parts, exclusive for check, which
//                         must exclude them
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "iomgr/base/files/tree.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class HomeLock;
struct VolumeRecord;

inline constexpr char kVolumeJson[] = ".graphlane/volume.json";
inline constexpr char kRunDirectory[] = ".graphlane/run";
inline constexpr char kDeviceJson[] = "device.json";  // below a device's root
// Below a device's root while `relocate` copies it there: the directory that it comes from.
inline constexpr char kRelocatedFrom[] = "relocated-from";
inline constexpr char kStagingDirectory[] = ".graphlane/tmp";

// An error at `path` below VOL/.graphlane. A permission error names the volume, because the user
// did not name the file: "VOL: WHAT: only OWNER and root may".
Error control_error(const std::string& root, const std::string& path, int code,
                    std::string_view what);

std::string device_root(const std::string& directory, const Uuid& uuid);

// Whether `path` is `directory` or below it; both without links and "..".
bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory);

// EINVAL with the reason: 0, not a multiple of 4096, or too large.
Outcome<void> check_stripe_depth(uint64_t depth_bytes);

// Sets the depth of new files (and of imports, which are no longer auto) for later opens of the
// volume. The caller holds the volume's lock, shared.
Outcome<void> set_stripe_depth(const Volume& volume, uint64_t depth_bytes);

// Changes volume.json in one rename, unless `change` returns false. The lock keeps the epoch from
// being raised meanwhile.
Outcome<void> change_volume_json(const Volume& volume, const HomeLock& lock,
                                 const std::function<bool(VolumeRecord*)>& change);

// A directory that can be a device of a volume at `root`, as the volume will remember it: absolute,
// as the user gave it.
Outcome<std::string> check_device_directory(const std::string& directory,
                                            const std::filesystem::path& root);
// Refuses directories one below the other: each would find the other one's parts among foreign
// files.
Outcome<void> check_devices_apart(const std::vector<std::string>& devices, const std::string& last);

// The place at `path` below the root, for messages and for the *at() calls. "" is the root itself.
// The directories on the way must stay within the volume (EXDEV), whatever links or ".." they
// contain, and out of its control directory. The last name is not followed, and need not exist.
Outcome<TreePlace> locate_in_volume(const Volume& volume, const std::string& path);

// Whether the open file is a stub. Unlike read_stub(), it also recognizes one that has grown. Reads
// at most two pages.
Result<StubVerdict> inspect_stub(int fd, Layout* layout);

// The layout of a stub that has just lost its last name, if it owns its parts, so that these are
// removed too. Empty: it has other names, or owns no parts. `stub_fd` -1: empty.
std::optional<Layout> own_layout_of_removed(const Volume& volume, int stub_fd);

// Removes a file or a tree, then the parts of stubs that lose their last name and own them. A
// damaged stub, or one of another volume, is an error before anything is removed. With `force` such
// a stub is removed without its parts.
Outcome<void> remove_volume_tree(const Volume& volume, const TreePlace& top, bool force);

// Holds the volume's lock until it is destroyed; the kernel releases it at a kill. EBUSY: a
// conflicting lock was held for two seconds.
class VolumeLock {
 public:
  enum Mode { kShared, kExclusive };
  static Outcome<VolumeLock> take(const Volume& volume, Mode mode);

 private:
  explicit VolumeLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace graphlane
