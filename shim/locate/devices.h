// Devices: the open directories of a volume's devices, with their identities checked. The
// destructor closes them.
//
// Threads: under the SlowLock (volume_json.h).
#pragma once

#include <span>

#include "iomgr/base/fd.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/stub.h"
#include "shim/locate/volume_json.h"

namespace graphlane::shim {

// A failure, for a message, and the errno of the program's call.
struct Failure {
  const char* subject = nullptr;  // null: no failure
  const char* reason = nullptr;
  int error = EIO;
  explicit operator bool() const { return subject != nullptr; }
};

// The program's own lack of descriptors, memory or rights keeps its errno. Any other failure is EIO
// for the program.
int error_for_program(int code);

// The volume's own directory, as an O_PATH descriptor.
Fd open_volume(const VolumeDevices& volume);

class Devices {
 public:
  Failure open(const VolumeDevices& volume);
  std::span<const int> roots() const { return {fds_, count_}; }

 private:
  uint32_t count_ = 0;
  Fd roots_[kDeviceCountMax];
  int fds_[kDeviceCountMax];
};

// Opens the device directories of the open stub's volume: the one that it lies in, which must also
// be the one that it names. Fills `volume`.
Failure open_devices_of(int fd, const Layout& layout, VolumeDevices* volume, Devices* devices);

// Makes the parts of a new file: empty, owned by this user, and marked `making`. 0 or an errno;
// after an error no part is left.
int create_parts(const Devices& devices, const Layout& layout);

// Binds the parts to the layout's stub: first the records, then owner and mode. 0 or an errno.
int bind_parts(const Devices& devices, const Layout& layout, int stub_fd);

// Whether the stub's parts are its own (iomgr/volume/stub/ownership.h), looked up by name. A
// never-synced file may lack parts. `stub_fd` is open, or O_PATH. Null: they are its own; otherwise
// the reason, in a few words.
const char* verify_parts(const Devices& devices, const VolumeDevices& volume, const Layout& layout,
                         int stub_fd);

// The message for parts that could not be opened: of device `error.device_index`, or of the stub
// itself. `part`: its name below the device's `root_fd`.
const char* describe_part_error(const PartError& error, int root_fd, const char* part);

void remove_parts(const Devices& devices, const Layout& layout);

// Gives the parts their stub's owner and mode. Without the stub's ACL, its mask must not open them
// to the group. 0 or the last errno.
int share_access(int stub_fd, const Devices& devices, const Uuid& file_id);

}  // namespace graphlane::shim
