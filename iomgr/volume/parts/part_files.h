// PartFiles: the open parts of one striped file, in the order of the devices.
//
// Each part is opened through the page cache, and on demand a second time with O_DIRECT. On a
// filesystem without O_DIRECT both ways go through the page cache.
//
// Threads: everything but open() and close() is safe from any thread.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"
#include "iomgr/volume/stub/ownership.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub.h"
#include "iomgr/volume/sum/part_sums.h"

namespace graphlane {

// "parts/3f/3f0c…": a part's name below its device's root.
struct PartName {
  explicit PartName(const Uuid& file_id);
  const char* c_str() const { return text; }
  char text[48];
};

// "parts/3f": where a part lies below its device's root.
struct PartDirectory {
  explicit PartDirectory(const PartName& name);
  const char* c_str() const { return text; }
  char text[sizeof "parts/3f"];
};

// Gives an entry of a directory its owner and group, as far as permitted, and its mode. ELOOP: it
// is a link. 0 or an errno.
int give_access(int directory_fd, const char* name, const struct stat& owner, mode_t mode);

// Makes an empty part below its device's root, open for writing, owned by this user. Makes its
// directory if needed, which other users cannot list.
Result<Fd> create_part(int root_fd, const Uuid& file_id);

// The part as an O_PATH descriptor, without following links.
Fd find_part(int root_fd, const Uuid& file_id);

// Makes the names in a directory below a device's root durable, or a part and its name. Skips a
// part that this process may neither read nor write. 0 or an errno.
int sync_names(int root_fd, const char* path);

// Makes a directory of names, "parts/3f" or "sums/3f", if needed, with the owner of "parts". 0 or
// an errno.
int make_names_directory(int root_fd, const char* directory);

// The folder of the parts' checksums; volumes of an older release have none.
inline constexpr char kSums[] = "sums";
int sync_part(int root_fd, const Uuid& file_id);

// Marks a part whose stub lost its last name in this boot. Until the machine stops, nothing can
// bring that stub back. So a repair may remove the part after a kill. Best effort.
void mark_removed(const PartOf& part);

// Removes the part and its `.sum`, if they exist, and an empty directory. 0 or an errno.
int remove_part(int root_fd, const Uuid& file_id);

// The stub that the parts are opened for, by the descriptor that its layout was read from.
struct PartsOwner {
  StubSeen stub;
  uint32_t volume_format = 2;
  // It lies in lost+found, which only root and the volume's owner can write. It shows parts of a
  // missing stub. It is for reading only, and only by the parts' owner.
  bool is_lost_and_found = false;
};

// Why, and on which device, a file's parts could not be opened.
struct PartError {
  int code = 0;  // errno; EIO: a part shorter than the layout says, or not the stub's

  Ownership ownership = Ownership::kOwned;  // otherwise why the stub is refused
  uint32_t device_index = 0;
  uint64_t size_expected = 0;  // bytes; of a short part
  uint64_t size_found = 0;
};

// Opens a part to examine it: for reading or, if its mode forbids that, with O_PATH. EINVAL: it is
// not a regular file.
Fd open_part(int root_fd, const Uuid& file_id);

// Whether the parts are the stub's own, looked up by name. kNeverSynced: some are lost, and the
// others are consistent with that.
Result<void, PartError> verify_named_parts(std::span<const int> roots, const Layout& layout,
                                           const PartsOwner& owner);

class PartFiles {
 public:
  // Descriptors get numbers from `fd_floor` on, because some programs expect low ones to be free.
  // `opened_direct` is told the number of each O_DIRECT descriptor.
  explicit PartFiles(int fd_floor = 0, void (*opened_direct)(int fd) = nullptr)
      : fd_floor_(fd_floor), opened_direct_(opened_direct) {}
  PartFiles(const PartFiles&) = delete;
  PartFiles& operator=(const PartFiles&) = delete;
  ~PartFiles() { close(); }

  // `roots`: N directory descriptors. flags: O_RDONLY or O_RDWR. Checks that the parts are the
  // stub's own (volume/ownership.h), and the sizes of a closed file. A never-synced file opens as
  // an empty one with O_RDONLY, and fails with kNeverSynced with O_RDWR (never_synced.h). `owner`
  // is null for parts that the caller has just made itself.
  Result<void, PartError> open(std::span<const int> roots, const Layout& layout, int flags,
                               const PartsOwner* owner);
  // Takes over parts that were opened in this way elsewhere.
  void adopt(std::span<const int> fds, int flags);
  void close();

  // The parts' checksums, if this process verifies reads, or writes without a mount
  // (sum/part_sums.h).
  const PartSums& sums() const { return sums_; }
  // Takes over the checksums of adopted parts: each part's `.sum`, or the part itself without one.
  void adopt_sums(std::span<const int> fds, const Layout& layout);

  uint32_t count() const { return count_; }
  bool writable() const { return (flags_ & O_ACCMODE) == O_RDWR; }
  int buffered(uint32_t device_index) const { return buffered_[device_index]; }
  std::span<const int> all_buffered() const { return {buffered_, count_}; }

  // The O_DIRECT descriptor, or buffered() if the filesystem has no O_DIRECT, or if descriptors are
  // short now.
  int direct(uint32_t device_index) const;

  // As direct(), without opening it: -1 if it is not open yet.
  int direct_if_open(uint32_t device_index) const {
    return direct_[device_index].load(std::memory_order_acquire);
  }

 private:
  int raised(int fd) const;
  Result<void, PartError> open_one(int root_fd, const Layout& layout, uint32_t device_index,
                                   const PartsOwner* owner);
  Result<void, PartError> open_never_synced(std::span<const int> roots, const Layout& layout,
                                            const PartsOwner& owner);

  PartSums sums_;
  const int fd_floor_;
  void (*const opened_direct_)(int fd);
  uint32_t count_ = 0;
  int flags_ = 0;
  int buffered_[kDeviceCountMax];
  // -1: not opened yet. The first opener wins; a loser closes its own.
  mutable std::atomic<int> direct_[kDeviceCountMax];
};

}  // namespace graphlane
