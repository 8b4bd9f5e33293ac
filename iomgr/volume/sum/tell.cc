#include "iomgr/volume/sum/tell.h"

#include <unistd.h>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/log.h"

namespace graphlane {
namespace {

void log_failure(const SumFailure& failure) {
  char path[4096];
  const ssize_t length = ::readlink(ProcPath(failure.part_fd).c_str(), path, sizeof path);
  const std::string_view part(path, length > 0 ? static_cast<size_t>(length) : 0);
  if (failure.verdict != SumVerdict::kGood) {
    return log_line("{}: cannot be verified, so reads of it fail: its checksums {}", part,
                    describe(failure.verdict));
  }
  log_line("{}: bytes {} to {} do not match their checksum", part, failure.part_offset,
           failure.part_offset + kBlockSize - 1);
}

}  // namespace

void log_sum_failures() { tell_sum_failure = log_failure; }

}  // namespace graphlane
