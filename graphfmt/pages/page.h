// Page: the unit in which a store of keys and values is read and written (MaiterStore §3.2).
// FORMAT.md has it byte by byte.
//
//   head (48 bytes) | keys | ends of values | to 4 | rest of a value from the page before | values | zeros
//
// Keys ascend within a page and from page to page. A value that does not fit into an empty page
// begins on a page of its own and goes on in those that follow; other values lie in one page each.
//
// PageView looks at a page in memory and copies nothing. parse() checks every field, so that
// value() and find() never read outside of the page, whatever its bytes are.
//
// Threads: a view does not change.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "iomgr/base/crc32c_long.h"

namespace graphlane::graphfmt {

inline constexpr uint32_t kPageBytesMin = 4096;
inline constexpr uint32_t kPageBytesUsual = 8192;
inline constexpr uint32_t kPageBytesMax = 1 << 20;

constexpr bool is_page_size(uint64_t bytes) {
  return bytes >= kPageBytesMin && bytes <= kPageBytesMax && bytes % kPageBytesMin == 0;
}

struct PageHead {
  uint32_t checksum = 0;   // CRC32C of the bytes behind it
  uint32_t key_bytes = 0;  // 0: keys are consecutive; 2, 4 or 8: the size of key - first_key
  uint64_t store_id = 0;
  uint64_t page_index = 0;  // within the store
  // the first that begins here; else the key of the value that continues here
  uint64_t first_key = 0;
  uint32_t key_count = 0;   // keys that begin here
  uint32_t rest_bytes = 0;  // of a value that began earlier
  uint64_t more_bytes = 0;  // of the last value, in the pages that follow
};
static_assert(sizeof(PageHead) == 48);

// How many bytes a page has for the end of a value.
constexpr uint32_t end_bytes(uint32_t page_bytes) { return page_bytes <= 1 << 16 ? 2 : 4; }
// Where values begin.
constexpr uint64_t values_offset(uint32_t page_bytes, uint64_t key_count, uint32_t key_bytes) {
  return (sizeof(PageHead) + key_count * (key_bytes + end_bytes(page_bytes)) + 3) / 4 * 4;
}

inline uint32_t page_checksum(std::span<const uint8_t> page) {
  return crc32c_extend(0, page.data() + 4, page.size() - 4);
}

class PageView {
 public:
  PageView() = default;

  // nullptr: it is sound. Else the reason. The checksum is the caller's to compare.
  static const char* parse(std::span<const uint8_t> page, PageView& view) {
    view.page_ = page;
    std::memcpy(&view.head_, page.data(), sizeof view.head_);
    const PageHead& h = view.head_;
    const auto page_bytes = static_cast<uint32_t>(page.size());
    if (h.key_bytes != 0 && h.key_bytes != 2 && h.key_bytes != 4 && h.key_bytes != 8) {
      return "its keys have no known width";
    }
    if (h.key_count > page_bytes) return "it has more keys than room";
    view.values_ = values_offset(page_bytes, h.key_count, h.key_bytes);
    if (view.values_ > page_bytes || h.rest_bytes > page_bytes - view.values_) {
      return "it has more keys than room";
    }
    if (h.key_count == 0 && h.rest_bytes == 0) return "it is empty";
    uint64_t before = h.rest_bytes;
    for (uint32_t i = 0; i < h.key_count; ++i) {
      const uint64_t end = view.end(i);
      if (end < before || end > page_bytes - view.values_) return "a value ends outside of it";
      if (i > 0 && view.key(i) <= view.key(i - 1)) return "its keys do not ascend";
      before = end;
    }
    if (h.key_count > 0 && view.key(0) != h.first_key) return "its first key is another";
    if (h.key_count > 0 && view.key(h.key_count - 1) < h.first_key) return "its keys do not ascend";
    return nullptr;
  }

  const PageHead& head() const { return head_; }
  uint32_t key_count() const { return head_.key_count; }
  bool has_rest() const { return head_.rest_bytes > 0; }

  // i < key_count()
  uint64_t key(uint32_t i) const {
    switch (head_.key_bytes) {
      case 0: return head_.first_key + i;
      case 2: return head_.first_key + load<uint16_t>(sizeof(PageHead) + size_t{i} * 2);
      case 4: return head_.first_key + load<uint32_t>(sizeof(PageHead) + size_t{i} * 4);
      default: return head_.first_key + load<uint64_t>(sizeof(PageHead) + size_t{i} * 8);
    }
  }
  // The bytes of value i in this page: all of them, except for the last one where more_bytes is not
  // 0.
  std::span<const uint8_t> value(uint32_t i) const {
    const uint64_t begin = i == 0 ? head_.rest_bytes : end(i - 1);
    return page_.subspan(values_ + begin, end(i) - begin);
  }
  // The bytes of the value that began on a page before.
  std::span<const uint8_t> rest() const { return page_.subspan(values_, head_.rest_bytes); }
  bool is_continued(uint32_t i) const { return i + 1 == head_.key_count && head_.more_bytes > 0; }

  // The place of the first key that is not below `key`; key_count(): there is none.
  uint32_t lower_bound(uint64_t key) const {
    if (key <= head_.first_key) return 0;
    const uint64_t distance = key - head_.first_key;
    switch (head_.key_bytes) {
      case 0: return static_cast<uint32_t>(std::min<uint64_t>(distance, head_.key_count));
      case 2: return search<uint16_t>(distance);
      case 4: return search<uint32_t>(distance);
      default: return search<uint64_t>(distance);
    }
  }
  // key_count(): not there.
  uint32_t find(uint64_t key) const {
    const uint32_t at = lower_bound(key);
    return at < head_.key_count && this->key(at) == key ? at : head_.key_count;
  }

 private:
  template <class T>
  T load(size_t at) const {
    T value;
    std::memcpy(&value, page_.data() + at, sizeof value);
    return value;
  }
  uint64_t end(uint32_t i) const {
    const size_t ends = sizeof(PageHead) + size_t{head_.key_count} * head_.key_bytes;
    return end_bytes(static_cast<uint32_t>(page_.size())) == 2
               ? load<uint16_t>(ends + size_t{i} * 2)
               : load<uint32_t>(ends + size_t{i} * 4);
  }
  template <class T>
  uint32_t search(uint64_t distance) const {
    uint32_t first = 0, count = head_.key_count;
    while (count > 0) {
      const uint32_t half = count / 2;
      const bool is_below = load<T>(sizeof(PageHead) + size_t{first + half} * sizeof(T)) < distance;
      first = is_below ? first + half + 1 : first;
      count = is_below ? count - half - 1 : half;
    }
    return first;
  }

  std::span<const uint8_t> page_;
  PageHead head_;
  uint64_t values_ = 0;
};

}  // namespace graphlane::graphfmt
