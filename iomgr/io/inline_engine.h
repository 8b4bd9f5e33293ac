// InlineEngine: moves a striped file's bytes in the calling thread, because the preload library may
// not put threads into a program.
//
// A request over several devices borrows an I/O queue (inline_queues.h), sends one I/O to every
// device, and waits for all. Without a free queue (more threads than queues, a sandbox) it goes
// device after device. Past the page cache a disk serves one request at a time (device_gate.h).
//
// Threads: one engine for one request. Lock-free unless it waits for a disk; signals are blocked
// while a queue is used, and at gates.
// No allocation, no exceptions: the preload library uses this.
#pragma once

#include <sys/types.h>

#include <span>

#include "iomgr/io/device_gate.h"
#include "iomgr/io/engine.h"
#include "iomgr/io/inline_queues.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class InlineEngine : public IoEngine {
 public:
  struct Options {
    IoBackend backend = IoBackend::kAuto;
    bool gates = true;   // a disk serves one request at a time
    bool merges = true;  // merges stripe units that are adjacent on a device
  };
  // The devices on which it may prefetch. A device without seeks serves many reads at once, and
  // reads without prefetch need no copy.
  enum class Prefetch : uint8_t { kOnDisks, kAnywhere };

  // `gates` are those of the file's devices; null: no limit.
  InlineEngine(const StripeMap& map, std::span<DeviceGate* const> gates, InlineQueues& queues,
               const InlineProcess& process, const Options& options, Prefetch prefetch)
      : map_(map),
        gates_(gates),
        queues_(queues),
        process_(process),
        options_(options),
        prefetch_(prefetch) {}

  int run(const PartRequest& request) final;
  DeviceSet idle_devices() final;
  bool submit(const PartRequest& request, Completion* completion) final;
  bool poll() final;
  // The file may be closed when the read ends.
  bool verifies_submitted() const final { return false; }

  // Reads a range within one stripe unit through the page cache, by one call, as on a plain file.
  // False: use run().
  bool read_within_unit(const PartFiles& parts, ByteRange range, void* buffer);

  // Reads a request of one piece into memory that ends before it. As with the kernel, the bytes
  // before the first unmapped page arrive. Their number, or -EFAULT.
  ssize_t read_up_to_fault(PartRequest request);

  // Writes a request of one piece from front to back, so that the parts imply a right size at any
  // time. The bytes written, fewer than asked only if no more could be; or -errno.
  ssize_t write_in_order(const PartRequest& request);

 protected:
  // Called for all bytes that have moved.
  virtual void count(uint32_t device_index, IoOp op, uint64_t bytes, uint32_t io_count) = 0;
  ~InlineEngine() = default;

 private:
  class GateScope;
  class ParallelRun;

  DeviceGate* gate_for(const LaneIo& io, bool direct) const;
  int run_in_turn(RequestCutter& cutter, bool direct);
  bool run_by_queue(const PartRequest& request, int* error);
  PartRequest limited(PartRequest request) const;

  const StripeMap& map_;
  const std::span<DeviceGate* const> gates_;
  InlineQueues& queues_;
  const InlineProcess& process_;
  const Options options_;
  const Prefetch prefetch_;
};

}  // namespace graphlane
