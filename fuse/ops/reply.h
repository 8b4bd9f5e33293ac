// Replies to the kernel. Each request gets exactly one.
//
// The kernel orders a thread's work before a reply before the handling of requests that follow it.
// ThreadSanitizer does not see the kernel, so these functions tell it.
#pragma once

#include "fuse/ops/fuse_api.h"

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace graphlane::fuse::reply {

#if defined(__SANITIZE_THREAD__)
inline char kernel;
inline void before_answer() { __tsan_release(&kernel); }
inline void after_request() { __tsan_acquire(&kernel); }
#else
inline void before_answer() {}
inline void after_request() {}
#endif

inline int err(fuse_req_t req, int error) {
  before_answer();
  return ::fuse_reply_err(req, error);
}
inline void none(fuse_req_t req) {
  before_answer();
  ::fuse_reply_none(req);
}
inline int entry(fuse_req_t req, const fuse_entry_param* entry) {
  before_answer();
  return ::fuse_reply_entry(req, entry);
}
inline int create(fuse_req_t req, const fuse_entry_param* entry, const fuse_file_info* fi) {
  before_answer();
  return ::fuse_reply_create(req, entry, fi);
}
inline int attr(fuse_req_t req, const struct stat* st, double timeout_seconds) {
  before_answer();
  return ::fuse_reply_attr(req, st, timeout_seconds);
}
inline int readlink(fuse_req_t req, const char* target) {
  before_answer();
  return ::fuse_reply_readlink(req, target);
}
inline int open(fuse_req_t req, const fuse_file_info* fi) {
  before_answer();
  return ::fuse_reply_open(req, fi);
}
inline int write(fuse_req_t req, size_t count) {
  before_answer();
  return ::fuse_reply_write(req, count);
}
inline int buf(fuse_req_t req, const char* bytes, size_t size) {
  before_answer();
  return ::fuse_reply_buf(req, bytes, size);
}
inline int data(fuse_req_t req, fuse_bufvec* pieces) {
  before_answer();
  return ::fuse_reply_data(req, pieces, static_cast<fuse_buf_copy_flags>(0));
}
inline int statfs(fuse_req_t req, const struct statvfs* st) {
  before_answer();
  return ::fuse_reply_statfs(req, st);
}
inline int xattr(fuse_req_t req, size_t size) {
  before_answer();
  return ::fuse_reply_xattr(req, size);
}
inline int ioctl(fuse_req_t req, int result, const void* out, size_t size) {
  before_answer();
  return ::fuse_reply_ioctl(req, result, out, size);
}
inline int lseek(fuse_req_t req, off_t offset) {
  before_answer();
  return ::fuse_reply_lseek(req, offset);
}

}  // namespace graphlane::fuse::reply
