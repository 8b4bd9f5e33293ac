#include "graphfmt/pages/page_store.h"

#include <filesystem>

#include "graphfmt/buffer.h"

namespace graphlane::graphfmt {

Outcome<PageStore> PageStore::open(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string parent = whole.parent_path().empty() ? "." : whole.parent_path().string();
  const auto directory = GraphDirectory::open(parent);
  if (!directory) return directory.error();
  auto file = directory->open_file(whole.filename().string());
  if (!file) return file.error();
  return open(std::move(*file));
}

Outcome<PageStore> PageStore::open(OpenGraphFile file) {
  PageStore store(std::move(file));
  const uint64_t size = store.file_.size_bytes();
  auto bytes = Buffer::allocate(kStoreHeadBytes);
  if (!bytes) return bytes.error();
  const uint64_t head_bytes = std::min(size, kStoreHeadBytes);
  if (auto done = store.file_.read({0, head_bytes}, bytes->data()); !done) return done.error();
  const auto head = parse_store_head({bytes->as<uint8_t>(), head_bytes}, store.path());
  if (!head) return head.error();
  store.head_ = *head;
  const uint64_t least =
      head->is_finished ? head->file_bytes() : head->page_offset(head->page_count);
  if (size < least) {
    return make_error(EIO, "{}: byte {}: ends there, and has {} bytes at least", store.path(), size,
                      least);
  }
  if (head->is_finished && size > least) {
    return make_error(EIO, "{}: byte {}: {} bytes too many", store.path(), least, size - least);
  }
  if (auto done = head->is_finished ? store.load_index() : store.scan_pages(); !done) {
    return done.error();
  }
  return store;
}

Outcome<void> PageStore::load_index() {
  const uint64_t count = head_.page_count;
  const uint64_t begin = head_.page_offset(count);
  auto bytes = Buffer::allocate(head_.index_bytes());
  if (!bytes) {
    return make_error(ENOMEM, "{}: no memory for its index of {} bytes", path(),
                      head_.index_bytes());
  }
  if (auto done = file_.read({begin, head_.index_bytes()}, bytes->data()); !done) return done;
  if (crc32c_extend(0, bytes->data(), head_.index_bytes()) != head_.index_checksum) {
    return make_error(EIO, "{}: byte {}: the checksum of its index is wrong", path(), begin);
  }
  const auto* const keys = bytes->as<uint64_t>();
  index_.first_keys.assign(keys, keys + count);
  const auto* const checksums = reinterpret_cast<const uint32_t*>(keys + count);
  index_.checksums.assign(checksums, checksums + count);
  if (std::is_sorted(index_.first_keys.begin(), index_.first_keys.end())) return {};
  return make_error(EIO, "{}: byte {}: the keys of its index do not ascend", path(), begin);
}

const char* PageStore::why_unsound(uint64_t page_index, std::span<const uint8_t> page,
                                   PageView& view) const {
  PageHead head;
  std::memcpy(&head, page.data(), sizeof head);
  if (page_checksum(page) != head.checksum) return "its checksum is wrong: it is damaged";
  if (head.store_id != head_.store_id) return "it is of another store";
  if (head.page_index != page_index) return "it is another page of this store";
  if (page_index < index_.size() && (head.checksum != index_.checksums[page_index] ||
                                     head.first_key != index_.first_keys[page_index])) {
    return "it is not the page that was written";
  }
  return PageView::parse(page, view);
}

Error PageStore::page_error(uint64_t page_index, std::string_view reason) const {
  return make_error(EIO, "{}: page {} at byte {}: {}", path(), page_index,
                    head_.page_offset(page_index), reason);
}

Outcome<PageView> PageStore::check_page(uint64_t page_index, std::span<const uint8_t> page) const {
  PageView view;
  const char* const reason = why_unsound(page_index, page, view);
  if (reason != nullptr) return page_error(page_index, reason);
  return view;
}

// Reads the pages of an unfinished store, up to the last one that is whole and ends no value in its
// middle.
Outcome<void> PageStore::scan_pages() {
  const uint32_t page_bytes = head_.page_bytes;
  const uint64_t page_count = (file_.size_bytes() - kStoreHeadBytes) / page_bytes;
  const uint64_t batch_pages = std::max<uint64_t>(1, (uint64_t{1} << 20) / page_bytes);
  auto buffer = Buffer::allocate(batch_pages * page_bytes);
  if (!buffer) return buffer.error();
  // The counts up to the last page that ends a value.
  StoreHead whole = head_;
  whole.page_count = whole.key_count = whole.value_bytes = 0;
  StoreHead so_far = whole;
  uint64_t open_bytes = 0;
  for (uint64_t page = 0; page < page_count; ++page) {
    if (page % batch_pages == 0) {
      const uint64_t count = std::min(batch_pages, page_count - page);
      const ByteRange range{head_.page_offset(page), count * page_bytes};
      if (auto done = file_.read(range, buffer->data()); !done) return done;
    }
    const std::span<const uint8_t> bytes(buffer->as<uint8_t>() + page % batch_pages * page_bytes,
                                         page_bytes);
    PageView view;
    const char* reason = why_unsound(page, bytes, view);
    if (reason == nullptr) {
      const PageHead& h = view.head();
      const uint64_t rest_and_more = h.rest_bytes + (h.key_count == 0 ? h.more_bytes : 0);
      const bool ascends =
          h.key_count == 0 || so_far.key_count == 0 || h.first_key > so_far.last_key;
      if (rest_and_more != open_bytes) reason = "a value does not go on in it";
      if (!ascends) reason = "its keys do not ascend";
    }
    if (reason != nullptr) {
      if (page < head_.page_count) return page_error(page, reason);
      break;
    }
    const PageHead& h = view.head();
    open_bytes = h.more_bytes;
    ++so_far.page_count;
    so_far.key_count += h.key_count;
    so_far.value_bytes += h.rest_bytes;
    for (uint32_t i = 0; i < h.key_count; ++i) so_far.value_bytes += view.value(i).size();
    if (h.key_count > 0) so_far.last_key = view.key(h.key_count - 1);
    index_.first_keys.push_back(h.first_key);
    index_.checksums.push_back(h.checksum);
    if (open_bytes == 0) whole = so_far;
  }
  if (whole.page_count < head_.page_count || whole.key_count < head_.key_count) {
    return page_error(whole.page_count, "a value that was synced does not end");
  }
  index_.first_keys.resize(whole.page_count);
  index_.checksums.resize(whole.page_count);
  head_ = whole;
  torn_bytes_ = file_.size_bytes() - head_.page_offset(head_.page_count);
  return {};
}

}  // namespace graphlane::graphfmt
