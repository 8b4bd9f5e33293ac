// Lanes: every device's own queue, with the threads that serve it alone (CSMqGraph §3.2,
// "multi-external-storage multi-queue").
//
//   read(file, range)          map, decompose, merge: one LaneIo per device (lane_io.h)
//       │          │
//   ┌───▼──┐   ┌───▼──┐
//   │lane 0│   │lane 1│ …      a queue sorted by place on the device (lane_queue.h);
//   └───┬──┘   └───┬──┘        its threads keep `depth` I/Os in flight (io_queue.h)
//
//   device 0   device 1
//
// Cache and prefetch are above the lanes (extent_cache.h).
//
// Threads: everything is safe from any thread; requests of different callers run concurrently.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/latency.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/io/engine.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/volume/parts/lane_io.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct LaneOptions {
  IoBackend backend = IoBackend::kAuto;
  uint32_t depth = 0;  // I/Os in flight per device; 0: as calibrated, else 1 (disk) or 16
  // Delays the threads and the calibration to the first request. A failure then fails the request.
  bool at_first_request = false;
  void (*tell_failure)(const std::string& line) = nullptr;  // reports such a failure, if not null
};

// The counts of one lane since its start.
struct LaneStats {
  std::string device;  // the directory
  uint64_t io_count = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t segment_count = 0;  // stripe units touched
  uint64_t merged_count = 0;   // I/Os merged into another, of any caller
  LatencyCounts wait = {};     // in the queue
  LatencyCounts service = {};  // on the device
};

class Lane;

class Lanes {
 public:
  // Starts the threads; backend() is the chosen one. The volume must outlive the lanes.
  static Outcome<std::unique_ptr<Lanes>> start(const Volume& volume, const LaneOptions& options);
  // For plain files on one device; `device` is its name in messages. A file is treated as part 0
  // of itself (paged_files.h). `depth`: I/Os in flight.
  static Outcome<std::unique_ptr<Lanes>> start_plain(const std::string& device, uint32_t depth);
  ~Lanes();  // no caller may wait; submitted requests end first

  // Reads the range into `buffer`; blocks. Returns the bytes read, fewer than asked only at end of
  // file, or -errno. `direct`: bypasses the page cache where buffer, offset and length are
  // multiples of kBlockSize.
  ssize_t read(const StripedFile& file, ByteRange range, void* buffer, bool direct);

  // Writes the range, which may extend the parts; blocks. 0 or -errno.
  int write(const StripedFile& file, ByteRange range, const void* buffer, bool direct);

  // Moves a request's bytes; blocks. 0 or an errno.
  int run(const PartRequest& request);

  // Begins a request and returns; a lane's thread tells `end`. `file` owns the request's parts and
  // stays open until then. False: not begun, because too many requests are in flight.
  bool submit(const PartRequest& request, std::shared_ptr<const StripedFile> file, Completion* end);

  // Counts bytes that a caller moved itself (FUSE splices).
  void count(IoOp op, uint32_t device_index, uint64_t bytes);

  // kAuto: no request has started the threads yet.
  IoBackend backend() const {
    return ready_.load(std::memory_order_acquire) ? backend_ : IoBackend::kAuto;
  }
  std::vector<LaneStats> stats() const;

 private:
  Lanes() = default;
  Outcome<void> start_threads();
  Outcome<void> add_lane(const std::string& device, uint32_t depth);
  // Starts the threads if none has; 0, or EIO.
  int make_ready();

  // A request begun by submit().
  struct Started final : Completion {
    void on_done(int error) override;

    std::atomic<bool> taken{false};
    std::atomic<uint32_t> pending{0};  // I/Os
    std::atomic<int> error{0};         // the last error
    std::shared_ptr<const StripedFile> file;
    Completion* end = nullptr;
  };
  static constexpr uint32_t kStartedMax = 64;

  // Constant after start().
  const Volume* volume_ = nullptr;  // null for plain files
  LaneOptions options_;

  Started started_[kStartedMax];
  std::atomic<bool> ready_{false};  // set once the next two members are final
  IoBackend backend_ = IoBackend::kAuto;
  std::vector<std::unique_ptr<Lane>> lanes_;  // destroyed before started_, which they tell
  Mutex starting_;
};

// The lanes as the engine of one open file.
class LaneEngine final : public IoEngine {
 public:
  LaneEngine(Lanes& lanes, std::shared_ptr<const StripedFile> file)
      : lanes_(lanes), file_(std::move(file)) {}
  int run(const PartRequest& request) override { return lanes_.run(request); }
  // All: a lane orders its requests itself.
  DeviceSet idle_devices() override { return all_devices(file_->map().geometry().device_count); }
  bool submit(const PartRequest& request, Completion* end) override {
    return lanes_.submit(request, file_, end);
  }

 private:
  Lanes& lanes_;
  std::shared_ptr<const StripedFile> file_;
};

}  // namespace graphlane
