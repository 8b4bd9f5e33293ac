// Devices: the directories of a volume's devices, open, with their identities
// checked. They close with it.
//
// Threads: under the SlowLock (volume_json.h).
#pragma once

#include <span>

#include "iomgr/base/fd.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/stub.h"
#include "shim/locate/volume_json.h"

namespace graphlane {

// What went wrong, for a complaint, and what the program's call fails with.
struct Failure {
  const char* subject = nullptr;  // null: nothing
  const char* reason = nullptr;
  int error = EIO;
  explicit operator bool() const { return subject != nullptr; }
};

// The program's own lack of descriptors, memory or rights is told as it is; all
// else is to it a device that does not work.
int error_for_program(int code);

// The volume's own directory, open as a place only.
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

// The device directories, opened, of the volume that the open stub `fd` lies in
// and says to be of. `volume` is filled.
Failure open_devices_of(int fd, const Layout& layout, VolumeDevices* volume, Devices* devices);

// Makes the parts of a new file: empty, owned by us, and marked `making`. 0 or an errno; after an
// error none is left.
int create_parts(const Devices& devices, const Layout& layout);

// Binds the parts to the stub that the layout names: their records first, then their owner and
// mode. 0 or an errno.
int bind_parts(const Devices& devices, const Layout& layout, int stub_fd);

// Whether the parts that the stub names are its own (iomgr/volume/stub/ownership.h), looked at by name.
// Some parts of a file that was never synced may not be there.
// `stub_fd` is open, or O_PATH. Null: they are its own; else the reason, in a few words.
const char* verify_parts(const Devices& devices, const VolumeDevices& volume, const Layout& layout,
                         int stub_fd);

// The message for parts that could not be opened, of device `error.device_index` or of the stub
// itself.
const char* describe_part_error(const PartError& error);

void remove_parts(const Devices& devices, const Layout& layout);

// Gives the parts their stub's owner and mode. Where an access list cannot go along,
// its mask must not open them to the group. 0 or the last errno.
int share_access(int stub_fd, const Devices& devices, const Uuid& file_id);

}  // namespace graphlane
