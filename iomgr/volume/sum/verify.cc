#include "iomgr/volume/sum/verify.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/volume/sum/scratch_block.h"

namespace graphlane {
namespace {

constexpr uint32_t kBatchBlocks = 128;
constexpr int kLooksMax = 8;  // retries while the header keeps changing

enum class BlockState : uint8_t { kGood, kUnverified, kFailed };

// The state of a block in the `.sum` at one time.
struct BlockSum {
  uint64_t sequence = 0;
  uint64_t covered_bytes = 0;  // of the block
  bool is_void = false;        // not covered, or in a dirty region
  uint64_t void_end = 0;       // the part offset up to which that holds at least
};

Result<BlockSum> look_at(const SumFile& sums, uint64_t block,
                         std::atomic<uint64_t>* covered_bytes) {
  SumHeader header;
  const Result<SumVerdict> verdict = sums.read_header(&header);
  if (!verdict) return verdict.error();
  if (*verdict != SumVerdict::kGood) return Errno{EIO};
  covered_bytes->store(header.covered_bytes, relaxed);
  const uint64_t at = block * kBlockSize;
  BlockSum seen{.sequence = header.sequence};
  if (at >= header.covered_bytes) {
    seen.is_void = true;
    seen.void_end = UINT64_MAX;
    return seen;
  }
  seen.covered_bytes = std::min(header.covered_bytes - at, kBlockSize);
  const uint64_t region = header.region_of(at);
  const Result<bool> dirty = sums.is_dirty(region);
  if (!dirty) return dirty.error();
  seen.is_void = *dirty;
  seen.void_end = (region + 1) * header.region_bytes;
  return seen;
}

uint32_t sum_of(const uint8_t* block, uint64_t covered_bytes) {
  uint32_t sum = 0;
  if (covered_bytes < kBlockSize) return sum_partial_block(block, covered_bytes);
  sum_blocks(block, 1, &sum);
  return sum;
}

// Reads the block into `scratch`, and returns its state. `void_end` as above.
Result<BlockState> check_block(const SumFile& sums, int part_fd, uint64_t block, uint8_t* scratch,
                               std::atomic<uint64_t>* covered_bytes, uint64_t* void_end) {
  for (int look = 0; look < kLooksMax; ++look) {
    const Result<BlockSum> before = look_at(sums, block, covered_bytes);
    if (!before) return before.error();
    const Result<size_t> got = pread_full(part_fd, scratch, kBlockSize, block * kBlockSize);
    if (!got) return got.error();
    std::memset(scratch + *got, 0, kBlockSize - *got);
    if (before->is_void) {
      *void_end = before->void_end;
      return BlockState::kUnverified;
    }
    uint32_t sum = 0;
    if (const int error = sums.read_sums(block, {&sum, 1}); error != 0) return Errno{error};
    if (sum_of(scratch, before->covered_bytes) == sum) return BlockState::kGood;
    const Result<BlockSum> after = look_at(sums, block, covered_bytes);
    if (!after) return after.error();
    if (after->sequence == before->sequence && !after->is_void) return BlockState::kFailed;
  }
  *void_end = (block + 1) * kBlockSize;
  return BlockState::kUnverified;
}

class Verification {
 public:
  Verification(const SumFile& sums, int part_fd, std::atomic<uint64_t>* covered_bytes,
               SumCounts* counts, FailedBlocks* failed)
      : sums_(sums),
        part_fd_(part_fd),
        covered_bytes_(covered_bytes),
        counts_(counts),
        failed_(failed) {}

  // 0 or an errno.
  int verify(uint64_t at, uint8_t* memory, uint64_t length) {
    const uint64_t end = at + length;
    while (at < end) {
      uint64_t taken = 0;
      const bool is_whole =
          at % kBlockSize == 0 && (end - at >= kBlockSize || end >= covered_bytes_->load(relaxed));
      const int error =
          is_whole ? verify_whole(at, end, memory, &taken) : verify_piece(at, end, memory, &taken);
      if (error != 0) return error;
      at += taken;
      memory += taken;
    }
    return 0;
  }

 private:
  // Verifies a batch of whole blocks in memory, as far as they are covered.
  int verify_whole(uint64_t at, uint64_t end, uint8_t* memory, uint64_t* taken) {
    const uint64_t first = at / kBlockSize;
    const uint64_t covered = covered_bytes_->load(relaxed);
    if (at < void_end_ || at >= covered) return skip(at, end, taken);
    const uint64_t block_end = std::min(end, covered);
    const auto count = static_cast<uint32_t>(
        std::min<uint64_t>((block_end - at + kBlockSize - 1) / kBlockSize, kBatchBlocks));
    uint32_t expected[kBatchBlocks], found[kBatchBlocks];
    if (const int error = sums_.read_sums(first, {expected, count}); error != 0) return error;
    const bool has_partial = at + count * kBlockSize > block_end;
    const uint32_t whole = has_partial ? count - 1 : count;
    sum_blocks(memory, whole, found);
    if (has_partial) {
      found[whole] =
          sum_partial_block(memory + whole * kBlockSize, block_end - at - whole * kBlockSize);
    }
    *taken = std::min<uint64_t>(count * kBlockSize, end - at);
    for (uint32_t i = 0; i < count; ++i) {
      if (expected[i] == found[i]) {
        counts_->verified += 1;
      } else {
        const uint64_t in_memory = i * kBlockSize;
        const int error =
            look_again(first + i, memory + in_memory, std::min(kBlockSize, end - at - in_memory));
        if (error != 0) return error;
      }
    }
    return 0;
  }

