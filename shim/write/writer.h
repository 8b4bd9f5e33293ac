// Changes a striped file without a mount: the counterpart of LiveFile
// (iomgr/volume/parts/live_file.h), for many processes that do not know each other.
//
//   within the size   the parts are written, the stub stays unchanged
//
//   the size          changes are serialized by a lock on the first part. Each change has its own open
//                     file description, so that threads, forked children and other programs exclude
//                     each other alike. The stub says `open` first (crash rule,
//                     iomgr/volume/FORMAT.md)
//
// A file stays `open` after its last writer: its parts tell the size. It needs durable parts to be
// closed, and a program's close() does not wait for the devices. The process beside `graphlane run`
// does it when the command has ended, or `graphlane serve` (told_changes.h); else the next mount, or
// check --repair.
//
// The program itself must exclude a write within the size during a truncation.
//
// Threads: everything is safe from any. The file's descriptor must be writable (may_write()), and
// the OpenFile not damaged. Keeps errno.
#pragma once

#include "shim/fd/open_file.h"
#include "shim/fd/request.h"

namespace graphlane::shim {

// As pwritev2(2). `append`: at the end; sets *offset. Bytes or -errno; ESTALE: the stub names
// another file by now.
ssize_t write_striped(const OpenFileRef& file, const Memory& memory, bool append, uint64_t* offset);

// As ftruncate(2) and fallocate(2). 0 or an errno.
int resize_striped(const OpenFileRef& file, uint64_t size_bytes);
int allocate_striped(const OpenFileRef& file, int mode, ByteRange range);

// As fsync(2), also for readers: all devices write in parallel, then the stub, of which the program
// has `fd`. 0 or an errno.
int sync_striped(const OpenFileRef& file, int fd, bool data_only);

// Call it at the last close: promises the present bytes until the machine stops
// (iomgr/volume/parts/promises.h).
void note_closed(const OpenFile& file);

// As syncfs(2), for the filesystems that the parts lie in. 0 or an errno.
int sync_filesystems(const OpenFileRef& file);

}  // namespace graphlane::shim
