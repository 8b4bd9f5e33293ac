// StubCache: the kind and layout of one file, from its stub. Reading a stub costs an open, so it is
// repeated only when the file's ctime or size has changed.
//
// It also remembers the open parts, so that all concurrent opens of the file share one set of
// descriptors.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/stub/stub.h"

namespace graphlane::fuse {

struct StubView {
  StubVerdict verdict = StubVerdict::kNotAStub;
  Layout layout;            // for kStub
  int error = 0;            // reading failed for lack of memory or descriptors: the kind is unknown
  bool unreadable = false;  // it has a stub's size, but may not be read: the kind is unknown

  bool plain() const { return error == 0 && !unreadable && verdict == StubVerdict::kNotAStub; }
  bool striped() const { return error == 0 && verdict == StubVerdict::kStub; }
};

class StubCache {
 public:
  // `st` are the present attributes of the file `path_fd`.
  StubView look(int path_fd, const struct stat& st);

  // The file, if it is open already.
  std::shared_ptr<StripedFile> opened(const Uuid& file_id);

  // Makes opened() find `file` while any holder of it lives.
  void remember(const std::shared_ptr<StripedFile>& file);

  // As remember(); but if another object for the same parts is open, returns that one.
  std::shared_ptr<StripedFile> share(const std::shared_ptr<StripedFile>& file);

  // Whether the content is that of the last call, so that the kernel may keep its pages
  // (invalidation.h). Compares the file id (nil: a plain file) and the host's attributes. The first
  // call returns true. `ours`: this mount has made the change. A foreign change within the clock's
  // tick may be followed by another with the same times, so the next call returns false once more.
  bool same_content(const Uuid& file_id, const struct stat& st, bool ours);

 private:
  // Without the ctime of a stub, which changes with its mode and its `closed` state too.
  struct Content {
    Uuid file_id;
    int64_t mtime_ns = 0;
    int64_t ctime_ns = 0;  // of a plain file only
    off_t size = 0;        // of a plain file only
    friend bool operator==(const Content&, const Content&) = default;
  };

  Mutex mu_;
  bool known_ GUARDED_BY(mu_) = false;
  timespec ctime_ GUARDED_BY(mu_) = {};
  off_t size_ GUARDED_BY(mu_) = 0;
  StubView view_ GUARDED_BY(mu_);
  std::weak_ptr<StripedFile> opened_ GUARDED_BY(mu_);
  std::optional<Content> content_ GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point content_since_ GUARDED_BY(mu_);  // first seen
  bool content_may_have_changed_ GUARDED_BY(mu_) = false;                // within the same tick
};

}  // namespace graphlane::fuse
