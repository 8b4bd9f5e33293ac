#include "iomgr/io/lanes.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "iomgr/base/slot_pool.h"
#include "iomgr/io/calibration.h"
#include "iomgr/io/lane.h"

namespace graphlane {
namespace {

// The most I/Os of one submitted request: 64 MiB over 16 devices.
constexpr uint32_t kStartedIosMax = 64;

// The first backend that this kernel and sandbox allow, or the one asked for.
Outcome<IoBackend> choose_backend(IoBackend asked) {
  IoQueueStorage storage;
  IoBackend chosen;
  const Result<IoQueue*> queue = make_io_queue(asked, 1, &storage, &chosen);
  if (!queue) {
    return make_error(queue.error().code, "backend {}: {}", name_of(asked),
                      std::strerror(queue.error().code));
  }
  (*queue)->~IoQueue();
  return chosen;
}

}  // namespace

Outcome<std::unique_ptr<Lanes>> Lanes::start(const Volume& volume, const LaneOptions& options) {
  std::unique_ptr<Lanes> lanes(new Lanes());
  lanes->volume_ = &volume;
  lanes->options_ = options;
  if (options.at_first_request) return lanes;
  if (Outcome<void> started = lanes->start_threads(); !started) return started.error();
  return lanes;
}

Outcome<std::unique_ptr<Lanes>> Lanes::start_plain(const std::string& device, uint32_t depth) {
  const Outcome<IoBackend> backend = choose_backend(IoBackend::kAuto);
  if (!backend) return backend.error();
  std::unique_ptr<Lanes> lanes(new Lanes());
  lanes->backend_ = *backend;
  if (Outcome<void> added = lanes->add_lane(device, depth); !added) return added.error();
  lanes->ready_.store(true, std::memory_order_relaxed);
  return lanes;
}

Outcome<void> Lanes::start_threads() {
  const Outcome<IoBackend> backend = choose_backend(options_.backend);
  if (!backend) return backend.error();
  backend_ = *backend;
  for (const Device& device : volume_->devices()) {
    const Outcome<LaneDepth> depth = lane_depth(device, options_.depth);
    if (!depth) return depth.error();
    if (Outcome<void> added = add_lane(device.directory, depth->io_count); !added) return added;
  }
  // Release: a thread that sees `ready_` sees the lanes.
  ready_.store(true, std::memory_order_release);
  return {};
}

int Lanes::make_ready() {
  if (ready_.load(std::memory_order_acquire)) return 0;
  const MutexLock lock(starting_);
  if (ready_.load(std::memory_order_relaxed)) return 0;
  const Outcome<void> started = start_threads();
  if (started) return 0;
  if (options_.tell_failure != nullptr) options_.tell_failure(started.error().text);
  lanes_.clear();  // the next request tries again
  return EIO;
}

Outcome<void> Lanes::add_lane(const std::string& device, uint32_t depth) {
  // A depth of one means a disk.
  const auto patience = depth == 1 ? Lane::kPatience : std::chrono::milliseconds(0);
  Outcome<std::unique_ptr<Lane>> lane = Lane::start(device, backend_, depth, patience);
  if (!lane) return lane.error();
  lanes_.push_back(std::move(*lane));
  return {};
}

Lanes::~Lanes() = default;

// Queues every lane I/O before waiting for any: a request over four devices costs one latency,
// not four.
int Lanes::run(const PartRequest& request) {
  if (const int error = make_ready(); error != 0) return error;
  LaneRequest pending;
  RequestCutter cutter(request);
  LaneIo cut;
  while (cutter.next(&cut)) {
    Lane& lane = *lanes_[cut.device_index];
    LaneIo* io = lane.acquire();
    *io = cut;
    pending.begin();
    lane.push(io, &pending);
  }
  return pending.wait();
}

bool Lanes::submit(const PartRequest& request, std::shared_ptr<const StripedFile> file,
                   Completion* end) {
  if (make_ready() != 0) return false;
  Started* const started = take_free_slot(started_);
  if (started == nullptr) return false;
  // All or nothing, because a caller with a part begun would have to wait for it.
  LaneIo* ios[kStartedIosMax];
  uint32_t count = 0;
  RequestCutter cutter(request);
  LaneIo cut;
  bool whole = true;
  while (whole && cutter.next(&cut)) {
    LaneIo* const io = count < kStartedIosMax ? lanes_[cut.device_index]->try_acquire() : nullptr;
    whole = io != nullptr;
    if (whole) {
      *io = cut;
      ios[count++] = io;
    }
  }
  if (!whole || count == 0) {
    for (uint32_t i = 0; i < count; ++i) lanes_[ios[i]->device_index]->release(ios[i]);
    free_slot(*started);
    return false;
  }
  started->file = std::move(file);
  started->end = end;
  started->error.store(0, std::memory_order_relaxed);
  started->pending.store(count, std::memory_order_relaxed);  // ordered by the lanes' locks
  for (uint32_t i = 0; i < count; ++i) lanes_[ios[i]->device_index]->push(ios[i], started);
  return true;
}

void Lanes::Started::on_done(int io_error) {
  if (io_error != 0) error.store(io_error, std::memory_order_relaxed);
  // Acquire, release: the thread that ends the last I/O sees the errors and bytes of the others.
  if (pending.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Completion* const told = end;
  const int outcome = error.load(std::memory_order_relaxed);
  file.reset();
  free_slot(*this);
  told->on_done(outcome);
}

ssize_t Lanes::read(const StripedFile& file, ByteRange range, void* buffer, bool direct) {
  Piece piece{.range = range, .buffer = buffer};
  PartRequest request{.map = file.map(),
                      .parts = file.parts(),
                      .size_bytes = file.size(),
                      .op = IoOp::kRead,
                      .direct = direct,
                      .pieces = {&piece, 1}};
  const uint64_t readable = prepare_read(&request, &piece);
  if (readable == 0) return 0;
  const int error = run(request);
  return error != 0 ? -error : static_cast<ssize_t>(readable);
}

int Lanes::write(const StripedFile& file, ByteRange range, const void* buffer, bool direct) {
  if (range.length_bytes == 0) return 0;
  const bool aligned = range.offset % kBlockSize == 0 && range.length_bytes % kBlockSize == 0 &&
                       reinterpret_cast<uintptr_t>(buffer) % kBlockSize == 0;
  const Piece piece{.range = range, .buffer = const_cast<void*>(buffer)};
  const PartRequest request{.map = file.map(),
                            .parts = file.parts(),
                            .size_bytes = std::max(file.size(), range.end()),
                            .op = IoOp::kWrite,
                            .direct = direct && aligned,
                            .pieces = {&piece, 1}};
  return -run(request);
}

void Lanes::count(IoOp op, uint32_t device_index, uint64_t bytes) {
  if (make_ready() == 0) lanes_[device_index]->counters().count(op, bytes, 1);
}

std::vector<LaneStats> Lanes::stats() const {
  std::vector<LaneStats> stats;
  if (!ready_.load(std::memory_order_acquire)) {
    for (const Device& device : volume_->devices()) stats.push_back({.device = device.directory});
    return stats;
  }
  for (const auto& lane : lanes_) {
    const LaneCounters& counters = lane->counters();
    stats.push_back({.device = lane->device(),
                     .io_count = counters.io_count.load(std::memory_order_relaxed),
                     .bytes_read = counters.bytes_read.load(std::memory_order_relaxed),
                     .bytes_written = counters.bytes_written.load(std::memory_order_relaxed),
                     .segment_count = counters.segment_count.load(std::memory_order_relaxed),
                     .merged_count = counters.merged_count.load(std::memory_order_relaxed),
                     .wait = counters.wait.counts(),
                     .service = counters.service.counts()});
  }
  return stats;
}

}  // namespace graphlane
