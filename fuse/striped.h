// Striped files as the filesystem shows them: size, opening, owner and mode of
// the parts, and the end of the parts with the last link of their stub.
//
// Whose bytes does a stub give access to? As root we could read anyone's parts,
// so a stub is believed only where its owner also owns the parts, or root owns
// the stub: nobody else can make such a file that names parts not his own.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string_view>

#include "fuse/inode_table.h"
#include "iomgr/lanes.h"
#include "iomgr/volume.h"

namespace graphlane {

// The layout with its size as it is: of a file in state `open`, what the parts say.
Layout current_layout(const Volume& volume, const Layout& layout);

// Makes a stub's attributes those of the file it stands for.
void show_as_striped(const Layout& layout, struct stat* st);

// Opens the parts for reading. EIO, EPERM, …; the reason has gone to the log.
Result<std::shared_ptr<const StripedFile>> open_striped(const Volume& volume, const Layout& layout,
                                                        const struct stat& stub);

// Gives the parts the mode, or the owner, that the stub gets. Parts that cannot
// follow are an error; those before have moved.
Result<void> chmod_parts(const Volume& volume, const Layout& layout, mode_t mode);
Result<void> chown_parts(const Volume& volume, const Layout& layout, uid_t uid, gid_t gid);

// Whether moving this name moves stubs: it is one, or a directory.
bool moves_stubs(int directory_fd, const char* name);

// Holds the volume's lock shared; waits while `check` has it. A stub that moved
// from where check has not been to where it has would seem to be gone, and a
// repair would take its parts.
class NamesHeld {
 public:
  explicit NamesHeld(const Volume& volume);

 private:
  Fd file_;  // none: who may not even open the lock file, moves no stubs
};

// A name that is about to go. If the file's last link went, so do its parts:
//
//   LastLink victim(volume, directory_fd, name);
//   ... unlinkat() or renameat() succeeded ...
//   victim.reap();
class LastLink {
 public:
  LastLink(const Volume& volume, int directory_fd, const char* name);
  void reap();

 private:
  const Volume& volume_;
  Fd fd_;  // O_PATH; none if it is no striped file of this volume
  Layout layout_;
  std::optional<NamesHeld> held_;  // if it is one
};

}  // namespace graphlane
