// OpenHandles: owns the objects behind the kernel's file handles until the kernel releases them. It
// also frees handles that are open when a session ends, because the kernel does not release those.
//
// Threads: safe from any thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "fuse/ops/fuse_api.h"
#include "iomgr/base/mutex.h"

namespace graphlane::fuse {

struct OpenHandle {
  virtual ~OpenHandle() = default;
};

class OpenHandles {
 public:
  // At most `count_max` handles: each has descriptors, and look-ups need some as well.
  explicit OpenHandles(size_t count_max) : count_max_(count_max) {}

  // Whether the next open must fail with EMFILE.
  bool full() {
    MutexLock lock(mu_);
    return open_.size() >= count_max_;
  }

  // Hands the handle to the kernel, which may use it from now on.
  void give(std::unique_ptr<OpenHandle> handle, fuse_file_info* fi) {
    fi->fh = reinterpret_cast<uint64_t>(handle.get());
    MutexLock lock(mu_);
    open_.emplace(handle.get(), std::move(handle));
  }

  template <class Kind>
  static Kind& of(const fuse_file_info* fi) {
    return static_cast<Kind&>(*reinterpret_cast<OpenHandle*>(fi->fh));
  }

  // The kernel does not use the handle any more.
  void release(const fuse_file_info* fi) {
    std::unique_ptr<OpenHandle> handle;  // destroyed after the lock is released
    MutexLock lock(mu_);
    const auto found = open_.find(reinterpret_cast<OpenHandle*>(fi->fh));
    handle = std::move(found->second);
    open_.erase(found);
  }

  // Frees all handles. Precondition: the workers have ended.
  void release_all() {
    MutexLock lock(mu_);
    open_.clear();
  }

 private:
  const size_t count_max_;
  Mutex mu_;
  std::unordered_map<const OpenHandle*, std::unique_ptr<OpenHandle>> open_ GUARDED_BY(mu_);
};

}  // namespace graphlane::fuse
