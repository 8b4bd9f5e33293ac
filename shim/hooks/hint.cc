// Hints: prefetches the announced range where the library's reads will find it. FUSE would fetch it
// into the page cache of the mount, which those reads bypass.
#include <fcntl.h>
#include <limits.h>

#include "shim/fd/access.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/read/transfer.h"

namespace graphlane::shim {
namespace {

// Handles a file that the library reads; length 0 means up to its end. False: left to libc.
bool advise(int fd, off_t offset, off_t length, int advice) {
  if (is_known_foreign(fd) || offset < 0 || length < 0) return false;
  const OpenFileRef file = acquire(fd);
  if (!file || file->origin == Origin::kDamaged || !may_read(file.access())) return false;
  const uint64_t begin = static_cast<uint64_t>(offset);
  const uint64_t left = file.size() > begin ? file.size() - begin : 0;
  const uint64_t wanted = length == 0 ? left : static_cast<uint64_t>(length);
  advise_striped(file, {.offset = begin, .length_bytes = wanted < left ? wanted : left}, advice);
  return true;
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

// Other advice is about the descriptor, and is left to the kernel.
int hook_posix_fadvise(int fd, off_t offset, off_t length, int advice) {
  const bool of_data = advice == POSIX_FADV_WILLNEED || advice == POSIX_FADV_DONTNEED;
  if (of_data && advise(fd, offset, length, advice)) return 0;
  return real::posix_fadvise(fd, offset, length, advice);
}

int hook_posix_fadvise64(int fd, off_t offset, off_t length, int advice) {
  return hook_posix_fadvise(fd, offset, length, advice);
}

ssize_t hook_readahead(int fd, off_t offset, size_t count) {
  if (count == 0 || count > SSIZE_MAX) return real::readahead(fd, offset, count);
  if (advise(fd, offset, static_cast<off_t>(count), POSIX_FADV_WILLNEED)) return 0;
  return real::readahead(fd, offset, count);
}
