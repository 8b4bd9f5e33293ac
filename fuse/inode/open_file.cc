#include "fuse/inode/open_file.h"

#include <unistd.h>

namespace graphlane::fuse {

int OpenFile::sync(bool data_only) {
  if (!striped) return (data_only ? ::fdatasync(fd.get()) : ::fsync(fd.get())) != 0 ? errno : 0;
  const Result<void> done = live ? live->sync(data_only) : striped->sync(data_only);
  const SyncErrors errors = striped->sync_errors();
  const bool is_news = sync_errors_told.exchange(errors.count) != errors.count;
  if (!done) return done.error().code;
  return is_news ? errors.last : 0;
}

}  // namespace graphlane::fuse
