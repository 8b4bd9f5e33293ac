// StubCache: what one file of the volume is, as its stub says. Reading a stub
// costs an open; it is done again only when the file's ctime or size changed.
//
// Also remembers the opened parts, so that all who have the file open at the
// same time share one set of descriptors.
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

namespace graphlane {

struct StubView {
  StubVerdict verdict = StubVerdict::kNotAStub;
  Layout layout;  // for kStub
  int error = 0;  // nobody knows now, for want of memory or descriptors: neither of these
  bool unreadable = false;  // of a stub's size, but we may not read it: nor these

  bool plain() const {
    return error == 0 && !unreadable && verdict == StubVerdict::kNotAStub;
  }
  bool striped() const { return error == 0 && verdict == StubVerdict::kStub; }
};

class StubCache {
 public:
  // `path_fd` is the file, `st` its attributes as they are now.
  StubView look(int path_fd, const struct stat& st);

  // The file, if somebody has it open already.
  std::shared_ptr<StripedFile> opened(const Uuid& file_id);

  // Keeps `file` findable for as long as somebody holds it.
  void remember(const std::shared_ptr<StripedFile>& file);

  // The same, unless somebody else's of the same parts is there already: then that one.
  std::shared_ptr<StripedFile> share(const std::shared_ptr<StripedFile>& file);

  // Whether the content is the one of the last call, going by file id (nil: a plain file)
  // and the attributes of the host's file, so that the kernel may keep its pages
  // (invalidation.h). Before the first call it has none. What others (not `ours`) have changed
  // within the tick of its times they may have changed twice: the next call says no once more.
  bool same_content(const Uuid& file_id, const struct stat& st, bool ours);

 private:
  // A stub's ctime is other things' too: its mode, and the word that its file is closed.
  struct Content {
    Uuid file_id;
    int64_t mtime_ns = 0;
    int64_t ctime_ns = 0;  // of a plain file
    off_t size = 0;        // the same
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
  bool content_may_have_changed_ GUARDED_BY(mu_) = false;  // unseen
};

}  // namespace graphlane
