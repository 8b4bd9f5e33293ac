// Result: a value, or the reason why there is none.
//
// Two kinds of reason travel between modules:
//
//   Errno   a bare errno, for code that must not allocate (all that the preload library links)
//
//   Error   an errno and one line of text that names the culprit, for code with messages for a
//           person (volumes, builders, tools)
//
// Member names are those of std::expected, which gcc 12 has in C++23 mode only.
#pragma once

#include <cassert>
#include <cerrno>
#include <optional>
#include <utility>

namespace graphlane {

// An errno value, always positive: ENOENT, EIO, ...
struct Errno {
  int code = 0;
  friend bool operator==(Errno, Errno) = default;
};

// The errno that the last failed libc call left.
inline Errno last_errno() { return Errno{errno}; }

template <class T, class E = Errno>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  Result(T value) : value_(std::move(value)) {}
  Result(E error) : error_(std::move(error)) {}

  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    assert(has_value());
    return *value_;
  }
  const T& value() const& {
    assert(has_value());
    return *value_;
  }
  T&& value() && {
    assert(has_value());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T value_or(T otherwise) const { return value_ ? *value_ : otherwise; }

  const E& error() const {
    assert(!has_value());
    return error_;
  }

 private:
  std::optional<T> value_;
  E error_{};
};

template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Result() = default;
  Result(E error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const E& error() const {
    assert(!has_value());
    return *error_;
  }

 private:
  std::optional<E> error_;
};

}  // namespace graphlane