  // Skips bytes without a checksum, up to where the state must be read again.
  int skip(uint64_t at, uint64_t end, uint64_t* taken) {
    if (at >= void_end_) {
      const Result<BlockSum> seen = look_at(sums_, at / kBlockSize, covered_bytes_);
      if (!seen) return seen.error().code;
      if (!seen->is_void) return 0;  // covered by now: `taken` stays 0
      void_end_ = seen->void_end;
    }
    const uint64_t to = std::min(end, void_end_);
    *taken = to - at;
    counts_->unverified += (to - at + kBlockSize - 1) / kBlockSize;
    return 0;
  }

  // A device that errs once, and then not, has brought the wrong bytes: the right ones replace
  // them.
  int look_again(uint64_t block, uint8_t* memory, uint64_t length) {
    if (block * kBlockSize < void_end_) return counts_->unverified += 1, 0;
    const ScratchBlock scratch;
    if (scratch.bytes() == nullptr) return ENOMEM;
    const Result<BlockState> state =
        check_block(sums_, part_fd_, block, scratch.bytes(), covered_bytes_, &void_end_);
    if (state && *state == BlockState::kGood) std::memcpy(memory, scratch.bytes(), length);
    return count(block, state);
  }

  int count(uint64_t block, const Result<BlockState>& state) {
    if (!state) return state.error().code;
    if (*state == BlockState::kGood) counts_->verified += 1;
    if (*state == BlockState::kUnverified) counts_->unverified += 1;
    if (*state == BlockState::kFailed) {
      counts_->failed += 1;
      if (failed_ != nullptr) failed_->failed(block * kBlockSize);
    }
    return 0;
  }

  // Part of a block: copies verified bytes to the caller.
  int verify_piece(uint64_t at, uint64_t end, uint8_t* memory, uint64_t* taken) {
    const uint64_t block = at / kBlockSize;
    const uint64_t in_block = at % kBlockSize;
    *taken = std::min(end - at, kBlockSize - in_block);
    const ScratchBlock scratch;
    if (scratch.bytes() == nullptr) return ENOMEM;
    uint64_t void_end = 0;
    const Result<BlockState> state =
        check_block(sums_, part_fd_, block, scratch.bytes(), covered_bytes_, &void_end);
    if (const int error = count(block, state); error != 0) return error;
    if (*state == BlockState::kGood) std::memcpy(memory, scratch.bytes() + in_block, *taken);
    return 0;
  }

  const SumFile& sums_;
  const int part_fd_;
  std::atomic<uint64_t>* const covered_bytes_;
  SumCounts* const counts_;
  FailedBlocks* const failed_;
  uint64_t void_end_ = 0;  // no block before it can be verified
};

}  // namespace

Result<bool> matches_sum(const SumFile& sums, int part_fd, uint64_t block, uint64_t covered_bytes) {
  const ScratchBlock scratch;
  if (scratch.bytes() == nullptr) return Errno{ENOMEM};
  const uint64_t at = block * kBlockSize;
  const Result<size_t> got = pread_full(part_fd, scratch.bytes(), kBlockSize, at);
  if (!got) return got.error();
  std::memset(scratch.bytes() + *got, 0, kBlockSize - *got);
  uint32_t sum = 0;
  if (const int error = sums.read_sums(block, {&sum, 1}); error != 0) return Errno{error};
  return sum_of(scratch.bytes(), std::min(covered_bytes - at, kBlockSize)) == sum;
}

int verify_bytes(const SumFile& sums, int part_fd, uint64_t part_offset,
                 std::span<const iovec> memory, uint64_t length_bytes,
                 std::atomic<uint64_t>* covered_bytes, SumCounts* counts, FailedBlocks* failed) {
  Verification verification(sums, part_fd, covered_bytes, counts, failed);
  for (const iovec& piece : memory) {
    const uint64_t length = std::min<uint64_t>(piece.iov_len, length_bytes);
    if (length == 0) break;
    const int error =
        verification.verify(part_offset, static_cast<uint8_t*>(piece.iov_base), length);
    if (error != 0) return error;
    part_offset += length;
    length_bytes -= length;
  }
  return 0;
}

}  // namespace graphlane
