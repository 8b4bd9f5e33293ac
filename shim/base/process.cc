#include "shim/base/process.h"

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <new>

#include "iomgr/base/sys.h"

namespace graphlane::shim {
namespace {

// A page that reads as zeros in a new child.
struct ForkPage {
  std::atomic<uint32_t> epoch{0};
  std::atomic<pid_t> process{0};
};

constexpr size_t kPageSize = 4096;

// Null: the page could not be made.
std::atomic<ForkPage*> fork_page{nullptr};
std::atomic<uint32_t> epoch_next{1};

pid_t process_id() { return static_cast<pid_t>(::syscall(SYS_getpid)); }

ForkPage* make_page() {
  const long fresh = ::syscall(SYS_mmap, nullptr, kPageSize, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == -1) return nullptr;
  if (::syscall(SYS_madvise, fresh, kPageSize, MADV_WIPEONFORK) != 0) {
    ::syscall(SYS_munmap, fresh, kPageSize);
    return nullptr;
  }
  auto* mine = new (reinterpret_cast<void*>(fresh)) ForkPage();
  ForkPage* page = nullptr;
  if (fork_page.compare_exchange_strong(page, mine, std::memory_order_acq_rel)) return mine;
  ::syscall(SYS_munmap, fresh, kPageSize);
  return page;
}

}  // namespace

uint32_t process_epoch() {
  ForkPage* page = fork_page.load(std::memory_order_acquire);
  if (page == nullptr) page = make_page();
  if (page == nullptr) return 0;
  uint32_t epoch = page->epoch.load(std::memory_order_acquire);
  if (epoch != 0) return epoch;
  page->process.store(process_id(), std::memory_order_relaxed);  // epoch publishes it
  const uint32_t fresh = epoch_next.fetch_add(1, std::memory_order_relaxed);
  return page->epoch.compare_exchange_strong(epoch, fresh, std::memory_order_acq_rel) ? fresh
                                                                                      : epoch;
}

bool in_vfork_child() {
  const ForkPage* page = fork_page.load(std::memory_order_acquire);
  // Acquire: a thread that sees the epoch sees the process.
  if (page == nullptr || page->epoch.load(std::memory_order_acquire) == 0) return false;
  return page->process.load(std::memory_order_relaxed) != process_id();
}

}  // namespace graphlane::shim
