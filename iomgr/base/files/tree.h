// Trees of files: lists one, copies one as `cp -a` does, and moves the copy to its place.
//
//   source          staging                          target
//     d/      copy    d/       (hidden, mode 0700)     d/      (there already)
//       a    ─────►     a     ──rename──────────►        a
//       e/              e/    ──rename, whole───►        e/
//
// So a tree appears under its name when all of it has been copied. A copy that fails has touched
// nothing but the staging directory.
//
// Symbolic links are copied as links. Hard links within the tree stay links of each other. FIFOs,
// sockets and device files are made anew. Owners, modes, times and extended attributes are kept
// as far as permitted. A directory that is in the target already keeps its own.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane {

// A path below an open directory, and its name in messages.
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
  struct stat info{};
};

// An entry of a walk. Valid while it is visited.
struct TreeEntry {
  const TreePlace& top;
  const std::string& path;  // below the top, "" for itself; may be longer than PATH_MAX
  int parent_fd;            // the directory that holds it, and its name there: for *at() calls
  const char* name;
  const struct stat& info;

  TreePlace place() const { return top.at(path); }
};

struct TreeVisitor {
  // Called for an entry; for a directory before its entries. An error ends the walk, here as in
  // the functions below.
  std::function<Outcome<void>(const TreeEntry&)> enter;
  // Called after all entries of a directory, if not null.
  std::function<Outcome<void>(const TreeEntry&)> leave = {};
  // Called for an entry that cannot be read, after enter(). If not even its type is known, `info`
  // is empty, and enter() is not called. Null: such an entry ends the walk. A shortage of
  // descriptors or memory always ends it.
  std::function<Outcome<void>(const TreeEntry&, const Error&)> closed = {};
  // Whether to go into this directory; null: into all.
  std::function<bool(const TreeEntry&)> wants = {};
};

// Visits the top and all below it, names in order. It goes by descriptors, and keeps some dozens
// of them open. So it needs no path shorter than PATH_MAX, any depth works, and no link leads it
// elsewhere. Other processes may change the tree meanwhile: a name that disappears is left out.
Outcome<void> walk_tree(const TreePlace& top, const TreeVisitor& visitor);

// Opens the file at a place, whatever the length of its path. Follows no link below the place's
// descriptor (but see openat2(2): kernels before 5.6 check the last name only).
Fd open_place(const TreePlace& place, int flags);

// A place as the *at() calls take it, whatever the length of its path.
class ShortPlace {
 public:
  explicit ShortPlace(const TreePlace& place);
  int directory_fd() const { return parent_ ? parent_.get() : directory_fd_; }
  const char* path() const {
    return path_;
  }  // valid while the TreePlace is; "": there is no such place

 private:
  int directory_fd_;
  Fd parent_;
  const char* path_;
};

// The top and all below it, a directory before its entries, names in order. Other processes may
// change the tree meanwhile.
Outcome<std::vector<TreeNode>> list_tree(const TreePlace& top);

// The top and, if it is a directory, its entries.
Outcome<std::vector<TreeNode>> list_directory(const TreePlace& top);

// Makes the regular file `to` from `from`, with its attributes.
using FileCopier = std::function<Outcome<void>(int from_fd, const TreePlace& from,
                                               const struct stat& info, const TreePlace& to)>;

// Copies the listed tree to `to`, which must not exist. After an error the partial copy stays.
// Directories get their attributes from move_tree().
Outcome<void> copy_tree(const TreePlace& from, const std::vector<TreeNode>& nodes,
                        const TreePlace& to, const FileCopier& copy_file);

// Whether the tree can move to `to`. Existing directories may meet directories of the tree, and
// with `overwrite` existing files may meet files.
Outcome<void> check_target(const TreePlace& from, const std::vector<TreeNode>& nodes,
                           const TreePlace& to, bool overwrite);

// Replaces the file `existing` by `staged`.
using FileReplacer =
    std::function<Outcome<void>(const TreePlace& staged, const TreePlace& existing)>;

// Moves the copy that copy_tree() made at `staged` to `to`, and gives the new directories the
// attributes of those in `from`. Without `replace` an existing file is an error. An error says
// how much was moved.
Outcome<void> move_tree(const TreePlace& staged, const std::vector<TreeNode>& nodes,
                        const TreePlace& from, const TreePlace& to, const FileReplacer& replace);

// Renames; EEXIST if the new name exists.
Result<void> rename_new(const TreePlace& from, const TreePlace& to);

}  // namespace graphlane
