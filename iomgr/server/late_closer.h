// LateCloser: closes files that programs without a mount have changed, once no program writes them
// any more. So they get their checksums, and say `closed`, without a mount or a check.
//
//   program ──ChangeNotice──► VolumeServer ──► note() ──► its thread ──► close_file()
//
// A file is tried some seconds after the last notice, again while a program has it open for
// writing, and at the end of the server. A program that asks for the file meanwhile is let in first.
// The file is known by a descriptor of its stub, so that no other one takes its name.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class LateCloser {
 public:
  explicit LateCloser(std::shared_ptr<const Volume> volume);
  // Closes what no program writes now. That takes at most kEndMax and the time of one file.
  ~LateCloser();
  LateCloser(const LateCloser&) = delete;
  LateCloser& operator=(const LateCloser&) = delete;

  // The file of this stub is being changed. Ignored if too many files wait; of one user, at most half
  // of those that the others leave.
  void note(Fd stub, uid_t user);

 private:
  using Clock = std::chrono::steady_clock;
  using Inode = std::pair<dev_t, ino_t>;
  struct Waiting {
    std::shared_ptr<const Fd> stub;
    uid_t user;
    Clock::time_point due;
  };
  static constexpr size_t kFilesMax = 512;
  static constexpr auto kPause = std::chrono::seconds(5);
  static constexpr auto kEndMax = std::chrono::seconds(20);

  void run();
  // Tries those that are due by then, and lets the lock go meanwhile.
  void close_due(Clock::time_point due, Clock::time_point deadline) REQUIRES(mu_);

  const std::shared_ptr<const Volume> volume_;
  Mutex mu_;
  CondVar changed_;
  std::map<Inode, Waiting> waiting_ GUARDED_BY(mu_);
  bool ends_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace graphlane
