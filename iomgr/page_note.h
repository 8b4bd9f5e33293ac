// Pages that the kernel may take (MADV_FREE, Linux 4.12): one that has gone reads as zeros, and
// nothing but writing changes that. So of each page one byte that is not zero is noted, and who has
// copied looks for it: if it is there, all of the page was. (A page of zeros can lose nothing.)
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "iomgr/stripe.h"

namespace graphlane {

// Where that byte is.
using PageNote = uint16_t;

// Of a page, or of the begin of one, behind which it is zero.
inline PageNote note_of_page(std::span<const std::byte> page) {
  const auto found =
      std::find_if(page.begin(), page.end(), [](std::byte byte) { return byte != std::byte{0}; });
  return found == page.end() ? UINT16_MAX : static_cast<PageNote>(found - page.begin());
}

// Whether one of the pages that these bytes of `memory`, page-aligned, lie in has gone before they were
// copied.
inline bool has_lost_page(const std::byte* memory, const PageNote* notes, uint64_t begin,
                          uint64_t end) {
  // What was copied was loaded before what follows.
  std::atomic_thread_fence(std::memory_order_acquire);
  for (uint64_t page = begin / kBlockSize; page * kBlockSize < end; ++page) {
    if (notes[page] == UINT16_MAX) continue;
    const volatile std::byte& noted = memory[page * kBlockSize + notes[page]];
    if (noted == std::byte{0}) return true;
  }
  return false;
}

}  // namespace graphlane
