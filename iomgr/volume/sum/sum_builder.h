// SumBuilder: computes the checksums of new parts while they are written (an import, a restripe).
//
// The sums of a part of up to 256 MiB stay in memory, and its `.sum` is written at once, by finish().
// add() computes the sums from the memory that was written, so a byte that a device changes on its
// way is found. Unwritten blocks are holes, with the sum 0.
//
// Threads: add() is safe from any, for ranges that share no block.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/sum/sum_file.h"

namespace graphlane {

struct LaneIo;

class SumBuilder {
 public:
  // Makes the `.sum` of each part that needs one. `file` has its final size, and must outlive this.
  static Outcome<SumBuilder> create(const Volume& volume, const StripedFile& file);

  // Adds the bytes of `range`, which begins at a block, and ends at one or at the end of the file.
  Outcome<void> add(ByteRange range, const char* buffer);

  // Completes the sums; reads small parts back. Not durable yet.
  Outcome<void> finish();
  // After finish(): sets the fields of a part's record. `record.ordinal` tells which part.
  void note_in(PartRecord& record) const;

 private:
  SumBuilder(const Volume& volume, const StripedFile& file) : volume_(&volume), file_(&file) {}
  uint64_t part_bytes(uint32_t d) const {
    return file_->map().part_size(d, file_->layout().logical_size);
  }
  int add_of(const LaneIo& io);
  int write(uint32_t d);
  Error error(uint32_t d, int code, const char* what) const;

  const Volume* volume_;
  const StripedFile* file_;
  std::array<SumFile, kDeviceCountMax> files_;               // empty for a small part
  std::array<std::vector<uint32_t>, kDeviceCountMax> kept_;  // sums that are not written yet
  std::array<uint32_t, kDeviceCountMax> small_{};
};

// The sum of a part of at most kSmallPartMax bytes, read from it. An errno; EIO: it is shorter.
Result<uint32_t> sum_of_small_part(int part_fd, uint64_t part_bytes);

}  // namespace graphlane
