// PagePacker: keys and values to pages (page.h), which it hands out when they are full.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphfmt/pages/page.h"

namespace graphlane::graphfmt {

// Keeps the first key and the checksum of each page of a store.
struct PageIndex {
  std::vector<uint64_t> first_keys;  // ascending; equal where a value goes on
  std::vector<uint32_t> checksums;
  size_t size() const { return first_keys.size(); }
};

class PagePacker {
 public:
  PagePacker(uint32_t page_bytes, uint64_t store_id)
      : page_bytes_(page_bytes), store_id_(store_id) {}

  // Goes on behind the pages of the index.
  void resume(PageIndex index) { index_ = std::move(index); }

  // `key` is larger than all before.
  void add(uint64_t key, std::span<const uint8_t> value);
  // Ends the page that is filling, if any.
  void end_page();

  // Full pages that were not handed out: a multiple of page_bytes. They are the last ones of the
  // index.
  std::vector<uint8_t>& pages() { return pages_; }
  const PageIndex& index() const { return index_; }

 private:
  bool fits(uint64_t key, size_t value_bytes) const;
  void emit(uint64_t first_key, uint64_t more_bytes);
  uint32_t key_bytes_with(uint64_t key) const;

  const uint32_t page_bytes_;
  const uint64_t store_id_;
  PageIndex index_;
  std::vector<uint8_t> pages_;
  // The page that is filling:
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> ends_;
  std::vector<uint8_t> values_;  // with the rest before them
  uint32_t rest_bytes_ = 0;
};

}  // namespace graphlane::graphfmt
