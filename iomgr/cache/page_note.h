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

#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

// Where that byte is.
using PageNote = uint16_t;

// Of all pages of these bytes, which begin with one; what is behind them in the last one is left alone.
inline void note_pages(std::span<const std::byte> bytes, PageNote* notes) {
  for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
    const auto page = bytes.subspan(at, std::min(kBlockSize, bytes.size() - at));
    const auto found =
        std::find_if(page.begin(), page.end(), [](std::byte byte) { return byte != std::byte{0}; });
    *notes++ = found == page.end() ? UINT16_MAX : static_cast<PageNote>(found - page.begin());
  }
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
