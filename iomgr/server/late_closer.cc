#include "iomgr/server/late_closer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/log.h"
#include "iomgr/volume/parts/close_file.h"

namespace graphlane {
namespace {

// Whether it need not be tried again. What this process may not close is left to others.
bool close_now(const Volume& volume, int stub_fd) {
  Fd stub = reopen_keeping_atime(stub_fd, O_RDWR | O_NONBLOCK);
  struct stat st;
  if (!stub || ::fstat(stub.get(), &st) != 0 || st.st_nlink == 0) return true;
  const Outcome<bool> closed = close_file(volume, std::move(stub), volume.root());
  if (!closed && closed.error().code == EBUSY) return false;
  if (!closed) log_line(closed.error().text);
  return true;
}

}  // namespace

LateCloser::LateCloser(std::shared_ptr<const Volume> volume)
    : volume_(std::move(volume)), thread_(&LateCloser::run, this) {}

LateCloser::~LateCloser() {
  {
    const MutexLock lock(mu_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LateCloser::note(Fd stub, uid_t user) {
  struct stat st;
  if (::fstat(stub.get(), &st) != 0) return;
  const MutexLock lock(mu_);
  const auto due = Clock::now() + kPause;
  const Inode inode{st.st_dev, st.st_ino};
  if (const auto found = waiting_.find(inode); found != waiting_.end()) {
    found->second.due = due;
    return;
  }
  const auto of_user = static_cast<size_t>(
      std::count_if(waiting_.begin(), waiting_.end(),
                    [user](const auto& entry) { return entry.second.user == user; }));
  const size_t others = waiting_.size() - of_user;
  if (of_user >= (kFilesMax - others) / 2) return;
  waiting_.emplace(inode, Waiting{std::make_shared<const Fd>(std::move(stub)), user, due});
  changed_.notify_all();
}

void LateCloser::run() {
  const MutexLock lock(mu_);
  while (!ends_) {
    auto next = Clock::time_point::max();
    for (const auto& [inode, file] : waiting_) next = std::min(next, file.due);
    if (waiting_.empty()) {
      changed_.wait(mu_);
    } else if (Clock::now() < next) {
      changed_.wait_until(mu_, next);
    } else {
      close_due(Clock::now(), Clock::time_point::max());
    }
  }
  close_due(Clock::time_point::max(), Clock::now() + kEndMax);
}

void LateCloser::close_due(Clock::time_point due, Clock::time_point deadline) {
  std::vector<std::pair<Inode, Waiting>> files;
  for (const auto& [inode, file] : waiting_) {
    if (file.due <= due) files.emplace_back(inode, file);
  }
  for (const auto& [inode, file] : files) {
    if (Clock::now() >= deadline || (ends_ && deadline == Clock::time_point::max())) return;
    mu_.unlock();
    const bool is_done = close_now(*volume_, file.stub->get());
    mu_.lock();
    const auto found = waiting_.find(inode);
    if (found->second.due != file.due) continue;  // it was changed again meanwhile
    if (is_done) {
      waiting_.erase(found);
    } else {
      found->second.due = Clock::now() + kPause;
    }
  }
}

}  // namespace graphlane
