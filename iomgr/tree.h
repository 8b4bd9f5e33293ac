// Trees of files: listing one, copying one as `cp -a` would, moving the copy to
// where it belongs.
//
//   source          staging                          target
//     d/      copy    d/       (hidden, mode 0700)     d/      (there already)
//       a    ─────►     a     ──rename──────────►        a
//       e/              e/    ──rename, whole───►        e/
//
// So a tree appears under its name when all of it has been copied, and a copy
// that fails has touched nothing but the staging directory.
//
// Symbolic links are copied as links, hard links within the tree stay links of
// each other, FIFOs, sockets and device files are made anew. Owners, modes,
// times and extended attributes are kept as far as we may. A directory that is
// in the target already keeps its own.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane {

// A path below an open directory, and what messages call it.
struct TreePlace {
  int directory_fd = AT_FDCWD;
  std::string path;
  std::string shown;

  // `below` is "" for the place itself.
  TreePlace at(const std::string& below) const;
  Error error(int code, std::string_view action) const { return os_error(code, shown, action); }
};

struct TreeNode {
  std::string path;  // below the top: "" itself, "d", "d/a"
  struct stat info {};
};

// The top and all below it, a directory before what it holds, names in order. Others may make and
// remove names meanwhile.
Outcome<std::vector<TreeNode>> list_tree(const TreePlace& top);

// The same, without what is in directories that we may not read.
Outcome<std::vector<TreeNode>> list_open_tree(const TreePlace& top);

// The top and, if it is a directory, what is directly in it.
Outcome<std::vector<TreeNode>> list_directory(const TreePlace& top);

// Makes the regular file `to` from `from`; attributes are the copier's matter.
using FileCopier = std::function<Outcome<void>(int from_fd, const TreePlace& from,
                                               const struct stat& info, const TreePlace& to)>;

// Copies the listed tree to `to`, which does not exist. What it made before an
// error stays. Directories get their attributes from move_tree().
Outcome<void> copy_tree(const TreePlace& from, const std::vector<TreeNode>& nodes,
                        const TreePlace& to, const FileCopier& copy_file);

// Whether the tree can go to `to`: what is there may be a directory where the
// tree has one, and with `overwrite` a file where it has a file.
Outcome<void> check_target(const TreePlace& from, const std::vector<TreeNode>& nodes,
                           const TreePlace& to, bool overwrite);

// Puts the file `staged` in the place of `existing`.
using FileReplacer = std::function<Outcome<void>(const TreePlace& staged, const TreePlace& existing)>;

// Moves the copy that copy_tree() made at `staged` to `to`, and gives the new
// directories the attributes of those in `from`. Without `replace` a file that
// is in the way is an error. An error says how much has been moved.
Outcome<void> move_tree(const TreePlace& staged, const std::vector<TreeNode>& nodes,
                        const TreePlace& from, const TreePlace& to, const FileReplacer& replace);

// Renames; EEXIST if the new name exists.
Result<void> rename_new(const TreePlace& from, const TreePlace& to);

}  // namespace graphlane
