// What the kernel and we agree on, and libfuse before 3.17 does not know:
//
//   HANDLE_KILLPRIV_V2    set-id bits are ours to drop; no getxattr before every write
//   PASSTHROUGH           plain files without us (passthrough.h)
//   DIRECT_IO_ALLOW_MMAP  what is read past the kernel's pages may be mapped all the same
//
// libfuse 3.17 is asked by its own names. What those before it send is completed on the way:
//
//   kernel ── INIT: what it offers ──────────────────────────────────────► we
//          ◄─ INIT's answer: flags, flags2, max_stack_depth ── we ──────── libfuse
//          ◄─ OPEN's, CREATE's: FOPEN_PASSTHROUGH, id ──────── we ──────── libfuse
//
// Threads: watch() and want_…() once, before and in init(); a NamedBacking is its thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "fuse/ops/fuse_api.h"

namespace graphlane {

class InitExtension {
 public:
  // Before the session's first request. Where it fails, nothing more is agreed on.
  void watch(fuse_session* session);

  // In init(). True: it is so from now on.
  bool want_killpriv_v2(fuse_conn_info* conn);
  bool want_passthrough(fuse_conn_info* conn);
  bool want_direct_io_with_maps(fuse_conn_info* conn);

 private:
  bool want(uint64_t flag);
  static ssize_t read(int fd, void* bytes, size_t size, void* filesystem);
  static ssize_t write(int fd, iovec* pieces, int count, void* filesystem);
  void see_request(const void* bytes, size_t size);
  void complete_answer(const iovec* pieces, int count);

  uint64_t offered_ = 0;  // flags of the protocol
  uint64_t wanted_ = 0;
  std::atomic<bool> agreed_ = false;  // INIT is answered
};

// Around the answer to an open: the kernel shall pass the file through to this backing id; 0:
// it shall not.
class NamedBacking {
 public:
  NamedBacking(fuse_file_info* fi, int backing_id);
  ~NamedBacking();
  NamedBacking(const NamedBacking&) = delete;
  NamedBacking& operator=(const NamedBacking&) = delete;
};

}  // namespace graphlane
