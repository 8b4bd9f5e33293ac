#include "fuse/coherence/generations.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <new>
#include <system_error>

namespace graphlane::fuse {

Generations::Generations()
    : fd_(::memfd_create("graphlane-generations", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_ || ::ftruncate(fd_.get(), kGenerationsBytes) != 0) {  // `ulimit -f` counts it, too
    throw std::system_error(errno, std::generic_category(), "memory for file generations");
  }
  void* memory =
      ::mmap(nullptr, kGenerationsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  counters_ = static_cast<Generation*>(memory);
  life_ = reinterpret_cast<pthread_mutex_t*>(static_cast<char*>(memory) + kLifeOffset);
  pthread_mutexattr_t robust;
  ::pthread_mutexattr_init(&robust);
  ::pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(life_, &robust);
  ::pthread_mutexattr_destroy(&robust);
  // This mapping stays writable, and no other writable one can be made. The size never changes, so
  // a client's load cannot fault.
  (void)::fcntl(fd_.get(), F_ADD_SEALS,
                F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

// A robust mutex: the kernel marks it when its owner dies, before it releases the owner's files and
// their locks. Clients only read its word.
static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0 &&
              sizeof(pthread_mutex_t) <= kLifeBytes);

void Generations::hold() { (void)::pthread_mutex_lock(life_); }
void Generations::release() { (void)::pthread_mutex_unlock(life_); }

Generations::~Generations() { ::munmap(counters_, kGenerationsBytes); }

}  // namespace graphlane::fuse
