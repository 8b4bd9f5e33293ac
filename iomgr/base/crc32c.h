// CRC-32C (Castagnoli, RFC 3720), for headers of a few KiB: a table, no
// dependency, so that the preload library can link it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace graphlane {

namespace internal {
constexpr std::array<uint32_t, 256> make_crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}
inline constexpr std::array<uint32_t, 256> kCrc32cTable = make_crc32c_table();
}  // namespace internal

constexpr uint32_t crc32c(const uint8_t* data, size_t length) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < length; ++i) {
    crc = (crc >> 8) ^ internal::kCrc32cTable[(crc ^ data[i]) & 0xff];
  }
  return crc ^ 0xffffffffu;
}

}  // namespace graphlane
