#include "adapters/share/memory/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "iomgr/base/files/file_io.h"

namespace graphlane::share {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Outcome<Mapping> Mapping::map(int memory, uint64_t size_bytes, int protection, int flags) {
  Mapping mapping;
  if (size_bytes == 0) return mapping;
  void* data = ::mmap(nullptr, size_bytes, protection, flags, memory, 0);
  if (data == MAP_FAILED) return os_error(errno, "shared memory", "cannot map");
  mapping.data_ = static_cast<char*>(data);
  mapping.size_ = size_bytes;
  return mapping;
}

void Mapping::shrink(uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes >= size_) return;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t kept = (size_bytes + page - 1) / page * page;
  const uint64_t all = (size_ + page - 1) / page * page;
  if (kept < all) ::munmap(data_ + kept, all - kept);
  size_ = size_bytes;
}

// MAP_PRIVATE, because before Linux 6.7 sealed memory cannot be mapped otherwise. It copies
// nothing, because no process writes.
Outcome<Mapping> Mapping::of_sealed(int memory, uint64_t size_bytes) {
  return map(memory, size_bytes, PROT_READ, MAP_PRIVATE);
}

Outcome<Mapping> Mapping::for_filling(int memory, uint64_t size_bytes) {
  return map(memory, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
}

Outcome<Mapping> Mapping::private_memory(uint64_t size_bytes) {
  return map(-1, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
}

Outcome<Fd> make_memory(uint64_t size_bytes) {
  Fd memory(::memfd_create("graphlane-share", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return os_error(errno, "shared memory", "cannot make");
  // fallocate() rather than ftruncate(): without memory, a later write to the mapping would SIGBUS.
  if (size_bytes > 0 && ::fallocate(memory.get(), 0, 0, static_cast<off_t>(size_bytes)) != 0) {
    return make_error(ENOMEM, "no shared memory for {} bytes", size_bytes);
  }
  return memory;
}

Outcome<void> seal(int memory) {
  if (::fcntl(memory, F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    return os_error(errno, "shared memory", "cannot seal");
  }
  return {};
}

Outcome<Fd> make_sealed(std::span<const char> bytes) {
  auto memory = make_memory(bytes.size());
  if (!memory) return memory.error();
  if (Result<void> written = pwrite_full(memory->get(), bytes.data(), bytes.size(), 0); !written) {
    return os_error(written.error().code, "shared memory", "cannot write");
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

Result<uint64_t> sealed_size(int memory) {
  const int seals = ::fcntl(memory, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return Errno{EPERM};
  struct stat st;
  if (::fstat(memory, &st) != 0) return last_errno();
  return static_cast<uint64_t>(st.st_size);
}

}  // namespace graphlane::share
