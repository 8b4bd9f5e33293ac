// Orphans: parts that no stub of the volume names. They stay unchanged, because their stub may
// return, and then they are its parts again.
//
//   DEVICE_i/graphlane-<uuid>/parts/3f/3f0c…       the orphan's parts, unchanged
//
//   VOL/lost+found/                                0700, of the owner of the volume's directory
//     3f0c…                                        a stub to read them by; its mtime: since when
//
// The stub has the parts' owner and the mode 0400. Its parts name another stub, the missing one. So
// it is valid only in lost+found (is_lost_and_found()), and only for reading. If the parts do not
// record their layout, the entry is a text instead. An entry of lost+found owns nothing: if it is
// removed, the next repair makes it again. Only `graphlane check --delete-orphans` deletes parts.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/volume/lost_and_found.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct Orphan {
  Uuid file_id;
  uint64_t bytes = 0;       // the size of its parts
  uint32_t part_count = 0;  // of the parts that exist
  std::string shown;        // the path of one of them
  uid_t uid = 0;            // their owner
  gid_t gid = 0;

  // The file's layout, if the parts' records agree on it; its size is that of the parts.
  std::optional<Layout> layout = {};
  bool is_ambiguous = false;  // records or owners disagree: no user may read it as a file

  uint32_t making_count = 0;   // parts that were still being made
  bool is_removed = false;     // its stub lost its last name in this boot
  bool is_bound_alike = true;  // all parts name one stub, with its birth time: `stub`
  StubIdentity stub = {};
  int64_t since_seconds = 0;  // when a repair first noted it; 0: not yet

  bool is_readable() const { return layout && !is_ambiguous; }
  // No stub names them anywhere: an import, a restripe or a removal was killed.
  bool is_left_over() const { return is_removed || (part_count > 0 && making_count == part_count); }
};

// "3 orphans, 1.2 GiB, oldest 41 days"
std::string describe(const std::vector<Orphan>& orphans, int64_t now_seconds);
// "5 minutes", "3 hours", "41 days"; "new" if no repair has noted it.
std::string describe_age(const Orphan& orphan, int64_t now_seconds);

// Adds a part to its orphan. `part_fd` is the part, or O_PATH.
void add_part(const Volume& volume, uint32_t device_index, int part_fd, Orphan* orphan);

// VOL/lost+found. The caller holds the volume's lock, exclusively.
class LostAndFound {
 public:
  explicit LostAndFound(const Volume& volume) : volume_(volume) {}

  // Reads its entries. Without a directory there are none.
  Outcome<void> read();
  // When the orphan was noted, in seconds since 1970; 0: never.
  int64_t since(const Uuid& file_id) const;
  // Makes an entry, if there is none.
  Outcome<void> add(const Orphan& orphan);
  // Removes the entry, not the parts: its stub has returned, or the parts are gone.
  Outcome<void> remove(const Uuid& file_id);
  const std::map<std::array<uint8_t, 16>, int64_t>& entries() const { return entries_; }

 private:
  Outcome<Fd> open_directory(bool make) const;
  Outcome<void> make_stub(int directory_fd, const std::string& name, const Orphan& orphan) const;
  Error error(int code, std::string_view action) const;

  const Volume& volume_;
  std::map<std::array<uint8_t, 16>, int64_t> entries_;  // by file id: the time it was noted
};

}  // namespace graphlane
