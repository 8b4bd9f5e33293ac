// ScratchBlock: memory for one block, aligned for O_DIRECT, for a scope. A program's stack may be
// too small.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

#include "iomgr/base/slot_pool.h"
#include "iomgr/base/sys.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class ScratchBlock {
 public:
  ScratchBlock() : slot_(take_free_slot(slots)) {
    if (slot_ != nullptr) return;
    // Not mmap(), which is one of the preload library's hooks.
    const long mapped = ::syscall(SYS_mmap, nullptr, kBlockSize, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped != -1) mapped_ = reinterpret_cast<uint8_t*>(mapped);
  }
  ~ScratchBlock() {
    if (slot_ != nullptr) {
      free_slot(*slot_);
    } else if (mapped_ != nullptr) {
      (void)::syscall(SYS_munmap, mapped_, kBlockSize);
    }
  }
  ScratchBlock(const ScratchBlock&) = delete;
  ScratchBlock& operator=(const ScratchBlock&) = delete;
  uint8_t* bytes() const { return slot_ != nullptr ? slot_->bytes : mapped_; }  // null: no memory

 private:
  struct alignas(kBlockSize) Slot {
    uint8_t bytes[kBlockSize];
    std::atomic<bool> taken{false};
  };
  static Slot slots[8];
  Slot* const slot_;
  uint8_t* mapped_ = nullptr;
};

inline constinit ScratchBlock::Slot ScratchBlock::slots[8]{};

}  // namespace graphlane
