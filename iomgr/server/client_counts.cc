#include "iomgr/server/client_counts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace graphlane {
namespace {

Fd make_page() {
  Fd page(::memfd_create("graphlane-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page || ::ftruncate(page.get(), kClientCountsBytes) != 0 ||
      ::fcntl(page.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return {};
  }
  return page;
}

// Null: it cannot be mapped.
const DeviceCounts* map_page(int page) {
  void* const memory = ::mmap(nullptr, kClientCountsBytes, PROT_READ, MAP_SHARED, page, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<const DeviceCounts*>(memory);
}

}  // namespace

ClientCounts::~ClientCounts() {
  for (auto& [user, page] : pages_) {
    if (page.counts != nullptr) {
      ::munmap(const_cast<DeviceCounts*>(page.counts), kClientCountsBytes);
    }
  }
}

int ClientCounts::page_of(uid_t user) {
  const MutexLock lock(mu_);
  const auto found = pages_.find(user);
  if (found != pages_.end()) return found->second.fd.get();
  if (pages_.size() == kUsersMax) return -1;
  Page page{.fd = make_page()};
  if (page.fd) page.counts = map_page(page.fd.get());
  if (page.counts == nullptr) return -1;
  return (pages_[user] = std::move(page)).fd.get();
}

bool ClientCounts::has_page(uid_t user) const {
  const MutexLock lock(mu_);
  return pages_.contains(user);
}

void ClientCounts::take_page(uid_t user, Fd page) {
  const MutexLock lock(mu_);
  pages_.try_emplace(user, Page{.fd = std::move(page)});
}

std::vector<ClientSum> ClientCounts::sums(uint32_t device_count) const {
  std::vector<ClientSum> sums(device_count);
  const MutexLock lock(mu_);
  for (const auto& [user, page] : pages_) {
    for (uint32_t d = 0; d < device_count && page.counts != nullptr; ++d) {
      // Relaxed: they order nothing, and a program may have written anything.
      sums[d].io_count += page.counts[d].io_count.load(std::memory_order_relaxed);
      sums[d].bytes_read += page.counts[d].bytes_read.load(std::memory_order_relaxed);
      sums[d].bytes_written += page.counts[d].bytes_written.load(std::memory_order_relaxed);
    }
  }
  return sums;
}

}  // namespace graphlane
