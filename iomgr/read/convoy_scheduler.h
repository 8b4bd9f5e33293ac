// ConvoyScheduler: tells which readers of a file lead. It is for readers that ask for a file
// piece by piece, each piece after the one before.
//
//   file    ░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░▓▓▓▓▓░░░░░░
//                    ▲ leads                      ▲ follows, within `reach_bytes`
//
// An engine's threads each take the next block of a file. Served all at once, they make a disk
// seek from block to block. Served one after the other, the disk reads on, and each thread
// computes on its block while the others get theirs. The reader of the lowest offset leads. A reader
// that is more than `reach_bytes` higher is independent of it, and may lead others.
//
// A reader is a thread. Its place is its last request, until it asks elsewhere or is idle
// because it computes. A reader waits for a bounded time only.
//
// Threads: everything is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class ConvoyScheduler {
  static constexpr uint32_t kReadersMax = 64;
  // The pieces of one read(2) follow each other faster, also on a busy machine.
  static constexpr uint64_t kIdleNs = 20'000'000;
  // Twenty threads may lead, with a block of 24 MiB each, before a waiter gives up. A leader that
  // rereads the same bytes has soon read this much.
  static constexpr uint64_t kPatienceBytes = uint64_t{512} << 20;
  static constexpr uint64_t kNsPerByte = 40;  // patience while no reader asks: 20 s use it up

  struct Reader {
    uint32_t thread = 0;  // 0: none yet
    Uuid file_id;
    uint64_t offset = 0;     // of the last piece
    uint32_t under_way = 0;  // pieces
    uint64_t idle_since_ns = 0;
    uint64_t patience_bytes = kPatienceBytes;

    bool reads(const Uuid& id, uint64_t now_ns) const {
      return thread != 0 && (under_way > 0 || now_ns - idle_since_ns < kIdleNs) && file_id == id;
    }
  };

 public:
  // One piece, from the request until its bytes have arrived.
  class Turn {
   public:
    // Thread 0 has no known place, nor has any thread beyond kReadersMax: it always leads.
    Turn(ConvoyScheduler& turns, const Uuid& file_id, uint32_t thread, ByteRange range)
        : scheduler_(turns), offset_(range.offset), reader_(turns.begin(file_id, thread, range)) {}
    ~Turn() { scheduler_.end(reader_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    bool leads(uint64_t reach_bytes) const {
      return reader_ == nullptr || scheduler_.leads(*reader_, offset_, reach_bytes);
    }
    // How many of the file's readers lead.
    uint32_t leader_count(uint64_t reach_bytes) const {
      return reader_ == nullptr ? 1 : scheduler_.leader_count(*reader_, reach_bytes);
    }
    // Waits until this reader leads, or ready(). Between two times of leading a reader waits while
    // the others read at most 512 MiB.
    template <class Ready>
    void await(uint64_t reach_bytes, Ready ready) const {
      for (;;) {
        const uint64_t seen_bytes = scheduler_.asked_bytes_.load(std::memory_order_relaxed);
        const uint32_t seen_step = scheduler_.step_.load(std::memory_order_acquire);
        if (leads(reach_bytes)) return scheduler_.reset_patience(reader_);
        if (ready() || !scheduler_.wait(*reader_, seen_step, seen_bytes)) return;
      }
    }

   private:
    ConvoyScheduler& scheduler_;
    const uint64_t offset_;
    Reader* const reader_;
  };

 private:
  bool is_first(const Reader& reader, uint64_t offset, uint64_t reach_bytes, uint64_t now_ns) const;
  Reader* begin(const Uuid& file_id, uint32_t thread, ByteRange range);
  void end(Reader* reader);
  bool leads(const Reader& reader, uint64_t offset, uint64_t reach_bytes);
  uint32_t leader_count(const Reader& reader, uint64_t reach_bytes);
  void reset_patience(Reader* reader);
  bool wait(Reader& reader, uint32_t seen_step, uint64_t seen_bytes);

  std::atomic<uint32_t> step_{0};
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> asked_bytes_{0};  // by all
  FutexLock lock_;                        // guards the members below
  Reader readers_[kReadersMax];
};

}  // namespace graphlane
