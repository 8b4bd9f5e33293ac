// StubLock: who is at a striped file, told by open-file-description locks on three
// bytes far behind the end of its stub, where programs' own locks do not meet them.
//
//   byte      held shared by          held exclusively by
//   2^62      processes that change   a mount that changes the file (live_file.h)
//             it without a mount
//   2^62 + 1  whoever has its parts   whoever makes the stub name other parts,
//             open                    for that instant (restripe.h)
//   2^62 + 2  programs whose memory   -
//             shows its pages
//   2^62 + 3  -                       a process that makes parts for a file that
//                                     was never synced (never_synced.h)
//
// Who changes the file and who shows its pages exclude each other: each takes his own lock, and
// gives it back if there is one of the others'.
//
// The second closes a hole. Who has parts open reads them for as long as he likes,
// and that they are the file is true while nobody else can change other ones in
// their stead. So a stub's file-id stays what it is while anyone, in any process,
// by any mount, has the file open; who opens it takes the lock first, and reads
// the stub then.
//
// The kernel releases what a process holds when it dies.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>

#include "iomgr/base/result.h"

namespace graphlane {

enum class StubLock : off_t {
  kChange = off_t{1} << 62,
  kParts = kChange + 1,
  kMapped = kChange + 2,
  kRemake = kChange + 3,
};

// Takes, changes or (F_UNLCK) gives back the lock of this open file description,
// at once. EBUSY: somebody else's excludes it. F_RDLCK wants a descriptor open
// for reading, F_WRLCK one for writing.
Result<void> lock_stub(int stub_fd, StubLock lock, short type);

// kChange of this type, kMapped shared: EBUSY, too, while somebody has the other.
Result<void> lock_to_change(int stub_fd, short type);
Result<void> lock_to_map(int stub_fd);

// Whether somebody else's lock excludes one of this type. `stub_fd` is not O_PATH.
bool is_stub_locked(int stub_fd, StubLock lock, short type);

inline int64_t ctime_ns_of(const struct stat& st) {
  return st.st_ctim.tv_sec * 1'000'000'000 + st.st_ctim.tv_nsec;
}

// Whether what has this ctime could have been changed again unseen: kernels step a ctime some
// hundred times a second only.
bool is_fresh(int64_t ctime_ns);

// Whether the bytes of a file with this ctime may change, or have changed, without another one
// that tells. Who writes holds his lock, and what he has written shows in the ctime when he gives
// it back.
bool may_change_unseen(int stub_fd, int64_t ctime_ns);

// Takes StubLock::kParts shared, waiting for whoever is just making the stub name
// other parts. What the stub names from here on, it names until the descriptor,
// which is open for reading, is closed. (Where the filesystem has no such locks,
// nobody can re-stripe either.)
void hold_parts(int stub_fd);

}  // namespace graphlane
