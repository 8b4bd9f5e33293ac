// SharedCache: reads of several processes of the same files, done once (the server's side of
// shared_frames.h; GraphM's idea, for engines that do not know it).
//
//   scan.fetch(range) ──► hit:       nothing to do
//
//                     ──► in flight: waits for the scan that asked (single flight)
//
//                     ──► miss:      makes room, then one request to the devices
//
// **Eviction.** The victim is the frame with the largest distance to its next use. A scan goes
// through its file to the end and begins again. So from place p frame f of F is (f - p) mod F
// away, and the nearest scan counts (Predictive Buffer Management, VLDB 2012). A single scan thus
// keeps the frames it began with, and hits as much of a cyclic sweep as fits. With several
// scans the frames between the first and the last stay. Those behind need no device until they
// have caught up: a convoy.
//
// **Holding back.** Suppose the victim is a frame that another moving scan wants within half of
// the file. Then the fetch waits until that scan has passed, while it moves, at most `hold_max`
// in all. That is free while the devices read the file for others. While they do not, it waits
// at most `idle_hold_max`. It also waits while all frames are just being copied.
//
// Scans go in a circle, so an order must be agreed on: the last scan is the one with the widest
// gap behind it. It does not wait. All others come nearer to it while they wait, until they are
// a convoy. Random readers, and readers of one place, neither wait nor are waited for.
//
// **Prefetch.** The threads of a process are one stream, however small their blocks are. While it
// moves forward, its prefetch distance grows to 24 MiB, in pieces of half of that. This keeps
// all devices busy, and makes a disk's seeks negligible.
//
// A scan that has ended counts for some seconds, because engines close a file between sweeps.
//
// **Memory.** The frames are pages of the parts in the kernel's page cache (shared_frames.h).
// Frames above the budget are dropped in the order above. Where programs need memory, the kernel
// reclaims any of them, and the cache asks whether it has. So the budget may be that of a
// reclaimable cache (memory_budget.h). The caller must read a request above the budget itself.
//
// Files are crowded if each has room in memory, but not all that are being read. Readers are told,
// because readers that leave their file to the kernel evict each other's next pages.
//
// Threads: everything is safe from any; a scan may be used by one thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "iomgr/base/counter.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/cache/memory_budget.h"
#include "iomgr/server/shared_frames.h"
#include "iomgr/volume/parts/lane_io.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane {

class SharedCache;

// The process that reads; the reads of its threads are one stream.
struct SharingProcess {
  pid_t pid = 0;        // at the other end of the connection
  uint32_t client = 0;  // the client that it asks for; 0: itself
  friend auto operator<=>(const SharingProcess&, const SharingProcess&) = default;
};

struct SharedCacheOptions {
  uint64_t budget_bytes = kAutoBudget;
  // The longest wait of a fetch for other scans, in all (0: none), and of that while the devices
  // are idle.
  // the client's patience is longer (server_protocol.h)
  static constexpr std::chrono::seconds kHoldMost{20};
  std::chrono::milliseconds hold_max{kHoldMost};
  std::chrono::milliseconds idle_hold_max{1000};
  std::chrono::milliseconds remembered{10'000};  // how long an ended scan counts
};

struct SharedStats {
  uint64_t hit_bytes = 0;        // hits, also on frames in flight
  uint64_t fetched_bytes = 0;    // from the devices
  uint64_t rejected_bytes = 0;   // without room
  uint64_t reclaimed_bytes = 0;  // reclaimed by the kernel, and asked for again
  uint64_t evictions = 0;
  uint64_t stalled_ns = 0;  // waits of fetches for other scans
  uint64_t resident_bytes = 0;
  uint64_t budget_bytes = 0;
  uint64_t scan_count = 0;  // open now
};

template <class Visit>
void for_each_counter(const SharedStats& stats, Visit visit) {
  using Name = CounterName;
  visit(Name{"hit_bytes", "bytes hit", "Bytes that hit, or that another process was fetching."},
        stats.hit_bytes);
  visit(Name{"fetched_bytes", "bytes fetched", "Bytes read for several processes."},
        stats.fetched_bytes);
  visit(Name{"rejected_bytes", "bytes rejected", "Bytes rejected without room."},
        stats.rejected_bytes);
  visit(Name{"reclaimed_bytes", "bytes reclaimed", "Bytes reclaimed by the kernel."},
        stats.reclaimed_bytes);
  visit(Name{"evictions", "evictions", "Frames that were replaced."}, stats.evictions);
  visit(Name{"stalled_ns", "ns stalled", "Time that readers waited for others to come nearer."},
        stats.stalled_ns);
  visit(Name{"resident_bytes", "bytes in use", "Memory in use.", true}, stats.resident_bytes);
  visit(Name{"budget_bytes", "allowed", "Memory that may be used.", true}, stats.budget_bytes);
  visit(Name{"scan_count", "scans", "Files that are being read, by process.", true},
        stats.scan_count);
}

// One reader's scan of a file.
class SharedScan {
 public:
  ~SharedScan();
  SharedScan(const SharedScan&) = delete;
  SharedScan& operator=(const SharedScan&) = delete;

