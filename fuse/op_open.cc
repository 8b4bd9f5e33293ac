// Opening and creating; what a handle's end asks for.
//
// How the kernel treats the pages of an open file (../fuse/README.md, measured):
//   plain                        its page cache, kept between opens: maps and
//                                O_DIRECT calls stay coherent. The host's file
//                                is opened without O_DIRECT: write-back comes
//                                from buffers that are not aligned.
//   striped, fits in memory      the same; the parts lie in the page cache too
//   striped, O_DIRECT            the same: the kernel passes O_DIRECT calls on
//   striped, larger than memory  FOPEN_DIRECT_IO where that does not rule out
//                                mmap, because page cache would be a detour
#include <sys/stat.h>

#include "fuse/log.h"
#include "fuse/open_file.h"
#include "fuse/operations.h"
#include "fuse/striped.h"

namespace graphlane {
namespace {

// Without O_APPEND: the kernel knows the end of the file and says where to
// write; ours would append even when the program has switched it off.
int host_flags(int flags) {
  return (flags & ~(O_DIRECT | O_APPEND | O_NOFOLLOW | O_CREAT | O_EXCL)) | O_CLOEXEC;
}

bool writes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

Result<std::unique_ptr<OpenFile>> open_plain(Filesystem& fs, fuse_req_t req, Inode& inode,
                                             fuse_file_info* fi) {
  auto file = std::make_unique<OpenFile>();
  file->fd = reopen(inode.fd.get(), host_flags(fi->flags));
  if (!file->fd) return last_errno();
  if ((fi->flags & O_TRUNC) != 0) drop_set_id_bits(fs, req, file->fd.get());
  fi->keep_cache = 1;
  // Here a plain file gets its backing_id (FUSE passthrough, libfuse 3.17).
  return file;
}

Result<std::unique_ptr<OpenFile>> open_parts(Filesystem& fs, Inode& inode, const Layout& layout,
                                             const struct stat& stub, fuse_file_info* fi) {
  if (writes(fi->flags)) return Errno{EROFS};  // not writable yet
  auto file = std::make_unique<OpenFile>();
  file->striped = inode.stub.opened(layout);
  if (!file->striped) {
    auto opened = open_striped(*fs.volume, layout, stub);
    if (!opened) return opened.error();
    file->striped = std::move(*opened);
  }
  const bool asked = (fi->flags & O_DIRECT) != 0;
  file->direct = wants_direct(fs.options.io_mode, file->striped->size(), asked);
  const bool same_content = inode.stub.remember(file->striped);
  fi->keep_cache = layout.state == FileState::kClosed && same_content;
  fi->direct_io = file->direct && !asked && fs.direct_io_with_mmap;
  return file;
}

Result<std::unique_ptr<OpenFile>> open_inode(Filesystem& fs, fuse_req_t req, Inode& inode,
                                             fuse_file_info* fi) {
  if (inode.control) {
    if (writes(fi->flags)) return Errno{EROFS};
    return open_plain(fs, req, inode, fi);
  }
  struct stat st;
  if (::fstat(inode.fd.get(), &st) != 0) return last_errno();
  const StubView view = inode.stub.look(inode.fd.get(), st);
  if (view.plain()) return open_plain(fs, req, inode, fi);
  if (view.striped()) return open_parts(fs, inode, view.layout, st, fi);
  log_line("{}: inode {}: {}", fs.volume->root(), st.st_ino, describe(view.verdict));
  return Errno{EIO};
}

}  // namespace

int op::open(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Result<std::unique_ptr<OpenFile>> file = open_inode(fs, req, fs.inodes.of(ino), fi);
  if (!file) return file.error().code;
  OpenFile::give(std::move(*file), fi);
  // The kernel did not wait for the answer: it will not release it either.
  if (reply::open(req, fi) == -ENOENT) delete &OpenFile::of(fi);
  return 0;
}

int op::create(Filesystem& fs, fuse_req_t req, fuse_ino_t parent_ino, const char* name,
               mode_t mode, fuse_file_info* fi) {
  Inode& parent = fs.inodes.of(parent_ino);
  if (const int error = refuse_change(fs, parent, name); error != 0) return error;
  auto file = std::make_unique<OpenFile>();
  {
    // Exclusive, so that a name that appeared meanwhile is opened like any
    // other: it may be a stub, which O_TRUNC would destroy, or a link.
    const AsCaller caller(fs, req);
    file->fd.reset(::openat(parent.fd.get(), name, host_flags(fi->flags) | O_CREAT | O_EXCL, mode));
  }
  if (!file->fd && (errno != EEXIST || (fi->flags & O_EXCL) != 0)) return errno;
  fuse_entry_param entry;
  if (const int error = look_up(fs, parent, name, &entry); error != 0) return error;
  if (file->fd) {
    fi->keep_cache = 1;
  } else {
    Result<std::unique_ptr<OpenFile>> existing =
        S_ISREG(entry.attr.st_mode) ? open_inode(fs, req, fs.inodes.of(entry.ino), fi)
                                    : Result<std::unique_ptr<OpenFile>>(Errno{EEXIST});
    if (!existing) {
      fs.inodes.forget(entry.ino, 1);
      return existing.error().code;
    }
    file = std::move(*existing);
  }
  OpenFile::give(std::move(file), fi);
  if (reply::create(req, &entry, fi) == -ENOENT) {
    delete &OpenFile::of(fi);
    fs.inodes.forget(entry.ino, 1);
  }
  return 0;
}

// close() reports what the host has to say about delayed writes (NFS, quota).
int op::flush(Filesystem&, fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (file.striped) return answer_result(req, 0);
  const int copy = ::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? errno : answer_result(req, ::close(copy));
}

int op::fsync(Filesystem&, fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (file.striped) return answer_result(req, 0);
  return answer_result(req,
                       data_only != 0 ? ::fdatasync(file.fd.get()) : ::fsync(file.fd.get()));
}

int op::release(Filesystem&, fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  delete &OpenFile::of(fi);
  return answer_result(req, 0);
}

}  // namespace graphlane
