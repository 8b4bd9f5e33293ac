// SweptFiles: the files that this process has read of late through the page cache, with their
// parts, though the program may have closed them: it will come back to them.
//
// An engine that keeps its edges in many files opens one, reads it, and closes it again. What
// it reads next can be begun only if its parts are open; and whether all fit in memory together
// only who knows all of them can tell.
//
// Threads: everything is safe from any thread, under one lock; who cannot have it, in a signal
// handler, goes without. Not across fork().
// No allocation, no exceptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/read/sequence_predictor.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

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
  // One of them; its parts stay open as long as this lives.
  class Ref {
   public:
    Ref() = default;
    explicit Ref(File* file) : file_(file) {}
    ~Ref() {
      // Release: who closes the parts comes after all that was done with them.
      if (file_ != nullptr) file_->users.fetch_sub(1, std::memory_order_release);
    }
    Ref(Ref&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
    Ref& operator=(Ref&&) = delete;
    explicit operator bool() const { return file_ != nullptr; }

    const StripeMap& map() const { return file_->map; }
    std::span<const int> parts() const { return {file_->parts, file_->part_count}; }
    // Whether what was read of it may stay in memory.
    bool stays() const { return file_->way.load(std::memory_order_relaxed) != Way::kLeaves; }
    bool is_kept() const { return file_->way.load(std::memory_order_relaxed) == Way::kKept; }
   private:
    File* file_ = nullptr;
  };

  // A file that is read now, in the place of the one that was not for the longest time. Empty:
  // there is no room.
  Ref use(const OpenFile& file, uint64_t size_bytes);
  Ref find(const Uuid& file_id);

  // Looks whether all fit together in what memory there is, and if not, which may stay: as many
  // as that proves to have room for. Of those that were removed the parts are closed.
  void share_memory(uint64_t available_bytes);
  // So much of a file was wanted, and so much of that was not in memory.
  void came(const Ref& file, uint64_t wanted_bytes, uint64_t missing_bytes);

 private:
  static constexpr uint32_t kFileCount = 64;

  File* look_up(const Uuid& file_id);
  File* make_room(uint32_t part_count);
  bool fill(File& slot, const OpenFile& file);
  void close(File& file);
  void close_removed();

  PageCacheShare kept_share_;

  FutexLock lock_;  // over what follows
  uint32_t clock_ = 0;
  File files_[kFileCount];
};

}  // namespace graphlane
