// WriteBehind: starts the devices' writes while a copy goes on.
//
//   copy     ──write──► page cache of the parts ──noticed()──► a thread per device
//                                                             sync_file_range(WRITE)
//
// Left alone, the kernel keeps dirty pages until they are a tenth of the memory, or until a sync.
// Then the copy takes the sum of both times, not the longer one. The copying thread never waits
// for a device's queue.
//
// A device gets little at once, so that an error or interrupt need not wait for it either. These
// are only hints: durable parts need a sync, and without threads the copy goes on as before.
#pragma once

#include <thread>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane {

class WriteBehind {
 public:
  // The file's parts are open for writing, and must outlive this.
  explicit WriteBehind(const StripedFile& file);
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // The range was written. Safe from any thread.
  void noticed(ByteRange range);
  // Waits until all writes were started; call it once. Without it the destructor leaves the rest
  // to the kernel.
  void finish();

 private:
  void run(uint32_t device_index);

  const StripedFile& file_;
  Mutex mu_;
  CondVar changed_;
  std::vector<ByteRange> waiting_ GUARDED_BY(mu_);  // per part, not started
  bool finishing_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // last, because they use the members above
};

}  // namespace graphlane
