#include "iomgr/base/uuid.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace graphlane {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Uuid Uuid::random() {
  Uuid uuid;
  // 16 bytes never come short (getrandom(2)). EINTR comes only before the generator is ready at
  // boot. Not libc's getrandom(), which is a cancellation point: a cancelled thread would not
  // release its locks.
  while (::syscall(SYS_getrandom, uuid.bytes.data(), uuid.bytes.size(), 0) < 0) {
  }
  uuid.bytes[6] = static_cast<uint8_t>((uuid.bytes[6] & 0x0f) | 0x40);  // version 4
  uuid.bytes[8] = static_cast<uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);  // RFC 4122 variant
  return uuid;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
  Uuid uuid;
  size_t digit_count = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int value = hex_value(c);
    if (value < 0 || digit_count == 32) return std::nullopt;
    uint8_t& byte = uuid.bytes[digit_count / 2];
    byte = static_cast<uint8_t>(byte << 4 | value);
    ++digit_count;
  }
  if (digit_count != 32) return std::nullopt;
  return uuid;
}

UuidText::UuidText(const Uuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < 16; ++i) {
    text[2 * i] = kDigits[uuid.bytes[i] >> 4];
    text[2 * i + 1] = kDigits[uuid.bytes[i] & 0x0f];
  }
  text[32] = '\0';
}

}  // namespace graphlane
