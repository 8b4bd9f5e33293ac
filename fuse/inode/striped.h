// Striped files as the filesystem shows them: size, opening and making, owner and
// mode of the parts, and the end of the parts with the last link of their stub.
//
// A stub gives access only to parts that are its own (iomgr/volume/stub/ownership.h). Opening a file
// checks that. A caller that changes or removes parts by a stub that it has not opened asks
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
#include "iomgr/volume/names_held.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct Filesystem;

// Whether the parts that a stub (open, or O_PATH) names are its own; else why not.
Outcome<void> verify_ownership(const Volume& volume, int stub_fd, const Layout& layout, const struct stat& stub);

// Makes the parts that a file that was never synced lacks, before their owner or mode is changed. `stub_fd` as above.
// Any other file is left as it is, and one without a name, which has no parts by name and needs none. 0 or an errno.
int complete_never_synced(const Volume& volume, int stub_fd, const Layout& layout);

// Makes a stub's attributes those of the file it stands for.
void show_as_striped(Filesystem& fs, const Layout& layout, struct stat* st);

// The file as all share it who have it open at one time, readers and who changes it: so they see
// its size change. Its parts are open for writing too where we may, and the stub names these for as
// long as they are. ESTALE: it names others by now, or none; the kernel looks again. EIO, …; the
// reason has gone to the log.
Result<std::shared_ptr<StripedFile>> open_shared(Filesystem& fs, Inode& inode, int path_fd,
                                                 const Layout& layout, const struct stat& stub);

// The parts for reading only: descriptors that may be given away.
Result<std::shared_ptr<StripedFile>> open_parts_to_read(const Volume& volume, int stub_fd,
                                                        const Layout& layout, const struct stat& stub);

// The daemon of a mount that has just ended may still be closing its files.
inline constexpr std::chrono::milliseconds kTakeOverPatience{3000};

// Opens a file that is to be changed, or that a dead writer has left. EBUSY: somebody else changes
// it; without patience that is no news for the log.
Result<LiveFiles::Writer> open_live(Filesystem& fs, Inode& inode, const Layout& layout,
                                    const struct stat& stub,
                                    std::chrono::milliseconds patience = kTakeOverPatience);

// A new striped file, open, for the caller. Fails like open(2) with O_CREAT | O_EXCL
// and leaves nothing then.
Result<LiveFiles::Writer> create_striped(Filesystem& fs, fuse_req_t req, int directory_fd,
                                         const char* name, mode_t mode);

// As the caller's own truncation: now is the mtime, and set-id bits go.
Result<void> resize_striped(Filesystem& fs, fuse_req_t req, LiveFile& live, uint64_t size);

// Gives the parts the mode, or the owner, that the stub, which has these attributes, gets.
// Parts that cannot follow are an error, and those before get the stub's again: parts of two
// owners are nobody's.
Result<void> chmod_parts(const Volume& volume, const Layout& layout, const struct stat& stub,
                         mode_t mode);
Result<void> chown_parts(const Volume& volume, const Layout& layout, const struct stat& stub,
                         uid_t uid, gid_t gid);

// Whether moving this name moves stubs: it is one, or a directory.
bool moves_stubs(int directory_fd, const char* name);

// Before `name` replaces a striped file (else there is nothing to do), which is then gone at once:
// its bytes and the names of its parts become durable. An error: they cannot. What we may not read,
// and what is no file, is left as it is.
Result<void> sync_replacement(Filesystem& fs, int directory_fd, const char* name,
                              int replaced_directory_fd, const char* replaced_name);

// A name that is about to go. If the file's last link went, so do its parts:
//
//   LastLink victim(volume, directory_fd, name);
//   ... unlinkat() or renameat() succeeded ...
//   if (victim.reap()) live.drop(victim.file_id());
//
// Who replaces a file has the old or the new one after a power failure: sync_replacement()
// comes first, and with `replaced_in`, its directory, the new name is durable before the old
// one's parts go.
class LastLink {
 public:
  LastLink(const Volume& volume, int directory_fd, const char* name);
  bool reap(int replaced_in = -1);  // whether the parts went
  const Uuid& file_id() const { return layout_.file_id; }

 private:
  const Volume& volume_;
  Fd fd_;  // O_PATH; none if it is no striped file of this volume
  Layout layout_;
  std::optional<NamesHeld> held_;  // if it is one
  std::string unknown_;            // the name, if we cannot see that
};

}  // namespace graphlane
