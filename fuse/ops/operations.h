// The operations that the kernel requests.
//
// Every operation has the form
//
//   int op(Filesystem& fs, fuse_req_t req, …what libfuse passes…)
//
// It either answers the request once and returns 0, or returns the errno with which the edge
// (operations.cc) answers. The edge catches exceptions: bad_alloc becomes ENOMEM. So nothing may
// throw after an answer.
//
// Threads: each runs on any worker.
#pragma once

#include <string_view>

#include "fuse/ops/filesystem.h"
#include "fuse/ops/fuse_api.h"
#include "fuse/ops/reply.h"

namespace graphlane::fuse {

// The table for fuse_session_new(); its userdata is a Filesystem.
const fuse_lowlevel_ops& operations();

// Answers with success, or returns the failed call's errno.
inline int answer_result(fuse_req_t req, int result) {
  if (result < 0) return errno;
  reply::err(req, 0);
  return 0;
}

inline bool is_dot(std::string_view name) { return name == "." || name == ".."; }

namespace op {

// ops/init.cc
void init(void* userdata, fuse_conn_info* conn);

// ops/lookup.cc
int lookup(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name);
int forget(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, uint64_t count);
int forget_multi(Filesystem& fs, fuse_req_t req, size_t count, fuse_forget_data* forgets);
int readlink(Filesystem& fs, fuse_req_t req, fuse_ino_t ino);
int statfs(Filesystem& fs, fuse_req_t req, fuse_ino_t ino);

// ops/attributes.cc
int getattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
int setattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int which,
            fuse_file_info* fi);

// ops/names.cc
int mkdir(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
int mknod(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
          dev_t rdev);
int symlink(Filesystem& fs, fuse_req_t req, const char* target, fuse_ino_t parent,
            const char* name);
int link(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent,
         const char* new_name);
int unlink(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name);
int rmdir(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name);
int rename(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name,
           fuse_ino_t new_parent, const char* new_name, unsigned flags);

// ops/open.cc
int create(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
           fuse_file_info* fi);
int open(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
int flush(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
int fsync(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info* fi);
int release(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);

// ops/read.cc
int read(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
         fuse_file_info* fi);
int lseek(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
          fuse_file_info* fi);

// ops/write.cc
int write_buf(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_bufvec* data, off_t offset,
              fuse_file_info* fi);
int fallocate(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
              fuse_file_info* fi);
int copy_file_range(Filesystem& fs, fuse_req_t req, fuse_ino_t in, off_t in_offset,
                    fuse_file_info* in_fi, fuse_ino_t out, off_t out_offset, fuse_file_info* out_fi,
                    size_t length, int flags);

// ops/directory.cc
int opendir(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);
int readdir(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
            fuse_file_info* fi);
int readdirplus(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                fuse_file_info* fi);
int fsyncdir(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info* fi);
int releasedir(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi);

// ops/xattr.cc
int getxattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, const char* name, size_t size);
int setxattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
             size_t size, int flags);
int listxattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size);
int removexattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, const char* name);

// ops/ioctl.cc
int ioctl(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, unsigned command, void* argument,
          fuse_file_info* fi, unsigned flags, const void* in, size_t in_size, size_t out_size);

}  // namespace op
}  // namespace graphlane::fuse
