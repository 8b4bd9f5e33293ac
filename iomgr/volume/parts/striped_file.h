// StripedFile: a striped file that is open, with its parts.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/promises.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// The number of failed syncs, and the errno of the last one.
struct SyncErrors {
  uint32_t count = 0;
  int32_t last = 0;
};

// A striped file of an open volume, with its parts open for reading, or also for writing. Shared;
// constant but for its size and its errors. To share it for longer than a moment, hold() the stub.
class StripedFile {
 public:
  // `stub_fd` is the stub that the layout was read from, or O_PATH. `name` is its name in messages.
  // Errors name the device and the part. EIO: the parts are not the stub's own
  // (volume/ownership.h); EROFS: a volume of format 1 is read only.
  static Outcome<std::shared_ptr<StripedFile>> open(const Volume& volume, int stub_fd,
                                                    const Layout& layout, std::string_view name,
                                                    int flags = O_RDONLY);
  // For parts that the caller has just made, and that no stub names yet; for reading and writing.
  static Outcome<std::shared_ptr<StripedFile>> open_new(const Volume& volume, const Layout& layout,
                                                        std::string_view name);

  // The layout when the file was opened.
  const Layout& layout() const { return layout_; }
  const StripeMap& map() const { return map_; }
  // Acquire: a thread that sees a size also sees the bytes before it.
  uint64_t size() const { return size_.load(std::memory_order_acquire); }  // bytes
  void set_size(uint64_t size) { size_.store(size, std::memory_order_release); }
  const PartFiles& parts() const { return parts_; }
  const std::string& name() const { return name_; }

  // Keeps the descriptor, and so its locks (stub_lock.h), while the file is open. Call it before
  // the file is shared.
  void hold(Fd stub) { stub_ = std::move(stub); }
  int held_stub() const { return stub_.get(); }

  // The size that the open parts imply, if the stub says `open` and `layout`.
  OpenSize look_at_open(const Layout& layout) const;
  // The open parts, for access to their records (volume/promises.h).
  OpenPartsOf parts_of() const {
    return {.parts = parts_.all_buffered(),
            .roots = roots(),
            .volume = layout_.volume,
            .file_id = layout_.file_id,
            .geometry = layout_.geometry};
  }

  // As fsync(2), once it holds the stub: syncs the parts, all devices in parallel, then the stub.
  // Unless `data_only`, the parts' owner and mode are durable, too.
  Result<void> sync(bool data_only);
  // Call it after this process has changed the owner or mode of any file's parts.
  static void note_changed_rights() { rights_changes_.fetch_add(1); }
  // Counts failed syncs. The kernel reports each error of a device only once for all that share our
  // descriptors; each of them compares this count to notice it.
  SyncErrors sync_errors() const { return sync_errors_.load(std::memory_order_acquire); }
  void count_sync_error(int error);

  // As lseek(2) with SEEK_DATA or SEEK_HOLE. ENXIO: nothing follows.
  Result<uint64_t> seek(uint64_t offset, int whence) const;

 private:
  StripedFile() = default;
  std::span<const int> roots() const { return {roots_.data(), parts_.count()}; }
  std::array<int, kDeviceCountMax> roots_;  // of the volume's devices
  static Outcome<std::shared_ptr<StripedFile>> open_for(const Volume& volume, const Layout& layout,
                                                        std::string_view name, int flags,
                                                        const PartsOwner* owner);
  Layout layout_;
  StripeMap map_;
  PartFiles parts_;
  std::string name_;
  Fd stub_;
  std::atomic<uint64_t> size_{0};
  std::atomic<SyncErrors> sync_errors_{};
  // A sync of all attributes costs a commit of each device's journal. It is left out while no rights
  // have changed since the last one.
  static inline std::atomic<uint64_t> rights_changes_{0};
  std::atomic<uint64_t> rights_synced_{UINT64_MAX};
  int sync_part_of(uint32_t device_index, bool with_rights) const;
  static_assert(std::atomic<SyncErrors>::is_always_lock_free);
};

// A PartError as a message for the user, about the file `name`.
Error describe_part_error(const Volume& volume, const Layout& layout, std::string_view name,
                          const PartError& error);

// The state of a file by its parts, looked up by name; a missing part counts as empty.
struct PartsStat {
  OpenSize open;             // for a file in state `open`
  uint64_t block_count = 0;  // of 512 bytes
};
PartsStat stat_parts(const Volume& volume, const Layout& layout);

// The layout with the present size. For a file in state `open` that is the size of its parts,
// within its bound; for a damaged one, the promised size.
Layout current_layout(const Volume& volume, const Layout& layout);
// "…/column: damaged: …", for a caller that has found the damage.
Error damaged_error(const Volume& volume, const Layout& layout, std::string_view name,
                    const OpenSize& open);

}  // namespace graphlane
