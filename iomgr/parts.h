// The parts of a striped file as they come and go. Everybody who makes or
// removes parts does it here, holding the volume's lock (volume_files.h).
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/lanes.h"
#include "iomgr/volume.h"

namespace graphlane {

// Makes the N parts of a new file, empty but of their final size, readable by
// us alone. `allocate` reserves their blocks, so that a full device is known
// now. All or none.
Outcome<void> create_parts(const Volume& volume, const Layout& layout, std::string_view name,
                           bool allocate);

// Reads or writes the range at once, in this thread, through the page cache.
// Errors name the part. A read past the end of a part is an error.
Outcome<void> transfer_striped(const Volume& volume, const StripedFile& file, IoOp op,
                               ByteRange range, void* buffer);

// Gives the parts owner and mode of the file `like_fd`.
void give_access_to_parts(const StripedFile& file, int like_fd);

// Parts that are written, and are to be durable. What makes them so is a commit of each
// device's journal, which costs a disk some seeks: so many files have one together.
//
// Threads: one at a time.
class UnsyncedParts {
 public:
  explicit UnsyncedParts(const Volume& volume) : volume_(volume) {}

  // Holds the file's parts open. When too many are, all are synced.
  Outcome<void> add(const StripedFile& file);
  // All that were added, and their names, are durable. All devices write at the same time.
  // Errors name the part.
  Outcome<void> sync();

 private:
  struct File {
    Uuid id;
    std::string name;
    std::vector<Fd> parts;  // of each device
  };
  int sync_device(uint32_t device_index, const File** failed) const;

  const Volume& volume_;
  std::vector<File> files_;
};

// Whether the parts are for the stub's owner to read and remove, seen by root, who
// may do so to all parts: anyone can write 4096 bytes that name somebody else's. Parts
// of another owner are not his, unless the stub is root's.
bool owns_parts(const Volume& volume, const Layout& layout, const struct stat& stub);
// The same, whoever we are, for one who serves others.
bool may_give_access(const Volume& volume, const Layout& layout, const struct stat& stub);

// Removes what is there of a file's parts; the error of the first that cannot.
Outcome<void> remove_parts(const Volume& volume, const Uuid& file_id);

}  // namespace graphlane
