#include "fuse/coherence/generations.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace graphlane {

Generations::Generations()
    : fd_(::memfd_create("graphlane-generations", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_ || ::ftruncate(fd_.get(), kGenerationsBytes) != 0) throw std::bad_alloc();
  void* memory =
      ::mmap(nullptr, kGenerationsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  counters_ = static_cast<Generation*>(memory);
  // This mapping stays writable, and no other writable one can be made. The size never changes, so
  // a client's load cannot fault.
  (void)::fcntl(fd_.get(), F_ADD_SEALS,
                F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

Generations::~Generations() { ::munmap(counters_, kGenerationsBytes); }

}  // namespace graphlane
