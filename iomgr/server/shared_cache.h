// SharedCache: what several processes read of the same files, read once (the server's side of
// shared_frames.h; GraphM's idea, for engines that know nothing of it).
//
//   scan.fetch(range) ──► frames that are there
//                     ──► that another scan has asked for: waited for (single flight)
//                     ──► that are missing: room is made, one request to the devices
//
// **Who makes room** is the frame that is wanted again last, as far as scans tell: each goes
// through its file to the end and begins anew, so from its place p frame f of F is
// (f - p) mod F away; a frame counts for the scan that is nearest (Predictive Buffer Management,
// VLDB 2012). One scan alone so keeps what it began with, and finds as much of a
// cyclic sweep as fits; of several, what lies between the first and the last stays, and those
// behind have no need of the devices until they have caught up: a convoy.
//
// **Holding back.** Where room could only be made by what another scan, which is moving, wants
// within half of the file, the fetch waits until that one has passed, and no longer than the other
// one moves: `hold_max` in all as long as the devices read the file for others, since then nothing is
// lost, and `idle_hold_max` of that while they do not. So it does where all that is there is just being copied.
// Scans go in a circle, so who is behind whom is agreed upon: the last one is he behind whom the
// widest gap is. He waits for nobody; all the others come nearer to him while they wait, a convoy in
// the end.
// Who reads here and there, or one place again and again, is not waited for, and does not wait.
//
// **Reading ahead.** The threads of a process are one stream, however small the blocks that each
// asks for. While it goes forwards, what is read ahead of it grows to kAheadMax, in pieces of
// half of that: large enough that all devices work, and that a disk's seeks do not count.
//
// A scan that has ended counts for some seconds: engines close a file between their sweeps.
//
// **Memory.** The frames are pages of the parts in the kernel's page cache (shared_frames.h): those
// that the budget has no room for are dropped in the order said above; sooner than that, where
// programs need memory, the kernel drops what it likes, and is asked whether it has. So the budget
// may be what a yielding cache has (memory_limit.h). A request for more than it is the caller's to
// read by himself.
// Files that have room in memory one by one, but not all that are being read, are crowded: so readers
// are told, who would leave the one that they know to the kernel, and each push out what the others
// come to next.
//
// Threads: everything is safe from any; a scan is one thread's at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/server/shared_frames.h"
#include "iomgr/volume/parts/lane_io.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane {

class SharedCache;

// Whose threads' reads are one stream.
struct SharingProcess {
  pid_t pid = 0;        // at the other end of the connection
  uint32_t client = 0;  // of those for whom that one asks; 0: itself
  friend auto operator<=>(const SharingProcess&, const SharingProcess&) = default;
};

struct SharedCacheOptions {
  static constexpr uint64_t kAutoBudget = UINT64_MAX;  // five eighths of what memory is left
  uint64_t budget_bytes = kAutoBudget;
  // Of a fetch: in all, kHoldMost at most; 0: everybody goes as fast as he can. And while the
  // devices idle.
  static constexpr std::chrono::seconds kHoldMost{20};  // the client's patience is longer (server_protocol.h)
  std::chrono::milliseconds hold_max{kHoldMost};
  std::chrono::milliseconds idle_hold_max{1000};
  std::chrono::milliseconds remembered{10'000};  // scans that have ended
};

struct SharedStats {
  uint64_t found_bytes = 0;     // asked for, and there or on its way
  uint64_t fetched_bytes = 0;   // from the devices
  uint64_t refused_bytes = 0;   // for which there was no room
  uint64_t lost_bytes = 0;      // that the kernel has taken, and somebody asked for again
  uint64_t evictions = 0;
  uint64_t held_ns = 0;         // that fetches waited for other scans
  uint64_t resident_bytes = 0;
  uint64_t budget_bytes = 0;
  uint64_t scan_count = 0;      // that are going on
};

// As for_each_counter() of extent_cache.h.
template <class Visit>
void for_each_counter(const SharedStats& stats, Visit visit) {
  visit("found_bytes", "bytes found", stats.found_bytes);
  visit("fetched_bytes", "bytes fetched", stats.fetched_bytes);
  visit("refused_bytes", "bytes refused", stats.refused_bytes);
  visit("lost_bytes", "bytes lost", stats.lost_bytes);
  visit("evictions", "evictions", stats.evictions);
  visit("held_ns", "ns held back", stats.held_ns);
  visit("resident_bytes", "bytes in use", stats.resident_bytes);
  visit("budget_bytes", "allowed", stats.budget_bytes);
  visit("scan_count", "scans", stats.scan_count);
}

// One reader's way through a file.
class SharedScan {
 public:
  ~SharedScan();
  SharedScan(const SharedScan&) = delete;
  SharedScan& operator=(const SharedScan&) = delete;

