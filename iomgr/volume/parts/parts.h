// The parts of a striped file as they come and go. Everybody who makes or
// removes parts does it here, holding the volume's lock (volume_files.h).
#pragma once

#include <sys/stat.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/volume/parts/lane_io.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// The parts of a file, open for writing, in the order of the devices.
using NewParts = std::vector<Fd>;

// Makes the N parts of a new file, empty but of their final size, readable by
// us alone. `allocate` reserves their blocks, so that a full device is known
// now. All or none. Their records say `making`, and the stub that the layout
// names, if it does. EROFS: the volume is of format 1.
Outcome<NewParts> create_parts(const Volume& volume, const Layout& layout, std::string_view name,
                               bool allocate);

// Gives the parts the owner and mode of the stub, and the stub's identity and generation, with these flags
// (PartRecord), and what `change` adds to each record. Not durable yet.
Outcome<void> bind_parts(const Volume& volume, std::span<const int> parts, const Layout& layout,
                         int stub_fd, uint8_t flags, std::string_view name,
                         const std::function<void(PartRecord&)>& change = {});

// Rewrites the records of parts that are open for writing: `change` gets each as it is. Not durable yet.
// An errno.
Result<void> change_records(const Volume& volume, const Layout& layout, std::span<const int> parts,
                            const std::function<void(PartRecord&)>& change);

// The parts of the file and their records become durable, on all devices at the same time. An errno.
Result<void> sync_records(const Volume& volume, const Layout& layout, std::span<const int> parts);

// Reads or writes the range at once, in this thread, through the page cache.
// Errors name the part. A read past the end of a part is an error.
Outcome<void> transfer_striped(const Volume& volume, const StripedFile& file, IoOp op,
                               ByteRange range, void* buffer);

// Parts that are written, and are to be durable. What makes them so is a commit of each
// device's journal, which costs a disk some seeks: so many files have one together.
//
// Threads: one at a time.
class UnsyncedParts {
 public:
  explicit UnsyncedParts(const Volume& volume) : volume_(volume) {}

  // Holds the file's parts open. When too many are, all are synced.
  Outcome<void> add(const StripedFile& file);
  // All that were added, and their names, are durable, and their records say `making` no more. All devices write
  // at the same time. Errors name the part.
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

// Whether the parts that a stub names are its own (volume/ownership.h), looked at by name; else why
// not. Of a file that was never synced, some may not be there. For a caller that removes or changes parts
// that it does not open; StripedFile::open() checks for those that open. `stub_fd` is the stub, or O_PATH.
Outcome<void> verify_parts(const Volume& volume, int stub_fd, const Layout& layout, std::string_view name);

// EROFS and what to do, if the volume is of format 1.
Outcome<void> require_writable(const Volume& volume);

// Marks the parts of a file whose stub has lost its last name (part_files.h).
void mark_removed(const Volume& volume, const Uuid& file_id);
// Removes what is there of a file's parts, which no stub names any more; the error of the first that cannot. Marks
// all of them first, so that a repair removes what is left if we are killed.
Outcome<void> remove_parts(const Volume& volume, const Uuid& file_id);
// As remove_parts() for each; the last error.
Outcome<void> remove_all_parts(const Volume& volume, const std::vector<Uuid>& file_ids);

}  // namespace graphlane
