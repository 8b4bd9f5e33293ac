#include "shim/base/sum_failures.h"

#include <unistd.h>

#include "iomgr/base/files/reopen.h"
#include "iomgr/volume/sum/part_sums.h"
#include "shim/base/text.h"

namespace graphlane::shim {
namespace {

void complain_of(const SumFailure& failure) {
  char path[1024];
  const long length = ::syscall(SYS_readlink, ProcPath(failure.part_fd).c_str(), path, sizeof path);
  const std::string_view part(path, length > 0 ? static_cast<size_t>(length) : 0);
  Text<256> reason;
  if (failure.verdict != SumVerdict::kGood) {
    reason << "cannot be verified, so reads of it fail: its checksums "
           << describe(failure.verdict);
  } else {
    reason << "bytes " << failure.part_offset << " to " << failure.part_offset + kBlockSize - 1
           << " do not match their checksum";
  }
  complain(part, reason.view());
}

}  // namespace

void tell_sum_failures() { tell_sum_failure.store(complain_of, std::memory_order_relaxed); }

}  // namespace graphlane::shim
