// StubLock: the uses of a striped file by processes, as open-file-description locks. They lie on
// bytes far behind the end of its stub, where they do not meet programs' own locks.
//
//   byte      held shared by            held exclusively by
//
//   2^62      processes that change     a mount that changes the file (live_file.h)
//             it without a mount
//
//   2^62 + 1  processes with its parts  a process that makes the stub name other parts, for that
//             open                      instant (restripe.h)
//
//   2^62 + 2  programs with mapped      -
//             pages of it
//
//   2^62 + 3  -                         a process that makes parts for a never-synced file
//                                       (never_synced.h)
//
//   2^62 + 4  -                         a process that has 2^62 only to close the file
//
//   2^62 + 5  processes that wait for   -
//             such a one to give way
//
// kChange and kMapped exclude each other: each side takes its own lock, and releases it if the
// other side has one.
//
// kParts keeps open parts valid. A process reads its open parts for an unlimited time, so they must
// stay the file's parts meanwhile. So a stub's file-id does not change while any process has the
// file open, by any mount. A process takes this lock first, and then reads the stub.
//
// The kernel releases a process's locks at its death.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>

#include "iomgr/base/files/file_times.h"
#include "iomgr/base/result.h"

namespace graphlane {

enum class StubLock : off_t {
  kChange = off_t{1} << 62,
  kParts = kChange + 1,
  kMapped = kChange + 2,
  kRemake = kChange + 3,
  kClosing = kChange + 4,
  kWanted = kChange + 5,
};

// Takes, changes or (F_UNLCK) releases the lock of this open file description, at once. EBUSY:
// another holder's lock conflicts. F_RDLCK needs a descriptor open for reading, F_WRLCK one for
// writing.
Result<void> lock_stub(int stub_fd, StubLock lock, short type);

// Takes kChange with this type, or kMapped shared. EBUSY also if the other of the two is held. Waits
// for a process that only closes the file, at most some seconds: that gives way when it is asked to.
Result<void> lock_to_change(int stub_fd, short type);
Result<void> lock_to_map(int stub_fd);

// Whether another holder's lock conflicts with one of this type. `stub_fd` is not O_PATH.
bool is_stub_locked(int stub_fd, StubLock lock, short type);

inline int64_t ctime_ns_of(const struct stat& st) { return nanoseconds(st.st_ctim); }

// Whether a file with this ctime may have changed again without a new ctime: kernels update a ctime
// only some hundred times a second.
bool is_fresh(int64_t ctime_ns);

// Whether the bytes of a file with this ctime may change, or have changed, without a new ctime. A
// writer holds its lock, and its writes show in the ctime once it releases that.
bool may_change_unseen(int stub_fd, int64_t ctime_ns);

// Takes StubLock::kParts shared, after a process that makes the stub name other parts just now. The
// stub then keeps its parts until the descriptor, open for reading, is closed. (A filesystem
// without such locks does not permit a restripe either.)
void hold_parts(int stub_fd);

}  // namespace graphlane
