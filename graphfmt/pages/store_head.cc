#include "graphfmt/pages/store_head.h"

#include <cstring>
#include <optional>

namespace graphlane::graphfmt {
namespace {

constexpr char kStoreMagic[8] = {'G', 'l', 'p', 'a', 'g', 'e', 's', '\n'};
constexpr size_t kSlotChecksumAt = kStoreSlotBytes - 4;

// The slot's fields, in the order of the file.
struct SlotFields {
  char magic[8];
  uint32_t version;
  uint32_t page_bytes;
  uint64_t store_id;
  uint64_t sequence;
  uint32_t is_finished;
  uint32_t index_checksum;
  uint64_t page_count;
  uint64_t key_count;
  uint64_t last_key;
  uint64_t value_bytes;
};
static_assert(sizeof(SlotFields) == 72);

// Nothing: the slot was never written, or is damaged.
std::optional<StoreHead> parse_slot(std::span<const uint8_t> slot) {
  SlotFields fields;
  std::memcpy(&fields, slot.data(), sizeof fields);
  uint32_t checksum;
  std::memcpy(&checksum, slot.data() + kSlotChecksumAt, sizeof checksum);
  if (std::memcmp(fields.magic, kStoreMagic, sizeof kStoreMagic) != 0) return std::nullopt;
  if (crc32c_extend(0, slot.data(), kSlotChecksumAt) != checksum) return std::nullopt;
  if (fields.version != kStoreVersion || !is_page_size(fields.page_bytes) ||
      fields.is_finished > 1 || fields.page_count > (uint64_t{1} << 60) / fields.page_bytes) {
    return std::nullopt;
  }
  return StoreHead{.page_bytes = fields.page_bytes,
                   .is_finished = fields.is_finished == 1,
                   .store_id = fields.store_id,
                   .sequence = fields.sequence,
                   .page_count = fields.page_count,
                   .key_count = fields.key_count,
                   .last_key = fields.last_key,
                   .value_bytes = fields.value_bytes,
                   .index_checksum = fields.index_checksum};
}

}  // namespace

StoreSlot encode_slot(const StoreHead& head) {
  SlotFields fields{.magic = {},
                    .version = kStoreVersion,
                    .page_bytes = head.page_bytes,
                    .store_id = head.store_id,
                    .sequence = head.sequence,
                    .is_finished = head.is_finished ? 1u : 0u,
                    .index_checksum = head.index_checksum,
                    .page_count = head.page_count,
                    .key_count = head.key_count,
                    .last_key = head.last_key,
                    .value_bytes = head.value_bytes};
  std::memcpy(fields.magic, kStoreMagic, sizeof kStoreMagic);
  StoreSlot slot{};
  std::memcpy(slot.data(), &fields, sizeof fields);
  const uint32_t checksum = crc32c_extend(0, slot.data(), kSlotChecksumAt);
  std::memcpy(slot.data() + kSlotChecksumAt, &checksum, sizeof checksum);
  return slot;
}

Outcome<StoreHead> parse_store_head(std::span<const uint8_t> bytes, const std::string& path) {
  std::optional<StoreHead> best;
  bool has_magic = false;
  uint32_t version = kStoreVersion;
  for (size_t at = 0; at + kStoreSlotBytes <= bytes.size() && at < kStoreHeadBytes;
       at += kStoreSlotBytes) {
    const auto slot = bytes.subspan(at, kStoreSlotBytes);
    if (std::memcmp(slot.data(), kStoreMagic, sizeof kStoreMagic) == 0) {
      has_magic = true;
      std::memcpy(&version, slot.data() + sizeof kStoreMagic, sizeof version);
    }
    const auto head = parse_slot(slot);
    if (head && (!best || head->sequence > best->sequence)) best = head;
  }
  if (best) return *best;
  if (!has_magic) return make_error(EINVAL, "{}: not a store of pages", path);
  if (version != kStoreVersion) {
    return make_error(ENOTSUP, "{}: byte 8: version {}, expected {}", path, version, kStoreVersion);
  }
  return make_error(EIO, "{}: byte 0: its head is damaged", path);
}

}  // namespace graphlane::graphfmt
