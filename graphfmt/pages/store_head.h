// StoreHead: the head of a store: the size of pages, and what a sync has acknowledged.
//
//   0      slot A (4096 bytes)     a new head overwrites the older slot: the other one is valid
//   4096   slot B                  until the new one is complete
//   8192   page 0, page 1, …
//          the index, if the store is finished: first keys (uint64 each), then checksums (uint32 each)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "graphfmt/pages/page.h"
#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

inline constexpr uint64_t kStoreSlotBytes = 4096;
inline constexpr uint64_t kStoreHeadBytes = 2 * kStoreSlotBytes;
inline constexpr uint32_t kStoreVersion = 1;

struct StoreHead {
  uint32_t page_bytes = kPageBytesUsual;
  bool is_finished = false;  // there is an index, and no page follows the synced ones
  uint64_t store_id = 0;     // in each page too
  uint64_t sequence = 0;     // of the head; the higher one is valid
  // What is on the device for certain:
  uint64_t page_count = 0;
  uint64_t key_count = 0;
  uint64_t last_key = 0;     // if key_count is not 0
  uint64_t value_bytes = 0;  // of all values
  uint32_t index_checksum = 0;

  uint64_t page_offset(uint64_t page_index) const {
    return kStoreHeadBytes + page_index * page_bytes;
  }
  uint64_t index_bytes() const { return page_count * (sizeof(uint64_t) + sizeof(uint32_t)); }
  // The size of a finished store.
  uint64_t file_bytes() const { return page_offset(page_count) + index_bytes(); }
  friend bool operator==(const StoreHead&, const StoreHead&) = default;
};

using StoreSlot = std::array<uint8_t, kStoreSlotBytes>;
StoreSlot encode_slot(const StoreHead& head);

// The head that holds, of both slots. EINVAL: no store; EIO: both are damaged; ENOTSUP: another
// version. Errors call the file `path`.
Outcome<StoreHead> parse_store_head(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace graphlane::graphfmt
