#include "adapters/share/graph_files.h"

#include <algorithm>

#include "adapters/share/sealed_memory.h"
#include "iomgr/base/file_io.h"

namespace graphlane::share {

Outcome<Fd> GraphFiles::load(uint32_t partition) const {
  auto memory = make_memory(partition_bytes[partition]);
  if (!memory) return memory.error();
  {
    auto mapping = Mapping::for_filling(memory->get(), partition_bytes[partition]);
    if (!mapping) return mapping.error();
    char* at = mapping->data();
    const auto [begin, end] =
        std::ranges::equal_range(ranges, partition, {}, &FileRange::partition);
    for (auto range = begin; range != end; ++range) {
      const Result<size_t> got =
          pread_full(files[range->file].get(), at, range->length_bytes, range->offset);
      if (!got) return os_error(got.error().code, name, fmt::format("cannot read at {}", range->offset));
      if (*got < range->length_bytes) {
        return make_error(ESTALE, "{}: byte {}: cut short while jobs use it", name, range->offset + *got);
      }
      at += range->length_bytes;
      // After reading: what was changed before that would be seen here.
      const Result<FileIdentity> now = identify(files[range->file].get());
      if (!now || *now != identities[range->file]) {
        return make_error(ESTALE, "{}: changed while jobs use it", name);
      }
    }
  }  // unmapped: sealing wants no writable mapping
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

}  // namespace graphlane::share
