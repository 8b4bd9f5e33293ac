// BitReader and BitWriter: bits, the highest of a byte first, and the instantaneous codes of
// numbers from 0 on.
//
//   unary(x)      x zeros, then a one
//   gamma(x)      z zeros, then the z + 1 bits of x + 1
//   delta(x)      gamma(z), then the lowest z bits of x + 1
//   zeta(x, k)    y = x + 1 is in [2^hk, 2^(h+1)k): h zeros, a one, then u = y - 2^hk: below 2^hk in s - 1 bits,
//                 else u + 2^hk in s bits; s = (h + 1) k. zeta(x, 1) is gamma(x). (Boldi and Vigna, DCC 2004)
//
// A number has at most 34 bits, but unary ones are of any length. What a reader finds behind its
// end are zeros; is_bad() tells after any number of reads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace graphlane::graphfmt {

constexpr unsigned kStreamNumberBitsMax = 34;

class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Read further than there are bits, or what no writer writes.
  bool is_bad() const { return is_bad_ || at_ > 8 * bytes_.size(); }
  uint64_t bits_left() const { return is_bad() ? 0 : 8 * bytes_.size() - at_; }
  // Whether only zeros are left, fewer than a byte.
  bool is_at_end() const { return !is_bad() && bits_left() < 8 && window() == 0; }

  // The number of bits that were read.
  uint64_t position() const { return at_; }

  uint64_t bits(unsigned count) {  // at most 57
    const uint64_t value = count == 0 ? 0 : window() >> (64 - count);
    at_ += count;
    return value;
  }
  uint64_t unary() {
    const uint64_t begin = at_;
    while (at_ < 8 * bytes_.size()) {
      const uint64_t ahead = window();
      if (ahead != 0) {
        at_ += static_cast<uint64_t>(std::countl_zero(ahead)) + 1;
        return at_ - 1 - begin;
      }
      at_ += 57;
    }
    return fail();
  }
  uint64_t delta() {
    const uint64_t width = gamma();
    if (width >= kStreamNumberBitsMax) return fail();
    return (uint64_t{1} << width | bits(static_cast<unsigned>(width))) - 1;
  }
  uint64_t gamma() {
    const uint64_t ahead = window();
    const auto zeros = static_cast<unsigned>(std::countl_zero(ahead));
    if (zeros <= 28) {
      at_ += 2 * zeros + 1;
      return (ahead << zeros >> (63 - zeros)) - 1;
    }
    if (zeros >= kStreamNumberBitsMax) return fail();
    at_ += zeros;
    return bits(zeros + 1) - 1;
  }
  uint64_t zeta(unsigned k) {
    uint64_t ahead = window();
    const auto h = static_cast<unsigned>(std::countl_zero(ahead));
    if (h * k >= kStreamNumberBitsMax) return fail();
    const unsigned s = (h + 1) * k;
    at_ += h + 1;
    ahead = h + 1 + s <= 57 ? ahead << (h + 1) : window();
    const uint64_t least = uint64_t{1} << h * k;
    const uint64_t low = s == 1 ? 0 : ahead >> (65 - s);
    if (low < least) {
      at_ += s - 1;
      return low + least - 1;
    }
    at_ += s;
    return (ahead >> (64 - s)) - 1;
  }

 private:
  // At least 57 bits.
  uint64_t window() const {
    const uint64_t byte = at_ / 8;
    uint64_t word = 0;
    if (byte + 8 <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, 8);
      if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    } else {
      for (uint64_t i = 0; i < 8 && byte + i < bytes_.size(); ++i) {
        word |= uint64_t{bytes_[byte + i]} << (56 - 8 * i);
      }
    }
    return word << at_ % 8;
  }
  uint64_t fail() {
    is_bad_ = true;
    return 0;
  }

  const std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
  bool is_bad_ = false;
};

class BitWriter {
 public:
  // Room for what is written is the caller's matter.
  explicit BitWriter(uint8_t* to) : begin_(to), to_(to) {}

  void bits(uint64_t value, unsigned count) {  // at most 56
    waiting_ = waiting_ << count | value;
    for (waiting_bits_ += count; waiting_bits_ >= 8; waiting_bits_ -= 8) {
      *to_++ = static_cast<uint8_t>(waiting_ >> (waiting_bits_ - 8));
    }
  }
  void gamma(uint64_t x) { zeta(x, 1); }
  void zeta(uint64_t x, unsigned k) {
    const uint64_t y = x + 1;
    const unsigned h = (static_cast<unsigned>(std::bit_width(y)) - 1) / k, s = (h + 1) * k;
    const uint64_t least = uint64_t{1} << h * k, u = y - least;
    bits(1, h + 1);
    u < least ? bits(u, s - 1) : bits(u + least, s);
  }
  // Zeros up to a whole byte. The bytes written.
  size_t finish() {
    if (waiting_bits_ > 0) bits(0, 8 - waiting_bits_);
    return static_cast<size_t>(to_ - begin_);
  }

 private:
  uint8_t* const begin_;
  uint8_t* to_;
  uint64_t waiting_ = 0;  // of which the last waiting_bits_ are not written
  unsigned waiting_bits_ = 0;
};

// How many bits a number takes depends on the width of the number + 1 alone.
constexpr unsigned zeta_bits(unsigned width, unsigned k) {
  const unsigned h = (width - 1) / k;
  return h + 1 + (h + 1) * k - ((width - 1) % k == 0 ? 1 : 0);
}
inline unsigned zeta_width(uint64_t x) { return static_cast<unsigned>(std::bit_width(x + 1)); }
inline unsigned gamma_bits(uint64_t x) { return 2 * zeta_width(x) - 1; }

}  // namespace graphlane::graphfmt
