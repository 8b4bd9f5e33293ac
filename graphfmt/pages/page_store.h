// PageStore: a file of keys and values in pages, open for reading: its head and its index, in
// memory.
//
// The index is sparse: the first key of each page, and the page's checksum. A finished store has it
// in its file. An unfinished store is read to make it. Pages that a sync acknowledged must be
// sound. Behind them the store ends before the first page that is not: a crash has torn it there.
//
// Pages are the caller's to read and to check with check_page(). Errors are one line: file, page,
// reason. EIO: damaged; EINVAL: no store.
//
// Threads: does not change once it is open.
#pragma once

#include <span>
#include <string>

#include "graphfmt/graph_directory.h"
#include "graphfmt/pages/page_packer.h"
#include "graphfmt/pages/store_head.h"

namespace graphlane::graphfmt {

class PageStore {
 public:
  static Outcome<PageStore> open(const std::string& path);
  // A file that is open already.
  static Outcome<PageStore> open(OpenGraphFile file);

  const std::string& path() const { return file_.path(); }
  const OpenGraphFile& file() const { return file_; }
  // Its counts include pages behind the last sync.
  const StoreHead& head() const { return head_; }
  uint32_t page_bytes() const { return head_.page_bytes; }
  uint64_t page_count() const { return index_.size(); }
  uint64_t key_count() const { return head_.key_count; }
  const PageIndex& index() const { return index_; }
  // The bytes of an unfinished store behind its last whole page.
  uint64_t torn_bytes() const { return torn_bytes_; }

  // The only page on which the key can begin. False: it is below all, or in the middle of a value.
  bool find_page(uint64_t key, uint64_t& page_index) const {
    const auto at = std::lower_bound(index_.first_keys.begin(), index_.first_keys.end(), key);
    page_index = static_cast<uint64_t>(at - index_.first_keys.begin());
    if (at != index_.first_keys.end() && *at == key) return true;
    return page_index-- > 0;
  }

  // Verifies the page's checksum and parses it. EIO names the file and the page.
  Outcome<PageView> check_page(uint64_t page_index, std::span<const uint8_t> page) const;
  Error page_error(uint64_t page_index, std::string_view reason) const;

 private:
  explicit PageStore(OpenGraphFile file) : file_(std::move(file)) {}
  Outcome<void> load_index();
  Outcome<void> scan_pages();
  const char* why_unsound(uint64_t page_index, std::span<const uint8_t> page, PageView& view) const;

  OpenGraphFile file_;
  StoreHead head_;
  PageIndex index_;
  uint64_t torn_bytes_ = 0;
};

}  // namespace graphlane::graphfmt
