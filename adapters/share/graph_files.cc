#include "adapters/share/graph_files.h"

#include <sys/sendfile.h>

#include <algorithm>

#include "adapters/share/sealed_memory.h"

namespace graphlane::share {
namespace {

// The bytes that are there of [offset, offset + length). By sendfile, which copies from the
// page cache to the memory's pages, no mapping between: half the time of pread.
Result<uint64_t> append(int memory, int file, uint64_t offset, uint64_t length_bytes) {
  auto at = static_cast<off_t>(offset);
  uint64_t done = 0;
  while (done < length_bytes) {
    const ssize_t count = ::sendfile(memory, file, &at, length_bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_errno();
    if (count == 0) break;
    done += static_cast<uint64_t>(count);
  }
  return done;
}

}  // namespace

Outcome<Fd> GraphFiles::load(uint32_t partition) const {
  auto memory = make_memory(0);
  if (!memory) return memory.error();
  const auto [begin, end] = std::ranges::equal_range(ranges, partition, {}, &FileRange::partition);
  for (auto range = begin; range != end; ++range) {
    const int file = files[range->file].get();
    const Result<uint64_t> got = append(memory->get(), file, range->offset, range->length_bytes);
    if (!got) return os_error(got.error().code, name, fmt::format("cannot read at {}", range->offset));
    if (*got < range->length_bytes) {
      return make_error(ESTALE, "{}: byte {}: cut short while jobs use it", name, range->offset + *got);
    }
    // After reading: what was changed before that would be seen here.
    const Result<FileIdentity> now = identify(file);
    if (!now || *now != identities[range->file]) {
      return make_error(ESTALE, "{}: changed while jobs use it", name);
    }
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

}  // namespace graphlane::share
