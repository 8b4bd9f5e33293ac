#include "iomgr/admin/bulk_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "iomgr/base/mutex.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane {
namespace {

class Copier {
 public:
  explicit Copier(const BulkCopy& copy) : copy_(copy) {}

  Outcome<void> run() {
    const uint64_t chunk_count = (copy_.size_bytes + kCopyChunk - 1) / kCopyChunk;
    const uint64_t thread_count =
        std::min({uint64_t{copy_.thread_count}, uint64_t{kCopyThreadsMax}, chunk_count});
    parallel_for(static_cast<uint32_t>(std::max<uint64_t>(thread_count, 1)),
                 [this](uint32_t) { work(); });
    MutexLock lock(mu_);
    if (error_) return *error_;
    return {};
  }

 private:
  void work() {
    const auto unmap = [](void* memory) { ::munmap(memory, kCopyChunk); };
    void* const memory =
        ::mmap(nullptr, kCopyChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail(make_error(ENOMEM, "no memory for a copy buffer"));
    const std::unique_ptr<void, decltype(unmap)> owner(memory, unmap);
    char* const buffer = static_cast<char*>(memory);
    while (const std::optional<ByteRange> range = take(buffer)) {
      if (Outcome<void> done = move(*range, buffer); !done) return fail(done.error());
      if (copy_.progress != nullptr) copy_.progress->add(range->length_bytes);
    }
  }

  // The next range; with read_in_turn, its bytes were read. Nothing: the copy ends.
  std::optional<ByteRange> take(char* buffer) {
    MutexLock lock(mu_);
    if (error_) return std::nullopt;
    if (Outcome<void> go_on = check_interrupt(); !go_on) error_ = go_on.error();
    skip_hole();
    if (error_ || next_ >= copy_.size_bytes) return std::nullopt;
    const ByteRange range{.offset = next_,
                          .length_bytes = std::min(kCopyChunk, copy_.size_bytes - next_)};
    next_ += range.length_bytes;
    if (copy_.read_in_turn) {
      if (Outcome<void> got = copy_.read(range, buffer); !got) error_ = got.error();
    }
    if (error_) return std::nullopt;
    return range;
  }

  // The offset stays a multiple of the chunk, so that direct I/O remains possible.
  void skip_hole() REQUIRES(mu_) {
    if (!copy_.next_data || next_ >= copy_.size_bytes) return;
    const uint64_t data = std::min(copy_.next_data(next_), copy_.size_bytes);
    const uint64_t to = data == copy_.size_bytes ? data : data / kCopyChunk * kCopyChunk;
    if (to <= next_) return;
    if (copy_.progress != nullptr) copy_.progress->add(to - next_);
    next_ = to;
  }

  Outcome<void> move(ByteRange range, char* buffer) {
    if (!copy_.read_in_turn) {
      if (Outcome<void> got = copy_.read(range, buffer); !got) return got;
    }
    const bool all_zero =
        buffer[0] == 0 && std::memcmp(buffer, buffer + 1, range.length_bytes - 1) == 0;
    if (all_zero) return {};
    if (!copy_.write_in_turn) return copy_.write(range, buffer);
    MutexLock lock(write_mu_);
    return copy_.write(range, buffer);
  }

  void fail(const Error& error) {
    MutexLock lock(mu_);
    if (!error_) error_ = error;
  }

  const BulkCopy& copy_;
  Mutex write_mu_;
  Mutex mu_;
  uint64_t next_ GUARDED_BY(mu_) = 0;
  std::optional<Error> error_ GUARDED_BY(mu_);
};

}  // namespace

Outcome<void> run(const BulkCopy& copy) { return Copier(copy).run(); }

}  // namespace graphlane
