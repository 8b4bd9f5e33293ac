#include "iomgr/lanes.h"

#include <algorithm>
#include <cstring>

#include "iomgr/calibration.h"
#include "iomgr/lane.h"

namespace graphlane {
namespace {

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
  const Outcome<IoBackend> backend = choose_backend(options.backend);
  if (!backend) return backend.error();
  std::unique_ptr<Lanes> lanes(new Lanes());
  lanes->backend_ = *backend;
  for (const Device& device : volume.devices()) {
    const Outcome<LaneDepth> depth = lane_depth(device, options.depth);
    if (!depth) return depth.error();
    Outcome<std::unique_ptr<Lane>> lane = Lane::start(device.directory, *backend, depth->io_count);
    if (!lane) return lane.error();
    lanes->lanes_.push_back(std::move(*lane));
  }
  return lanes;
}

Lanes::~Lanes() = default;

// Queues every lane I/O before waiting for any: a request over four devices
// costs one latency, not four.
int Lanes::move(const PartRequest& request) {
  LaneRequest pending;
  RequestCutter cutter(request);
  LaneIo cut;
  while (cutter.next(&cut)) {
    Lane& lane = *lanes_[cut.device_index];
    LaneIo* io = lane.acquire();
    *io = cut;
    io->owner = &pending;
    pending.begin();
    lane.push(io);
  }
  return pending.wait();
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
  const int error = move(request);
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
  return -move(request);
}

void Lanes::count(IoOp op, uint32_t device_index, uint64_t bytes) {
  lanes_[device_index]->counters().count(op, bytes, 1);
}

std::vector<LaneStats> Lanes::stats() const {
  std::vector<LaneStats> stats;
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
