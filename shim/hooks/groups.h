// Groups of libc's names (calls.def), with their descriptions. The report and `graphlane explain`
// both use these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphlane::shim {

enum class Group : uint8_t {
#define GROUP(group, way, phrase) group,
#include "shim/hooks/calls.def"
};

// How a program on a striped file is served; see calls.def.
enum class Way : uint8_t { fast, fuse, blind, none };

struct GroupInfo {
  const char* name;
  Way way;
  const char* phrase;
};

inline constexpr GroupInfo kGroups[] = {
#define GROUP(group, way, phrase) {#group, Way::way, phrase},
#include "shim/hooks/calls.def"
};
inline constexpr size_t kGroupCount = sizeof kGroups / sizeof kGroups[0];

constexpr const GroupInfo& info_of(Group group) { return kGroups[static_cast<size_t>(group)]; }

}  // namespace graphlane::shim
