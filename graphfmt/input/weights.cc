#include "graphfmt/input/weights.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace graphlane::graphfmt {
namespace {

// Beyond these a float type has no room for every whole number.
constexpr double kFloat32WholeMax = 1 << 24;
constexpr int64_t kFloat64WholeMax = int64_t{1} << 53;

template <class T>
void put_weight(T value, char* weight) {
  std::memcpy(weight, &value, sizeof value);
}

template <class T>
T get_weight(const char* weight) {
  T value;
  std::memcpy(&value, weight, sizeof value);
  return value;
}

template <class T>
bool read_whole_token(std::string_view token, T& value) {
  const char* const end = token.data() + token.size();
  const auto [behind, status] = std::from_chars(token.data(), end, value);
  return status == std::errc{} && behind == end;
}

bool is_whole_number(std::string_view token) {
  return token.find_first_not_of("0123456789", token.starts_with('-') ? 1 : 0) ==
         std::string_view::npos;
}

WeightFit fit_of_loss(double value) {
  return value == std::floor(value) && std::abs(value) >= kFloat32WholeMax ? WeightFit::kLost
                                                                           : WeightFit::kRounded;
}

// The slow look: whether the float, written in the fewest digits, is the number that was read.
WeightFit fit_of_float32(std::string_view token, float value) {
  double exact = 0;
  if (!read_whole_token(token, exact) || exact == double{value}) return WeightFit::kKept;
  char text[kWeightTextMax];
  double written = 0;
  const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  std::from_chars(text, end, written);
  return written == exact ? WeightFit::kKept : fit_of_loss(exact);
}

// A whole number in text beyond 2^53.
WeightFit fit_of_float64(std::string_view token, double value) {
  int64_t whole = 0;
  if (std::abs(value) < static_cast<double>(kFloat64WholeMax) || !is_whole_number(token)) {
    return WeightFit::kKept;
  }
  if (!read_whole_token(token, whole)) return WeightFit::kLost;  // beyond int64, too
  return value < 0x1p63 && static_cast<int64_t>(value) == whole ? WeightFit::kKept
                                                                : WeightFit::kLost;
}

WeightFit from_double(double value, char* to, WeightType to_type) {
  switch (to_type) {
    case WeightType::kFloat64: put_weight(value, to); return WeightFit::kKept;
    case WeightType::kFloat32: {
      const auto nearest = static_cast<float>(value);
      if (!std::isfinite(nearest)) return WeightFit::kLost;
      put_weight(nearest, to);
      return double{nearest} == value ? WeightFit::kKept : fit_of_loss(value);
    }
    case WeightType::kInt64: {
      if (!(std::abs(value) < 0x1p63)) return WeightFit::kLost;
      const auto nearest = static_cast<int64_t>(std::nearbyint(value));
      put_weight(nearest, to);
      return static_cast<double>(nearest) == value ? WeightFit::kKept : WeightFit::kLost;
    }
  }
  return WeightFit::kNotNumber;
}

WeightFit from_int64(int64_t value, char* to, WeightType to_type) {
  switch (to_type) {
    case WeightType::kInt64: put_weight(value, to); return WeightFit::kKept;
    case WeightType::kFloat32: {
      const auto nearest = static_cast<float>(value);
      put_weight(nearest, to);
      return nearest < 0x1p63f && static_cast<int64_t>(nearest) == value ? WeightFit::kKept
                                                                         : WeightFit::kLost;
    }
    case WeightType::kFloat64: {
      const auto nearest = static_cast<double>(value);
      put_weight(nearest, to);
      return nearest < 0x1p63 && static_cast<int64_t>(nearest) == value ? WeightFit::kKept
                                                                        : WeightFit::kLost;
    }
  }
  return WeightFit::kNotNumber;
}

}  // namespace

std::optional<WeightType> parse_weight_type(std::string_view name) {
  for (const WeightType type : {WeightType::kFloat32, WeightType::kFloat64, WeightType::kInt64}) {
    if (name == name_of(type)) return type;
  }
  return std::nullopt;
}

std::string_view name_of(WeightType type) {
  switch (type) {
    case WeightType::kFloat32: return "float32";
    case WeightType::kFloat64: return "float64";
    case WeightType::kInt64: return "int64";
  }
  return "?";
}

WeightFit read_weight(std::string_view token, WeightType type, char* weight) {
  switch (type) {
    case WeightType::kFloat32: {
      float value = 0;
      if (!read_whole_token(token, value) || !std::isfinite(value)) return WeightFit::kNotNumber;
      put_weight(value, weight);
      // Six digits always come back.
      return token.size() <= 6 ? WeightFit::kKept : fit_of_float32(token, value);
    }
    case WeightType::kFloat64: {
      double value = 0;
      if (!read_whole_token(token, value) || !std::isfinite(value)) return WeightFit::kNotNumber;
      put_weight(value, weight);
      return fit_of_float64(token, value);
    }
    case WeightType::kInt64: {
      int64_t value = 0;
      if (read_whole_token(token, value)) {
        put_weight(value, weight);
        return WeightFit::kKept;
      }
      double fraction = 0;
      if (!read_whole_token(token, fraction) || !std::isfinite(fraction)) {
        return WeightFit::kNotNumber;
      }
      if (is_whole_number(token)) return WeightFit::kLost;
      return from_double(fraction, weight, type);
    }
  }
  return WeightFit::kNotNumber;
}

WeightFit convert_weight(const char* from, WeightType from_type, char* to, WeightType to_type) {
  if (from_type == WeightType::kInt64) return from_int64(get_weight<int64_t>(from), to, to_type);
  const double value = from_type == WeightType::kFloat32 ? double{get_weight<float>(from)}
                                                         : get_weight<double>(from);
  if (!std::isfinite(value)) return WeightFit::kNotNumber;
  return from_double(value, to, to_type);
}

char* write_weight(const char* weight, WeightType type, char* text) {
  char* const end = text + kWeightTextMax;
  switch (type) {
    case WeightType::kFloat32: return std::to_chars(text, end, get_weight<float>(weight)).ptr;
    case WeightType::kFloat64: return std::to_chars(text, end, get_weight<double>(weight)).ptr;
    case WeightType::kInt64: return std::to_chars(text, end, get_weight<int64_t>(weight)).ptr;
  }
  return text;
}

}  // namespace graphlane::graphfmt
