// PartFiles: the open parts of one striped file, in the order of the devices.
//
// Each part is opened through the page cache, and a second time past it
// (O_DIRECT) when that is first asked for; a filesystem without O_DIRECT
// serves both ways through the page cache.
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

// Gives an entry below a directory its owner and group, as far as we may, and its mode; what is a
// link leads nowhere: ELOOP. 0 or an errno.
int give_access(int directory_fd, const char* name, const struct stat& owner, mode_t mode);

// Makes a part below its device's root, open for writing, and its directory if need be. The part is
// empty and owned by us. Other users cannot list the directories.
Result<Fd> create_part(int root_fd, const Uuid& file_id);

// The part as a place only (O_PATH), to which no link has led.
Fd find_part(int root_fd, const Uuid& file_id);

// The names in a directory below a device's root, or a part and its name, become durable; a part that
// we may neither read nor write is left as it is. 0 or an errno.
int sync_names(int root_fd, const char* path);

// Makes a directory of names, "parts/3f" or "sums/3f", if it is not there, with the owner of "parts". 0 or an errno.
int make_names_directory(int root_fd, const char* directory);

// The folder of the parts' checksums; volumes that were made before there were any have none.
inline constexpr char kSums[] = "sums";
int sync_part(int root_fd, const Uuid& file_id);

// Marks a part whose stub has lost its last name in this boot. Until the machine stops, nothing can bring that stub
// back. So a repair removes the part if we are killed before we do. As far as possible.
void mark_removed(const PartOf& part);

// Removes it and its `.sum` if they are there, and a directory that is empty then. 0 or an errno.
int remove_part(int root_fd, const Uuid& file_id);

// The stub for which the parts are opened, seen by the descriptor that its layout was read from.
struct PartsOwner {
  StubSeen stub;
  uint32_t volume_format = 2;
  // It lies in lost+found, which only root and the volume's owner can fill. It shows parts of a
  // stub that is elsewhere. It is for reading only, and only by the parts' owner.
  bool is_lost_and_found = false;
};

// Why a file's parts could not be opened, and on which device.
struct PartError {
  int code = 0;               // errno; EIO: a part shorter than the layout says, or not the stub's
  Ownership ownership = Ownership::kOwned;  // else: why the stub is not believed
  uint32_t device_index = 0;
  uint64_t size_expected = 0;  // bytes; of a short part
  uint64_t size_found = 0;
};

// Opens a part to look at it: for reading or, where its mode forbids that, as a place only. EINVAL
// if it is not a regular file.
Fd open_part(int root_fd, const Uuid& file_id);

// Whether the parts are the stub's own, looked at by name. `owner` as above. kNeverSynced: some are lost, and the
// others do not speak against it.
Result<void, PartError> verify_named_parts(std::span<const int> roots, const Layout& layout,
                                           const PartsOwner& owner);

class PartFiles {
 public:
  // Descriptors get numbers from `fd_floor` on, out of the way of programs
  // that count on low ones.
  // `opened_direct` is told the number of each O_DIRECT descriptor.
  explicit PartFiles(int fd_floor = 0, void (*opened_direct)(int fd) = nullptr)
      : fd_floor_(fd_floor), opened_direct_(opened_direct) {}
  PartFiles(const PartFiles&) = delete;
  PartFiles& operator=(const PartFiles&) = delete;
  ~PartFiles() { close(); }

  // `roots` are N directory descriptors (AT_FDCWD-relative names are not
  // needed). flags: O_RDONLY or O_RDWR. Checks that the parts are the stub's own (volume/ownership.h), and
  // the sizes of a closed file. A file that was never synced is empty: O_RDONLY opens it so, O_RDWR is
  // kNeverSynced (never_synced.h). `owner` is null for parts that the caller has just made itself.
  Result<void, PartError> open(std::span<const int> roots, const Layout& layout, int flags,
                               const PartsOwner* owner);
  // Takes over parts that somebody else has opened so.
  void adopt(std::span<const int> fds, int flags);
  void close();

  // The parts' checksums, where this process verifies reads, or writes without a mount (sum/part_sums.h).
  const PartSums& sums() const { return sums_; }
  // Takes over those of parts that were adopted: of each its `.sum`, or the part once more if it has none.
  void adopt_sums(std::span<const int> fds, const Layout& layout);

  uint32_t count() const { return count_; }
  bool writable() const { return (flags_ & O_ACCMODE) == O_RDWR; }
  int buffered(uint32_t device_index) const { return buffered_[device_index]; }
  std::span<const int> all_buffered() const { return {buffered_, count_}; }

  // The O_DIRECT descriptor, or buffered() where the filesystem has none, or where descriptors are
  // short now.
  int direct(uint32_t device_index) const;

  // The same without opening it: -1 when no one has asked for it yet.
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
