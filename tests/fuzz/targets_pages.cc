// Pages and heads of stores of keys and values: as they are, and with checksums that are right.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "graphfmt/pages/page_store.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
using namespace graphfmt;
namespace {

// Parses a page that begins with the input.
void run_page(Bytes input) {
  std::vector<uint8_t> page(kPageBytesMin);
  std::copy_n(input.begin(), std::min(input.size(), page.size()), page.begin());
  PageView view;
  if (PageView::parse(page, view) != nullptr) return;
  for (uint32_t i = 0; i < view.key_count(); ++i) {
    const auto value = view.value(i);
    require(value.empty() || (value.data() >= page.data() &&
                              value.data() + value.size() <= page.data() + page.size()));
    require(view.find(view.key(i)) == i);
  }
  require(view.rest().size() == view.head().rest_bytes);
}

// A small store with changed bytes. The checksums of changed blocks and of the head's slots are
// made right.
void run_page_store(Bytes input) {
  static const std::vector<uint8_t> sound = [] {
    PagePacker packer(kPageBytesMin, 7);
    const std::vector<uint8_t> value(9000, 3);
    for (uint64_t key = 0; key < 40; ++key) {
      packer.add(key * key, std::span(value).first(key == 20 ? 9000 : key));
    }
    packer.end_page();
    const StoreHead head{.page_bytes = kPageBytesMin,
                         .store_id = 7,
                         .sequence = 1,
                         .page_count = 1,
                         .key_count = 20};
    std::vector<uint8_t> bytes(kStoreSlotBytes);
    const StoreSlot slot = encode_slot(head);
    bytes.insert(bytes.end(), slot.begin(), slot.end());
    bytes.insert(bytes.end(), packer.pages().begin(), packer.pages().end());
    return bytes;
  }();
  std::vector<uint8_t> bytes = sound;
  for (size_t i = 0; i + 2 < input.size(); i += 3) {  // where in a block, which block, and the byte
    const size_t block = input[i + 1] % (bytes.size() / kPageBytesMin);
    bytes[block * kPageBytesMin + input[i]] = input[i + 2];
  }
  for (size_t at = 0; at < kStoreHeadBytes; at += kStoreSlotBytes) {
    const uint32_t sum = crc32c_extend(0, &bytes[at], kStoreSlotBytes - 4);
    std::memcpy(&bytes[at + kStoreSlotBytes - 4], &sum, sizeof sum);
  }
  for (size_t at = kStoreHeadBytes; at < bytes.size(); at += kPageBytesMin) {
    const uint32_t sum = page_checksum({&bytes[at], kPageBytesMin});
    std::memcpy(&bytes[at], &sum, sizeof sum);
  }
  const InputFile file(bytes);
  const auto store = PageStore::open(file.path());
  if (!store) {
    require(store.error().code != 0 && !store.error().text.empty() &&
            store.error().text.find('\n') == std::string::npos);
    return;
  }
  require(store->page_count() <= bytes.size() / kPageBytesMin);
  for (const uint64_t key : {uint64_t{0}, uint64_t{20}, uint64_t{400}, ~uint64_t{0}}) {
    uint64_t page = 0;
    if (store->find_page(key, page)) require(page < store->page_count());
  }
}

constexpr FuzzTarget kPagesTargets[] = {{"page", run_page}, {"page_store", run_page_store}};

}  // namespace

std::span<const FuzzTarget> pages_targets() { return kPagesTargets; }

}  // namespace graphlane::fuzz
