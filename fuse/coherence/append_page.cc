#include "fuse/coherence/append_page.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace graphlane::fuse {

AppendPage::AppendPage()
    : fd_(::memfd_create("graphlane-append", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_ || ::ftruncate(fd_.get(), kAppendPageBytes) != 0) return;
  void* const memory =
      ::mmap(nullptr, kAppendPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) return;
  memory_ = new (memory) AppendProgress();
  (void)::fcntl(fd_.get(), F_ADD_SEALS,
                F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);  // so that no access faults
}

AppendPage::~AppendPage() {
  if (memory_ != nullptr) ::munmap(memory_, kAppendPageBytes);
}

}  // namespace graphlane::fuse