  // Of the file's frames, to give away: it cannot be written by.
  int frames_fd() const;
  uint64_t size_bytes() const;
  const StripedFile& file() const;

  // The range is to be in memory: 0, if it was at some time since the call; EAGAIN: no room;
  // ESTALE: somebody changes the file; or the devices' errno.
  int fetch(ByteRange range);
  // The same for what the reader will want next, as far as nothing has to go for it that is
  // wanted sooner. Waits for the devices, but for nobody else.
  void fetch_ahead();
  // The reader has the range, which he found, or has copied.
  void passed(ByteRange range);

 private:
  friend class SharedCache;
  struct File;
  struct Place;
  struct Stream;
  SharedScan(SharedCache& cache, std::shared_ptr<File> file, std::shared_ptr<Place> place);

  SharedCache& cache_;
  const std::shared_ptr<File> file_;
  const std::shared_ptr<Place> place_;
};

class SharedCache {
 public:
  // Moves the bytes of a request. 0 or an errno.
  using Move = std::function<int(const PartRequest&)>;
  // What a file is at a time.
  struct Content {
    uint64_t generation = 0;  // moved by those who write by this server
    int64_t time_ns = 0;      // the stub's ctime: moved by others
    friend bool operator==(const Content&, const Content&) = default;
  };
  // Whether a file is still what it was. Not so before its first byte has changed.
  using IsCurrent = std::function<bool(const StripedFile& file, const Content& content)>;

  SharedCache(const SharedCacheOptions& options, Move move, IsCurrent is_current);
  ~SharedCache();  // no scan is left
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;

  // A process begins to read a file. EFBIG: it would take too much to say what of it is there;
  // ENOMEM and the like.
  Result<std::unique_ptr<SharedScan>> begin(std::shared_ptr<const StripedFile> file,
                                            Content content, const SharingProcess& process);
  // Every second or so: forgets scans that have ended and files that have changed, gives
  // memory back.
  void tidy();

  SharedStats stats() const;

 private:
  friend class SharedScan;
  using Clock = std::chrono::steady_clock;
  using File = SharedScan::File;
  using Place = SharedScan::Place;
  using Stream = SharedScan::Stream;
  struct Frame {  // that is there, or being filled
    File* file;
    uint64_t index;
    uint64_t distance;  // as of the last choice of victims
  };
  struct Hold {  // of a fetch
    Clock::time_point end;
    Clock::duration idle{0};  // waited while the devices did nothing for the file
  };
  enum class Room { kMade, kChanged, kNone };

  int fetch(File& file, Place& place, ByteRange range);
  int bring(File& file, Place& place, ByteRange range, bool ahead);
  int bring_frames(File& file, Place& place, ByteRange range, bool ahead);
  Room make_room(size_t count, const File& file, Place& place, bool ahead,
                 Hold& hold) REQUIRES(mu_);
  void measure(Clock::time_point now) REQUIRES(mu_);
  void select_victims(size_t count, Clock::time_point now) REQUIRES(mu_);
  bool wanted_by_others(const Frame& frame, const Place& place, Clock::time_point now)
      REQUIRES(mu_);
  bool is_last(const File& file, const SharingProcess& process, Clock::time_point now) REQUIRES(mu_);
  std::vector<Piece> pieces_of(const File& file, const std::vector<uint64_t>& frames);
  int fill(File& file, const std::vector<Piece>& pieces) REQUIRES(mu_);
  void forget(size_t resident_index) REQUIRES(mu_);
  void forget_lost(File& file, ByteRange range) REQUIRES(mu_);
  void drop(size_t resident_index) REQUIRES(mu_);
  void drop_file(File& file) REQUIRES(mu_);
  bool is_current(const File& file) const;
  void move_to(Place& place, ByteRange range) REQUIRES(mu_);
  void count_processes(File& file) REQUIRES(mu_);
  void look_at_budget() REQUIRES(mu_);
  void look_for_crowd(uint64_t available_bytes) REQUIRES(mu_);

  // Constant after construction.
  const SharedCacheOptions options_;
  const Move move_;
  const IsCurrent is_current_;
  std::vector<std::byte> unseen_;  // whatever the kernel writes there

  mutable Mutex mu_;
  CondVar changed_;  // frames have been filled, scans have moved
  std::vector<std::shared_ptr<File>> files_ GUARDED_BY(mu_);
  std::vector<Frame> resident_ GUARDED_BY(mu_);
  uint64_t budget_bytes_ GUARDED_BY(mu_) = 0;
  uint64_t unlooked_bytes_ GUARDED_BY(mu_) = 0;
  SharedStats stats_ GUARDED_BY(mu_);
};

}  // namespace graphlane
