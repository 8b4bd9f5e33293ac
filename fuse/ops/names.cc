// Creates, moves and removes names.
#include <stdio.h>
#include <sys/stat.h>

#include "fuse/inode/striped.h"
#include "fuse/ops/operations.h"

namespace graphlane::fuse {
namespace {

// Answers with the entry that `make` creates with the caller's IDs.
template <class Make>
int make_entry(Filesystem& fs, fuse_req_t req, fuse_ino_t parent_ino, const char* name,
               const Make& make) {
  Inode& parent = fs.inodes.of(parent_ino);
  if (const int error = refuse_change(fs, parent, name); error != 0) return error;
  const Result<HostPath> directory = fs.inodes.path(parent);
  if (!directory) return directory.error().code;
  {
    const AsCaller caller(fs, req);
    if (make(directory->get()) != 0) return errno;
  }
  return answer_entry(fs, req, parent, name);
}

}  // namespace

int op::mkdir(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  return make_entry(fs, req, parent, name,
                    [&](int directory) { return ::mkdirat(directory, name, mode); });
}

int op::mknod(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              dev_t rdev) {
  return make_entry(fs, req, parent, name,
                    [&](int directory) { return ::mknodat(directory, name, mode, rdev); });
}

int op::symlink(Filesystem& fs, fuse_req_t req, const char* target, fuse_ino_t parent,
                const char* name) {
  return make_entry(fs, req, parent, name,
                    [&](int directory) { return ::symlinkat(target, directory, name); });
}

int op::link(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent,
             const char* new_name) {
  Inode& inode = fs.inodes.of(ino);
  Inode& parent = fs.inodes.of(new_parent);
  if (inode.control) return EROFS;
  if (const int error = refuse_change(fs, parent, new_name); error != 0) return error;
  const Result<HostPath> path = fs.inodes.path(inode), directory = fs.inodes.path(parent);
  if (!path) return path.error().code;
  if (!directory) return directory.error().code;
  if (::linkat(AT_FDCWD, ProcPath(path->get()).c_str(), directory->get(), new_name,
               AT_SYMLINK_FOLLOW) != 0) {
    const int error = errno;
    return error == ENOENT && is_replaced(inode, path->get()) ? ESTALE : error;
  }
  return answer_entry(fs, req, parent, new_name);
}

int op::unlink(Filesystem& fs, fuse_req_t req, fuse_ino_t parent_ino, const char* name) {
  Inode& parent = fs.inodes.of(parent_ino);
  if (const int error = refuse_change(fs, parent, name); error != 0) return error;
  const Result<HostPath> directory = fs.inodes.path(parent);
  if (!directory) return directory.error().code;
  fs.inodes.keep(directory->get(), name);
  LastLink victim(*fs.volume, directory->get(), name);
  if (victim.error() != 0) return victim.error();
  if (::unlinkat(directory->get(), name, 0) != 0) return errno;
  if (victim.reap()) fs.live.drop(victim.file_id());
  return answer_result(req, 0);
}

int op::rmdir(Filesystem& fs, fuse_req_t req, fuse_ino_t parent_ino, const char* name) {
  Inode& parent = fs.inodes.of(parent_ino);
  if (const int error = refuse_change(fs, parent, name); error != 0) return error;
  const Result<HostPath> directory = fs.inodes.path(parent);
  if (!directory) return directory.error().code;
  fs.inodes.keep(directory->get(), name);
  return answer_result(req, ::unlinkat(directory->get(), name, AT_REMOVEDIR));
}

int op::rename(Filesystem& fs, fuse_req_t req, fuse_ino_t parent_ino, const char* name,
               fuse_ino_t new_parent_ino, const char* new_name, unsigned flags) {
  Inode& parent = fs.inodes.of(parent_ino);
  Inode& new_parent = fs.inodes.of(new_parent_ino);
  if (const int error = refuse_change(fs, parent, name); error != 0) return error;
  if (const int error = refuse_change(fs, new_parent, new_name); error != 0) return error;
  const Result<HostPath> from = fs.inodes.path(parent), to = fs.inodes.path(new_parent);
  if (!from) return from.error().code;
  if (!to) return to.error().code;
  if ((flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) == 0) {
    const Result<void> synced = sync_replacement(fs, from->get(), name, to->get(), new_name);
    if (!synced) return synced.error().code;
  }
  std::optional<NameLock> held;
  if (moves_stubs(from->get(), name) ||
      ((flags & RENAME_EXCHANGE) != 0 && moves_stubs(to->get(), new_name))) {
    held.emplace(fs.volume->root_fd());
  }
  fs.inodes.keep(to->get(), new_name);
  LastLink victim(*fs.volume, to->get(), new_name);  // survives RENAME_EXCHANGE
  if (victim.error() != 0) return victim.error();
  if (::renameat2(from->get(), name, to->get(), new_name, flags) != 0) return errno;
  if (victim.reap(to->get())) fs.live.drop(victim.file_id());
  fs.kinds.renamed(to->get(), new_name, name);
  if ((flags & RENAME_EXCHANGE) != 0) fs.kinds.renamed(from->get(), name, new_name);
  return answer_result(req, 0);
}

}  // namespace graphlane::fuse
