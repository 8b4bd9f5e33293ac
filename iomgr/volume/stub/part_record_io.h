// Reads and writes part records and stubs' identities by descriptors.
//
// A part's record lies in its attribute `user.graphlane`. On a filesystem without such attributes
// (NFSv3, ramfs) it is at the head of the part's `.sum`, which has the part's owner and mode. The
// first 4096 bytes of that file belong to the record, the rest to the checksums.
//
// A record is rewritten as a whole. In an attribute that is atomic. A reader of a `.sum` may see
// half of a concurrent write, and reads it again.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"
#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/ownership.h"
#include "iomgr/volume/stub/part_record.h"

namespace graphlane {

inline constexpr char kPartRecordAttribute[] = "user.graphlane";
// The head of a `.sum`: the record, then zeros.
inline constexpr uint64_t kPartSumHeadSize = 4096;

// Identifies a part, which lies below the device's root `root_fd`.
struct PartOf {
  int root_fd = -1;
  Uuid volume;
  Uuid file_id;
};

// "sums/3f/3f0c….sum": in its own folder, so that every file below "parts" is a part.
struct PartSumName {
  explicit PartSumName(const Uuid& file_id);
  const char* c_str() const { return text; }
  const char* directory() const { return folder; }              // "sums/3f"
  const char* last() const { return text + sizeof "sums/3f"; }  // below the directory
  char text[sizeof "sums/3f/" + 32 + sizeof ".sum" - 1];
  char folder[sizeof "sums/3f"];
};

inline PartOf part_of(int root_fd, const Layout& layout) {
  return {.root_fd = root_fd, .volume = layout.volume, .file_id = layout.file_id};
}

// The inode behind the descriptor, and its owner. O_PATH is enough, except on filesystems without
// birth times. An errno of the query.
Result<StubSeen> identify_stub(int fd);

// `part_fd` is the part, open for reading or writing, or O_PATH. An errno: it cannot be read now. A
// part without a record is RecordVerdict::kNone.
Result<RecordVerdict> read_part_record(int part_fd, const PartOf& part, PartRecord* record);

// The part's owner and its record.
Result<PartSeen> look_at_part(int part_fd, const PartOf& part);

// Writes the record. Needs the right to write the part. 0 or an errno; after an error the record is
// unchanged. It is durable after sync_part_record() or fsync(2) of the part. (fdatasync(2) may skip
// attributes.)
int write_part_record(int part_fd, const PartOf& part, const PartRecord& record);

// As fsync(2) of the part, and of the `.sum` if the record lies there. 0 or an errno.
int sync_part_record(int part_fd, const PartOf& part);

// As fsync(2) of the `.sum` beside the part, if there is one. 0 or an errno.
int sync_part_sums(int part_fd, const PartOf& part);

// As fsync(2) of the part, and of the `.sum` beside it if that can be opened: then the owner and mode
// of both are durable. 0 or an errno.
int sync_part_rights(int part_fd, const PartOf& part);

// Opens the part's `.sum`, a regular file of the part's owner. `flags`: O_RDONLY, …. Empty: errno;
// ENOENT, EINVAL (another owner's), or as open_regular().
Fd open_part_sum(const PartOf& part, int part_fd, int flags);
// Opens it for reading and writing, and makes it if there is none.
Fd create_part_sum(const PartOf& part, int part_fd);

// Gives the part's `.sum`, if there is one, the owner and mode of the part. 0 or an errno.
int share_part_access(int part_fd, const PartOf& part);

// The record of a part that is bound to the layout's stub. A closed file is synced to its size. Of an
// open one no byte is synced, and R is 0 in this boot.
PartRecord part_record_of(const Layout& layout, uint32_t device_index, uint8_t flags);

// Identifies this boot of the machine. Within one boot the page cache survives, so R is valid. 0:
// it cannot be read now, e.g. without free descriptors. The first answer is kept, because a process
// lives within one boot.
uint32_t boot_tag_now();

}  // namespace graphlane
