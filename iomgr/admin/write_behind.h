// WriteBehind: devices write while a copy goes on.
//
//   copy     ──write──► page cache of the parts ──noticed()──► a thread a device
//                                                             sync_file_range(WRITE)
//
// Left alone the kernel keeps what is written until a tenth of the memory is dirty, or
// somebody syncs: then a copy takes the time of the copying and of the devices, not that
// of the longer. Who copies is never held up by a device's queue.
//
// A device gets little at once, so that an end is not waited for either. Only hints: who needs the bytes
// on the devices syncs the parts, and where there are no more threads to be had it goes without.
#pragma once

#include <thread>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane {

class WriteBehind {
 public:
  // The file's parts are open for writing, and outlive this.
  explicit WriteBehind(const StripedFile& file);
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // The range has been written. From any thread.
  void noticed(ByteRange range);
  // All of it has been begun; once. Without this, the end leaves the rest to the kernel.
  void finish();

 private:
  void run(uint32_t device_index);

  const StripedFile& file_;
  Mutex mu_;
  CondVar changed_;
  std::vector<ByteRange> waiting_ GUARDED_BY(mu_);  // of each part, not begun
  bool finishing_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // last: they use all of it
};

}  // namespace graphlane
