// Weights between types: kept exactly, or told.
//
//   text      a decimal number is kept if the weight, written again, is the same number
//   binary    int64, float32 and float64 values are kept if they compare equal
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "graphfmt/edge.h"

namespace graphlane::graphfmt {

// "float32", "float64", "int64".
std::optional<WeightType> parse_weight_type(std::string_view name);
std::string_view name_of(WeightType type);

constexpr size_t weight_size_bytes(WeightType type) { return type == WeightType::kFloat32 ? 4 : 8; }

enum class WeightFit {
  kKept,
  kRounded,  // a fraction with more digits than the type holds
  kLost,     // a whole number that the type does not hold: times and the like; a fraction as int64
  kNotNumber,  // or not finite
};

// `token` as `type`, to `weight`: weight_size_bytes(type) bytes.
WeightFit read_weight(std::string_view token, WeightType type, char* weight);

// A binary weight of one type as another. kRounded, kLost: `to` is the nearest.
WeightFit convert_weight(const char* from, WeightType from_type, char* to, WeightType to_type);

// In the fewest digits that read back as the same; room for kWeightTextMax bytes. The end.
inline constexpr size_t kWeightTextMax = 32;
char* write_weight(const char* weight, WeightType type, char* text);

}  // namespace graphlane::graphfmt
