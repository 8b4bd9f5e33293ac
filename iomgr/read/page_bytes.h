// PageBytes: a range of a file in memory, as pieces that lie in pages.
//
//   range          |..|    |    |..|        the first piece ends, and all but the first
//   pages   …|  |▒▒|  |▒▒▒▒|  |▒▒▒▒|▒▒  |…  begin, where a page does
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace graphlane {

class PageBytes {
 public:
  using Piece = std::span<const std::byte>;

  explicit PageBytes(std::span<const Piece> pieces) : pieces_(pieces) {
    for (const Piece& piece : pieces) size_bytes_ += piece.size();
  }

  uint64_t size_bytes() const { return size_bytes_; }
  // The pieces, in the file's order.
  std::span<const Piece> pieces() const { return pieces_; }

  // Calls visit(value) for each value in turn, also for one that lies on two pages. An incomplete
  // value at the end is left out.
  template <class T, class Visit>
  void for_each(Visit visit) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::byte part[sizeof(T)];
    size_t have = 0;
    for (Piece piece : pieces_) {
      if (have > 0) {
        const size_t more = std::min(sizeof(T) - have, piece.size());
        std::memcpy(part + have, piece.data(), more);
        piece = piece.subspan(more);
        if ((have += more) < sizeof(T)) continue;
        visit(load<T>(part));
        have = 0;
      }
      for (; piece.size() >= sizeof(T); piece = piece.subspan(sizeof(T))) {
        visit(load<T>(piece.data()));
      }
      if (!piece.empty()) std::memcpy(part, piece.data(), have = piece.size());
    }
  }

  // The bytes from `offset` on. Precondition: the range has that many.
  void copy(uint64_t offset, std::span<std::byte> to) const {
    assert(offset + to.size() <= size_bytes_);
    for (const Piece& piece : pieces_) {
      if (to.empty()) return;
      if (offset < piece.size()) {
        const size_t count = std::min<size_t>(piece.size() - offset, to.size());
        std::memcpy(to.data(), piece.data() + offset, count);
        to = to.subspan(count);
        offset = 0;
      } else {
        offset -= piece.size();
      }
    }
  }

 private:
  template <class T>
  static T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  std::span<const Piece> pieces_;
  uint64_t size_bytes_ = 0;
};

}  // namespace graphlane
