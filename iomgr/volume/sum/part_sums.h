// PartSums: the checksums of a file's open parts, for a process that verifies reads, or that writes
// without a mount.
//
// Reads are verified if reads_are_verified is set when the file is opened. A read with a mismatch
// fails with EIO, and so does each read of a part with lost checksums. Blocks that have no sum, or
// are being changed, are served, and counted.
//
// Processes without a mount mark regions concurrently: each sets its own bytes in the `.sum`,
// without a lock. So a region that another process is still marking is marked once more.
//
// Threads: everything but open(), adopt() and close() is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stripe.h"
#include "iomgr/volume/sum/sum_file.h"
#include "iomgr/volume/sum/verify.h"

namespace graphlane {

// Whether this process verifies reads. Set it before files are opened.
inline std::atomic<bool> reads_are_verified{false};
// Whether this process writes without a mount. Set it before files are opened.
inline std::atomic<bool> writes_without_mount{false};

// Counts blocks of this process.
struct SumTotals {
  std::atomic<uint64_t> verified{0};
  std::atomic<uint64_t> unverified{0};
  std::atomic<uint64_t> failed{0};
};
inline SumTotals sum_totals;

// Damage of a part, reported once for each block. `part_fd` leads to the part's path.
struct SumFailure {
  int part_fd = -1;
  uint64_t part_offset = 0;
  // of the checksum file; kGood: the block at part_offset fails
  SumVerdict verdict = SumVerdict::kGood;
};
// Damage in a part: the bytes that cannot be believed, and why.
struct SumDamage {
  ByteRange run;
  SumVerdict verdict = SumVerdict::kGood;  // of the checksum file; kGood: the bytes differ
};
using TellSumFailure = void (*)(const SumFailure& failure);
inline std::atomic<TellSumFailure> tell_sum_failure{nullptr};

class PartSums {
 public:
  // Moves a descriptor to a number from `floor` on. Returns the new number.
  using Raise = int (*)(int fd, int floor);

  // Opens the part's checksums. `sum`: its `.sum`, or empty: it is opened below part.root_fd with
  // these flags.
  void open(uint32_t d, const PartOf& part, int part_fd, Fd sum, int flags, Raise raise, int floor);
  void close();

  bool verifies() const { return verifies_; }
  void set_verifies(bool verifies) { verifies_ = verifies; }
  int fd(uint32_t d) const { return files_[d].fd(); }  // -1: none
  bool is_lost(uint32_t d) const { return kinds_[d] == Kind::kLost; }
  SumVerdict verdict(uint32_t d) const { return verdicts_[d]; }  // why they are lost
  bool has_blocks(uint32_t d) const { return kinds_[d] == Kind::kBlocks; }

  // Verifies bytes that were read from the part by `fd`. 0, EIO, or an errno: they cannot be
  // verified.
  int verify(uint32_t d, int fd, uint64_t part_offset, std::span<const iovec> memory,
             uint64_t length_bytes) const;

  // The first damage in the run, which verify() has refused: block by block, for a message.
  std::optional<SumDamage> find_damage(uint32_t d, int fd, ByteRange run) const;

  // Call it before bytes of a part change, without a mount. `run` is of the part. 0 or an errno.
  int mark(uint32_t d, int part_fd, ByteRange run) const;
  // Call it before the part is cut to that size; one process at a time. 0 or an errno.
  int cut(uint32_t d, uint64_t part_bytes) const;
  // As fdatasync(2) of the `.sum`.
  int sync(uint32_t d) const { return files_[d] ? files_[d].sync() : 0; }

 private:
  enum class Kind : uint8_t { kNone, kSmall, kBlocks, kLost };
  int verify_small(uint32_t d, int fd, uint64_t part_offset, std::span<const iovec> memory,
                   uint64_t length) const;

  bool verifies_ = false;
  std::array<Kind, kDeviceCountMax> kinds_{};
  std::array<SumVerdict, kDeviceCountMax> verdicts_{};
  std::array<int, kDeviceCountMax> errors_{};  // why a `.sum` could not be opened
  std::array<SumFile, kDeviceCountMax> files_;
  std::array<PartOf, kDeviceCountMax> parts_{};
  std::array<uint64_t, kDeviceCountMax> region_bytes_{};
  mutable std::array<std::atomic<uint64_t>, kDeviceCountMax> covered_{};
  mutable std::array<std::atomic<bool>, kDeviceCountMax> small_forgotten_{};
  std::array<uint64_t, kDeviceCountMax> small_bytes_{};
};

}  // namespace graphlane
