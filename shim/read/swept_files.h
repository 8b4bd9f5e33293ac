// SweptFiles: the files that this process has recently read through the page cache, with their
// parts. The program may have closed them, but will come back to them.
//
// An engine with its edges in many files opens one, reads it, and closes it again. A prefetch of
// the next one needs its parts open. And only a view over all of them tells whether they fit in
// memory together.
//
// Threads: everything is safe from any thread, under one lock. A signal handler that cannot have
// the lock reads without this. Not across fork(). No allocation, no exceptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/cache/page_cache_share.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::shim {

struct OpenFile;

class SweptFiles {
 private:
  enum class Way : uint8_t { kFits, kKept, kLeaves };
  struct File {
    Uuid file_id;
    StripeMap map;
    uint64_t size_bytes = 0;
    uint32_t last_used = 0;  // 0: unused
    uint32_t part_count = 0;
    std::atomic<uint32_t> users{0};  // raised under the lock
    std::atomic<Way> way{Way::kFits};
    int parts[kDeviceCountMax] = {};
  };

 public:
  // A reference to one of the files; its parts stay open while this lives.
  class Ref {
   public:
    Ref() = default;
    explicit Ref(File* file) : file_(file) {}
    ~Ref() {
      // Release: the parts are closed after all uses of them.
      if (file_ != nullptr) file_->users.fetch_sub(1, std::memory_order_release);
    }
    Ref(Ref&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
    Ref& operator=(Ref&&) = delete;
    explicit operator bool() const { return file_ != nullptr; }

    const StripeMap& map() const { return file_->map; }
    std::span<const int> parts() const { return {file_->parts, file_->part_count}; }
    // Whether its pages may stay in memory.
    bool stays() const { return file_->way.load(std::memory_order_relaxed) != Way::kLeaves; }
    bool is_kept() const { return file_->way.load(std::memory_order_relaxed) == Way::kKept; }

   private:
    File* file_ = nullptr;
  };

  // Adds a file that is read now, or replaces the least recently read one. Empty: there is no room.
  Ref use(const OpenFile& file, uint64_t size_bytes);
  Ref find(const Uuid& file_id);

  // Checks whether all files fit in memory together, and if not, which may stay: as many as prove
  // to fit. Closes the parts of removed files.
  void share_memory(uint64_t available_bytes);
  // Reports how many prefetched or kept bytes were read, and how many of them were missing.
  void record_use(const Ref& file, uint64_t wanted_bytes, uint64_t missing_bytes);

 private:
  static constexpr uint32_t kFileCount = 64;

  File* look_up(const Uuid& file_id);
  File* make_room(uint32_t part_count);
  bool fill(File& slot, const OpenFile& file);
  void close(File& file);
  void close_removed();

  PageCacheShare kept_share_{MemoryUse::kKeptPages};

  FutexLock lock_;  // guards the members below
  uint32_t clock_ = 0;
  File files_[kFileCount];
};

}  // namespace graphlane::shim
