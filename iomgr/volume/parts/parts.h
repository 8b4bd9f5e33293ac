// Makes and removes the parts of striped files. All such code is here, and requires the volume's
// lock (volume_files.h).
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

// Makes the N parts of a new file: empty, of their final size, readable by this user only.
// `allocate` reserves their blocks, so that a full device is reported now. All parts or none. Their
// records say `making`, and name the layout's stub, if it has one. EROFS: the volume is of format
// 1.
Outcome<NewParts> create_parts(const Volume& volume, const Layout& layout, std::string_view name,
                               bool allocate);

// Gives the parts the stub's owner and mode, and their records the stub's identity and generation,
// these flags (PartRecord), and the changes by `change`. Not durable yet.
Outcome<void> bind_parts(const Volume& volume, std::span<const int> parts, const Layout& layout,
                         int stub_fd, uint8_t flags, std::string_view name,
                         const std::function<void(PartRecord&)>& change = {});

// Rewrites the records of parts that are open for writing; `change` gets each old record. Not
// durable yet. An errno.
Result<void> change_records(const Volume& volume, const Layout& layout, std::span<const int> parts,
                            const std::function<void(PartRecord&)>& change);

// Makes the parts of the file and their records durable, on all devices in parallel. An errno.
Result<void> sync_records(const Volume& volume, const Layout& layout, std::span<const int> parts);

// Reads or writes the range synchronously in this thread, through the page cache. Errors name the
// part. A read past the end of a part is an error.
Outcome<void> transfer_striped(const Volume& volume, const StripedFile& file, IoOp op,
                               ByteRange range, void* buffer);

// UnsyncedParts: written parts that must become durable. That takes a commit of each device's
// journal, which costs a disk some seeks. So many files share one.
//
// Threads: one at a time.
class UnsyncedParts {
 public:
  explicit UnsyncedParts(const Volume& volume) : volume_(volume) {}

  // Holds the file's parts open. Syncs all when too many are open.
  Outcome<void> add(const StripedFile& file);
  // Makes all added parts and their names durable, and clears `making` in their records. All
  // devices write in parallel. Errors name the part.
  Outcome<void> sync();

 private:
  struct File {
    Uuid id;
    std::string name;
    std::vector<Fd> parts;  // of each device
  };
  bool sync_device_at_once(uint32_t device_index) const;
  int sync_device(uint32_t device_index, const File** failed) const;

  const Volume& volume_;
  std::vector<File> files_;
};

// Whether the parts that a stub names are its own (volume/ownership.h), looked up by name;
// otherwise the reason. A never-synced file may lack parts. For a caller that removes or changes
// parts without opening them; StripedFile::open() checks by itself. `stub_fd` is the stub, or
// O_PATH.
Outcome<void> verify_parts(const Volume& volume, int stub_fd, const Layout& layout,
                           std::string_view name);

// EROFS and the remedy, if the volume is of format 1.
Outcome<void> require_writable(const Volume& volume);

// Marks the parts of a removed file (part_files.h): its stub lost its last name.
void mark_removed(const Volume& volume, const Uuid& file_id);
// Removes the existing parts of a file that no stub names; returns the first error. Marks all of
// them first, so that a repair removes the rest after a kill.
Outcome<void> remove_parts(const Volume& volume, const Uuid& file_id);
// As remove_parts() for each; the last error.
Outcome<void> remove_all_parts(const Volume& volume, const std::vector<Uuid>& file_ids);

}  // namespace graphlane
