// Changing a striped file without a mount: what LiveFile (iomgr/volume/parts/live_file.h) is to
// a mount, for many processes that know nothing of each other.
//
//   within the size   the parts are written, the stub stays as it is
//   the size          its changes go one after the other, whoever makes them: a
//                     lock on the first part, by an open file description of each
//                     change's own, so that threads, children by fork and strangers
//                     keep each other out alike. The stub says `open` first, as the
//                     crash rule has it (iomgr/volume/FORMAT.md)
//
// A file stays `open` when its writers have gone: its size is what its parts say.
// The next mount, or graphlane check --repair, closes it: that needs the parts on
// their devices, and a program's close() does not wait for those.
//
// That no write within the size runs beside a truncation the program sees to.
//
// Threads: everything is safe from any. The file's descriptor may be written by
// (may_write()), and the OpenFile is not damaged. Keeps errno.
#pragma once

#include "shim/fd/open_file.h"
#include "shim/fd/request.h"

namespace graphlane {

// As pwritev2(2). `append`: at the end, and *offset is set. Bytes or -errno;
// ESTALE: the stub names another file by now.
ssize_t write_striped(const OpenFileRef& file, const Memory& memory, bool append,
                      uint64_t* offset);

// As ftruncate(2) and fallocate(2). 0 or an errno.
int resize_striped(const OpenFileRef& file, uint64_t size_bytes);
int allocate_striped(const OpenFileRef& file, int mode, ByteRange range);

// As fsync(2), for readers too: all devices write at the same time, then the stub, of which the program
// has `fd`. 0 or an errno.
int sync_striped(const OpenFileRef& file, int fd, bool data_only);

// Call it at the last close: the present bytes are there for as long as the machine runs
// (iomgr/volume/parts/promises.h).
void note_closed(const OpenFile& file);

// As syncfs(2), for the filesystems that the parts lie in. 0 or an errno.
int sync_filesystems(const OpenFileRef& file);

}  // namespace graphlane
