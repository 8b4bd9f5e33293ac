// Striped files as the filesystem shows them: size, opening and creation, owner and mode. The parts
// go with the last link of their stub.
//
// A stub gives access only to its own parts (iomgr/volume/stub/ownership.h). Opening a file
// verifies that. A caller that changes or removes parts by a stub that it has not opened must call
// verify_ownership() first.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fuse/coherence/live_files.h"
#include "fuse/inode/inode_table.h"
#include "fuse/ops/fuse_api.h"
#include "iomgr/volume/name_lock.h"
#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

struct Filesystem;

// Whether a stub (open, or O_PATH) names its own parts; else the reason.
Outcome<void> verify_ownership(const Volume& volume, int stub_fd, const Layout& layout,
                               const struct stat& stub);

// Makes missing parts of a file that was never synced, before their owner or mode is changed.
// `stub_fd` as above. Leaves other files as they are, and files without a name, because their parts
// have none. 0 or an errno.
int complete_never_synced(const Volume& volume, int stub_fd, const Layout& layout);

// Replaces a stub's attributes by those of its striped file.
void show_as_striped(Filesystem& fs, const Layout& layout, struct stat* st);

enum class AccessTime { kStays, kMoves };  // kMoves: as the host's mount says

// The file, shared by all that have it open, readers and writers, so that all see its size change.
// Its parts are open for writing too if permitted, and while they are open the stub keeps naming
// them. ESTALE: the stub names other parts by now, or none, and the kernel looks up again. EIO and
// others: the reason is in the log.
Result<std::shared_ptr<StripedFile>> open_shared(Filesystem& fs, Inode& inode, int path_fd,
                                                 const Layout& layout, const struct stat& stub,
                                                 AccessTime access_time);

// The parts for reading only, so that their descriptors may be given to other processes.
Result<std::shared_ptr<StripedFile>> open_parts_to_read(const Volume& volume, int stub_fd,
                                                        const Layout& layout,
                                                        const struct stat& stub);

// The daemon of a mount that has just ended may still be closing its files.
inline constexpr std::chrono::milliseconds kTakeOverPatience{3000};

// Opens a file for changes, or one that a dead writer has left. EBUSY: another process changes it;
// without patience this is not logged.
Result<LiveFiles::Writer> open_live(Filesystem& fs, Inode& inode, const Layout& layout,
                                    const struct stat& stub,
                                    std::chrono::milliseconds patience = kTakeOverPatience);

// A new striped file, open for the caller. Errors are those of open(2) with O_CREAT | O_EXCL, and
// leave nothing behind.
Result<LiveFiles::Writer> create_striped(Filesystem& fs, fuse_req_t req, int directory_fd,
                                         const char* name, mode_t mode);

// As a truncation by the caller: sets the mtime and drops set-id bits.
Result<void> resize_striped(Filesystem& fs, fuse_req_t req, LiveFile& live, uint64_t size);

// Gives the parts the stub's new mode or owner; `stub` has the stub's present attributes. If a part
// fails, those before it get the stub's present ones back, because parts with different owners
// would be usable by no user.
Result<void> chmod_parts(const Volume& volume, const Layout& layout, const struct stat& stub,
                         mode_t mode);
Result<void> chown_parts(const Volume& volume, const Layout& layout, const struct stat& stub,
                         uid_t uid, gid_t gid);

// Whether moving this name moves stubs: it is a stub or a directory.
bool moves_stubs(int directory_fd, const char* name);

// Call it before `name` replaces a striped file and its parts are removed at once. Makes the new
// file's bytes and the names of its parts durable. An error: that failed. Does nothing if no
// striped file is replaced, and for files that cannot be read or are not regular.
Result<void> sync_replacement(Filesystem& fs, int directory_fd, const char* name,
                              int replaced_directory_fd, const char* replaced_name);

// A name that is about to be removed. If it was the file's last link, reap() removes the parts too:
//
//   LastLink victim(volume, directory_fd, name);
//   if (victim.error() != 0) return victim.error();
//   ... unlinkat() or renameat() succeeded ...
//   if (victim.reap()) live.drop(victim.file_id());
//
// After a power failure during a replacement either the old or the new file must exist. So
// sync_replacement() comes first. With `replaced_in`, the directory, reap() makes the new name
// durable before it removes the old parts.
class LastLink {
 public:
  LastLink(const Volume& volume, int directory_fd, const char* name);
  // Not 0: the name must stay, because the parts could not go with it: a device is read-only.
  int error() const { return error_; }
  bool reap(int replaced_in = -1);  // whether it removed the parts
  const Uuid& file_id() const { return layout_.file_id; }

 private:
  const Volume& volume_;
  Fd fd_;  // O_PATH; none if it is not a striped file of this volume
  Layout layout_;
  std::optional<NameLock> held_;  // if it is a striped file
  int error_ = 0;
  std::string unknown_;  // the name, if its kind could not be read
};

}  // namespace graphlane::fuse
