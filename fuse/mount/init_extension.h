// InitExtension: connection features that libfuse before 3.17 cannot negotiate:
//
//   HANDLE_KILLPRIV_V2    the daemon drops set-id bits; no getxattr before every write
//   PASSTHROUGH           the kernel reads and writes plain files itself (passthrough.h)
//   DIRECT_IO_ALLOW_MMAP  files that are read past the kernel's pages can be mapped all the same
//
// With libfuse 3.17 this uses its API. With older ones it completes libfuse's messages on their
// way:
//
//   kernel ── INIT: the features offered ──────────────────────────────────► here
//          ◄─ INIT's reply: flags, flags2, max_stack_depth ── here ───────── libfuse
//          ◄─ OPEN's, CREATE's: FOPEN_PASSTHROUGH, id ─────── here ───────── libfuse
//          ◄─ INIT's answer: flags, flags2, max_stack_depth ── we ──────── libfuse
//          ◄─ OPEN's, CREATE's: FOPEN_PASSTHROUGH, id ──────── we ──────── libfuse
//
// Threads: watch() and want_…() are called once, before and in init(). A NamedBacking belongs to
// its thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "fuse/ops/fuse_api.h"

namespace graphlane::fuse {

class InitExtension {
 public:
  // Call it before the session's first request. If it fails, no feature is negotiated.
  void watch(fuse_session* session);

  // Call these in init(). True: the feature is on.
  bool want_killpriv_v2(fuse_conn_info* conn);
  bool want_passthrough(fuse_conn_info* conn);
  bool want_direct_io_with_maps(fuse_conn_info* conn);

 private:
  bool want(uint64_t flag);
  static ssize_t read(int fd, void* bytes, size_t size, void* filesystem);
  static ssize_t write(int fd, iovec* pieces, int count, void* filesystem);
  void see_request(const void* bytes, size_t size);
  void complete_answer(const iovec* pieces, int count);

  uint64_t offered_ = 0;  // protocol flags
  uint64_t wanted_ = 0;
  std::atomic<bool> agreed_ = false;  // INIT has its reply
};

// Lives around the reply to an open: the kernel passes the file through to this backing id. 0: no
// passthrough.
class NamedBacking {
 public:
  NamedBacking(fuse_file_info* fi, int backing_id);
  ~NamedBacking();
  NamedBacking(const NamedBacking&) = delete;
  NamedBacking& operator=(const NamedBacking&) = delete;
};

}  // namespace graphlane::fuse
