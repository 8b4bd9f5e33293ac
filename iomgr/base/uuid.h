// Uuid: 128 random bits, for volumes and for the files in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace graphlane {

struct Uuid {
  std::array<uint8_t, 16> bytes{};
  friend bool operator==(const Uuid&, const Uuid&) = default;

  // A version 4 UUID from the kernel's generator.
  static Uuid random();

  // 32 hexadecimal digits; dashes are allowed anywhere and ignored.
  static std::optional<Uuid> parse(std::string_view text);
};

// Text without allocation: 32 lower-case hexadecimal digits and a NUL.
struct UuidText {
  explicit UuidText(const Uuid& uuid);
  const char* c_str() const { return text; }
  std::string_view view() const { return {text, 32}; }
  char text[33];
};

}  // namespace graphlane
