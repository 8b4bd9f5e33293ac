#include "adapters/share/memory/packed_partition.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace graphlane::share {
namespace {

constexpr uint64_t kSlice = kPackedBytesMax;
constexpr uint64_t kGroupsOfSlice = kSlice / kPackedGroupBytes;
constexpr uint64_t kAlignment = 16;
constexpr uint64_t kLeastBytes = 64 << 10;  // below, pages and calls cost more than packing saves

// Judges by the first slice.
bool is_worth_it(std::span<const std::byte> bytes) {
  const auto slice =
      bytes.first(std::min(bytes.size(), kSlice) / kPackedGroupBytes * kPackedGroupBytes);
  return is_worth_packing(packed_bytes(slice), slice.size());
}

}  // namespace

std::shared_ptr<const PackedPartition> PackedPartition::pack(int memory, uint64_t size_bytes) {
  if (size_bytes < kLeastBytes) return nullptr;
  const Outcome<Mapping> original = Mapping::of_sealed(memory, size_bytes);
  if (!original) return nullptr;
  const std::span<const std::byte> bytes = std::as_bytes(original->bytes());
  if (!is_worth_it(bytes)) return nullptr;
  auto made = std::make_shared<PackedPartition>();
  made->size_bytes_ = size_bytes;
  // Untouched pages take no memory, and no slice grows by packing.
  Outcome<Mapping> room = Mapping::private_memory(round_up(size_bytes, kAlignment) + kAlignment);
  if (!room) return nullptr;
  // The kernel would reclaim a huge page as a whole.
  (void)::madvise(room->data(), room->size(), MADV_NOHUGEPAGE);
  made->packed_ = std::move(*room);
  auto* const to = reinterpret_cast<std::byte*>(made->packed_.data());
  const uint64_t whole = size_bytes / kPackedGroupBytes * kPackedGroupBytes;
  made->groups_.resize(whole / kPackedGroupBytes);
  uint64_t place = 0;
  for (uint64_t at = 0; at < whole; at += kSlice) {
    made->begins_.push_back(place);
    const uint64_t length = std::min(kSlice, whole - at);
    place += pack_words(bytes.subspan(at, length), to + place,
                        made->groups_.data() + at / kPackedGroupBytes);
    place = round_up(place, kAlignment);
  }
  made->begins_.push_back(place);
  std::memcpy(to + place, bytes.data() + whole, size_bytes - whole);
  made->packed_.shrink(place + size_bytes - whole);
  const auto packed = std::as_bytes(made->packed_.bytes());
  made->notes_.resize(round_up(packed.size(), kBlockSize) / kBlockSize);
  note_pages(packed, made->notes_.data());
  (void)::madvise(made->packed_.data(), packed.size(), MADV_FREE);
  return made;
}

Outcome<Fd> PackedPartition::unpack() const {
  Outcome<Fd> memory = make_memory(size_bytes_);
  if (!memory) return memory;
  {
    Outcome<Mapping> room = Mapping::for_filling(memory->get(), size_bytes_);
    if (!room) return room.error();
    const auto to = std::as_writable_bytes(std::span(room->data(), room->size()));
    const auto* const from = reinterpret_cast<const std::byte*>(packed_.data());
    for (size_t slice = 0; slice + 1 < begins_.size(); ++slice) {
      const uint64_t at = slice * kSlice;
      const uint64_t length = std::min(kSlice, groups_.size() * kPackedGroupBytes - at);
      unpack_words(from + begins_[slice], groups_.data() + slice * kGroupsOfSlice, 0,
                   to.subspan(at, length));
    }
    const uint64_t whole = groups_.size() * kPackedGroupBytes;
    std::memcpy(to.data() + whole, from + begins_.back(), size_bytes_ - whole);
    if (has_lost_page(from, notes_.data(), 0, packed_.size())) {
      return make_error(EAGAIN, "packed partition: the kernel has reclaimed some of it");
    }
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

}  // namespace graphlane::share
