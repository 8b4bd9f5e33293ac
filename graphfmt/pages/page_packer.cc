#include "graphfmt/pages/page_packer.h"

#include <algorithm>
#include <cassert>

namespace graphlane::graphfmt {

uint32_t PagePacker::key_bytes_with(uint64_t key) const {
  if (keys_.empty()) return 0;
  const uint64_t distance = key - keys_[0];
  if (distance == keys_.size() && keys_.back() - keys_[0] == keys_.size() - 1) return 0;
  return distance <= UINT16_MAX ? 2 : distance <= UINT32_MAX ? 4 : 8;
}

bool PagePacker::fits(uint64_t key, size_t value_bytes) const {
  return values_offset(page_bytes_, keys_.size() + 1, key_bytes_with(key)) + values_.size() +
             value_bytes <=
         page_bytes_;
}

void PagePacker::add(uint64_t key, std::span<const uint8_t> value) {
  if (!fits(key, value.size())) end_page();
  if (fits(key, value.size())) {
    keys_.push_back(key);
    values_.insert(values_.end(), value.begin(), value.end());
    ends_.push_back(static_cast<uint32_t>(values_.size()));
    return;
  }
  // Longer than a page: it begins on one of its own.
  keys_.push_back(key);
  for (size_t room = page_bytes_ - values_offset(page_bytes_, 1, 0);;
       room = page_bytes_ - values_offset(page_bytes_, 0, 0)) {
    const std::span<const uint8_t> here = value.first(std::min(room, value.size()));
    value = value.subspan(here.size());
    values_.assign(here.begin(), here.end());
    if (keys_.empty()) {
      rest_bytes_ = static_cast<uint32_t>(here.size());
    } else {
      ends_.push_back(rest_bytes_ + static_cast<uint32_t>(here.size()));
    }
    if (value.empty()) {
      // The last piece may share its page with keys to come, if the first of them fits.
      if (here.size() == room) emit(key, 0);
      return;
    }
    emit(key, value.size());
  }
}

void PagePacker::end_page() {
  if (keys_.empty() && rest_bytes_ == 0) return;
  emit(keys_.empty() ? index_.first_keys.back() : keys_[0], 0);
}

void PagePacker::emit(uint64_t first_key, uint64_t more_bytes) {
  PageHead head{.store_id = store_id_,
                .page_index = index_.size(),
                .first_key = first_key,
                .key_count = static_cast<uint32_t>(keys_.size()),
                .rest_bytes = rest_bytes_,
                .more_bytes = more_bytes};
  if (!keys_.empty() && keys_.back() - keys_[0] != keys_.size() - 1) {
    const uint64_t distance = keys_.back() - keys_[0];
    head.key_bytes = distance <= UINT16_MAX ? 2 : distance <= UINT32_MAX ? 4 : 8;
  }
  const size_t begin = pages_.size();
  pages_.resize(begin + page_bytes_);
  uint8_t* const page = pages_.data() + begin;
  uint8_t* to = page + sizeof head;
  const auto put = [&to](uint64_t number, uint32_t bytes) {
    std::memcpy(to, &number, bytes);
    to += bytes;
  };
  if (head.key_bytes > 0) {
    for (const uint64_t key : keys_) put(key - keys_[0], head.key_bytes);
  }
  for (const uint32_t end : ends_) put(end, end_bytes(page_bytes_));
  std::copy(values_.begin(), values_.end(),
            page + values_offset(page_bytes_, head.key_count, head.key_bytes));
  std::memcpy(page, &head, sizeof head);
  head.checksum = page_checksum({page, page_bytes_});
  std::memcpy(page, &head.checksum, sizeof head.checksum);
  index_.first_keys.push_back(first_key);
  index_.checksums.push_back(head.checksum);
  keys_.clear();
  ends_.clear();
  values_.clear();
  rest_bytes_ = 0;
}

}  // namespace graphlane::graphfmt