  // The memfd of the file's frames (shared_frames.h), read-only, to pass to the client.
  int frames_fd() const;
  uint64_t size_bytes() const;
  const StripedFile& file() const;

  // Brings the range into memory. 0: it was there at some time since the call; EAGAIN: no room;
  // ESTALE: the file is being changed; or the devices' errno.
  int fetch(ByteRange range);
  // Prefetches what the reader will want next, without evicting frames that are wanted sooner.
  // Waits for the devices, but not for other scans.
  void fetch_ahead();
  // The reader has the range: by a hit, or copied after a fetch.
  void passed(ByteRange range);

 private:
  friend class SharedCache;
  struct File;
  struct Place;
  struct ProcessReads;
  SharedScan(SharedCache& cache, std::shared_ptr<File> file, std::shared_ptr<Place> place);

  SharedCache& cache_;
  const std::shared_ptr<File> file_;
  const std::shared_ptr<Place> place_;
};

class SharedCache {
 public:
  // Moves the bytes of a request. 0 or an errno.
  using Move = std::function<int(const PartRequest&)>;
  // The version of a file.
  struct Content {
    uint64_t generation = 0;  // changed by writers through this server
    int64_t time_ns = 0;      // the stub's ctime: changed by other writers
    friend bool operator==(const Content&, const Content&) = default;
  };
  // Whether a file still has this content. It must be false before the first byte changes.
  using IsCurrent = std::function<bool(const StripedFile& file, const Content& content)>;

  SharedCache(const SharedCacheOptions& options, Move move, IsCurrent is_current);
  ~SharedCache();  // no scan may be left
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;

  // A process begins to read a file. EFBIG: its table of frames would be too large; ENOMEM and
  // the like.
  Result<std::unique_ptr<SharedScan>> begin(std::shared_ptr<const StripedFile> file,
                                            Content content, const SharingProcess& process);
  // To be called every second or so: forgets ended scans and changed files, and releases memory.
  void tidy();

  SharedStats stats() const;

 private:
  friend class SharedScan;
  using Clock = std::chrono::steady_clock;
  using File = SharedScan::File;
  using Place = SharedScan::Place;
  struct Frame {  // in memory, or being filled
    File* file;
    uint64_t index;
    uint64_t distance;  // at the last choice of victims
  };
  struct Hold {  // the waits of one fetch
    Clock::time_point end;
    Clock::duration idle{0};  // waited while the devices read nothing for the file
  };
  enum class Room { kMade, kChanged, kNone };

  int fetch(File& file, Place& place, ByteRange range);
  int load(File& file, Place& place, ByteRange range, bool ahead);
  int load_frames(File& file, Place& place, ByteRange range, bool ahead);
  Room make_room(size_t count, const File& file, Place& place, bool ahead, Hold& hold)
      REQUIRES(mu_);
  void measure(Clock::time_point now) REQUIRES(mu_);
  void select_victims(size_t count, Clock::time_point now) REQUIRES(mu_);
  bool wanted_by_others(const Frame& frame, const Place& place, Clock::time_point now)
      REQUIRES(mu_);
  bool is_last(const File& file, const SharingProcess& process, Clock::time_point now)
      REQUIRES(mu_);
  std::vector<Piece> pieces_of(const File& file, const std::vector<uint64_t>& frames);
  int fill(File& file, const std::vector<Piece>& pieces) REQUIRES(mu_);
  void forget(size_t resident_index) REQUIRES(mu_);
  void forget_lost(File& file, ByteRange range) REQUIRES(mu_);
  void drop(size_t resident_index) REQUIRES(mu_);
  void drop_file(File& file) REQUIRES(mu_);
  bool is_current(const File& file) const;
  void move_to(Place& place, ByteRange range) REQUIRES(mu_);
  void count_processes(File& file) REQUIRES(mu_);
  void update_budget() REQUIRES(mu_);
  void detect_crowding(uint64_t available_bytes) REQUIRES(mu_);

  // Constant after construction.
  const SharedCacheOptions options_;
  const Move move_;
  const IsCurrent is_current_;
  std::vector<std::byte> unseen_;  // a target for bytes that are not needed

  mutable Mutex mu_;
  CondVar changed_;  // frames were filled, or scans have moved
  std::vector<std::shared_ptr<File>> files_ GUARDED_BY(mu_);
  std::vector<Frame> resident_ GUARDED_BY(mu_);
  uint64_t budget_bytes_ GUARDED_BY(mu_) = 0;
  uint64_t unchecked_bytes_ GUARDED_BY(mu_) = 0;
  SharedStats stats_ GUARDED_BY(mu_);
};

}  // namespace graphlane
