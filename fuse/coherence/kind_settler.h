// KindSettler: gives files that were renamed through this mount the kind of their new name
// (iomgr/volume/kind.h, iomgr/admin/kind_change.h), in the background.
//
//   rename() ──► marked, queued ──not open──► copied, exchanged ──► the kernel looks the name up again
//                     ▲──────── open: later ──────┘
//
// The rename itself costs an attribute. Files can still be marked when the mount ends or its daemon is
// killed. `graphlane check --repair` changes these. A mount also changes a plain one that a program has
// opened through it and closed.
//
// Threads: everything is safe from any thread; one of its own changes files, one after the other.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/kind.h"

namespace graphlane::fuse {

struct Filesystem;

class KindSettler {
 public:
  explicit KindSettler(Filesystem& fs) : fs_(fs) {}
  ~KindSettler() { stop(); }
  KindSettler(const KindSettler&) = delete;
  KindSettler& operator=(const KindSettler&) = delete;

  // Call it before the first request.
  void start();
  // Call it after the mount has ended. Small files that wait are changed yet.
  void stop();

  // A file has got this name, instead of `old_name`. Must precede the reply.
  void renamed(int directory_fd, const char* name, const char* old_name);
  // A handle of the plain file ends. `fd` is the host's descriptor.
  void closed(int fd);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Fd fd;  // O_PATH: it keeps the inode's number
    dev_t device = 0;
    ino_t inode = 0;
    FileKind kind = FileKind::kPlain;
    Clock::time_point due = {};
    std::chrono::milliseconds pause{};  // before it is tried again
  };
  enum class Tried { kDone, kLater };

  void add(Fd fd, FileKind kind);
  void run();
  Tried settle(const Waiting& file);
  void look_up_again(const TreePlace& place);

  Filesystem& fs_;
  std::thread thread_;
  Mutex mu_;
  CondVar changed_;
  std::vector<Waiting> waiting_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  Clock::time_point deadline_ GUARDED_BY(mu_) = {};  // once stopping_
};

}  // namespace graphlane::fuse
