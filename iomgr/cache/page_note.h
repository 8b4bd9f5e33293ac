// Detects pages that the kernel has reclaimed (MADV_FREE, Linux 4.12). Such a page reads as zeros
// until it is written. So one nonzero byte of each page is noted, and a reader checks it after
// copying: if the byte is there, the whole page was. (A page of zeros loses nothing.)
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

// The position of the nonzero byte; UINT16_MAX: the page is all zeros.
using PageNote = uint16_t;

// Notes all pages of these bytes, which begin at a page. Ignores the tail behind them.
inline void note_pages(std::span<const std::byte> bytes, PageNote* notes) {
  for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
    const auto page = bytes.subspan(at, std::min(kBlockSize, bytes.size() - at));
    const auto found =
        std::find_if(page.begin(), page.end(), [](std::byte byte) { return byte != std::byte{0}; });
    *notes++ = found == page.end() ? UINT16_MAX : static_cast<PageNote>(found - page.begin());
  }
}

// Whether the kernel reclaimed a page before these bytes of `memory` were copied. `memory` is
// page-aligned.
inline bool has_lost_page(const std::byte* memory, const PageNote* notes, uint64_t begin,
                          uint64_t end) {
  // Acquire: the copy's loads come before the check.
  std::atomic_thread_fence(std::memory_order_acquire);
  for (uint64_t page = begin / kBlockSize; page * kBlockSize < end; ++page) {
    if (notes[page] == UINT16_MAX) continue;
    const volatile std::byte& noted = memory[page * kBlockSize + notes[page]];
    if (noted == std::byte{0}) return true;
  }
  return false;
}

}  // namespace graphlane
