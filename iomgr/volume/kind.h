// The kind of a file, striped or plain, follows its name (StripePolicy).
//
//   created     by its name, or by the name that it is going to have: final_name()
//   renamed     the new name may say the other kind. Then the file carries the attribute kKindXattr
//               until it has that kind (iomgr/admin/kind_change.h)
//
// A striped file keeps its kind if its old name did not ask for it. An import stripes a file that is
// given by itself, whatever its name.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include "iomgr/base/files/reopen.h"

namespace graphlane {

enum class FileKind { kPlain, kStriped };

constexpr const char* name_of(FileKind kind) {
  return kind == FileKind::kStriped ? "striped" : "plain";
}

// The value is name_of() the kind to be. Tools that copy attributes leave it out.
inline constexpr char kKindXattr[] = "user.graphlane.kind";

// "column" of ".column.Ab3dE9" (rsync), "column.part", "column.tmp" …; else the name itself. So a
// file that is written under such a name gets its kind at once, and is not copied after its rename.
constexpr std::string_view final_name(std::string_view name) {
  constexpr size_t kRandomLetters = 6;
  const auto is_letter = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  if (name.size() > kRandomLetters + 2 && name.front() == '.' &&
      name[name.size() - kRandomLetters - 1] == '.' &&
      std::all_of(name.end() - kRandomLetters, name.end(), is_letter)) {
    return name.substr(1, name.size() - kRandomLetters - 2);
  }
  for (const std::string_view end :
       {".part", ".partial", ".filepart", ".crdownload", ".download", ".tmp", ".temp", ".new"}) {
    if (name.size() > end.size() && name.ends_with(end)) {
      return name.substr(0, name.size() - end.size());
    }
  }
  return name;
}

// The kind that a rename asks for; empty: none. `said`, `says`: whether the old and the new
// name are of striped files.
constexpr std::optional<FileKind> kind_by_rename(FileKind now, bool said, bool says) {
  if (now == FileKind::kPlain && says) return FileKind::kStriped;
  if (now == FileKind::kStriped && said && !says) return FileKind::kPlain;
  return std::nullopt;
}

// The attribute of an open file; also of an O_PATH descriptor. Empty: it has none.
inline std::optional<FileKind> wished_kind(int fd) {
  char value[16];
  const long size = ::syscall(SYS_getxattr, ProcPath(fd).c_str(), kKindXattr, value, sizeof value);
  const std::string_view text(value, size > 0 ? static_cast<size_t>(size) : 0);
  for (const FileKind kind : {FileKind::kPlain, FileKind::kStriped}) {
    if (text == name_of(kind)) return kind;
  }
  return std::nullopt;
}

// Sets or removes (empty) the attribute. 0 or an errno.
inline int wish_kind(int fd, std::optional<FileKind> kind) {
  const ProcPath path(fd);
  if (!kind) {
    return ::syscall(SYS_removexattr, path.c_str(), kKindXattr) == 0 || errno == ENODATA ? 0
                                                                                         : errno;
  }
  const std::string_view value = name_of(*kind);
  return ::syscall(SYS_setxattr, path.c_str(), kKindXattr, value.data(), value.size(), 0) == 0
             ? 0
             : errno;
}

}  // namespace graphlane
