#include "shim/read/queues.h"

#include "iomgr/base/sys.h"
#include "iomgr/volume/device_kind.h"
#include "shim/base/process.h"
#include "shim/base/settings.h"
#include "shim/fd/fd_table.h"
#include "shim/locate/volume_json.h"

namespace graphlane::shim {

constinit InlineQueues queues;

constinit const InlineProcess this_process{
    .epoch = process_epoch,
    .fd_floor = internal_fd_floor,
    .protect = [](int fd) { set_entry(fd, FdEntry::internal()); },
};

namespace {

constexpr uint32_t kGateCount = 64;

// One stream per disk (CSMqGraph §2.3). An SSD needs no gate, because it has its own queue.
uint32_t width_of(bool is_disk, const char* root) {
  if (settings().depth != 0) return settings().depth;
  const uint32_t calibrated = calibrated_depth(root);
  return calibrated != 0 ? calibrated : is_disk ? 1 : 0;
}

struct Entry {
  dev_t filesystem = 0;
  DeviceGate gate;
};

Entry entries[kGateCount];
uint32_t entry_count = 0;

}  // namespace

DeviceGate* gate_of(int part_fd, const char* root) {
  struct stat st;
  if (sys::fstat(part_fd, &st) != 0) return nullptr;
  for (uint32_t i = 0; i < entry_count; ++i) {
    if (entries[i].filesystem == st.st_dev) return &entries[i].gate;
  }
  if (entry_count == kGateCount) return nullptr;
  Entry& entry = entries[entry_count++];
  entry.filesystem = st.st_dev;
  const bool is_disk = is_rotational(st.st_dev);
  entry.gate.set_width(width_of(is_disk, root));
  entry.gate.set_seeks(is_disk);
  return &entry.gate;
}

}  // namespace graphlane::shim
