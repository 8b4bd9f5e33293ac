// OpenHandles: what the kernel's file handles stand for. They are owned here until
// the kernel releases them: a session that ends is not told of those that are still
// open, nor of those that were closed just before.
//
// Threads: safe from any thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "fuse/ops/fuse_api.h"
#include "iomgr/base/mutex.h"

namespace graphlane {

struct OpenHandle {
  virtual ~OpenHandle() = default;
};

class OpenHandles {
 public:
  // Handles have descriptors: with more than `count_max`, names could not be looked
  // up any more.
  explicit OpenHandles(size_t count_max) : count_max_(count_max) {}

  // Whether the next open shall fail (EMFILE).
  bool full() {
    MutexLock lock(mu_);
    return open_.size() >= count_max_;
  }

  // From now on the kernel may use it.
  void give(std::unique_ptr<OpenHandle> handle, fuse_file_info* fi) {
    fi->fh = reinterpret_cast<uint64_t>(handle.get());
    MutexLock lock(mu_);
    open_.emplace(handle.get(), std::move(handle));
  }

  template <class Kind>
  static Kind& of(const fuse_file_info* fi) {
    return static_cast<Kind&>(*reinterpret_cast<OpenHandle*>(fi->fh));
  }

  // The kernel will not use it any more.
  void release(const fuse_file_info* fi) {
    std::unique_ptr<OpenHandle> handle;  // goes without the lock
    MutexLock lock(mu_);
    const auto found = open_.find(reinterpret_cast<OpenHandle*>(fi->fh));
    handle = std::move(found->second);
    open_.erase(found);
  }

  // Nor any of them. The workers have ended.
  void release_all() {
    MutexLock lock(mu_);
    open_.clear();
  }

 private:
  const size_t count_max_;
  Mutex mu_;
  std::unordered_map<const OpenHandle*, std::unique_ptr<OpenHandle>> open_ GUARDED_BY(mu_);
};

}  // namespace graphlane
